//! Opt-ins of the set.

use serde_json::Value;
use statefulset_controller::Waiting;
use statefulset_controller::opt_ins::{CLAIMS_RESIZED, Carrier, Cause, ClaimState, Wait};

use crate::decide::Decision;
use crate::model::Budget;
use crate::why::case::Case;
use crate::why::finding::{Finding, State};

/// The cause if claims don't have the sizes for which the set asks.
const GROWTH: &str = "claim-growth";

/// The cause if a pod that blocks the rollout is about to be replaced. A budget without room refuses
/// its eviction.
pub(in crate::why) fn replaced(case: Case<'_>, decision: &Decision) -> Option<Finding> {
    let Some(Waiting::OptIn(Wait::BlockingPodReplaced(pod))) = &decision.waiting else {
        return None;
    };
    let budgets = case.snapshot.budgets_of(case.set);
    let full = budgets.filter(|budget| budget.status.disruptions_allowed == 0);
    let full: Vec<String> = full.map(Budget::text).collect();
    if full.is_empty() || !is_evicted(case) {
        let text = format!("pod {pod} blocks the rollout and is about to be replaced");
        let rights = "if it stays, check that the controller may create pods/eviction";
        return Some(Finding::waiting(Cause::Repair.name(), text).but(rights));
    }
    let text = format!("pod {pod} blocks the rollout, and its budget refuses the eviction");
    let finding = Finding::stuck(Cause::EvictionRefused.name(), text).shown_by(full);
    let finding = finding.but("the controller tries again every 30 seconds");
    Some(match case.delete_pod(pod) {
        Some(command) => finding.resolved_by(command),
        None => finding,
    })
}

/// Reports whether the set chose repair by eviction.
fn is_evicted(case: Case<'_>) -> bool {
    let set = case.snapshot.set.as_ref();
    let set = set.and_then(|set| serde_json::from_str::<Value>(&set.text).ok());
    let method = set.as_ref().and_then(|set| {
        let annotations = set.pointer("/metadata/annotations")?;
        annotations.get(Carrier::Repair.annotation())?.as_str()
    });
    method == Some("evict")
}

/// The cause if an opt-in makes the set wait.
pub(in crate::why) fn waiting(wait: &Wait) -> Finding {
    let text = wait.to_string();
    match wait {
        Wait::BlockingPodReplaced(_) => Finding::waiting(Cause::Repair.name(), text),
        Wait::RestartedForClaim(_) => Finding::waiting(Cause::InProgress.name(), text),
        Wait::EvictionRefused { .. } => Finding::stuck(Cause::EvictionRefused.name(), text),
        Wait::InPlaceUpdate(_) => Finding::waiting(Cause::InPlaceUpdate.name(), text),
        Wait::RemovalGate { opens_at, .. } => {
            let finding = Finding::waiting(Cause::RemovalGate.name(), text);
            match opens_at {
                Some(at) => finding.but(format!("the gate no longer holds from {at} on")),
                None => finding.but("change or remove the label or annotation to lift the gate"),
            }
        }
    }
}

/// Adds claims that don't have the sizes for which the set asks, as its condition names them. It is the
/// cause if nothing else is left to do.
pub(in crate::why) fn with_growth(case: Case<'_>, finding: Finding) -> Finding {
    let Some((reason, message)) = growth(case) else {
        return finding;
    };
    if finding.state != State::Settled {
        return finding.shown_by([format!("condition {CLAIMS_RESIZED}: {message}")]);
    }
    let state = ClaimState::of_reason(&reason);
    let text = format!("claims don't have their size: {message}");
    match state {
        Some(state) if state.passes() => Finding::waiting(GROWTH, text),
        Some(ClaimState::AwaitsPodRestart) => Finding::stuck(GROWTH, text)
            .but("restart the pods of these claims, or let the controller do it: kubectl sts resize --with-pod"),
        _ => Finding::stuck(GROWTH, text),
    }
}

/// Returns the reason and the message of the condition about claims, unless all have their size.
fn growth(case: Case<'_>) -> Option<(String, String)> {
    let set = case.snapshot.set.as_ref()?;
    let set: Value = serde_json::from_str(&set.text).ok()?;
    let conditions = set.pointer("/status/conditions")?.as_array()?;
    let found = conditions.iter().find(|it| it["type"] == CLAIMS_RESIZED)?;
    let text = |member: &str| found[member].as_str().unwrap_or_default().to_owned();
    (text("status") == "False").then(|| (text("reason"), text("message")))
}

/// The cause if a choice of the user holds the rest of the rollout back.
pub(in crate::why) fn held(case: Case<'_>, decision: &Decision) -> Option<Finding> {
    let cause = decision.situation.as_ref()?.cause;
    let set = &case.set.metadata.name;
    let namespace = &case.snapshot.namespace;
    let (text, command) = match cause {
        Cause::Paused => (
            "the rollout is paused",
            format!("kubectl sts resume {set} -n {namespace}"),
        ),
        Cause::RolloutLimit => (
            "the rollout reached its limit",
            format!("kubectl sts step {set} -n {namespace}"),
        ),
        Cause::ProgressDeadlineExceeded => (
            "the progress deadline has passed, and the rollout is paused until the spec changes",
            case.kubectl(&format!(
                "annotate statefulset {set} {}=stall --overwrite",
                Carrier::OnDeadline.annotation()
            )),
        ),
        _ => return None,
    };
    Some(Finding::stuck(cause.name(), text).resolved_by(command))
}
