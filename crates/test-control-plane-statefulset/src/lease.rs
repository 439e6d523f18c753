//! The leases that other StatefulSet controllers hold while they run.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt as _;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, WatchParams};
use kube_test_control_plane_cluster::control_plane::ActorContext;
use serde_json::Value;
use tokio::time::{Instant, sleep, sleep_until};

/// The namespace of the leases.
const NAMESPACE: &str = "kube-system";

/// The lease of kube-controller-manager, also this project's default.
const BUILT_IN: &str = "kube-controller-manager";

/// The lease in this project's manifests.
const OWN: &str = "statefulset-controller-manager";

/// The duration of a lease without one.
const DEFAULT_DURATION: Duration = Duration::from_secs(15);

/// The delay before a failed request is repeated.
const RETRY: Duration = Duration::from_secs(1);

/// Observes the leases. Like client-go, it counts the duration of a lease from its last observed
/// change, so clocks may differ.
pub(crate) struct LeaseWatch {
    leases: Api<DynamicObject>,
    /// The version of each lease, and the time at which it was first observed.
    observed: BTreeMap<String, (String, Instant)>,
}

/// A held lease.
struct Held {
    holder: String,
    /// The end of the lease unless its holder renews it.
    until: Instant,
}

impl LeaseWatch {
    pub(crate) fn new(context: &ActorContext) -> Self {
        let kind = GroupVersionKind::gvk("coordination.k8s.io", "v1", "Lease");
        let resource = ApiResource::from_gvk(&kind);
        Self {
            leases: Api::namespaced_with(context.client.clone(), NAMESPACE, &resource),
            observed: BTreeMap::new(),
        }
    }

    /// Returns once no process holds a lease.
    pub(crate) async fn until_free(&mut self) {
        loop {
            let (held, version) = self.read().await;
            let Some(next) = held.iter().map(|held| held.until).min() else {
                return;
            };
            tokio::select! {
                () = self.changed(&version) => {}
                () = sleep_until(next) => {}
            }
        }
    }

    /// Returns the name of the next process that takes a lease.
    pub(crate) async fn until_taken(&mut self) -> String {
        loop {
            let (held, version) = self.read().await;
            if let Some(held) = held.into_iter().next() {
                return held.holder;
            }
            self.changed(&version).await;
        }
    }

    /// Returns the held leases, and the version of the list.
    async fn read(&mut self) -> (Vec<Held>, String) {
        loop {
            match self.leases.list(&ListParams::default()).await {
                Ok(list) => {
                    let held = list.items.iter().filter_map(|lease| self.held(lease));
                    return (
                        held.collect(),
                        list.metadata.resource_version.unwrap_or_default(),
                    );
                }
                Err(error) => {
                    tracing::debug!(%error, "reading the leases failed");
                    sleep(RETRY).await;
                }
            }
        }
    }

    fn held(&mut self, lease: &DynamicObject) -> Option<Held> {
        let name = lease.metadata.name.as_deref()?;
        if !elects_a_controller(name) {
            return None;
        }
        let spec = lease.data.get("spec")?;
        let holder = spec.get("holderIdentity")?.as_str()?;
        let version = lease.metadata.resource_version.clone()?;
        let now = Instant::now();
        let first = || (version.clone(), now);
        let observed = self.observed.entry(name.to_owned()).or_insert_with(first);
        if observed.0 != version {
            *observed = first();
        }
        let seconds = spec.get("leaseDurationSeconds").and_then(Value::as_u64);
        let duration = seconds.map_or(DEFAULT_DURATION, Duration::from_secs);
        let until = observed.1.checked_add(duration)?;
        (!holder.is_empty() && now < until).then(|| Held {
            holder: holder.to_owned(),
            until,
        })
    }

    /// Returns once a lease may have changed since the version.
    async fn changed(&self, version: &str) {
        match self.leases.watch(&WatchParams::default(), version).await {
            Ok(events) => {
                // A bookmark is no change, but the next read costs little.
                let _ = std::pin::pin!(events).next().await;
            }
            Err(error) => {
                tracing::debug!(%error, "watching the leases failed");
                sleep(RETRY).await;
            }
        }
    }
}

/// Reports whether the holder of a lease with this name runs a StatefulSet controller.
fn elects_a_controller(name: &str) -> bool {
    [BUILT_IN, OWN].into_iter().any(|base| {
        let rest = name.strip_prefix(base);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("-shard-"))
    })
}
