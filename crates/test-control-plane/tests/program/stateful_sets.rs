//! The StatefulSet controller among the actors.

use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, PostParams};
use kube::runtime::wait::{Condition, await_condition, conditions};
use rustix::process::Signal;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::running::{Running, client};

const WAIT_MAX: Duration = Duration::from_secs(30);

fn start(kubeconfig: &Path, flags: &[&str]) -> Running {
    let path = kubeconfig.to_str().unwrap();
    Running::start(&[&["--kubeconfig-out", path], flags].concat())
}

/// Creates an object and waits for a condition of it.
async fn create<K>(client: &Client, object: Value, condition: impl Condition<K>) -> K
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::Serialize
        + DeserializeOwned
        + Send
        + 'static,
{
    let objects: Api<K> = Api::default_namespaced(client.clone());
    let object = serde_json::from_value(object).unwrap();
    let created = objects.create(&PostParams::default(), &object).await;
    let created = created.unwrap();
    let reached = await_condition(objects, created.meta().name.as_deref().unwrap(), condition);
    let reached = timeout(WAIT_MAX, reached).await.unwrap().unwrap();
    reached.unwrap()
}

fn set() -> Value {
    json!({
        "metadata": {"name": "web"},
        "spec": {
            "serviceName": "web", "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod_spec()},
        },
    })
}

fn pod_spec() -> Value {
    json!({"containers": [{"name": "c", "image": "registry.example/web:1"}]})
}

fn is_ready(set: Option<&StatefulSet>) -> bool {
    let status = set.and_then(|set| set.status.as_ref());
    status.and_then(|status| status.ready_replicas) == Some(2)
}

#[tokio::test]
async fn set_becomes_ready() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    for flags in [
        &[] as &[&str],
        &["--actors=kubelet,scheduler,statefulset-controller"],
    ] {
        let running = start(&kubeconfig, flags);
        let client = client(&kubeconfig, |_| ()).await;
        create(&client, set(), is_ready).await;
        running.end(Signal::TERM);
    }
}

#[tokio::test]
async fn excluded_controller_leaves_sets_alone() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    for flags in [
        &["--actors=*,-statefulset-controller"] as &[&str],
        &["--actors", "*,-statefulset-controller"],
    ] {
        let running = start(&kubeconfig, flags);
        let client = client(&kubeconfig, |_| ()).await;
        let exists = |set: Option<&StatefulSet>| set.is_some();
        create(&client, set(), exists).await;
        // The other actors have handled a later object.
        let pod = json!({"metadata": {"name": "later"}, "spec": pod_spec()});
        create::<Pod>(&client, pod, conditions::is_pod_running()).await;
        let sets: Api<StatefulSet> = Api::default_namespaced(client);
        let status = sets.get("web").await.unwrap().status.unwrap();
        assert_eq!((status.observed_generation, status.replicas), (None, 0));
        running.end(Signal::TERM);
    }
}
