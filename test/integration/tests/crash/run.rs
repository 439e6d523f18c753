//! One run of a scenario.

use std::time::Duration;

use integration::NodeCluster;
use kube_test_control_plane::actors::PodBehaviour;
use kube_test_control_plane::audit::{AuditEntry, AuditMark, Settle};
use kube_test_control_plane::faults::RequestFacts;
use kube_test_control_plane::route::Verb;

use crate::end_state::end_state;
use crate::fault_point::{ArmedFault, FaultPoint, controller_writes};
use crate::pod_log::PodLog;
use crate::scenario::Scenario;

/// Duration of each pod stage.
const STAGE: Duration = Duration::from_millis(700);
/// Longer than the controller's retries after a few failures.
const QUIET: Duration = Duration::from_secs(30);

/// Result of a scenario.
pub(crate) struct Run {
    /// The scenario and the fault point, if any; for messages.
    pub(crate) what: String,
    pub(crate) scenario: Scenario,
    /// The controller's writes that the server committed or rejected.
    pub(crate) writes: Vec<AuditEntry>,
    pub(crate) pods: PodLog,
    /// End state.
    end: String,
    /// The fault that occurred.
    hit: Option<FaultHit>,
}

/// A run at its fault.
struct FaultHit {
    /// The writes that the server had committed or rejected by then.
    committed: Vec<String>,
    /// The write with the fault.
    write: String,
}

impl Run {
    /// Runs the scenario without faults.
    pub(crate) async fn undisturbed(scenario: Scenario) -> Self {
        Self::new(scenario, None).await
    }

    /// Runs the scenario with a fault at one of its writes.
    pub(crate) async fn with_fault(scenario: Scenario, point: FaultPoint) -> Self {
        Self::new(scenario, Some(point)).await
    }

    async fn new(scenario: Scenario, point: Option<FaultPoint>) -> Self {
        let what = match point {
            Some(point) => format!("{scenario:?}, {point}"),
            None => format!("{scenario:?}"),
        };
        let mut cluster = NodeCluster::start(pods()).await;
        scenario.prepare(&cluster).await;
        let pods = PodLog::begin(&cluster).await;
        let mark = cluster.plane().server().audit().mark();
        let armed = point.map(|point| point.prepare(&cluster));
        scenario.act(&cluster).await;
        let mut hit = None;
        if let Some(armed) = armed {
            hit = Some(await_fault(&mut cluster, &armed, mark).await);
        }
        settle(&cluster).await;
        cluster.plane().invariants().expect_none();
        Self {
            what,
            scenario,
            writes: answered(&cluster, mark),
            pods,
            end: end_state(&cluster).await,
            hit,
        }
    }

    /// Checks that the fault of another run occurred at the expected write, after the same writes
    /// as in this run and no others. Each fault point is thus unique.
    pub(crate) fn assert_hit(&self, point: FaultPoint, other: &Self) {
        let hit = other.hit.as_ref().expect("the run had a fault");
        let committed = summaries(&self.writes[..point.committed()]);
        assert_eq!(hit.committed, committed, "{}", other.what);
        let write = line(&self.writes[point.write - 1].facts());
        assert_eq!(hit.write, write, "{}", other.what);
    }

    /// Checks that a run with a fault ends in the same state as another run, by the same steps.
    pub(crate) fn assert_ends_as(&self, other: &Self) {
        assert_eq!(self.end, other.end, "{}: the end state", self.what);
        let lives = (self.pods.lives(), other.pods.lives());
        assert_eq!(lives.0, lives.1, "{}: the lives of pods", self.what);
        for resource in ["controllerrevisions", "persistentvolumeclaims"] {
            let made = (self.created(resource), other.created(resource));
            assert_eq!(made.0, made.1, "{}: created {resource}", self.what);
        }
    }

    /// Names of the objects that the controller created, in order.
    fn created(&self, resource: &str) -> Vec<&str> {
        let created = self.writes.iter().filter(|entry| {
            entry.resource == resource && entry.verb.name() == "create" && entry.is_change()
        });
        let mut names: Vec<&str> = created.map(|entry| entry.name.as_str()).collect();
        // Within a batch the order is arbitrary.
        names.sort_unstable();
        names
    }
}

/// Waits for the fault. If the controller dies at it, starts a new one.
async fn await_fault(cluster: &mut NodeCluster, armed: &ArmedFault, mark: AuditMark) -> FaultHit {
    let waiting = armed.triggered(cluster).await;
    let dies = waiting.is_some();
    if dies {
        cluster.kill_controller().await;
    }
    let committed = answered(cluster, mark);
    let last = committed.last().map(AuditEntry::facts);
    let write = waiting.or(last).expect("a write had the fault");
    // No request of the dead controller remains in flight.
    cluster.plane().server().faults().clear();
    if dies {
        cluster.start_controller();
    }
    FaultHit {
        committed: summaries(&committed),
        write: line(&write),
    }
}

/// The controller's writes after the mark, without those that were never executed.
fn answered(cluster: &NodeCluster, mark: AuditMark) -> Vec<AuditEntry> {
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

/// Formats a request such as `create pods web-0`.
fn line(facts: &RequestFacts) -> String {
    let verb = facts.verb.map_or("", Verb::name);
    let (resource, subresource) = (&facts.resource, &facts.subresource);
    format!("{verb} {resource}/{subresource} {}", facts.name)
}

/// Waits until writes have stopped.
async fn settle(cluster: &NodeCluster) {
    let settle = Settle::quiet_for(QUIET);
    let settled = cluster.plane().server().audit().settle(&settle).await;
    settled.unwrap_or_else(|error| panic!("{error}"));
}

/// Slow pods, so that the controller waits for them.
fn pods() -> PodBehaviour {
    PodBehaviour::with_delays(STAGE)
}
