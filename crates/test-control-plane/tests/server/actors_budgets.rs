//! Disruption budgets.

use crate::support::{Plane, eventually, is_ready, pod};
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::actors::KubeletConfig;
use serde_json::json;

const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGET: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/b";

#[tokio::test(start_paused = true)]
async fn budget_allows_evictions_of_surplus_pods() {
    let builder = TestControlPlane::builder()
        .kubelet(KubeletConfig::default())
        .configure_actors(|actors| actors.disruption_controller = true);
    let plane = Plane::new(builder.start().await);
    let budget = json!({
        "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}},
    });
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    plane.create(budgets, &budget).await;
    for name in ["a", "b"] {
        plane.create(PODS, &pod(name)).await;
    }
    let allowed = |number: i64| {
        let plane = &plane;
        move || async move { plane.get(BUDGET).await["status"]["disruptionsAllowed"] == number }
    };
    eventually(allowed(1)).await;
    let status = plane.get(BUDGET).await["status"].clone();
    assert_eq!(
        (
            &status["currentHealthy"],
            &status["desiredHealthy"],
            &status["expectedPods"]
        ),
        (&json!(2), &json!(1), &json!(2))
    );
    assert_eq!(status["conditions"][0]["reason"], "SufficientPods");
    let pods = plane.0.pods();
    pods.evict("default", "a").await.unwrap();
    eventually(|| async { plane.code(&format!("{PODS}/a")).await == 404 }).await;
    eventually(allowed(0)).await;
    let err = pods.evict("default", "b").await.unwrap_err();
    assert_eq!(err.code, 429);
    assert_eq!(
        plane.get(BUDGET).await["status"]["conditions"][0]["reason"],
        "InsufficientPods"
    );
    plane.create(PODS, &pod("a")).await;
    eventually(allowed(1)).await;
    assert!(is_ready(&plane.get(&format!("{PODS}/b")).await));
    plane.stop().await;
}
