//! The events of a run.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::fault::Fault;
use super::words::phrase;
use super::{
    Cascade, ClaimRetention, FencePart, MaxUnavailable, Millis, PartState, SetSpec, UpdateMode,
};

/// The moment of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Trigger {
    /// At a time after the start of the run.
    Time(Millis),
    /// At the nth write of the controllers, counted from 1, before it is sent. Leases and events
    /// don't count.
    Write(u64),
}

impl Trigger {
    /// Returns the time; the start for a write.
    pub(super) fn time(self) -> Millis {
        match self {
            Self::Time(at) => at,
            Self::Write(_) => Millis(0),
        }
    }
}

/// Something that happens. Actions of users on objects that don't exist do nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Action {
    /// A user creates a set.
    Create(SetSpec),
    /// A user creates a set with a further change of its manifest: a JSON merge patch.
    CreateWith {
        /// The set.
        spec: SetSpec,
        /// The change.
        change: Value,
    },
    /// A user or another controller creates any object.
    CreateObject {
        /// The resource.
        resource: String,
        /// The object.
        object: Value,
    },
    /// A user or another controller changes any object.
    Edit {
        /// The resource.
        resource: String,
        /// The object's name.
        name: String,
        /// The change: a JSON merge patch.
        change: Value,
    },
    /// A user deletes a set.
    Delete {
        /// The set.
        set: String,
        /// The treatment of its pods.
        cascade: Cascade,
    },
    /// A user changes the number of pods.
    Scale {
        /// The set.
        set: String,
        /// The number.
        replicas: u32,
    },
    /// A user changes the image. An earlier image is a rollback.
    Image {
        /// The set.
        set: String,
        /// The image.
        image: String,
    },
    /// A user changes the pod template.
    Template {
        /// The set.
        set: String,
        /// The change: a strategic merge patch.
        change: Value,
    },
    /// A user moves the partition of the rolling update.
    Partition {
        /// The set.
        set: String,
        /// Number of pods that keep the old revision.
        partition: u32,
    },
    /// A user changes the maximum of unavailable pods.
    MaxUnavailable {
        /// The set.
        set: String,
        /// The maximum.
        max: MaxUnavailable,
    },
    /// A user changes the retention of claims.
    Retention {
        /// The set.
        set: String,
        /// The retention.
        retention: ClaimRetention,
    },
    /// A user changes the first ordinal.
    FirstOrdinal {
        /// The set.
        set: String,
        /// The ordinal.
        start: u32,
    },
    /// A user changes the update mode.
    UpdateMode {
        /// The set.
        set: String,
        /// The mode.
        mode: UpdateMode,
    },
    /// A user changes `minReadySeconds`.
    MinReadySeconds {
        /// The set.
        set: String,
        /// The seconds.
        seconds: u32,
    },
    /// A user changes the number of old revisions to keep.
    HistoryLimit {
        /// The set.
        set: String,
        /// The number.
        limit: u32,
    },
    /// A user deletes a pod.
    DeletePod {
        /// The pod.
        pod: String,
        /// With a grace period of zero.
        force: bool,
    },
    /// A user changes the label that the selector matches.
    Relabel {
        /// The pod.
        pod: String,
        /// True if the label matches afterwards.
        matches: bool,
    },
    /// A user deletes a claim.
    DeleteClaim {
        /// The claim.
        claim: String,
    },
    /// A user creates a pod with the labels of a set and this name.
    Decoy {
        /// The set.
        set: String,
        /// The pod's name.
        pod: String,
    },
    /// Another controller takes a claim.
    TakeClaim {
        /// The claim.
        claim: String,
    },
    /// Another object becomes an owner of a claim, besides others.
    ShareClaim {
        /// The claim.
        claim: String,
    },
    /// A user restores a claim's owners from a backup: they replace the stored ones.
    RestoreOwners {
        /// The claim.
        claim: String,
        /// The owners.
        owners: Vec<RestoredOwner>,
    },
    /// A finalizer holds back an object's removal, or is removed.
    Hold {
        /// The resource.
        resource: String,
        /// The object.
        name: String,
        /// True if the finalizer is added.
        holds: bool,
    },
    /// A pod ends.
    End {
        /// The pod.
        pod: String,
        /// Its end.
        how: PodEnd,
    },
    /// A running pod becomes ready or unready.
    Ready {
        /// The pod.
        pod: String,
        /// True if it is ready.
        ready: bool,
    },
    /// A node stops reporting, for this time.
    LoseNode {
        /// The node's number.
        node: usize,
        /// The time.
        time: Millis,
    },
    /// An instance dies and is started again.
    Crash {
        /// The instance; the leader if none.
        instance: Option<usize>,
    },
    /// Something fails for a time, or at the write that triggers the step.
    Fault {
        /// The fault.
        fault: Fault,
        /// The time; ignored at a write, which the fault hits alone.
        time: Millis,
    },
    /// An administrator adds the label of the fence to the namespace, or removes it.
    Label {
        /// True if the namespace has it afterwards.
        served: bool,
    },
    /// An administrator changes, deletes or restores an object of the fence.
    Part {
        /// The object.
        part: FencePart,
        /// Its state afterwards.
        state: PartState,
    },
}

/// Writes the name of an action and its fields: `scale: set web, replicas 3`.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let action = serde_json::to_value(self).map_err(|_| fmt::Error)?;
        f.write_str(&phrase(&action))
    }
}

/// An owner in the backup of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RestoredOwner {
    /// The set of this name.
    Set,
    /// An earlier set of this name.
    FormerSet,
    /// The pod of the claim.
    Pod,
    /// An earlier pod of this name.
    FormerPod,
}

/// The end of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PodEnd {
    /// In phase Failed.
    Fails,
    /// In phase Succeeded.
    Succeeds,
    /// Evicted through the API.
    Evicted,
}

/// Actions with the time in milliseconds after the first of them.
pub(super) type Actions = Vec<(u64, Action)>;

/// Actions, most of them on the set `web`, which most written plans are about.
impl Action {
    /// Deletes the set.
    pub fn delete(cascade: Cascade) -> Self {
        Self::Delete {
            set: web(),
            cascade,
        }
    }

    /// Changes its number of pods.
    pub fn scale(replicas: u32) -> Self {
        Self::Scale {
            set: web(),
            replicas,
        }
    }

    /// Changes its image.
    pub fn image(image: &str) -> Self {
        Self::Image {
            set: web(),
            image: image.to_owned(),
        }
    }

    /// Moves its partition.
    pub fn partition(partition: u32) -> Self {
        Self::Partition {
            set: web(),
            partition,
        }
    }

    /// Changes the retention of its claims.
    pub fn retain(retention: ClaimRetention) -> Self {
        Self::Retention {
            set: web(),
            retention,
        }
    }

    /// Deletes one of its pods.
    pub fn delete_pod(ordinal: u32) -> Self {
        Self::DeletePod {
            pod: pod(ordinal),
            force: false,
        }
    }

    /// Deletes one of its pods with a grace period of zero.
    pub fn kill_pod(ordinal: u32) -> Self {
        Self::DeletePod {
            pod: pod(ordinal),
            force: true,
        }
    }

    /// Makes one of its pods ready or unready.
    pub fn ready(ordinal: u32, ready: bool) -> Self {
        Self::Ready {
            pod: pod(ordinal),
            ready,
        }
    }

    /// Ends one of its pods.
    pub fn end(ordinal: u32, how: PodEnd) -> Self {
        Self::End {
            pod: pod(ordinal),
            how,
        }
    }

    /// Changes any object with a JSON merge patch.
    pub fn edit(resource: &str, name: &str, change: Value) -> Self {
        Self::Edit {
            resource: resource.to_owned(),
            name: name.to_owned(),
            change,
        }
    }

    /// Changes an annotation, which no controller reads.
    pub fn annotate(resource: &str, name: &str, value: &str) -> Self {
        let change = json!({"metadata": {"annotations": {"note": value}}});
        Self::edit(resource, name, change)
    }

    /// Makes an object's deletion wait for a finalizer, or no longer.
    pub fn hold(resource: &str, name: &str, holds: bool) -> Self {
        Self::Hold {
            resource: resource.to_owned(),
            name: name.to_owned(),
            holds,
        }
    }

    /// Deletes a claim.
    pub fn delete_claim(claim: &str) -> Self {
        Self::DeleteClaim {
            claim: claim.to_owned(),
        }
    }

    /// Kills the leader.
    pub fn crash() -> Self {
        Self::Crash { instance: None }
    }

    /// Begins a fault that lasts for a time in milliseconds.
    pub fn fault(fault: Fault, millis: u64) -> Self {
        Self::Fault {
            fault,
            time: Millis(millis),
        }
    }
}

fn web() -> String {
    "web".to_owned()
}

fn pod(ordinal: u32) -> String {
    format!("web-{ordinal}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_phrased_in_words() {
        let scale = Action::Scale {
            set: "web".into(),
            replicas: 3,
        };
        assert_eq!(scale.to_string(), "scale: replicas 3, set web");
        let delete = Action::Delete {
            set: "web".into(),
            cascade: Cascade::Orphan,
        };
        assert_eq!(delete.to_string(), "delete: cascade Orphan, set web");
        let outage = Action::Fault {
            fault: Fault::Outage,
            time: Millis(5),
        };
        assert_eq!(outage.to_string(), "fault: fault outage, time 5");
    }
}
