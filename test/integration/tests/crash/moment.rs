//! Moments: a write, and what strikes it.

use std::fmt;
use std::time::Duration;

use integration::Cluster;
use kube_test_control_plane::faults::{
    FaultAction, Gate, GatePoint, RequestFacts, RequestMatcher, RuleId,
};
use tokio::time::timeout;

/// The controller's account.
const USER: &str = "system:serviceaccount:kube-system:statefulset-controller";
/// Within how long a scenario comes to each of its writes.
const ARRIVAL_MAX: Duration = Duration::from_secs(3600);

/// What strikes a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The controller dies before the server carries the write out.
    DiesBefore,
    /// The controller dies after the server has carried the write out, before the answer.
    DiesAfter,
    /// The server carries the write out, and the controller, which lives on, gets no answer.
    AnswerLost,
}

impl Fault {
    pub(crate) const ALL: [Self; 3] = [Self::DiesBefore, Self::DiesAfter, Self::AnswerLost];
}

/// A write of a run, counted from 1, and what strikes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) write: usize,
    pub(crate) fault: Fault,
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "write {}: {:?}", self.write, self.fault)
    }
}

impl Moment {
    /// How many writes the server has carried out at this moment.
    pub(crate) fn committed(self) -> usize {
        match self.fault {
            Fault::DiesBefore => self.write - 1,
            Fault::DiesAfter | Fault::AnswerLost => self.write,
        }
    }

    /// Prepares the server for the moment.
    pub(crate) fn prepare(self, cluster: &Cluster) -> Trap {
        let faults = cluster.plane().server().faults();
        // Those before the write pass; so do they pass the gate behind the commit.
        let gate = |point, passing| {
            let gate = faults.gate_at(point, controller_writes());
            for _ in 0..passing {
                gate.release();
            }
            gate
        };
        let before = gate(GatePoint::BeforeCommit, self.committed());
        match self.fault {
            Fault::DiesBefore => Trap::Gates {
                _others: None,
                at: before,
            },
            // Writes that are on their way beside it must not be carried out.
            Fault::DiesAfter => Trap::Gates {
                _others: Some(before),
                at: gate(GatePoint::AfterCommit, self.write - 1),
            },
            Fault::AnswerLost => {
                let skipped = u32::try_from(self.write - 1).unwrap();
                let action = FaultAction::CommitThenDrop;
                let rule = faults.inject_after(controller_writes(), skipped, 1, action);
                Trap::Rule {
                    _others: before,
                    rule,
                }
            }
        }
    }
}

/// What a server is prepared with for a moment.
pub(crate) enum Trap {
    /// The write stops at a gate; those that may come beside it stop before they are carried out.
    Gates { _others: Option<Gate>, at: Gate },
    /// The answer of the write is dropped.
    Rule { _others: Gate, rule: RuleId },
}

impl Trap {
    /// Waits for the moment. Returns the write, where it is one at which the controller dies.
    pub(crate) async fn sprung(&self, cluster: &Cluster) -> Option<RequestFacts> {
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
            .expect("the moment comes")
    }
}

/// What the controller writes. Its questions about rights and the like are none.
pub(crate) fn controller_writes() -> RequestMatcher {
    RequestMatcher::writes().user(USER)
}
