//! The lease that another StatefulSet controller holds while it runs.

use std::time::Duration;

use futures::StreamExt as _;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, WatchParams};
use kube_test_control_plane_cluster::control_plane::ActorContext;
use serde_json::Value;
use tokio::time::sleep;

/// The namespace and the name of the lease: the defaults of kube-controller-manager and of
/// statefulset-controller-manager.
const NAMESPACE: &str = "kube-system";
const NAME: &str = "kube-controller-manager";

/// The duration of a lease without one.
const DEFAULT_DURATION: Duration = Duration::from_secs(15);

/// The delay before a failed request is repeated.
const RETRY: Duration = Duration::from_secs(1);

/// Observes the lease.
pub(crate) struct LeaseWatch {
    leases: Api<DynamicObject>,
    /// The version of a record that its holder has stopped to renew.
    expired: Option<String>,
}

/// A holder of the lease.
struct Holder {
    name: String,
    version: Option<String>,
    duration: Duration,
}

impl LeaseWatch {
    pub(crate) fn new(context: &ActorContext) -> Self {
        let kind = GroupVersionKind::gvk("coordination.k8s.io", "v1", "Lease");
        let resource = ApiResource::from_gvk(&kind);
        Self {
            leases: Api::namespaced_with(context.client.clone(), NAMESPACE, &resource),
            expired: None,
        }
    }

    /// Returns once no process holds the lease. Like client-go, counts the duration of a lease from
    /// its last observed change, so clocks may differ.
    pub(crate) async fn until_free(&mut self) {
        loop {
            let (holder, version) = self.read().await;
            let Some(holder) = holder else {
                return;
            };
            tokio::select! {
                () = self.changed(&version) => {}
                () = sleep(holder.duration) => {
                    self.expired = holder.version;
                    return;
                }
            }
        }
    }

    /// Returns the name of the next process that takes the lease.
    pub(crate) async fn until_taken(&mut self) -> String {
        loop {
            let (holder, version) = self.read().await;
            if let Some(holder) = holder {
                return holder.name;
            }
            self.changed(&version).await;
        }
    }

    /// Returns the holder, if any, and the version of the list.
    async fn read(&self) -> (Option<Holder>, String) {
        let wanted = ListParams::default().fields(&format!("metadata.name={NAME}"));
        loop {
            match self.leases.list(&wanted).await {
                Ok(list) => {
                    let holder = list.items.first().and_then(|lease| self.holder(lease));
                    return (holder, list.metadata.resource_version.unwrap_or_default());
                }
                Err(error) => {
                    tracing::debug!(%error, "reading the lease failed");
                    sleep(RETRY).await;
                }
            }
        }
    }

    fn holder(&self, lease: &DynamicObject) -> Option<Holder> {
        let spec = lease.data.get("spec")?;
        let name = spec.get("holderIdentity")?.as_str()?;
        let version = lease.metadata.resource_version.clone();
        if name.is_empty() || version.is_some() && version == self.expired {
            return None;
        }
        let seconds = spec.get("leaseDurationSeconds").and_then(Value::as_u64);
        Some(Holder {
            name: name.to_owned(),
            version,
            duration: seconds.map_or(DEFAULT_DURATION, Duration::from_secs),
        })
    }

    /// Returns once the lease may have changed since the version.
    async fn changed(&self, version: &str) {
        let wanted = WatchParams::default().fields(&format!("metadata.name={NAME}"));
        match self.leases.watch(&wanted, version).await {
            Ok(events) => {
                // A bookmark is no change, but the next read costs little.
                let _ = std::pin::pin!(events).next().await;
            }
            Err(error) => {
                tracing::debug!(%error, "watching the lease failed");
                sleep(RETRY).await;
            }
        }
    }
}
