//! Actions on the set `web`, which most written plans are about.

use serde_json::{Value, json};

use super::{Action, Cascade, ClaimRetention, Fault, Millis, PodEnd, Retain};

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

impl ClaimRetention {
    /// Claims are deleted with the set and when it is scaled down.
    pub const DELETE: Self = Self {
        when_deleted: Retain::Delete,
        when_scaled: Retain::Delete,
    };
}

fn web() -> String {
    "web".to_owned()
}

fn pod(ordinal: u32) -> String {
    format!("web-{ordinal}")
}
