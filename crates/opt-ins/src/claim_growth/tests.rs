//! Tests of states, refusals and the condition.

use std::time::Duration;

use jiff::Timestamp;
use statefulset_controller_util::claim::{Claim, ClaimPhase, ClaimStorage};
use statefulset_controller_util::stateful_set::{Condition, Conditions, StatefulSetStatus};

use super::condition::report;
use super::grow::Unfinished;
use super::refusals::ClaimRefusals;
use super::state::is_in_flight;
use super::*;
use crate::conditions::{self, CLAIMS_RESIZED};

fn claim(request: i64, capacity: i64, change: impl FnOnce(&mut Claim)) -> Claim {
    let storage = ClaimStorage {
        request,
        capacity,
        phase: ClaimPhase::Bound,
        ..ClaimStorage::default()
    };
    let mut claim = Claim {
        storage,
        ..Claim::default()
    };
    change(&mut claim);
    claim
}

#[test]
fn state_follows_from_sizes_and_progress() {
    use ClaimState::{
        AwaitsPodRestart, ClaimLost, Growing, Infeasible, PodRestart, ProviderError, Queued,
        Resized, ShrinkRefused, Terminating, Unbound,
    };
    type Change = fn(&mut Claim);
    let none: Change = |_| {};
    let awaits: Change = |it| it.storage.awaits_node = true;
    let failed: Change = |it| it.storage.failed = true;
    let infeasible: Change = |it| it.storage.infeasible = true;
    let both: Change = |it| (it.storage.awaits_node, it.storage.failed) = (true, true);
    let pending: Change = |it| it.storage.phase = ClaimPhase::Pending;
    let lost: Change = |it| it.storage.phase = ClaimPhase::Lost;
    let deleted: Change = |it| it.deletion_timestamp = Some(Timestamp::UNIX_EPOCH);
    // Request, capacity, change, state and use of the budget without and with restarts.
    for (request, capacity, change, online, with_pod) in [
        (10, 10, none, (Queued, false), (Queued, false)),
        (15, 10, none, (Queued, true), (Queued, true)),
        (20, 10, none, (Growing, true), (Growing, true)),
        (20, 20, none, (Resized, false), (Resized, false)),
        // A volume may be larger than requested.
        (20, 30, none, (Resized, false), (Resized, false)),
        (30, 30, none, (ShrinkRefused, false), (ShrinkRefused, false)),
        (30, 10, none, (ShrinkRefused, true), (ShrinkRefused, true)),
        (
            20,
            10,
            awaits,
            (AwaitsPodRestart, false),
            (PodRestart, true),
        ),
        (15, 10, awaits, (Queued, false), (Queued, true)),
        (20, 20, awaits, (Resized, false), (Resized, false)),
        (20, 10, failed, (ProviderError, true), (ProviderError, true)),
        (20, 10, both, (AwaitsPodRestart, false), (PodRestart, true)),
        (20, 10, infeasible, (Infeasible, false), (Infeasible, false)),
        (15, 10, infeasible, (Queued, false), (Queued, false)),
        (10, 0, pending, (Unbound, false), (Unbound, false)),
        (20, 0, pending, (Resized, false), (Resized, false)),
        (
            30,
            0,
            pending,
            (ShrinkRefused, false),
            (ShrinkRefused, false),
        ),
        (10, 10, lost, (ClaimLost, false), (ClaimLost, false)),
        (20, 10, deleted, (Terminating, false), (Terminating, false)),
    ] {
        let claim = claim(request, capacity, change);
        for (restarts, expected) in [(false, online), (true, with_pod)] {
            let state = ClaimState::of(&claim, 20, restarts);
            let found = (state, is_in_flight(&claim, restarts));
            assert_eq!(found, expected, "{request} {capacity} {restarts}");
        }
    }
}

#[test]
fn states_have_reasons_and_words_of_their_own() {
    let reasons: Vec<&str> = ClaimState::ALL.map(ClaimState::reason).to_vec();
    let words: Vec<&str> = ClaimState::ALL.map(ClaimState::description).to_vec();
    for mut texts in [reasons, words] {
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), ClaimState::ALL.len());
    }
    assert!(ClaimState::ALL.is_sorted(), "the gravest comes first");
    for state in ClaimState::ALL {
        assert_eq!(ClaimState::of_reason(state.reason()), Some(state));
    }
}

#[test]
fn refusal_counts_for_its_size_until_its_time() {
    let refusals = ClaimRefusals::default();
    let start: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
    let seconds = jiff::SignedDuration::from_secs;
    let (class, quota) = (ClaimState::ClassForbids, ClaimState::QuotaExceeded);
    assert!(refusals.record("u", 20, class, "no", start));
    let wait = |wanted, at| refusals.get("u", wanted).and_then(|it| it.retry_after(at));
    assert_eq!(wait(20, start), Some(Duration::from_secs(30)));
    assert_eq!(wait(20, start + seconds(30)), None);
    assert_eq!(wait(30, start), None, "another size is tried at once");
    // A clock that was set back by a day delays no attempt by that.
    assert_eq!(wait(20, start - seconds(86_400)), None);
    assert!(!refusals.record("u", 20, class, "no", start));
    assert_eq!(wait(20, start), Some(Duration::from_secs(60)));
    assert!(refusals.record("u", 20, quota, "no", start), "a new reason");
    refusals.forget("u");
    assert_eq!(refusals.get("u", 20), None);
    // Refusals of claims that are gone don't stay.
    refusals.record("u", 20, class, "no", start);
    refusals.record("v", 20, class, "no", start + seconds(7_200));
    assert_eq!(refusals.get("u", 20), None);
}

fn unfinished(claim: &str, state: ClaimState, message: &str) -> Unfinished {
    Unfinished {
        claim: claim.into(),
        state,
        message: message.into(),
    }
}

#[test]
fn condition_names_the_gravest_claims() {
    let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
    let growth = Growth {
        total: 7,
        unfinished: vec![
            unfinished("e", ClaimState::Growing, ""),
            unfinished("d", ClaimState::Queued, ""),
            unfinished("c", ClaimState::Refused, "no"),
            unfinished("b", ClaimState::Queued, ""),
            unfinished("a", ClaimState::Queued, ""),
        ],
        ..Growth::default()
    };
    let mut status = StatefulSetStatus::default();
    report(&mut status, Some(&growth), now);
    let found = status.conditions.as_ref().unwrap().get(CLAIMS_RESIZED);
    let expected = Condition {
        condition_type: CLAIMS_RESIZED.into(),
        status: "False".into(),
        last_transition_time: "2026-03-01T12:00:00Z".into(),
        reason: "Refused".into(),
        message: "2 of 7 claims have the size that the set asks for; c: the API server refused \
                  the size (no); e: the volume is being expanded; d: claims of other pods come \
                  first; and 2 more"
            .into(),
    };
    assert_eq!(found.as_ref(), Some(&expected));
    assert!(conditions::is_own(&expected));

    let partial = Growth {
        total: 1,
        is_partial: true,
        ..Growth::default()
    };
    report(&mut status, Some(&partial), now);
    let found = status.conditions.as_ref().unwrap().get(CLAIMS_RESIZED);
    let found = found.unwrap();
    assert_eq!((&*found.status, &*found.reason), ("False", "Queued"));
    assert_eq!(
        &*found.message,
        "1 of 1 claims have the size that the set asks for; those of missing pods come later"
    );
    report(&mut status, None, now);
    assert_eq!(status.conditions, None::<Conditions>);
}
