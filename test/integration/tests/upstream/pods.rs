//! Deleted pods, rejected pods, and pod attributes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use integration::World;
use integration::space::SERVICES;
use integration::stateful_sets::{
    PATIENCE, create_stable, headless_service, list_pods, name, phase, set_finalizers,
    set_pod_phase, stateful_set, uid, until_status,
};
use serde_json::{Value, json};
use statefulset_client::resource::{PODS, STATEFUL_SETS};
use statefulset_client::rest::RestClient;

/// Finalizer that keeps a deleted pod terminating.
const BLOCK: &str = "fake.example.com/blockDeletion";

fn uids(pods: &[Value]) -> Vec<String> {
    pods.iter().map(|pod| uid(pod).to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn test_deleting_and_terminating_pods() {
    let world = World::with_controller().await;
    let space = world.namespace("test-deleting-and-failed-pods").await;
    create_stable(&space, &stateful_set("sts", 3)).await;
    let pods = list_pods(&space).await;
    let [deleting, failed, succeeded] = pods.as_slice() else {
        panic!("there are {} pods", pods.len());
    };
    set_finalizers(&space, name(deleting), &[BLOCK]).await;
    space.delete(&PODS, name(deleting), None).await;
    set_pod_phase(&space, name(failed), "Failed").await;
    set_pod_phase(&space, name(succeeded), "Succeeded").await;

    let replaced = async || {
        let pods = list_pods(&space).await;
        let uids = uids(&pods);
        assert!(uids.contains(&uid(deleting).to_owned()), "the blocked pod");
        let gone = [failed, succeeded].map(uid);
        let all_new = !uids.iter().any(|uid| gone.contains(&&**uid));
        let none_ended = !pods
            .iter()
            .any(|pod| ["Failed", "Succeeded"].contains(&phase(pod)));
        (pods.len() == 3 && all_new && none_ended).then_some(())
    };
    PATIENCE.until("ended pods are replaced", replaced).await;

    set_finalizers(&space, name(deleting), &[]).await;
    let replaced = async || {
        let uids = uids(&list_pods(&space).await);
        (uids.len() == 3 && !uids.contains(&uid(deleting).to_owned())).then_some(())
    };
    PATIENCE
        .until("the deleted pod is replaced", replaced)
        .await;
}

/// A client that allows only the first `limit` pod creations. Upstream fails them in the API
/// server's admission with an error that isn't a status, which the server reports as an internal
/// error; the client returns the same response, and works with any server.
///
/// Upstream: `fakePodFailAdmission`.
fn with_limited_pods(client: kube::Client, limit: usize) -> (RestClient, Arc<AtomicUsize>) {
    let created = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&created);
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (client, counter) = (client.clone(), Arc::clone(&counter));
        async move {
            let creates =
                request.method() == http::Method::POST && request.uri().path().ends_with("/pods");
            if creates && counter.fetch_add(1, Ordering::Relaxed) >= limit {
                let status = json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                    "message": "fake error", "code": 500,
                });
                let body = kube::client::Body::from(status.to_string().into_bytes());
                let answer = http::Response::builder().status(500);
                return Ok(answer
                    .header("content-type", "application/json")
                    .body(body)?);
            }
            Ok(client.send(request).await?)
        }
    });
    (RestClient::from_service(service), created)
}

#[tokio::test(start_paused = true)]
async fn test_stateful_set_status_with_pod_fail() {
    let mut world = World::api_server().await;
    let (client, asked) = with_limited_pods(world.controller_client(), 2);
    world.start_controller(client);
    let space = world.namespace("test-pod-fail").await;
    space.create(&STATEFUL_SETS, &stateful_set("sts", 4)).await;
    until_status(&space, "sts", &[("replicas", 2)]).await;
    assert_eq!(list_pods(&space).await.len(), 2);
    assert!(
        asked.load(Ordering::Relaxed) > 2,
        "no pod creation was rejected"
    );
}

#[tokio::test(start_paused = true)]
async fn test_stateful_set_pod_subdomain() {
    let world = World::with_controller().await;
    let space = world.namespace("test-pod-subdomain").await;
    space
        .create(&SERVICES, &headless_service("test-service"))
        .await;
    let mut set = stateful_set("sts", 3);
    set["spec"]["serviceName"] = "test-service".into();
    create_stable(&space, &set).await;
    let pods = list_pods(&space).await;
    assert_eq!(pods.len(), 3);
    for pod in pods {
        assert_eq!(pod["spec"]["subdomain"], "test-service", "{}", name(&pod));
        assert_eq!(pod["spec"]["hostname"], name(&pod));
    }
}
