//! One run of a scenario.

use std::time::Duration;

use integration::Cluster;
use kube_test_control_plane::actors::PodBehaviour;
use kube_test_control_plane::audit::{AuditEntry, AuditMark, Settle};
use kube_test_control_plane::faults::RequestFacts;
use kube_test_control_plane::route::Verb;

use crate::end_state::end_state;
use crate::moment::{Moment, Trap, controller_writes};
use crate::pod_log::PodLog;
use crate::scenario::Scenario;

/// What each stage of a pod's life takes.
const STAGE: Duration = Duration::from_millis(700);
/// Longer than the controller's retries after a few failures.
const QUIET: Duration = Duration::from_secs(30);

/// What became of a scenario.
pub(crate) struct Run {
    /// The scenario and, of a run that was struck, the moment; for messages.
    pub(crate) what: String,
    pub(crate) scenario: Scenario,
    /// The controller's writes that the server has carried out or refused.
    pub(crate) writes: Vec<AuditEntry>,
    pub(crate) pods: PodLog,
    /// What is left at the end.
    end: String,
    /// The moment that struck the run.
    struck: Option<Struck>,
}

/// A run at the moment that struck it.
struct Struck {
    /// The writes that the server had carried out or refused until then.
    committed: Vec<String>,
    /// The write that was struck.
    write: String,
}

impl Run {
    /// The scenario as it goes when nothing happens.
    pub(crate) async fn undisturbed(scenario: Scenario) -> Self {
        Self::new(scenario, None).await
    }

    /// The scenario with a fault at one of its writes.
    pub(crate) async fn struck(scenario: Scenario, moment: Moment) -> Self {
        Self::new(scenario, Some(moment)).await
    }

    async fn new(scenario: Scenario, moment: Option<Moment>) -> Self {
        let what = match moment {
            Some(moment) => format!("{scenario:?}, {moment}"),
            None => format!("{scenario:?}"),
        };
        let mut cluster = Cluster::start(pods()).await;
        scenario.prepare(&cluster).await;
        let pods = PodLog::begin(&cluster).await;
        let mark = cluster.plane().server().audit().mark();
        let trap = moment.map(|moment| moment.prepare(&cluster));
        scenario.act(&cluster).await;
        let mut struck = None;
        if let Some(trap) = trap {
            struck = Some(spring(&mut cluster, &trap, mark).await);
        }
        settle(&cluster).await;
        cluster.plane().invariants().expect_none();
        Self {
            what,
            scenario,
            writes: answered(&cluster, mark),
            pods,
            end: end_state(&cluster).await,
            struck,
        }
    }

    /// Checks that a moment has struck another run at the write of this one, after the same writes
    /// as in this one and no other. No two moments have that in common.
    pub(crate) fn assert_strikes(&self, moment: Moment, other: &Self) {
        let struck = other.struck.as_ref().expect("the run was struck");
        let committed = summaries(&self.writes[..moment.committed()]);
        assert_eq!(struck.committed, committed, "{}", other.what);
        let write = line(&self.writes[moment.write - 1].facts());
        assert_eq!(struck.write, write, "{}", other.what);
    }

    /// Checks that a struck run ends where another one does, by the same steps.
    pub(crate) fn assert_ends_as(&self, other: &Self) {
        assert_eq!(self.end, other.end, "{}: the end state", self.what);
        let lives = (self.pods.lives(), other.pods.lives());
        assert_eq!(lives.0, lives.1, "{}: the lives of pods", self.what);
        for resource in ["controllerrevisions", "persistentvolumeclaims"] {
            let made = (self.created(resource), other.created(resource));
            assert_eq!(made.0, made.1, "{}: created {resource}", self.what);
        }
    }

    /// The names of the objects that the controller has created, in order.
    fn created(&self, resource: &str) -> Vec<&str> {
        let created = self.writes.iter().filter(|entry| {
            entry.resource == resource && entry.verb.name() == "create" && entry.is_change()
        });
        let mut names: Vec<&str> = created.map(|entry| entry.name.as_str()).collect();
        // In a batch they come in any order.
        names.sort_unstable();
        names
    }
}

/// Waits for the moment. Where the controller dies at it, a fresh one goes on.
async fn spring(cluster: &mut Cluster, trap: &Trap, mark: AuditMark) -> Struck {
    let waiting = trap.sprung(cluster).await;
    let dies = waiting.is_some();
    if dies {
        cluster.kill_controller().await;
    }
    let committed = answered(cluster, mark);
    let last = committed.last().map(AuditEntry::facts);
    let write = waiting.or(last).expect("a write was struck");
    // Nothing of the dead controller is on its way any more.
    cluster.plane().server().faults().clear();
    if dies {
        cluster.start_controller();
    }
    Struck {
        committed: summaries(&committed),
        write: line(&write),
    }
}

/// The controller's writes after the mark, but for those that were never carried out.
fn answered(cluster: &Cluster, mark: AuditMark) -> Vec<AuditEntry> {
    let writes = controller_writes();
    let audit = cluster.plane().server().audit();
    let found = audit.since(mark, |entry| {
        entry.code != 0 && writes.matches(&entry.facts(), &entry.body)
    });
    found.unwrap_or_else(|error| panic!("{error}"))
}

fn summaries(entries: &[AuditEntry]) -> Vec<String> {
    entries.iter().map(AuditEntry::summary).collect()
}

/// The request in one line, such as `create pods web-0`.
fn line(facts: &RequestFacts) -> String {
    let verb = facts.verb.map_or("", Verb::name);
    let (resource, subresource) = (&facts.resource, &facts.subresource);
    format!("{verb} {resource}/{subresource} {}", facts.name)
}

/// Waits until nothing is written any more.
async fn settle(cluster: &Cluster) {
    let settle = Settle::quiet_for(QUIET);
    let settled = cluster.plane().server().audit().settle(&settle).await;
    settled.unwrap_or_else(|error| panic!("{error}"));
}

/// Pods that take their time, so that the controller waits for them.
fn pods() -> PodBehaviour {
    PodBehaviour {
        start_delay: STAGE.into(),
        ready_delay: STAGE.into(),
        stop_delay: STAGE.into(),
        ..PodBehaviour::default()
    }
}
