//! The cause for one set.

use statefulset_controller::Waiting;

use super::answer::Answer;
use super::case::Case;
use super::causes::{container, deletion, readiness, refused, rollout, scheduling};
use super::finding::{Finding, State};
use crate::decide::{Decision, decide};
use crate::model::Set;
use crate::objects::Snapshot;

/// Explains the set of a snapshot.
pub(crate) async fn explain(snapshot: &Snapshot) -> Option<Answer> {
    let set = snapshot.set.as_ref()?;
    if let Some(object) = snapshot.unreadable(&set.object) {
        let text = format!("{object}; the controller waits until it can be decoded or is deleted");
        let finding = Finding::stuck("undecodable-object", text);
        return Some(Answer::new(snapshot, &set.object, None, finding));
    }
    let answer = match decide(&snapshot.objects(set), snapshot.now, snapshot.gates).await {
        Ok(decision) => {
            let case = Case {
                snapshot,
                set: &set.object,
            };
            let finding = with_budgets(case, find(case, &decision));
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
    if finding.state == State::Settled {
        return finding;
    }
    let budgets = case.snapshot.budgets_of(case.set);
    let exhausted = budgets.filter(|budget| budget.status.disruptions_allowed == 0);
    let shown: Vec<String> = exhausted
        .map(|budget| format!("{}: a drained node keeps its pods", budget.text()))
        .collect();
    finding.shown_by(shown)
}

fn find(case: Case<'_>, decision: &Decision) -> Finding {
    if case.set.metadata.deletion_timestamp.is_some() {
        return set_deleted(case.set);
    }
    if let Some(finding) = refused::name_taken(case, decision) {
        return finding;
    }
    if let Some(error) = &decision.error {
        return failing(case, error);
    }
    if let Some(finding) = refused::find(case, decision) {
        return finding;
    }
    match &decision.waiting {
        None => without_waiting(case),
        Some(Waiting::InvalidSelector(reason)) => {
            let text = format!("the selector can't be used: {reason}");
            Finding::stuck("bad-selector", text)
                .but("a selector is immutable: delete and recreate the set")
        }
        Some(Waiting::PodDeletionByUser(..)) => rollout::on_delete(case),
        Some(Waiting::StaleClaim { pod, claim }) => deletion::claim(case, pod, claim),
        Some(Waiting::ScaleDownBlocked { pod, unavailable }) => {
            let finding = unavailable_pod(case, unavailable);
            let text = format!("{}, so {pod} can't be removed", finding.text);
            Finding { text, ..finding }
        }
        Some(waiting) => match waiting.pod() {
            Some(pod) => unavailable_pod(case, pod),
            None => Finding::waiting("in-progress", waiting.to_string()),
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
fn without_waiting(case: Case<'_>) -> Finding {
    if let Some(finding) = rollout::held_by_partition(case) {
        return finding;
    }
    let set = case.set;
    if set.metadata.generation > set.status.observed_generation {
        return refused::no_controller(case);
    }
    Finding {
        state: State::Settled,
        ..Finding::stuck("settled", "nothing is left to do")
    }
}

/// The cause in a pod that isn't available.
fn unavailable_pod(case: Case<'_>, name: &str) -> Finding {
    let Some(pod) = case.snapshot.pod(name) else {
        let text = format!("pod {name} is about to be created");
        return Finding::waiting("in-progress", text);
    };
    if pod.metadata.deletion_timestamp.is_some() {
        return deletion::pod(case, pod);
    }
    let broken = scheduling::find(case, pod).or_else(|| container::find(case, pod));
    let finding = match broken {
        Some(broken) => rollout::remedied(case, pod, broken),
        None => readiness::find(case, pod),
    };
    let warnings = case.snapshot.warnings(&pod.metadata.uid).iter().take(2);
    let warnings = warnings.map(|event| format!("event {}: {}", event.reason, event.message));
    finding
        .since(readiness::since_unready(pod))
        .shown_by(warnings)
}
