//! Faults of plans.

use kube_test_control_plane::faults::FaultError;
use kube_test_control_plane::route::Verb;
use serde::{Deserialize, Serialize};

use super::{Millis, Span};

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
    /// The API server knows a further field of pod templates and sets it in all of them, without a
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
