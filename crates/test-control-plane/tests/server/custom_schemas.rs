//! Rare parts of the schemas of custom resources: closed objects, nulls in several versions, embedded
//! objects.

use http::Method;
use kube_test_control_plane::TestControlPlane;
use serde_json::{Value, json};

use crate::custom_resources::{DEFINITION, DEFINITIONS, WIDGETS, definition, merge, widget};
use crate::support::{Plane, exchange};

/// Starts a control plane whose widgets have these fields in their spec and their status, version by
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

/// Returns the condition of a definition.
async fn condition(plane: &Plane, of: &str) -> Value {
    let definition = plane.get(DEFINITION).await;
    let conditions = definition["status"]["conditions"].as_array().unwrap();
    let mut found = conditions.iter().filter(|it| it["type"] == of);
    found.next().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn taken_name_of_an_update_is_told_in_the_conditions() {
    let plane = plane([&json!({}); 2]).await;
    let mut gadgets = definition();
    gadgets["metadata"]["name"] = json!("gadgets.example.com");
    gadgets["spec"]["names"] = json!({"plural": "gadgets", "kind": "Gadget", "shortNames": ["gd"]});
    for version in gadgets["spec"]["versions"].as_array_mut().unwrap() {
        version["selectableFields"] = json!([]);
    }
    plane.create(DEFINITIONS, &gadgets).await;
    let names = json!({"spec": {"names": {"shortNames": ["gd"]}}});
    merge(&plane, DEFINITION, &names).await;
    let accepted = condition(&plane, "NamesAccepted").await;
    assert_eq!(accepted["status"], "False");
    assert_eq!(accepted["reason"], "ShortNamesConflict");
    assert_eq!(accepted["message"], "\"gd\" is already in use");
    assert_eq!(condition(&plane, "Established").await["status"], "True");
    let names = plane.get(DEFINITION).await["status"]["acceptedNames"].clone();
    assert_eq!(names["shortNames"], json!(["wd"]));

    // A name of its own is taken, too.
    let names = json!({"spec": {"names": {"shortNames": ["wd", "widget"]}}});
    merge(&plane, DEFINITION, &names).await;
    let accepted = condition(&plane, "NamesAccepted").await;
    assert_eq!(accepted["message"], "\"widget\" is already in use");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn approval_names_its_annotation() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let protected = |annotation: &str| {
        let mut protected = definition();
        protected["metadata"]["name"] = json!("widgets.x.k8s.io");
        protected["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": annotation});
        protected["spec"]["group"] = json!("x.k8s.io");
        protected
    };
    let refused = plane
        .refused(Method::POST, DEFINITIONS, &protected("https://"))
        .await;
    assert_eq!(refused.len(), 1, "{refused:?}");
    for (annotation, message) in [
        ("https://example.com/1", "approved in https://example.com/1"),
        ("unapproved, a test", "not approved: \"unapproved, a test\""),
    ] {
        let plane = Plane::new(TestControlPlane::builder().start().await);
        plane.create(DEFINITIONS, &protected(annotation)).await;
        let made = plane.get(&format!("{DEFINITIONS}/widgets.x.k8s.io")).await;
        let conditions = made["status"]["conditions"].as_array().unwrap();
        assert!(
            conditions.iter().any(|it| it["message"] == message),
            "{conditions:?}"
        );
        plane.stop().await;
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn objects_without_named_members_can_be_applied() {
    let plane = plane([&json!({"bare": {"type": "object"}}); 2]).await;
    let body = widget("a", &json!({"bare": {"x": {"y": 1}}})).to_string();
    let headers = [("Content-Type", "application/apply-patch+yaml")];
    let path = format!("{WIDGETS}/a?fieldManager=m");
    let server = plane.0.server();
    let answer = exchange(server, Method::PATCH, &path, &headers, body).await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    assert_eq!(answer.json()["spec"], json!({"bare": {}}));
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn fractions_are_multiples_as_upstream_counts_them() {
    let members = json!({"cent": {"type": "number", "multipleOf": 0.01}});
    let plane = plane([&members; 2]).await;
    for (value, is_multiple) in [(0.25, true), (0.29, false), (0.015, false), (3.0, true)] {
        let sent = widget("a", &json!({"cent": value}));
        let dry = format!("{WIDGETS}?dryRun=All");
        let (code, answer) = plane.call(Method::POST, &dry, &sent).await;
        assert_eq!(
            code,
            if is_multiple { 201 } else { 422 },
            "{value}: {answer}"
        );
    }
    plane.stop().await;
}

/// Replaces the schema of the values in both versions.
#[cfg(feature = "cel")]
async fn redefine(plane: &Plane, members: &Value) {
    let mut definition = plane.get(DEFINITION).await;
    for version in definition["spec"]["versions"].as_array_mut().unwrap() {
        let part = json!({"type": "object", "properties": members});
        version["schema"]["openAPIV3Schema"]["properties"] = json!({"spec": part, "status": part});
    }
    let (code, answer) = plane.call(Method::PUT, DEFINITION, &definition).await;
    assert_eq!(code, 200, "{answer}");
}

#[cfg(feature = "cel")]
#[tokio::test(start_paused = true)]
async fn rules_of_an_unchanged_list_only_warn() {
    let list = |most: i32| {
        json!({"list": {"type": "array", "maxItems": 9, "items": {
            "type": "integer", "x-kubernetes-validations": [{"rule": format!("self < {most}")}],
        }}, "more": {"type": "string"}})
    };
    let plane = plane([&list(9); 2]).await;
    let path = format!("{WIDGETS}/a");
    plane
        .create(WIDGETS, &widget("a", &json!({"list": [1, 5]})))
        .await;
    redefine(&plane, &list(4)).await;
    let mut object = plane.get(&path).await;
    object["spec"]["more"] = json!("x");
    let (code, answer) = plane.call(Method::PUT, &path, &object).await;
    assert_eq!(code, 200, "{answer}");
    object = answer;
    object["spec"]["list"] = json!([2, 5]);
    let causes = plane.refused(Method::PUT, &path, &object).await;
    assert_eq!(
        causes,
        ["spec.list[1]: Invalid value: 5: failed rule: self < 4"]
    );
    plane.stop().await;
}

#[cfg(feature = "cel")]
#[tokio::test(start_paused = true)]
async fn messages_read_the_old_value_itself() {
    let rule = json!({
        "rule": "!oldSelf.hasValue() || self >= oldSelf.value()", "optionalOldSelf": true,
        "messageExpression": "string(oldSelf.value())", "message": "it shrinks",
    });
    let plain = json!({
        "rule": "self >= oldSelf", "messageExpression": "string(oldSelf)",
    });
    let of = |rule: &Value| json!({"type": "integer", "x-kubernetes-validations": [rule]});
    let plane = plane([&json!({"optional": of(&rule), "plain": of(&plain)}); 2]).await;
    let path = format!("{WIDGETS}/a");
    let mut object = plane
        .create(WIDGETS, &widget("a", &json!({"optional": 5, "plain": 5})))
        .await;
    object["spec"] = json!({"optional": 4, "plain": 4});
    let causes = plane.refused(Method::PUT, &path, &object).await;
    assert_eq!(
        causes,
        [
            "spec.optional: Invalid value: 4: it shrinks",
            "spec.plain: Invalid value: 4: 5",
        ]
    );
    plane.stop().await;
}

/// Upstream joins the path to that of the object as if it were the name of one field.
#[cfg(feature = "cel")]
#[tokio::test(start_paused = true)]
async fn paths_of_rules_are_single_members() {
    let rule = |path: &str| json!([{"rule": "false", "message": "no", "fieldPath": path}]);
    let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let (mut names, mut object) = (
        map.clone(),
        json!({"type": "object", "properties": {"m": map}}),
    );
    names["x-kubernetes-validations"] = rule("['k']");
    object["x-kubernetes-validations"] = rule(".m.k");
    let plane = plane([&json!({"names": names, "object": object}); 2]).await;
    for (spec, field) in [
        (json!({"names": {"k": "v"}}), "spec.names.[k]"),
        (json!({"object": {"m": {"k": "v"}}}), "spec.object.m[k]"),
    ] {
        let causes = plane
            .refused(Method::POST, WIDGETS, &widget("a", &spec))
            .await;
        assert_eq!(causes, [format!("{field}: Invalid value: no")]);
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn fields_applied_in_another_version_are_removed() {
    let text = json!({"one": {"type": "string"}, "two": {"type": "string"}});
    let plane = plane([&text; 2]).await;
    let headers = [("Content-Type", "application/apply-patch+yaml")];
    for (version, spec) in [
        ("v1beta1", json!({"one": "a"})),
        ("v1", json!({"two": "b"})),
    ] {
        let mut object = widget("a", &spec);
        object["apiVersion"] = json!(format!("example.com/{version}"));
        let path = format!("{WIDGETS}/a?fieldManager=m").replace("/v1/", &format!("/{version}/"));
        let server = plane.0.server();
        let answer = exchange(server, Method::PATCH, &path, &headers, object.to_string()).await;
        assert!(answer.code < 300, "{}", answer.text());
        assert_eq!(answer.json()["spec"], spec);
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn bodies_and_selectors_are_refused_in_upstreams_words() {
    let plane = plane([&json!({}); 2]).await;
    for (body, wanted) in [
        (
            json!({"kind": "Widget", "metadata": {"name": "a"}}),
            "the API version in the data () does not match the expected API version (example.com/v1)",
        ),
        (
            json!({"apiVersion": "example.com/v1"}),
            "the object provided is unrecognized (must be of type Widget): Object 'Kind' is missing \
             in '{\"apiVersion\":\"example.com/v1\"}' ({\"apiVersion\":\"example.com/v1\" ...)",
        ),
    ] {
        let (code, answer) = plane.call(Method::POST, WIDGETS, &body).await;
        assert_eq!((code, &answer["message"]), (400, &json!(wanted)));
    }
    let mut global = definition();
    global["metadata"]["name"] = json!("gadgets.example.com");
    global["spec"]["scope"] = json!("Cluster");
    global["spec"]["names"] = json!({"plural": "gadgets", "kind": "Gadget"});
    plane.create(DEFINITIONS, &global).await;
    let path = "/apis/example.com/v1/gadgets?fieldSelector=metadata.namespace%3Dx";
    let (code, answer) = plane.call(Method::GET, path, &Value::Null).await;
    let message = json!("field label not supported: metadata.namespace");
    assert_eq!((code, &answer["message"]), (400, &message));
    plane.stop().await;
}
