//! The cause for one set.

use statefulset_controller::Waiting;

use super::answer::Answer;
use super::finding::{Finding, State};
use super::snapshot::Snapshot;
use super::{container, deletion, refused, scheduling};
use crate::decide::{Decision, decide};
use crate::model::{Pod, Set};

/// Seconds that a pod may take to become ready before it counts as stuck without other evidence.
const PATIENCE_SECONDS: i64 = 120;

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
            let finding = Case {
                snapshot,
                set: &set.object,
            }
            .find(&decision);
            let finding = blocked(snapshot, &set.object, finding);
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
fn blocked(snapshot: &Snapshot, set: &Set, finding: Finding) -> Finding {
    if finding.state == State::Settled {
        return finding;
    }
    let budgets = snapshot.budgets_of(set);
    let exhausted = budgets.filter(|budget| budget.status.disruptions_allowed == 0);
    let shown: Vec<String> = exhausted
        .map(|budget| format!("{}: a drained node keeps its pods", budget.text()))
        .collect();
    finding.shown_by(shown)
}

/// A set with the snapshot of its objects.
#[derive(Clone, Copy)]
pub(super) struct Case<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) set: &'a Set,
}

impl Case<'_> {
    fn find(self, decision: &Decision) -> Finding {
        let set = self.set;
        if set.metadata.deletion_timestamp.is_some() {
            return self.set_deleted();
        }
        if let Some(finding) = refused::name_taken(self, decision) {
            return finding;
        }
        if let Some(error) = &decision.error {
            return self.failing(error);
        }
        if let Some(finding) = refused::find(self, decision) {
            return finding;
        }
        match &decision.waiting {
            None => self.without_waiting(),
            Some(Waiting::InvalidSelector(reason)) => {
                let text = format!("the selector can't be used: {reason}");
                Finding::stuck("bad-selector", text)
                    .but("a selector is immutable: delete and recreate the set")
            }
            Some(Waiting::PodDeletionByUser(..)) => self.on_delete(),
            Some(Waiting::StaleClaim { pod, claim }) => deletion::claim(self, pod, claim),
            Some(Waiting::ScaleDownBlocked { pod, unavailable }) => {
                let finding = self.pod(unavailable);
                let text = format!("{}, so {pod} can't be removed", finding.text);
                Finding { text, ..finding }
            }
            Some(waiting) => match waiting.pod() {
                Some(pod) => self.pod(pod),
                None => Finding::waiting("in-progress", waiting.to_string()),
            },
        }
    }

    /// The cause of an error that every sync of the controller ends with.
    fn failing(self, error: &str) -> Finding {
        let claim = self.snapshot.claims().find(|claim| {
            claim.metadata.deletion_timestamp.is_some() && error.contains(&claim.metadata.name)
        });
        let Some(claim) = claim else {
            return Finding::stuck("sync-error", format!("every sync fails: {error}"));
        };
        let claim = &claim.metadata.name;
        let ordinal = claim.rsplit('-').next().unwrap_or_default();
        let pod = format!("{}-{ordinal}", self.set.metadata.name);
        deletion::claim(self, &pod, claim)
    }

    fn set_deleted(self) -> Finding {
        let metadata = &self.set.metadata;
        let finalizers = metadata.finalizers.join(", ");
        let text = format!("the set is being deleted and waits for the finalizers {finalizers}");
        Finding::waiting("set-deleted", text).since(metadata.deletion_timestamp)
    }

    /// The cause if the controller has nothing left to do.
    fn without_waiting(self) -> Finding {
        let set = self.set;
        let partition = i64::from(set.partition());
        let is_rolling = set.status.update_revision != set.status.current_revision;
        let outdated = self.outdated();
        if !set.is_on_delete() && partition > 0 && is_rolling && !outdated.is_empty() {
            return self.partition(partition, &outdated);
        }
        let settled = Finding {
            state: State::Settled,
            ..Finding::stuck("settled", "nothing is left to do")
        };
        if set.metadata.generation > set.status.observed_generation {
            return refused::no_controller(self);
        }
        settled
    }

    /// Names of the wanted pods without the update revision.
    fn outdated(self) -> Vec<String> {
        let set = self.set;
        let update = &set.status.update_revision;
        let pods = self.snapshot.pods_of(set).filter(|pod| {
            let ordinal = set.ordinal(&pod.metadata.name);
            pod.metadata.revision() != update
                && ordinal.is_some_and(|ordinal| set.ordinals().contains(&ordinal))
        });
        let mut names: Vec<(Option<i64>, String)> = pods
            .map(|pod| (set.ordinal(&pod.metadata.name), pod.metadata.name.clone()))
            .collect();
        names.sort();
        names.into_iter().map(|(_, name)| name).collect()
    }

    fn partition(self, partition: i64, outdated: &[String]) -> Finding {
        let set = self.set;
        let replicas = i64::from(set.replicas());
        let pods = outdated.join(", ");
        let (cause, text) = if partition >= replicas {
            let text = format!(
                "partition {partition} is not below replicas {replicas}: no pod gets revision {}",
                set.status.update_revision
            );
            ("partition-beyond-replicas", text)
        } else {
            let text = format!("partition {partition} keeps the old revision in {pods}");
            ("partition", text)
        };
        Finding::stuck(cause, text)
            .shown_by([format!(
                "current revision {}, update revision {}",
                set.status.current_revision, set.status.update_revision
            )])
            .resolved_by(self.set_partition(0))
            .but("the partition may be intended, for example for a canary")
    }

    /// The command that changes the partition.
    fn set_partition(self, partition: i64) -> String {
        let patch = format!(
            r#"{{"spec":{{"updateStrategy":{{"rollingUpdate":{{"partition":{partition}}}}}}}}}"#
        );
        let name = &self.set.metadata.name;
        self.kubectl(&format!(
            "patch statefulset {name} --type=merge -p '{patch}'"
        ))
    }

    fn on_delete(self) -> Finding {
        let outdated = self.outdated();
        let pods = outdated.join(" ");
        let text = format!("the strategy OnDelete leaves the deletion of {pods} to the user");
        Finding::stuck("on-delete", text)
            .resolved_by(self.kubectl(&format!("delete pod {pods}")))
            .but("this deletes all of them at once: delete them one by one to stay available")
    }

    /// A command in the set's namespace.
    pub(super) fn kubectl(self, rest: &str) -> String {
        format!("kubectl -n {} {rest}", self.snapshot.namespace)
    }

    /// The command that deletes a pod.
    pub(super) fn delete_pod(self, pod: &str) -> String {
        self.kubectl(&format!("delete pod {pod}"))
    }

    /// The cause in a pod that isn't available.
    fn pod(self, name: &str) -> Finding {
        let Some(pod) = self.snapshot.pod(name) else {
            let text = format!("pod {name} is about to be created");
            return Finding::waiting("in-progress", text);
        };
        if pod.metadata.deletion_timestamp.is_some() {
            return deletion::pod(self, pod);
        }
        let broken = scheduling::find(self, pod).or_else(|| container::find(self, pod));
        let since = since_unready(pod);
        let finding = match broken {
            Some(broken) => self.remedied(pod, broken),
            None if pod.is_ready() => self.not_available(pod),
            None => self.starting(pod),
        };
        let warnings = self.snapshot.warnings(&pod.metadata.uid).iter().take(2);
        let warnings = warnings.map(|event| format!("event {}: {}", event.reason, event.message));
        finding.since(since).shown_by(warnings)
    }

    /// Completes the cause in a pod with the needs of the revision.
    fn remedied(self, pod: &Pod, broken: Finding) -> Finding {
        let (set, name) = (self.set, &pod.metadata.name);
        let is_outdated = pod.metadata.revision() != set.status.update_revision;
        if !is_outdated || set.is_on_delete() {
            return broken;
        }
        let index = set
            .ordinal(name)
            .map(|ordinal| ordinal - set.ordinals().start);
        let index = index.unwrap_or_default();
        let old = pod.metadata.revision();
        let mut finding = if index < i64::from(set.partition()) {
            let text = format!(
                "pod {name} is broken in revision {old}, which partition {} keeps: {}",
                set.partition(),
                broken.text
            );
            Finding::stuck("partition-keeps-broken-pod", text)
                .resolved_by(self.set_partition(index))
        } else {
            let waits = if set.is_ordered() {
                "OrderedReady waits for it before it updates any pod"
            } else {
                "the update waits for it"
            };
            let text = format!(
                "pod {name} is broken in the older revision {old} ({}); {waits} \
                 (kubernetes/kubernetes#67250)",
                broken.text
            );
            Finding::stuck("old-revision-blocks", text)
        };
        finding.evidence = broken.evidence;
        finding
            .resolved_by(self.delete_pod(name))
            .since(broken.since)
    }

    /// A ready pod that must stay ready for `minReadySeconds`.
    fn not_available(self, pod: &Pod) -> Finding {
        let seconds = self.set.spec.min_ready_seconds;
        let name = &pod.metadata.name;
        let text = format!("pod {name} must be ready for minReadySeconds ({seconds} s)");
        let finding = Finding::waiting("min-ready-seconds", text);
        if seconds < 3600 {
            return finding;
        }
        let patch = r#"{"spec":{"minReadySeconds":30}}"#;
        let set = &self.set.metadata.name;
        let command = format!("patch statefulset {set} --type=merge -p '{patch}'");
        Finding {
            state: State::Stuck,
            ..finding
        }
        .resolved_by(self.kubectl(&command))
    }

    /// A pod without visible trouble that isn't ready.
    fn starting(self, pod: &Pod) -> Finding {
        let (name, phase) = (&pod.metadata.name, &pod.status.phase);
        let since = since_unready(pod);
        let age = since.map_or(0, |since| self.snapshot.now.duration_since(since).as_secs());
        if age < PATIENCE_SECONDS {
            return Finding::waiting("pod-starting", format!("pod {name} is starting ({phase})"));
        }
        let finding = if phase == "Running" {
            container::never_ready(self, pod)
        } else {
            let text = format!("pod {name} doesn't start ({phase})");
            Finding::stuck("pod-not-starting", text).resolved_by(self.delete_pod(name))
        };
        self.remedied(pod, finding)
    }
}

/// The beginning of a pod's unready time.
fn since_unready(pod: &Pod) -> Option<jiff::Timestamp> {
    let ready = pod
        .condition("Ready")
        .and_then(|ready| ready.last_transition_time);
    ready.or(pod.metadata.creation_timestamp)
}
