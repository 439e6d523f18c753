//! The events of a run.

use kube_test_control_plane::faults::FaultError;
use kube_test_control_plane::route::Verb;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Cascade, ClaimRetention, MaxUnavailable, Millis, SetSpec, Span, UpdateMode};

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

/// The requests that a fault hits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct FaultRequests {
    /// Of this instance; of all if none.
    pub instance: Option<usize>,
    /// With one of these verbs; with any if empty.
    pub verbs: Vec<Verb>,
    /// Of this resource; of any if none. Leases are hit only if named.
    pub resource: Option<String>,
    /// With this probability in percent.
    pub percent: u32,
}

/// Something that fails.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Fault {
    /// The API server responds with an error.
    Reject {
        /// The requests.
        requests: FaultRequests,
        /// The error.
        error: FaultError,
    },
    /// The connection breaks before the API server gets the request.
    Drop(FaultRequests),
    /// The API server processes the request, and the connection breaks before the response.
    LoseResponse(FaultRequests),
    /// The connection ends with a graceful GOAWAY that names an earlier request as the last processed
    /// one.
    LeaveUnprocessed(FaultRequests),
    /// The request takes longer to the API server, which processes it even if its sender is gone.
    DelayRequest {
        /// The requests.
        requests: FaultRequests,
        /// The delay.
        delay: Span,
    },
    /// The response takes longer.
    DelayResponse {
        /// The requests.
        requests: FaultRequests,
        /// The delay.
        delay: Span,
    },
    /// The instance dies before the request is sent. Only at a write.
    CrashBefore,
    /// The instance dies once the API server has processed the request. Only at a write.
    CrashAfter,
    /// Watches of an instance, and of one resource if named.
    Watch {
        /// The instance; all if none.
        instance: Option<usize>,
        /// The resource; all if none.
        resource: Option<String>,
        /// The effect on them.
        watch: WatchFault,
    },
    /// An instance stops: it does nothing and learns nothing, then goes on as if no time had
    /// passed. At a write, once its response has arrived.
    Suspend {
        /// The instance; the leader if none.
        instance: Option<usize>,
    },
    /// Another writer changes all objects of a resource again and again.
    Storm {
        /// The resource.
        resource: String,
        /// Time between two changes in milliseconds.
        every: Millis,
    },
    /// A second controller meddles with the sets' pods, claims and revisions.
    Meddle {
        /// Time between two changes in milliseconds.
        every: Millis,
    },
    /// The API server knows a further member of pod templates and sets it in all of them, without a
    /// new generation. At the end of the fault it is an older server again.
    NewDefaults,
    /// An instance is cut off: nothing reaches the API server, nothing comes back.
    Isolate {
        /// The instance; the leader if none.
        instance: Option<usize>,
    },
    /// The API server can't be reached.
    Outage,
    /// Admission denies new pods.
    DenyPods,
    /// Admission denies new pods of an image.
    DenyImage {
        /// The image.
        image: String,
    },
    /// Admission adds a container and a toleration to new pods.
    MutatePods,
    /// The API server that an instance talks to is a replica that learns nothing new.
    FrozenReplica {
        /// The instance; all if none.
        instance: Option<usize>,
    },
    /// At most this number of pods may exist.
    Quota {
        /// The number.
        pods: usize,
    },
    /// The clock of an instance is ahead (or behind, if negative) by these milliseconds.
    Skew {
        /// The instance.
        instance: usize,
        /// The milliseconds.
        millis: i64,
    },
    /// The API server forgets its old events.
    Compact,
}

/// The effect on a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum WatchFault {
    /// No event arrives until the end of the fault.
    Freeze,
    /// Each event is late.
    Lag {
        /// The delay.
        delay: Span,
    },
    /// An event arrives only after this number of later ones.
    HoldBack {
        /// The number.
        events: u32,
    },
    /// The connection breaks.
    Cut,
    /// The stream ends because its version is too old, so the client lists again.
    Expire,
    /// Bookmarks are lost.
    NoBookmarks,
}
