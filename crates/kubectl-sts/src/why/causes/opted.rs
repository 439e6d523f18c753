//! Opt-ins of the set.

use kube_apimachinery::quantity::Quantity;
use serde_json::Value;
use statefulset_controller::Waiting;
use statefulset_controller::opt_ins::{
    CLAIMS_RESIZED, Carrier, Cause, ClaimState, OPT_INS_VALID, Wait,
};

use crate::decide::Decision;
use crate::model::{Budget, Claim, Condition};
use crate::why::case::Case;
use crate::why::finding::{Doubt, Finding, SetState};

/// The cause if claims don't have the sizes for which the set asks.
const GROWTH: &str = "claim-growth";

/// Largest number of failed expansions in the evidence.
const FAILURES_MAX: usize = 3;

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
        let finding = Finding::waiting(Cause::Repair.name(), text).but(rights);
        return Some(finding.doubted_by(Doubt::Holder));
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
    annotation(case, Carrier::Repair).as_deref() == Some("evict")
}

/// The value of an annotation of the set.
fn annotation(case: Case<'_>, carrier: Carrier) -> Option<String> {
    let set = case.snapshot.set.as_ref()?;
    let set: Value = serde_json::from_str(&set.text).ok()?;
    let annotations = set.pointer("/metadata/annotations")?;
    let value = annotations.get(carrier.annotation())?.as_str()?;
    Some(value.to_owned())
}

/// The cause if an opt-in makes the set wait.
pub(in crate::why) fn waiting(case: Case<'_>, wait: &Wait) -> Finding {
    let text = wait.to_string();
    match wait {
        Wait::BlockingPodReplaced(_) => Finding::waiting(Cause::Repair.name(), text),
        Wait::EvictionRefused { .. } => Finding::stuck(Cause::EvictionRefused.name(), text),
        Wait::InPlaceUpdate(pod) => {
            let finding = Finding::waiting(Cause::InPlaceUpdate.name(), text);
            let finding = finding.doubted_by(Doubt::Holder);
            let pending = pending_resize(case, pod);
            if pending.is_empty() {
                return finding;
            }
            let limit = Carrier::InPlaceTimeout.annotation();
            finding.shown_by(pending).but(format!(
                "the pod is replaced if that lasts longer than its time limit ({limit})"
            ))
        }
        Wait::RemovalGate { opens_at, .. } => {
            let finding = Finding::waiting(Cause::RemovalGate.name(), text);
            match opens_at {
                Some(at) => finding.but(format!("the gate no longer holds from {at} on")),
                None => finding.but("change or remove the label or annotation to lift the gate"),
            }
        }
        // Restarts for claims, and reasons of later releases: their text explains them.
        _ => Finding::waiting(Cause::InProgress.name(), text),
    }
}

/// Adds the annotation that can't be used.
pub(in crate::why) fn with_unusable(case: Case<'_>, finding: Finding) -> Finding {
    let unusable = case.set.has_unusable_annotation();
    finding.shown_by(unusable.map(|it| format!("condition {OPT_INS_VALID}: {}", it.message)))
}

/// The conditions of a pod whose node hasn't carried out a resize yet.
fn pending_resize(case: Case<'_>, pod: &str) -> Vec<String> {
    let pod = case.snapshot.pod(pod);
    let kinds = ["PodResizePending", "PodResizeInProgress"];
    let conditions = kinds
        .into_iter()
        .filter_map(|kind| pod?.condition(kind))
        .filter(|condition| condition.status == "True" && !condition.message.is_empty());
    let text = |it: &Condition| format!("condition {}: {}: {}", it.kind, it.reason, it.message);
    conditions.map(text).collect()
}

/// Adds claims that don't have the sizes for which the set asks, as its condition names them. It is the
/// cause if nothing else is left to do.
pub(in crate::why) fn with_growth(case: Case<'_>, finding: Finding) -> Finding {
    let Some(Condition {
        reason, message, ..
    }) = case.set.lacks_claim_sizes()
    else {
        return finding;
    };
    let failures = case.snapshot.claims().flat_map(|claim| {
        let name = &claim.metadata.name;
        let failed = claim
            .failed_expansions()
            .filter(|it| !it.message.is_empty());
        failed.map(move |it| format!("claim {name}: {}: {}", it.kind, it.message))
    });
    let finding = finding.shown_by(failures.take(FAILURES_MAX));
    if finding.state != SetState::Settled {
        return finding.shown_by([format!("condition {CLAIMS_RESIZED}: {message}")]);
    }
    let state = ClaimState::of_reason(reason);
    let text = format!("claims don't have their size: {message}");
    let evidence = finding.evidence;
    let finding = match state {
        Some(ClaimState::Queued | ClaimState::PodRestart) => {
            Finding::waiting(GROWTH, text).doubted_by(Doubt::Holder)
        }
        Some(state) if state.passes() => Finding::waiting(GROWTH, text),
        Some(ClaimState::AwaitsPodRestart) => Finding::stuck(GROWTH, text).but(restart(case)),
        Some(ClaimState::ShrinkRefused) => {
            let finding = Finding::stuck(GROWTH, text);
            match sizes_of_claims(case) {
                Some(sizes) => finding.resolved_by(ask_for(case, &sizes)).but(
                    "claims never shrink, so the command lets the other claims of the template \
                     grow, for good",
                ),
                None => finding.but("claims never shrink"),
            }
        }
        _ => Finding::stuck(GROWTH, text),
    };
    finding.shown_by(evidence)
}

/// The command that asks for other sizes.
fn ask_for(case: Case<'_>, sizes: &str) -> String {
    let (set, carrier) = (&case.set.metadata.name, Carrier::ClaimSize.annotation());
    case.kubectl(&format!(
        "annotate statefulset {set} {carrier}={sizes} --overwrite"
    ))
}

/// The sizes for which the set asks, or those of the largest claims of its pods where they are larger. None
/// if the annotation can't be read.
fn sizes_of_claims(case: Case<'_>) -> Option<String> {
    let asked = annotation(case, Carrier::ClaimSize)?;
    let desired = case.set.ordinals();
    let sizes = asked.split(',').map(|part| {
        let (template, size) = part.trim().split_once('=')?;
        let templates = &case.set.spec.volume_claim_templates;
        let mut templates = templates.iter().map(|it| &it.metadata.name);
        let is_usable = templates.any(|it| it == template) && bytes(size).is_some();
        let prefix = format!("{template}-{}-", case.set.metadata.name);
        let is_desired = |claim: &&Claim| {
            let ordinal = claim.metadata.name.strip_prefix(&prefix);
            let ordinal = ordinal.and_then(|it| it.parse().ok());
            ordinal.is_some_and(|it| desired.contains(&it))
        };
        let claims = case.snapshot.claims().filter(is_desired).map(Claim::size);
        let largest = claims.chain([size]).max_by_key(|size| bytes(size));
        let largest = largest.filter(|_| is_usable)?;
        Some(format!("{template}={largest}"))
    });
    let sizes: Option<Vec<String>> = sizes.collect();
    sizes.map(|sizes| sizes.join(","))
}

/// The bytes of a size.
fn bytes(size: &str) -> Option<i64> {
    let size: Quantity = size.parse().ok()?;
    Some(size.value())
}

/// The restart of pods whose claims wait for it. Only a rolling update lets the controller do it.
fn restart(case: Case<'_>) -> String {
    let restart = "restart the pods of these claims";
    match annotation(case, Carrier::ClaimSize) {
        Some(sizes) if !case.set.is_on_delete() && !case.set.is_recreate() => {
            let (set, namespace) = (&case.set.metadata.name, &case.snapshot.namespace);
            let sizes = sizes.replace(',', " ");
            format!(
                "{restart}, or let the controller do it: \
                 kubectl sts resize {set} {sizes} --with-pod -n {namespace}"
            )
        }
        _ => format!("{restart} one by one"),
    }
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
