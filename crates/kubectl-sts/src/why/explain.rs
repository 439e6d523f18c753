//! The cause for one set.

use statefulset_controller::Waiting;
use statefulset_controller::opt_ins::Cause;

use super::answer::Answer;
use super::case::Case;
use super::causes::{
    container, deletion, names, node, opted, readiness, refused, replaced, retries, rollout,
    scheduling, storage,
};
use super::finding::{Finding, SetState};
use super::{lookups, risks};
use crate::decide::{Decision, decide};
use crate::model::Set;
use crate::objects::Snapshot;
use crate::server::Server;

/// Explains the set of a snapshot. Reads more objects if the snapshot leaves a doubt.
pub(crate) async fn explain(server: &Server, snapshot: &Snapshot) -> Option<Answer> {
    let set = snapshot.set.as_ref()?;
    if let Some(object) = snapshot.unreadable(&set.object) {
        let text = format!("{object}; the controller waits until it can be decoded or is deleted");
        let finding = Finding::stuck("undecodable-object", text);
        return Some(Answer::new(snapshot, &set.object, None, finding));
    }
    let case = Case {
        snapshot,
        set: &set.object,
    };
    let answer = match decide(
        &snapshot.objects(set),
        snapshot.now,
        snapshot.gates_of_controller(),
    )
    .await
    {
        Ok(decision) => {
            let finding = opted::with_growth(case, find(case, &decision));
            let finding = lookups::settle(server, case, &decision, finding).await;
            let finding = opted::with_unusable(case, finding);
            let finding = with_risks(case, with_budgets(case, finding));
            let waiting = decision.waiting.as_ref();
            Answer::new(snapshot, &set.object, waiting, finding)
        }
        Err(error) => {
            let text = format!("an object can't be decoded: {error:#}");
            let finding = Finding::stuck("undecodable-object", text);
            Answer::new(snapshot, &set.object, None, finding)
        }
    };
    Some(answer)
}

/// Adds the budgets that refuse every eviction of the pods of a set that isn't settled.
fn with_budgets(case: Case<'_>, finding: Finding) -> Finding {
    if finding.state == SetState::Settled {
        return finding;
    }
    let budgets = case.snapshot.budgets_of(case.set);
    let exhausted = budgets.filter(|budget| budget.status.disruptions_allowed == 0);
    let shown: Vec<String> = exhausted
        .map(|budget| format!("{}: a drained node keeps its pods", budget.text()))
        .collect();
    finding.shown_by(shown)
}

/// Adds the claims that go without further action.
fn with_risks(case: Case<'_>, mut finding: Finding) -> Finding {
    finding.risks = risks::find(case);
    if finding.state == SetState::Settled && !finding.risks.is_empty() {
        finding.cause = "claim-terminating";
        "nothing is left to do, but a claim in use is being deleted".clone_into(&mut finding.text);
    }
    finding
}

fn find(case: Case<'_>, decision: &Decision) -> Finding {
    if case.set.metadata.deletion_timestamp.is_some() {
        return set_deleted(case.set);
    }
    let found = names::taken(case, decision);
    if let Some(finding) = found.or_else(|| names::too_long(case, decision)) {
        return finding;
    }
    if let Some(error) = &decision.error {
        return failing(case, error);
    }
    if let Some(finding) = opted::replaced(case, decision) {
        return finding;
    }
    let found = storage::mismatch(case, decision);
    let found = found.or_else(|| refused::find(case, decision));
    let found = found.or_else(|| replaced::looping(case, decision));
    if let Some(finding) = found.or_else(|| retries::overdue(case, decision)) {
        return finding;
    }
    match &decision.waiting {
        None => without_waiting(case, decision),
        Some(Waiting::InvalidSelector(reason)) => {
            let text = format!("the selector can't be used: {reason}");
            Finding::stuck("bad-selector", text)
                .but("a selector is immutable: delete and recreate the set")
        }
        Some(Waiting::OptIn(wait)) => opted::waiting(case, wait),
        Some(Waiting::PodDeletionByUser(..)) => rollout::on_delete(case),
        Some(Waiting::StaleClaim { pod, claim }) => deletion::claim(case, pod, claim),
        Some(Waiting::ScaleDownBlocked { pod, unavailable }) => {
            let finding = unavailable_pod(case, unavailable);
            let text = format!("{}, so {pod} can't be removed", finding.text);
            Finding { text, ..finding }
        }
        Some(waiting) => match waiting.pod() {
            Some(pod) => unavailable_pod(case, pod),
            None => Finding::waiting(Cause::InProgress.name(), waiting.to_string()),
        },
    }
}

/// The cause of an error that every sync of the controller ends with.
fn failing(case: Case<'_>, error: &str) -> Finding {
    let claim = case.snapshot.claims().find(|claim| {
        claim.metadata.deletion_timestamp.is_some() && error.contains(&claim.metadata.name)
    });
    let Some(claim) = claim else {
        return Finding::stuck("sync-error", format!("every sync fails: {error}"));
    };
    let claim = &claim.metadata.name;
    let ordinal = claim.rsplit('-').next().unwrap_or_default();
    let pod = format!("{}-{ordinal}", case.set.metadata.name);
    deletion::claim(case, &pod, claim)
}

fn set_deleted(set: &Set) -> Finding {
    let metadata = &set.metadata;
    let finalizers = metadata.finalizers.join(", ");
    let text = format!("the set is being deleted and waits for the finalizers {finalizers}");
    Finding::waiting("set-deleted", text).since(metadata.deletion_timestamp)
}

/// The cause if the controller has nothing left to do.
fn without_waiting(case: Case<'_>, decision: &Decision) -> Finding {
    if let Some(finding) = opted::held(case, decision) {
        return finding;
    }
    if let Some(finding) = rollout::held_by_partition(case) {
        return finding;
    }
    if retries::is_unseen(case) {
        if retries::is_fresh(case) {
            return retries::unseen();
        }
        return retries::no_controller(case);
    }
    Finding::settled()
}

/// The cause in a pod that isn't available.
fn unavailable_pod(case: Case<'_>, name: &str) -> Finding {
    let Some(pod) = case.snapshot.pod(name) else {
        let text = format!("pod {name} is about to be created");
        return Finding::waiting(Cause::InProgress.name(), text);
    };
    if pod.metadata.deletion_timestamp.is_some() {
        return deletion::pod(case, pod);
    }
    if pod.is_finished() {
        return replaced::once(pod);
    }
    let broken = scheduling::find(case, pod).or_else(|| container::find(case, pod));
    let finding = match broken {
        Some(broken) => rollout::remedied(case, pod, broken),
        None if !pod.is_ready() => {
            node::lost(case, pod).unwrap_or_else(|| readiness::find(case, pod))
        }
        None => readiness::find(case, pod),
    };
    let warnings = case.snapshot.warnings(&pod.metadata.uid).iter().take(2);
    let warnings = warnings.map(|event| format!("event {}: {}", event.reason, event.message));
    finding
        .since(readiness::since_unready(pod))
        .shown_by(warnings)
}
