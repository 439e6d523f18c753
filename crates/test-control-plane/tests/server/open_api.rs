//! `OpenAPI` documents: caching, lookup, and content for kubectl.

use http::Method;
use kube_test_control_plane::{ApiServer, TestControlPlane};
use serde_json::{Value, json};

use crate::support::{Answer, exchange, get_as};

const JSON: &str = "application/json";

async fn started() -> TestControlPlane {
    TestControlPlane::builder().start().await
}

async fn url_of(server: &ApiServer, name: &str) -> String {
    let index = get_as(server, "/openapi/v3", JSON).await.json();
    let url = index["paths"][name]["serverRelativeURL"].as_str();
    url.unwrap().to_owned()
}

async fn document(server: &ApiServer, name: &str) -> Value {
    let url = url_of(server, name).await;
    get_as(server, &url, JSON).await.json()
}

#[tokio::test]
async fn document_with_a_hash_is_cacheable() {
    let plane = started().await;
    let server = plane.server();
    let url = url_of(server, "apis/apps/v1").await;
    let (path, hash) = url.split_once("?hash=").unwrap();
    assert_eq!((path, hash.len()), ("/openapi/v3/apis/apps/v1", 128));
    let kept = |answer: &Answer| answer.header("cache-control").to_owned();
    let answer = get_as(server, &url, JSON).await;
    assert_eq!(kept(&answer), "public, immutable");
    assert!(answer.header("expires").ends_with(" GMT"));
    assert_eq!(answer.header("content-type"), JSON);
    let etag = answer.header("etag");
    assert_eq!(etag, format!("\"{hash}\""));
    let unhashed = get_as(server, path, "*/*").await;
    assert_eq!(kept(&unhashed), "no-cache, private");
    assert_eq!(unhashed.bytes, answer.bytes);
    let headers = [("If-None-Match", etag)];
    let again = exchange(server, Method::GET, path, &headers, "").await;
    assert_eq!((again.code, again.bytes.len()), (304, 0));
    let moved = get_as(server, &format!("{path}?hash=0"), JSON).await;
    assert_eq!((moved.code, moved.header("location")), (301, url.as_str()));
    let protobuf = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";
    assert_eq!(get_as(server, path, protobuf).await.code, 406);
    assert_eq!(
        get_as(server, "/openapi/v3/apis/nope/v1", JSON).await.code,
        404
    );
    plane.stop().await;
}

#[tokio::test]
async fn every_resource_has_its_operations() {
    let plane = started().await;
    let document = document(plane.server(), "apis/apps/v1").await;
    let item = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/statefulsets/{name}"];
    for method in ["get", "put", "patch", "delete"] {
        let kind = &item[method]["x-kubernetes-group-version-kind"];
        assert_eq!(kind["kind"], "StatefulSet", "{method}");
    }
    let parameters = item["patch"]["parameters"].as_array().unwrap();
    let names: Vec<&str> = parameters
        .iter()
        .map(|p| p["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["dryRun", "fieldManager", "fieldValidation", "force"]
    );
    let of_path = item["parameters"].as_array().unwrap().iter();
    let of_path: Vec<&str> = of_path.map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!(of_path, ["name", "namespace", "pretty"]);
    assert_eq!(
        item["patch"]["description"],
        "partially update the specified StatefulSet"
    );
    let patches = item["patch"]["requestBody"]["content"].as_object().unwrap();
    assert!(patches.contains_key("application/strategic-merge-patch+json"));
    let all = &document["paths"]["/apis/apps/v1/statefulsets"];
    assert_eq!(all["get"]["x-kubernetes-action"], "list");
    let scale =
        &document["paths"]["/apis/apps/v1/namespaces/{namespace}/statefulsets/{name}/scale"]["get"];
    assert_eq!(
        scale["x-kubernetes-group-version-kind"]["group"],
        "autoscaling"
    );
    assert_eq!(scale["operationId"], "readAppsV1NamespacedStatefulSetScale");
    plane.stop().await;
}

/// Checks that every reference in a document resolves.
#[tokio::test]
async fn documents_have_no_dangling_references() {
    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Array(list) => list.iter().for_each(|v| references(v, found)),
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str));
                map.values().for_each(|v| references(v, found));
            }
            _ => {}
        }
    }
    let plane = started().await;
    let index = get_as(plane.server(), "/openapi/v3", JSON).await.json();
    let names: Vec<&String> = index["paths"].as_object().unwrap().keys().collect();
    assert!(names.len() > 5);
    for name in names {
        let document = document(plane.server(), name).await;
        assert_eq!(document["openapi"], "3.0.0");
        let mut found = Vec::new();
        references(&document, &mut found);
        for reference in found {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{name}: {reference}");
        }
    }
    plane.stop().await;
}

#[cfg(feature = "openapi")]
#[tokio::test]
async fn every_kind_is_described() {
    let plane = started().await;
    let groups = get_as(plane.server(), "/openapi/v3", JSON).await.json();
    for name in groups["paths"].as_object().unwrap().keys() {
        let document = document(plane.server(), name).await;
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let list = get_as(plane.server(), &format!("/{name}"), JSON)
            .await
            .json();
        for resource in list["resources"].as_array().unwrap() {
            let is_part = resource["name"].as_str().unwrap().contains('/');
            let described = schemas.values().any(|schema| {
                let kinds = schema["x-kubernetes-group-version-kind"].as_array();
                let mut kinds = kinds.into_iter().flatten();
                kinds.any(|kind| kind["kind"] == resource["kind"])
            });
            assert!(described || is_part, "{name}: {}", resource["kind"]);
        }
    }
    plane.stop().await;
}

#[cfg(feature = "openapi")]
#[tokio::test]
async fn fields_have_merge_keys_and_descriptions() {
    use serde_json::json;

    let plane = started().await;
    let document = document(plane.server(), "apis/apps/v1").await;
    let schemas = &document["components"]["schemas"];
    let member = |of: &str, name: &str| schemas[of]["properties"][name].clone();
    let ports = member("io.k8s.api.core.v1.Container", "ports");
    assert_eq!(ports["x-kubernetes-list-type"], "map");
    let keys = json!(["containerPort", "protocol"]);
    assert_eq!(ports["x-kubernetes-list-map-keys"], keys);
    assert_eq!(ports["x-kubernetes-patch-merge-key"], "containerPort");
    assert_eq!(ports["x-kubernetes-patch-strategy"], "merge");
    let volumes = member("io.k8s.api.core.v1.PodSpec", "volumes");
    assert_eq!(volumes["x-kubernetes-patch-strategy"], "merge,retainKeys");
    let claims = member("io.k8s.api.apps.v1.StatefulSetSpec", "volumeClaimTemplates");
    assert_eq!(claims["x-kubernetes-list-type"], "atomic");
    assert_eq!(claims["x-kubernetes-patch-strategy"], Value::Null);
    let finalizers = member(
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
        "finalizers",
    );
    assert_eq!(finalizers["x-kubernetes-list-type"], "set");
    let template = member("io.k8s.api.apps.v1.StatefulSetSpec", "template");
    assert_eq!(template["default"], json!({}));
    assert_eq!(
        template["allOf"],
        json!([{"$ref": "#/components/schemas/io.k8s.api.core.v1.PodTemplateSpec"}])
    );
    assert!(template["description"].as_str().unwrap().contains("pod"));
    let policy = member("io.k8s.api.apps.v1.StatefulSetSpec", "podManagementPolicy");
    assert_eq!(policy["enum"], json!(["OrderedReady", "Parallel"]));
    let meanings = policy["description"].as_str().unwrap();
    let (_, meanings) = meanings.split_once("\n\nPossible enum values:\n").unwrap();
    let first = " - `\"OrderedReady\"` will create pods in strictly increasing order";
    assert!(meanings.starts_with(first), "{meanings}");
    assert!(meanings.contains("\n - `\"Parallel\"` will create and delete pods"));
    assert_eq!(
        schemas["io.k8s.api.core.v1.LabelSelector"],
        Value::Null,
        "types have the names of their packages"
    );
    let selector = &schemas["io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"];
    assert_eq!(selector["x-kubernetes-map-type"], "atomic");
    let set = &schemas["io.k8s.api.apps.v1.StatefulSet"];
    assert_eq!(
        set["x-kubernetes-group-version-kind"],
        json!([{"group": "apps", "version": "v1", "kind": "StatefulSet"}])
    );
    assert_eq!(set["required"], Value::Null);
    plane.stop().await;
}

const PROTOBUF_V2: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

#[tokio::test]
async fn all_resources_are_in_one_document_in_v2() {
    let plane = started().await;
    let server = plane.server();
    let answer = get_as(server, "/openapi/v2", JSON).await;
    assert_eq!(answer.header("content-type"), JSON);
    let document = answer.json();
    assert_eq!(
        (&document["swagger"], &document["info"]["version"]),
        (&json!("2.0"), &json!("1.36"))
    );
    let index = get_as(server, "/openapi/v3", JSON).await.json();
    for group in index["paths"].as_object().unwrap().keys() {
        for path in self::document(server, group).await["paths"]
            .as_object()
            .unwrap()
            .keys()
        {
            assert!(document["paths"].get(path).is_some(), "{path}");
        }
    }
    let headers = [("If-None-Match", answer.header("etag"))];
    let again = exchange(server, Method::GET, "/openapi/v2", &headers, "").await;
    assert_eq!(again.code, 304);
    plane.stop().await;
}

#[tokio::test]
async fn document_in_v2_is_served_as_protobuf_to_kubectl() {
    let plane = started().await;
    let of_kubectl = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    for accept in [of_kubectl, PROTOBUF_V2] {
        let answer = get_as(plane.server(), "/openapi/v2", accept).await;
        assert_eq!(
            (answer.code, answer.header("content-type")),
            (200, PROTOBUF_V2)
        );
        // Field 1, a string of three bytes.
        assert!(answer.bytes.starts_with(b"\x0a\x032.0"));
    }
    assert_eq!(
        get_as(plane.server(), "/openapi/v2", "text/html")
            .await
            .code,
        406
    );
    plane.stop().await;
}
