//! A controller of `kube::runtime`: creates the headless Service that a StatefulSet names, unless a
//! Service of that name exists.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Service, ServiceSpec};
use kube::api::PostParams;
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt as _};
use prometheus::{IntCounter, Registry};
use tokio_util::sync::CancellationToken;

/// Pause after a failure.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Context of a reconciliation.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) created: IntCounter,
}

/// Adds the counter of created Services to the registry.
pub(crate) fn register(registry: &Registry) -> Result<IntCounter, prometheus::Error> {
    let created = IntCounter::new("my_services_created_total", "Number of created Services")?;
    registry.register(Box::new(created.clone()))?;
    Ok(created)
}

/// Runs until `stop` is cancelled and the reconciliations in progress have finished.
pub(crate) async fn run(context: Context, stop: CancellationToken) {
    let sets: Api<StatefulSet> = Api::all(context.client.clone());
    Controller::new(sets, watcher::Config::default())
        .graceful_shutdown_on(stop.cancelled_owned())
        .run(reconcile, retry, Arc::new(context))
        .for_each(|outcome| async move {
            if let Err(error) = outcome {
                tracing::warn!(%error, "cannot create the Service of a StatefulSet, retrying");
            }
        })
        .await;
}

async fn reconcile(set: Arc<StatefulSet>, context: Arc<Context>) -> Result<Action, kube::Error> {
    let spec = set.spec.as_ref();
    let names = spec.and_then(|spec| Some((spec.service_name.as_ref()?, &spec.selector)));
    let (Some((name, selector)), Some(namespace)) = (names, set.namespace()) else {
        return Ok(Action::await_change());
    };
    let services: Api<Service> = Api::namespaced(context.client.clone(), &namespace);
    if name.is_empty() || services.get_opt(name).await?.is_some() {
        return Ok(Action::await_change());
    }
    let mut service = Service {
        spec: Some(ServiceSpec {
            cluster_ip: Some("None".to_owned()),
            selector: selector.match_labels.clone(),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    };
    service.metadata.name = Some(name.clone());
    services.create(&PostParams::default(), &service).await?;
    context.created.inc();
    Ok(Action::await_change())
}

fn retry(_: Arc<StatefulSet>, _: &kube::Error, _: Arc<Context>) -> Action {
    Action::requeue(RETRY_AFTER)
}
