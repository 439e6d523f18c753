//! How fast the server is in process: creates and updates a second, and the time of a long list.

use std::time::Instant;

use http::Method;
use kube_test_control_plane::TestControlPlane;
use serde_json::json;

const PODS: u32 = 10_000;

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, reason = "the program's answer")]
#[expect(clippy::disallowed_methods, reason = "it measures real time")]
async fn main() {
    let plane = TestControlPlane::builder().start().await;
    let path = "/api/v1/namespaces/default/pods";
    let started = Instant::now();
    for i in 0..PODS {
        let pod = json!({
            "metadata": {"name": format!("p-{i}"), "labels": {"app": "x"}},
            "spec": {"containers": [{"name": "c", "image": "img:1"}]},
        });
        plane
            .server()
            .call_json(Method::POST, path, "load", &pod)
            .await;
    }
    let took = started.elapsed();
    println!(
        "{:.0} creates a second",
        f64::from(PODS) / took.as_secs_f64()
    );
    let maps = "/api/v1/namespaces/default/configmaps";
    let data =
        |i: u32| json!({"metadata": {"name": format!("m-{i}")}, "data": {"a": "x".repeat(1000)}});
    let started = Instant::now();
    for i in 0..PODS {
        plane
            .server()
            .call_json(Method::POST, maps, "load", &data(i))
            .await;
    }
    let took = started.elapsed();
    println!(
        "{:.0} creates of 1 kB a second",
        f64::from(PODS) / took.as_secs_f64()
    );
    let started = Instant::now();
    for i in 0..PODS {
        let labels = json!({"metadata": {"labels": {"changed": "yes"}}});
        let path = format!("{path}/p-{i}");
        plane
            .server()
            .call_json(Method::PATCH, &path, "load", &labels)
            .await;
    }
    let took = started.elapsed();
    println!(
        "{:.0} patches a second",
        f64::from(PODS) / took.as_secs_f64()
    );
    let started = Instant::now();
    let request = http::Request::builder().uri(path).body(String::new());
    if let Ok(request) = request
        && let Ok(reply) = plane.server().serve(request).await
    {
        println!(
            "a list of {PODS} pods in {:?}: {}",
            started.elapsed(),
            reply.status()
        );
    }
    plane.stop().await;
}
