//! Rare parts of the schemas of custom resources: closed objects, nulls in several versions, embedded
//! objects.

use http::Method;
use kube_test_control_plane::TestControlPlane;
use serde_json::{Value, json};

use crate::custom_resources::{DEFINITIONS, WIDGETS, definition, widget};
use crate::support::Plane;

/// Starts a control plane whose widgets have these members in their spec and their status, version by
/// version.
async fn plane(members: [&Value; 2]) -> Plane {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let mut widgets = definition();
    let versions = widgets["spec"]["versions"].as_array_mut().unwrap();
    for (version, members) in versions.iter_mut().zip(members) {
        let part = json!({"type": "object", "properties": members});
        version["schema"]["openAPIV3Schema"]["properties"] = json!({"spec": part, "status": part});
        version["selectableFields"] = json!([]);
    }
    plane.create(DEFINITIONS, &widgets).await;
    plane
}

#[tokio::test(start_paused = true)]
async fn closed_objects_refuse_unnamed_members() {
    let members = json!({"closed": {
        "type": "object", "additionalProperties": false, "properties": {},
    }});
    let plane = plane([&members; 2]).await;
    let sent = widget("a", &json!({"closed": {"x": {"y": 1}}}));
    let causes = plane.refused(Method::POST, WIDGETS, &sent).await;
    let cause = "spec.closed: Invalid value: \"x\": spec.closed.x in body is a forbidden property";
    assert_eq!(causes, [cause]);
    plane
        .create(WIDGETS, &widget("a", &json!({"closed": {}})))
        .await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn versions_show_only_the_nulls_that_they_allow() {
    let text = json!({"text": {"type": "string"}});
    let nullable = json!({"text": {"type": "string", "nullable": true}});
    let beta = "/apis/example.com/v1beta1/namespaces/default/widgets";
    let null = widget("a", &json!({"text": null}));

    let plane_of_v1 = plane([&nullable, &text]).await;
    let made = plane_of_v1.create(WIDGETS, &null).await;
    assert_eq!(made["spec"], json!({"text": null}));
    let shown = plane_of_v1.get(&format!("{beta}/a")).await;
    assert_eq!(shown["spec"], json!({}));
    plane_of_v1.stop().await;

    // The stored version has no nulls.
    let plane_of_beta = plane([&text, &nullable]).await;
    let mut sent = null;
    sent["apiVersion"] = json!("example.com/v1beta1");
    plane_of_beta.create(beta, &sent).await;
    let shown = plane_of_beta.get(&format!("{beta}/a")).await;
    assert_eq!(shown["spec"], json!({}));
    plane_of_beta.stop().await;
}

#[tokio::test(start_paused = true)]
async fn embedded_objects_need_their_type_except_in_statuses() {
    let members = json!({"names": {"type": "object", "additionalProperties": {
        "type": "object",
        "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
    }}});
    let plane = plane([&members; 2]).await;
    let embedding = |object: Value| widget("a", &json!({"names": {"x": object}}));
    let causes = plane
        .refused(
            Method::POST,
            WIDGETS,
            &embedding(json!({"apiVersion": "a/b/c"})),
        )
        .await;
    assert_eq!(
        causes,
        [
            "spec.names[x].kind: Required value",
            "spec.names[x].apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: \
             a/b/c",
        ]
    );
    let sent = embedding(json!({"apiVersion": "v1", "kind": 5}));
    let (code, refusal) = plane.call(Method::POST, WIDGETS, &sent).await;
    assert_eq!(code, 400);
    assert_eq!(
        refusal["message"],
        "Widget in version \"v1\" cannot be handled as a Widget: spec.names[x].kind: Invalid value: \
         5: must be a string"
    );

    let mut made = plane.create(WIDGETS, &widget("a", &json!({}))).await;
    made["status"] = json!({"names": {"x": {"kind": "Pod"}}});
    let status = format!("{WIDGETS}/a/status");
    let (code, written) = plane.call(Method::PUT, &status, &made).await;
    assert_eq!(code, 200, "{written}");
    assert_eq!(written["status"], made["status"]);
    plane.stop().await;
}
