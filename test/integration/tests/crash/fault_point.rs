//! Fault points: a write and the fault at it.

use std::fmt;
use std::time::Duration;

use integration::NodeCluster;
use kube_test_control_plane::faults::{
    FaultAction, Gate, GatePoint, RequestFacts, RequestMatcher, RuleId,
};
use tokio::time::timeout;

/// User name of the controller.
const USER: &str = "system:serviceaccount:kube-system:statefulset-controller";
/// Time limit for a scenario to reach each of its writes.
const ARRIVAL_MAX: Duration = Duration::from_secs(3600);

/// Fault at a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The controller dies before the server commits the write.
    DiesBefore,
    /// The controller dies after the server commits the write, before the response.
    DiesAfter,
    /// The server commits the write, but the response is lost; the controller lives on.
    AnswerLost,
}

impl Fault {
    pub(crate) const ALL: [Self; 3] = [Self::DiesBefore, Self::DiesAfter, Self::AnswerLost];
}

/// The number of a write in a run, from 1, and the fault at it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FaultPoint {
    pub(crate) write: usize,
    pub(crate) fault: Fault,
}

impl fmt::Display for FaultPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "write {}: {:?}", self.write, self.fault)
    }
}

impl FaultPoint {
    /// Number of committed writes at this point.
    pub(crate) fn committed(self) -> usize {
        match self.fault {
            Fault::DiesBefore => self.write - 1,
            Fault::DiesAfter | Fault::AnswerLost => self.write,
        }
    }

    /// Prepares the server for the fault.
    pub(crate) fn prepare(self, cluster: &NodeCluster) -> ArmedFault {
        let faults = cluster.plane().server().faults();
        // Earlier writes pass, also the gate after the commit.
        let gate = |point, passing| {
            let gate = faults.gate_at(point, controller_writes());
            for _ in 0..passing {
                gate.release();
            }
            gate
        };
        let before = gate(GatePoint::BeforeCommit, self.committed());
        match self.fault {
            Fault::DiesBefore => ArmedFault::Gates {
                _others: None,
                at: before,
            },
            // Writes in flight at the same time must not be committed.
            Fault::DiesAfter => ArmedFault::Gates {
                _others: Some(before),
                at: gate(GatePoint::AfterCommit, self.write - 1),
            },
            Fault::AnswerLost => {
                let skipped = u32::try_from(self.write - 1).unwrap();
                let action = FaultAction::CommitThenDrop;
                let rule = faults.inject_after(controller_writes(), skipped, 1, action);
                ArmedFault::Rule {
                    _others: before,
                    rule,
                }
            }
        }
    }
}

/// Server-side preparation of a fault.
pub(crate) enum ArmedFault {
    /// The write stops at a gate; concurrent writes stop before they are committed.
    Gates { _others: Option<Gate>, at: Gate },
    /// The response to the write is dropped.
    Rule { _others: Gate, rule: RuleId },
}

impl ArmedFault {
    /// Waits for the fault. Returns the write if the controller dies at it.
    pub(crate) async fn triggered(&self, cluster: &NodeCluster) -> Option<RequestFacts> {
        let arrival = async {
            match self {
                Self::Gates { at, .. } => at.arrived(1).await.into_iter().next(),
                Self::Rule { rule, .. } => {
                    let faults = cluster.plane().server().faults();
                    while faults.hits(*rule) == 0 {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                    None
                }
            }
        };
        timeout(ARRIVAL_MAX, arrival)
            .await
            .expect("the scenario reaches the write")
    }
}

/// Writes of the controller, without access reviews and the like.
pub(crate) fn controller_writes() -> RequestMatcher {
    RequestMatcher::writes().user(USER)
}
