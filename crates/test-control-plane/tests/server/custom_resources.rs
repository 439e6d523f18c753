//! Custom resources: the life of a definition, and the handling of its objects.

use std::sync::Arc;

use http::Method;
use kube_test_control_plane::TestControlPlane;
use serde_json::{Value, json};

use crate::support::{Plane, exchange};

pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(crate) const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";
pub(crate) const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

pub(crate) fn version(name: &str, is_stored: bool) -> Value {
    // The server accepts the same fields of versions only with the same schema.
    let mut fields = json!([{"jsonPath": ".spec.color"}]);
    if let Some(fields) = fields.as_array_mut().filter(|_| !is_stored) {
        fields.push(json!({"jsonPath": format!(".spec.{name}")}));
    }
    json!({
        "name": name, "served": true, "storage": is_stored,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "required": ["size"], "properties": {
                "size": {"type": "integer", "minimum": 1},
                "color": {"type": "string", "default": "red"},
                (name): {"type": "string"},
            }},
            "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
        }}},
        "subresources": {"status": {}},
        "selectableFields": fields,
    })
}

pub(crate) fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "scope": "Namespaced",
            "versions": [version("v1", true), version("v1beta1", false)],
        },
    })
}

pub(crate) fn widget(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec,
    })
}

/// Applies a merge patch.
pub(crate) async fn merge(plane: &Plane, path: &str, patch: &Value) {
    let headers = [("Content-Type", "application/merge-patch+json")];
    let server = plane.0.server();
    let answer = exchange(server, Method::PATCH, path, &headers, patch.to_string()).await;
    assert_eq!(answer.code, 200, "{}", answer.text());
}

async fn plane() -> Plane {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    plane.create(DEFINITIONS, &definition()).await;
    plane
}

#[tokio::test(start_paused = true)]
async fn definition_is_established_by_its_creation() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    assert_eq!(plane.code("/apis/example.com").await, 404);
    let created = plane.create(DEFINITIONS, &definition()).await;
    assert_eq!(created["status"]["conditions"], Value::Null);
    assert_eq!(created["status"]["storedVersions"], json!(["v1"]));
    let found = plane.get(DEFINITION).await;
    let conditions = found["status"]["conditions"].as_array().unwrap();
    let conditions: Vec<(&str, &str)> = conditions
        .iter()
        .map(|c| (c["type"].as_str().unwrap(), c["status"].as_str().unwrap()))
        .collect();
    assert_eq!(
        conditions,
        [("NamesAccepted", "True"), ("Established", "True")]
    );
    let group = plane.get("/apis/example.com").await;
    assert_eq!(group["preferredVersion"]["version"], "v1");
    let resources = plane.get("/apis/example.com/v1").await;
    assert_eq!(resources["resources"][0]["singularName"], "widget");
    assert_eq!(resources["resources"][1]["name"], "widgets/status");
    let list = plane.get(WIDGETS).await;
    assert_eq!(list["kind"], "WidgetList");
    plane.stop().await;
}

/// Go's types have no order of fields, and read `1.50` as 1.5.
#[tokio::test(start_paused = true)]
async fn schemas_are_read_in_any_spelling() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let schema = r#"{"type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"spec": {"type": "object", "properties": {
            "size": {"type": "number", "minimum": 1.50, "default": 2}}}}}"#;
    let mut sent = definition();
    for version in sent["spec"]["versions"].as_array_mut().unwrap() {
        version["schema"]["openAPIV3Schema"] = json!("<schema>");
        version["selectableFields"] = json!([]);
    }
    let body = sent.to_string().replace(r#""<schema>""#, schema);
    let headers = [("Content-Type", "application/json")];
    let server = plane.0.server();
    let answer = exchange(server, Method::POST, DEFINITIONS, &headers, body).await;
    assert_eq!(answer.code, 201, "{}", answer.json());
    let stored = plane.create(WIDGETS, &widget("w", &json!({}))).await;
    assert_eq!(stored["spec"], json!({"size": 2}));
    let causes = plane
        .refused(Method::POST, WIDGETS, &widget("v", &json!({"size": 1.25})))
        .await;
    assert!(
        causes[0].contains("greater than or equal to 1.5"),
        "{causes:?}"
    );
    // An integer is compared with the bound's integer part, as by kube-apiserver.
    plane
        .create(WIDGETS, &widget("v", &json!({"size": 1})))
        .await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn objects_are_defaulted_pruned_and_validated() {
    let plane = plane().await;
    let sent = widget("a", &json!({"size": 3.0, "unknown": 1}));
    let made = plane.create(WIDGETS, &sent).await;
    assert_eq!(made["spec"], json!({"size": 3, "color": "red"}));
    assert_eq!(made["metadata"]["generation"], 1);
    for (spec, causes) in [
        (json!({}), vec!["spec.size"]),
        (
            json!({"size": 0, "color": 5}),
            vec!["spec.color", "spec.size"],
        ),
        (json!("text"), vec!["spec"]),
    ] {
        let refused = plane
            .refused(Method::POST, WIDGETS, &widget("b", &spec))
            .await;
        let refused: Vec<&str> = refused
            .iter()
            .map(|cause| cause.split(':').next().unwrap())
            .collect();
        assert_eq!(refused, causes, "{spec}");
    }
    let strict = format!("{WIDGETS}?fieldValidation=Strict");
    let (code, status) = plane.call(Method::POST, &strict, &sent).await;
    assert_eq!(code, 400);
    let message = status["message"].as_str().unwrap();
    assert!(
        message.contains("unknown field \"spec.unknown\""),
        "{message}"
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn versions_show_one_object() {
    let plane = plane().await;
    let spec = json!({"size": 1, "v1": "x"});
    plane.create(WIDGETS, &widget("a", &spec)).await;
    let other = "/apis/example.com/v1beta1/namespaces/default/widgets";
    let shown = plane.get(&format!("{other}/a")).await;
    assert_eq!(shown["apiVersion"], "example.com/v1beta1");
    assert_eq!(shown["spec"], json!({"size": 1, "color": "red"}));
    let mut sent = widget("b", &json!({"size": 2, "v1beta1": "lost"}));
    sent["apiVersion"] = json!("example.com/v1beta1");
    plane.create(other, &sent).await;
    let stored = plane.get(&format!("{WIDGETS}/b")).await;
    assert_eq!(stored["spec"], json!({"size": 2, "color": "red"}));
    let blue = plane
        .get(&format!("{WIDGETS}?fieldSelector=spec.color%3Dblue"))
        .await;
    assert_eq!(blue["items"], json!([]));
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn conversion_by_a_missing_webhook_fails() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let mut converted = definition();
    converted["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {"service": {"name": "hook", "namespace": "system", "path": "/convert"}},
    }});
    plane.create(DEFINITIONS, &converted).await;
    let spec = json!({"size": 1});
    plane.create(WIDGETS, &widget("a", &spec)).await;
    let failure = |from: &str| {
        format!(
            "conversion webhook for example.com/{from}, Kind=Widget failed: Post \
             \"https://hook.system.svc:443/convert?timeout=30s\": service \"hook\" not found"
        )
    };
    let other = "/apis/example.com/v1beta1/namespaces/default/widgets";
    let item = format!("{other}/a");
    let mut sent = widget("b", &spec);
    sent["apiVersion"] = json!("example.com/v1beta1");
    let mut changed = sent.clone();
    changed["metadata"]["name"] = json!("a");
    let created_in_vain = format!("{other}?dryRun=All");
    let selected = format!("{other}?fieldSelector=spec.color%3Dblue");
    let null = Value::Null;
    for (method, path, body, from) in [
        (Method::GET, &*item, &null, "v1"),
        (Method::GET, other, &null, "v1"),
        (Method::GET, &*selected, &null, "v1"),
        (Method::PUT, &*item, &changed, "v1"),
        (Method::DELETE, &*item, &null, "v1"),
        (Method::DELETE, other, &null, "v1"),
        (Method::POST, other, &sent, "v1beta1"),
        (Method::POST, &*created_in_vain, &sent, "v1beta1"),
    ] {
        let (code, status) = plane.call(method.clone(), path, body).await;
        assert_eq!(code, 500, "{method} {path}: {status}");
        assert_eq!(status["message"], failure(from), "{method} {path}");
    }
    let watched = format!("{other}?watch=1&timeoutSeconds=9");
    let events = exchange(plane.0.server(), Method::GET, &watched, &[], "").await;
    let event: Value = serde_json::from_str(&events.text()).unwrap();
    assert_eq!(event["type"], "ERROR");
    assert_eq!(event["object"]["message"], failure("v1"));
    let items = plane.get(WIDGETS).await["items"].clone();
    assert_eq!(items.as_array().map(Vec::len), Some(1));
    plane.call(Method::DELETE, DEFINITION, &json!({})).await;
    assert_eq!(plane.code(DEFINITION).await, 404);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn status_is_written_through_its_subresource_alone() {
    let plane = plane().await;
    let mut sent = widget("a", &json!({"size": 1}));
    sent["status"] = json!({"ready": true});
    let made = plane.create(WIDGETS, &sent).await;
    assert_eq!(made.get("status"), None);
    let path = format!("{WIDGETS}/a");
    let status = format!("{path}/status");
    merge(
        &plane,
        &status,
        &json!({"status": {"ready": true}, "spec": {"size": 9}}),
    )
    .await;
    let found = plane.get(&path).await;
    assert_eq!(found["status"], json!({"ready": true}));
    assert_eq!(found["spec"]["size"], 1);
    assert_eq!(found["metadata"]["generation"], 1);
    merge(&plane, &path, &json!({"spec": {"size": 2}})).await;
    assert_eq!(plane.get(&path).await["metadata"]["generation"], 2);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn deletion_of_a_definition_waits_for_finalizers() {
    let plane = plane().await;
    let mut held = widget("held", &json!({"size": 1}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    plane.create(WIDGETS, &held).await;
    plane
        .create(WIDGETS, &widget("free", &json!({"size": 1})))
        .await;
    plane.call(Method::DELETE, DEFINITION, &json!({})).await;
    assert!(plane.is_deleting(DEFINITION).await);
    assert!(plane.is_deleting(&format!("{WIDGETS}/held")).await);
    assert_eq!(plane.code(&format!("{WIDGETS}/free")).await, 404);
    let late = widget("late", &json!({"size": 1}));
    let (code, _) = plane.call(Method::POST, WIDGETS, &late).await;
    assert_eq!(code, 403);
    let release = json!({"metadata": {"finalizers": null}});
    merge(&plane, &format!("{WIDGETS}/held"), &release).await;
    assert_eq!(plane.code(DEFINITION).await, 404);
    let gone = exchange(plane.0.server(), Method::GET, WIDGETS, &[], "").await;
    assert_eq!(
        (gone.code, gone.text().as_str()),
        (404, "404 page not found\n")
    );
    plane.create(DEFINITIONS, &definition()).await;
    assert_eq!(plane.get(WIDGETS).await["items"], json!([]));
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn changed_definition_frees_its_old_kind() {
    let plane = plane().await;
    let row = plane.0.server().kind_of("example.com/v1", "Widget");
    let row = Arc::downgrade(&row.unwrap());
    assert!(row.upgrade().is_some(), "the row is served");
    merge(
        &plane,
        DEFINITION,
        &json!({"spec": {"names": {"shortNames": ["w"]}}}),
    )
    .await;
    plane.get(WIDGETS).await;
    assert!(row.upgrade().is_none(), "another row is served");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn waiting_definition_gets_the_name_of_a_deleted_one() {
    let plane = plane().await;
    let mut second = definition();
    second["metadata"]["name"] = json!("gadgets.example.com");
    second["spec"]["names"]["plural"] = json!("gadgets");
    plane.create(DEFINITIONS, &second).await;
    let path = format!("{DEFINITIONS}/gadgets.example.com");
    let conditions = &plane.get(&path).await["status"]["conditions"];
    assert_eq!(conditions[0]["reason"], "ListKindConflict");
    assert_eq!(conditions[1]["reason"], "NotAccepted");
    let gadgets = "/apis/example.com/v1/namespaces/default/gadgets";
    assert_eq!(plane.code(gadgets).await, 404);
    plane.call(Method::DELETE, DEFINITION, &json!({})).await;
    assert_eq!(plane.code(gadgets).await, 200);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn applied_lists_merge_by_the_keys_of_the_schema() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let mut keyed = definition();
    keyed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = json!({
        "type": "object", "properties": {"ports": {
            "type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["name"], "properties": {
                "name": {"type": "string"}, "port": {"type": "integer"},
            }},
        }},
    });
    keyed["spec"]["versions"]
        .as_array_mut()
        .unwrap()
        .truncate(1);
    keyed["spec"]["versions"][0]
        .as_object_mut()
        .unwrap()
        .remove("selectableFields");
    plane.create(DEFINITIONS, &keyed).await;
    let headers = [("Content-Type", "application/apply-patch+yaml")];
    for (manager, name, code) in [("one", "a", 201), ("two", "b", 200)] {
        let config = widget("w", &json!({"ports": [{"name": name, "port": 1}]}));
        let path = format!("{WIDGETS}/w?fieldManager={manager}");
        let server = plane.0.server();
        let answer = exchange(server, Method::PATCH, &path, &headers, config.to_string()).await;
        assert_eq!(answer.code, code, "{}", answer.text());
    }
    let found = plane.get(&format!("{WIDGETS}/w")).await;
    let wanted = json!([{"name": "a", "port": 1}, {"name": "b", "port": 1}]);
    assert_eq!(found["spec"]["ports"], wanted);
    let unknown = widget("w", &json!({"unknown": 1}));
    let path = format!("{WIDGETS}/w?fieldManager=one");
    let server = plane.0.server();
    let answer = exchange(server, Method::PATCH, &path, &headers, unknown.to_string()).await;
    assert_eq!(answer.code, 500);
    assert!(
        answer
            .text()
            .contains(".spec.unknown: field not declared in schema")
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn documents_follow_the_definitions() {
    let plane = plane().await;
    let index = plane.get("/openapi/v3").await;
    let url = |index: &Value, name: &str| -> Option<String> {
        let url = index["paths"][name]["serverRelativeURL"].as_str();
        url.map(str::to_owned)
    };
    let before = url(&index, "apis/example.com/v1").unwrap();
    let document = plane.get(&before).await;
    assert_eq!(document["info"]["title"], "Kubernetes CRD Swagger");
    let schemas = &document["components"]["schemas"];
    let widget = &schemas["com.example.v1.Widget"];
    let size = &widget["properties"]["spec"]["properties"]["size"];
    assert_eq!(size, &json!({"type": "integer", "minimum": 1}));
    assert_eq!(widget["properties"]["kind"]["type"], "string");
    let field = json!([{"fieldPath": "spec.color"}]);
    assert_eq!(widget["x-kubernetes-selectable-fields"], field);
    let list = &schemas["com.example.v1.WidgetList"];
    let kind = json!([{"group": "example.com", "version": "v1", "kind": "WidgetList"}]);
    assert_eq!(list["x-kubernetes-group-version-kind"], kind);
    let paths = &document["paths"];
    let item = &paths["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"];
    let id = &item["get"]["operationId"];
    assert_eq!(id, "readExampleComV1NamespacedWidget");
    let patches = item["patch"]["requestBody"]["content"].as_object().unwrap();
    assert!(!patches.contains_key("application/strategic-merge-patch+json"));
    assert!(patches.contains_key("application/apply-patch+yaml"));
    // Another schema gives another document; a withdrawn version has none.
    let mut versions = definition()["spec"]["versions"].clone();
    versions[0]["schema"]["openAPIV3Schema"]["description"] = json!("A widget.");
    versions[1]["served"] = json!(false);
    merge(&plane, DEFINITION, &json!({"spec": {"versions": versions}})).await;
    let index = plane.get("/openapi/v3").await;
    let after = url(&index, "apis/example.com/v1").unwrap();
    assert_ne!(before, after);
    let document = plane.get(&after).await;
    let widget = &document["components"]["schemas"]["com.example.v1.Widget"];
    assert_eq!(widget["description"], "A widget.");
    assert_eq!(url(&index, "apis/example.com/v1beta1"), None);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn list_kind_names_the_schema_of_lists() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let mut listed = definition();
    listed["spec"]["names"]["listKind"] = json!("Widgets");
    plane.create(DEFINITIONS, &listed).await;
    let document = plane.get("/openapi/v3/apis/example.com/v1").await;
    let schemas = document["components"]["schemas"].as_object().unwrap();
    assert!(schemas.contains_key("com.example.v1.Widgets"));
    assert!(!schemas.contains_key("com.example.v1.WidgetList"));
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn errors_in_shared_parts_omit_the_version() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let mut wrong = definition();
    let versions = wrong["spec"]["versions"].as_array_mut().unwrap();
    for version in &mut *versions {
        version["additionalPrinterColumns"] = json!([{"name": "A", "jsonPath": ".spec.a"}]);
        version["subresources"]["scale"] = json!({"specReplicasPath": ".spec.n"});
        version["selectableFields"][0]["jsonPath"] = json!("color");
    }
    versions[1]["subresources"]["scale"]["specReplicasPath"] = json!("n");
    let refused = plane.refused(Method::POST, DEFINITIONS, &wrong).await;
    let fields: Vec<&str> = refused
        .iter()
        .map(|cause| cause.split(": ").next().unwrap())
        .collect();
    assert_eq!(
        fields,
        [
            "spec.versions[0].subresources.scale.statusReplicasPath",
            "spec.versions[0].selectableFields[0].jsonPath",
            "spec.versions[1].subresources.scale.specReplicasPath",
            "spec.versions[1].subresources.scale.statusReplicasPath",
            "spec.versions[1].selectableFields[0].jsonPath",
            "spec.additionalPrinterColumns[0].type",
        ]
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn selectable_fields_are_shared_only_together_with_the_schema() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let mut wrong = definition();
    let versions = wrong["spec"]["versions"].as_array_mut().unwrap();
    let fields = versions[0]["selectableFields"].clone();
    versions[1]["selectableFields"] = fields;
    let refused = plane.refused(Method::POST, DEFINITIONS, &wrong).await;
    assert_eq!(
        refused,
        [
            "spec.selectableFields: Invalid value: \"\": may only be set when \
             validations.schema is included"
        ]
    );
    let mut wrong = definition();
    let versions = wrong["spec"]["versions"].as_array_mut().unwrap();
    let schema = versions[0]["schema"].clone();
    versions[1]["schema"] = schema;
    versions[1]["selectableFields"] = json!([]);
    let refused = plane.refused(Method::POST, DEFINITIONS, &wrong).await;
    assert_eq!(
        refused,
        [
            "spec.versions[0].selectableFields: Invalid value: \"\": may only be set when \
             `version.schema.openAPIV3Schema` is not included"
        ]
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn metadata_of_embedded_resources_has_its_own_type() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let mut embedding = definition();
    for version in embedding["spec"]["versions"].as_array_mut().unwrap() {
        version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["pod"] = json!({
            "type": "object",
            "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true,
        });
    }
    plane.create(DEFINITIONS, &embedding).await;
    let pod = |metadata: Value| {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "any": 1});
        widget("w", &json!({"size": 1, "pod": pod}))
    };
    let server = plane.0.server();
    let strict = format!("{WIDGETS}?fieldValidation=Strict");
    let body = pod(json!({"name": "p", "more": 1})).to_string();
    let json_type = [("Content-Type", "application/json")];
    let answer = exchange(server, Method::POST, &strict, &json_type, body).await;
    assert_eq!(answer.code, 400);
    let unknown = "unknown field \\\"spec.pod.metadata.more\\\"";
    assert!(answer.text().contains(unknown), "{}", answer.text());
    let body = pod(json!({"labels": {"a": 5}})).to_string();
    let answer = exchange(server, Method::POST, WIDGETS, &json_type, body).await;
    assert_eq!(answer.code, 400);
    let place = "spec.pod.metadata: Invalid value";
    assert!(answer.text().contains(place), "{}", answer.text());
    let body = pod(json!({"name": "p", "more": 1}));
    plane.create(WIDGETS, &body).await;
    let found = plane.get(&format!("{WIDGETS}/w")).await;
    assert_eq!(found["spec"]["pod"]["metadata"], json!({"name": "p"}));
    assert_eq!(found["spec"]["pod"]["any"], 1);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn int_or_string_union_needs_its_extension() {
    let choice = json!([{"type": "integer"}, {"type": "string"}]);
    let reversed = json!([{"type": "string"}, {"type": "integer"}]);
    for (validation, refused) in [
        (json!({"anyOf": choice}), 0),
        (json!({"allOf": [{"anyOf": choice}, {"pattern": "^1"}]}), 0),
        (json!({"allOf": [{"pattern": "^1"}, {"anyOf": choice}]}), 2),
        (json!({"anyOf": reversed}), 2),
        (json!({"oneOf": choice}), 2),
    ] {
        let plane = Plane::new(TestControlPlane::builder().start().await);
        let mut schema = validation.clone();
        schema["x-kubernetes-int-or-string"] = json!(true);
        let mut definition = definition();
        let version = &mut definition["spec"]["versions"][0];
        version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["port"] = schema;
        if refused == 0 {
            plane.create(DEFINITIONS, &definition).await;
        } else {
            let causes = plane.refused(Method::POST, DEFINITIONS, &definition).await;
            assert_eq!(causes.len(), refused, "{validation}: {causes:?}");
        }
        plane.stop().await;
    }
}

/// Returns the definition with a rule for its whole object.
fn with_rule(rule: &str) -> Value {
    let mut ruled = definition();
    ruled["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] =
        json!([{"rule": rule}]);
    ruled
}

#[cfg(feature = "cel")]
#[tokio::test(start_paused = true)]
async fn rules_are_evaluated() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    plane
        .create(DEFINITIONS, &with_rule("self.spec.size > 1"))
        .await;
    plane
        .create(WIDGETS, &widget("two", &json!({"size": 2})))
        .await;
    let small = widget("one", &json!({"size": 1}));
    let causes = plane.refused(Method::POST, WIDGETS, &small).await;
    let wanted = "Invalid value: failed rule: self.spec.size > 1";
    assert!(causes[0].ends_with(wanted), "{causes:?}");
    plane.stop().await;
}

#[cfg(feature = "cel")]
#[tokio::test(start_paused = true)]
async fn reserved_words_name_fields_in_rules() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let rule = "self.namespace == 'a' && self.__namespace__ == self.namespace";
    let mut ruled = with_rule(rule);
    let schema = &mut ruled["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["namespace"] = json!({"type": "string"});
    plane.create(DEFINITIONS, &ruled).await;
    let in_namespace = |namespace: &str| {
        let mut widget = widget(namespace, &json!({"size": 2}));
        widget["namespace"] = json!(namespace);
        widget
    };
    plane.create(WIDGETS, &in_namespace("a")).await;
    let other = in_namespace("b");
    let causes = plane.refused(Method::POST, WIDGETS, &other).await;
    let wanted = format!("Invalid value: failed rule: {rule}");
    assert!(causes[0].ends_with(&wanted), "{causes:?}");
    plane.stop().await;
}

#[cfg(feature = "cel")]
#[tokio::test(start_paused = true)]
async fn expensive_evaluations_end_the_validation() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let mut ruled = definition();
    let schema = &mut ruled["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["list"] = json!({
        "type": "array",
        "maxItems": 100,
        "items": {"type": "integer"},
        "x-kubernetes-validations": [
            {"rule": "self.all(x, self.all(y, [{}, {}, {}, {}].size() > 0))"},
            {"rule": "self.size() > 100"},
        ],
    });
    plane.create(DEFINITIONS, &ruled).await;
    let mut expensive = widget("w", &json!({"size": 2}));
    expensive["list"] = json!(vec![1; 100]);
    let causes = plane.refused(Method::POST, WIDGETS, &expensive).await;
    let wanted = "list: Invalid value: \"array\": 'operation cancelled: actual cost limit \
                  exceeded': no further validation rules will be run due to call cost exceeds limit \
                  for rule: self.all(x, self.all(y, [{}, {}, {}, {}].size() > 0))";
    assert_eq!(causes.len(), 1, "{causes:?}");
    assert!(causes[0].ends_with(wanted), "{causes:?}");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn rules_that_cannot_be_evaluated_are_refused() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let ruled = with_rule("base64.encode(b'x') == self.kind");
    let causes = plane.refused(Method::POST, DEFINITIONS, &ruled).await;
    assert_eq!(causes.len(), 1, "{causes:?}");
    assert!(causes[0].contains("x-kubernetes-validations"), "{causes:?}");
    plane.stop().await;
}
