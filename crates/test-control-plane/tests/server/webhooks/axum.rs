//! A router of axum as the handler of webhooks.

use ::axum::routing::post;
use ::axum::{Json, Router};
use http::Method;
use kube_test_control_plane::TestControlPlane;
use serde_json::{Value, json};

use super::{MAPS, configure, map, rejected, webhook};
use crate::support::Plane;

/// Allows config maps without a field `bad`.
async fn validate(Json(review): Json<Value>) -> Json<Value> {
    let request = &review["request"];
    let is_bad = request["object"]["data"].get("bad").is_some();
    Json(json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "response": {
            "uid": request["uid"], "allowed": !is_bad,
            "status": {"code": 403, "message": "it is bad"},
        },
    }))
}

#[tokio::test(start_paused = true)]
async fn router_serves_webhooks_below_its_paths() {
    let router = Router::new().route("/validate", post(validate));
    let builder = TestControlPlane::builder().webhook("default", "hooks", router);
    let plane = Plane::new(builder.start().await);
    let at = |path: &str| {
        json!({"clientConfig": {"service": {
            "namespace": "default", "name": "hooks", "path": path,
        }}})
    };
    let hook = webhook("hooks", &at("/validate"));
    configure(&plane, "validating", "v", &[hook]).await;
    plane.create(MAPS, &map("a", &json!({"good": "1"}))).await;
    let bad = map("b", &json!({"bad": "1"}));
    let message = rejected(&plane, Method::POST, MAPS, &bad, 403).await;
    let expected = "admission webhook \"hooks.example.com\" denied the request: it is bad";
    assert_eq!(message, expected);

    // The router itself responds elsewhere.
    let hook = webhook("hooks", &at("/elsewhere"));
    configure(&plane, "validating", "w", &[hook]).await;
    let good = map("b", &json!({"good": "1"}));
    let message = rejected(&plane, Method::POST, MAPS, &good, 500).await;
    assert_eq!(
        message,
        "Internal error occurred: failed calling webhook \"hooks.example.com\": failed to call \
         webhook: the server could not find the requested resource"
    );
    plane.stop().await;
}
