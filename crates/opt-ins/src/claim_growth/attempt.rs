//! One attempt to let a claim grow: live read, decision, write.

use kube_apimachinery::quantity::Quantity;
use statefulset_client::error::Error as ApiError;
use statefulset_controller_util::claim::Claim;
use statefulset_controller_util::live::Live;
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_pod_control::stateful_set_utils::raise_request;
use statefulset_pod_control::{PodSlot, SetClaims};

use super::state::{ClaimState, is_in_flight};

/// Longest part of a server's message that is kept, in characters: enough for a quota's, which ends with
/// the limits.
const MESSAGE_MAX: usize = 400;

/// A claim to let grow.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'a> {
    /// The set.
    pub(super) set: &'a StatefulSet,
    /// The claim's pod.
    pub(super) slot: &'a PodSlot,
    /// The cached claim.
    pub(super) claim: &'a Claim,
    /// The desired size.
    pub(super) size: &'a Quantity,
    /// True if the controller restarts pods whose volumes wait for that.
    pub(super) restarts: bool,
}

/// The result of an attempt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// The size is requested.
    Written,
    /// The live claim needs no write: its state, and true if it takes part of the budget.
    NotNeeded(ClaimState, bool),
    /// The claim no longer exists.
    Gone,
    /// Another client changed the claim at the same time.
    Conflict,
    /// The request was refused: the state, and the server's reason.
    Refused(ClaimState, Box<str>),
}

impl Candidate<'_> {
    /// Requests the desired size, if the live claim is the set's and smaller.
    ///
    /// # Errors
    ///
    /// The API server can't be reached or fails.
    pub(super) async fn attempt(self, claims: SetClaims<'_>) -> Result<Attempt, ApiError> {
        let mut live = match claims.read_live(self.claim).await {
            Ok(Some(live)) => live,
            Ok(None) => return Ok(Attempt::Gone),
            Err(error) => return refused(error),
        };
        let wanted = self.size.value();
        match ClaimState::of(&live.object, wanted, self.restarts) {
            ClaimState::Queued if is_of_set(&live, self.set, self.slot) => {}
            ClaimState::Queued => {
                return Ok(Attempt::Refused(ClaimState::NotOfSet, Box::default()));
            }
            state => {
                let in_flight = is_in_flight(&live.object, self.restarts);
                return Ok(Attempt::NotNeeded(state, in_flight));
            }
        }
        raise_request(&mut live.json, self.size);
        match claims.write_live(live).await {
            Ok(()) => Ok(Attempt::Written),
            Err(error) if error.is_not_found() => Ok(Attempt::Gone),
            Err(error) if error.is_conflict() => Ok(Attempt::Conflict),
            Err(error) => refused(error),
        }
    }
}

/// Returns true if the claim has the labels that the set gives its claims, and nothing but the set and
/// the pod controls it.
fn is_of_set(live: &Live<Claim>, set: &StatefulSet, slot: &PodSlot) -> bool {
    let labels = live.json.pointer("/metadata/labels");
    let mut expected = set.spec.selector.match_labels().iter();
    let has_labels = expected.all(|(key, value)| {
        let found = labels.and_then(|labels| labels.get(key)?.as_str());
        found == Some(value)
    });
    let mut owners = live.object.owner_references.iter();
    has_labels
        && owners.all(|owner| {
            !owner.is_controller() || *owner.uid == *set.uid() || *owner.uid == *slot.uid()
        })
}

/// Returns the kind of a refusal. The causes that a later attempt may not meet are errors.
fn refused(error: ApiError) -> Result<Attempt, ApiError> {
    let is_refusal = error.is_forbidden() || error.is_invalid();
    if !is_refusal {
        return Err(error);
    }
    let message = error.to_string();
    let state = if error.is_missing_right() {
        ClaimState::MissingPermission
    } else if message.contains("the storageclass that provisions the pvc must support resize") {
        ClaimState::ClassForbids
    } else if message.contains("exceeded quota") {
        ClaimState::QuotaExceeded
    } else {
        ClaimState::Refused
    };
    Ok(Attempt::Refused(state, shortened(&message).into()))
}

/// Returns a message, with an ellipsis at its end if it is cut.
fn shortened(message: &str) -> String {
    let mut rest = message.chars();
    let mut kept: String = rest.by_ref().take(MESSAGE_MAX).collect();
    if rest.next().is_some() {
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_end_with_an_ellipsis() {
        assert_eq!(shortened("no"), "no");
        let kept = "ä".repeat(MESSAGE_MAX);
        assert_eq!(shortened(&kept), kept);
        assert_eq!(shortened(&format!("{kept}b")), format!("{kept}…"));
    }
}
