//! Response formats and representations, and their rejections.

use http::Method;
use kube_test_control_plane::TestControlPlane;
use serde_json::{Value, json};

use crate::support::{Answer, Plane, exchange, get_as};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

async fn with_map() -> Plane {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let map = json!({"metadata": {"name": "m", "labels": {"a": "b"}}, "data": {"k": "v"}});
    plane.create(MAPS, &map).await;
    plane
}

async fn send(plane: &Plane, method: Method, path: &str, accept: &str, body: &Value) -> Answer {
    let content_type = if method == Method::PATCH {
        "application/merge-patch+json"
    } else {
        "application/json"
    };
    let headers = [("Accept", accept), ("Content-Type", content_type)];
    exchange(plane.0.server(), method, path, &headers, body.to_string()).await
}

#[tokio::test]
async fn yaml_is_negotiated_for_objects_and_errors() {
    let plane = with_map().await;
    let accept = "application/yaml";
    let answer = get_as(plane.0.server(), &format!("{MAPS}/m"), accept).await;
    assert_eq!(answer.header("content-type"), accept);
    let text = answer.text();
    assert!(
        text.starts_with("apiVersion: v1\ndata:\n  k: v\nkind: ConfigMap\n"),
        "{text}"
    );
    let list = get_as(plane.0.server(), MAPS, accept).await.text();
    assert!(list.contains("\nitems:\n- data:\n    k: v\n"), "{list}");
    let answer = get_as(plane.0.server(), &format!("{MAPS}/none"), accept).await;
    assert_eq!((answer.code, answer.header("content-type")), (404, accept));
    assert!(answer.text().contains("\nreason: NotFound\n"));
    plane.stop().await;
}

#[tokio::test]
async fn json_is_indented_for_people_only() {
    let plane = with_map().await;
    let server = plane.0.server();
    let path = format!("{MAPS}/m?pretty=true");
    let pretty = exchange(server, Method::GET, &path, &[], "").await;
    assert!(pretty.text().starts_with("{\n  \"kind\": \"ConfigMap\",\n"));
    assert_eq!(pretty.json()["data"]["k"], "v");
    let path = format!("{MAPS}/m");
    for (headers, is_pretty) in [
        ([("User-Agent", "curl/8.0")], true),
        ([("Accept", "application/json;pretty=1")], true),
        ([("User-Agent", "kubectl/v1.36.2")], false),
    ] {
        let answer = exchange(server, Method::GET, &path, &headers, "").await;
        assert_eq!(answer.text().contains("\n  "), is_pretty, "{headers:?}");
    }
    plane.stop().await;
}

#[tokio::test]
async fn texts_equal_those_of_go() {
    let plane = with_map().await;
    let server = plane.0.server();
    let read = async |path: &str| exchange(server, Method::GET, path, &[], "").await.text();
    let error = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"configmaps \"none\" not found","reason":"NotFound","details":{"name":"none","kind":"configmaps"},"code":404}"#;
    assert_eq!(read(&format!("{MAPS}/none")).await, format!("{error}\n"));
    for path in [MAPS, &format!("{MAPS}/m"), "/api", "/apis/apps/v1"] {
        let text = read(path).await;
        assert!(text.ends_with("}\n"), "{path}: {text}");
    }
    for path in [&format!("{MAPS}?pretty=1"), "/version", "/"] {
        let text = read(path).await;
        let is_open = text.ends_with("\n}");
        assert!(text.starts_with("{\n  \"") && is_open, "{path}: {text}");
    }
    plane.stop().await;
}

#[tokio::test]
async fn writes_answer_in_the_requested_form() {
    let plane = with_map().await;
    let map = |name: &str| json!({"metadata": {"name": name}, "data": {"k": "v"}});
    let one = format!("{MAPS}/m");
    for (method, path, body, code) in [
        (Method::POST, MAPS, map("n"), 201),
        (Method::PUT, &one, map("m"), 200),
        (Method::PATCH, &one, json!({"data": {"l": "w"}}), 200),
    ] {
        let answer = send(&plane, method.clone(), path, TABLE, &body).await;
        assert_eq!(answer.code, code);
        let table = answer.json();
        assert_eq!(table["kind"], "Table");
        let name = &body["metadata"]["name"];
        let wanted = name.as_str().unwrap_or("m");
        assert_eq!(table["rows"][0]["cells"][0], wanted);
        let object = &table["rows"][0]["object"];
        assert_eq!(object["kind"], "PartialObjectMetadata");
        let answer = send(&plane, method, path, METADATA, &body).await;
        let wanted = if code == 201 {
            "Status"
        } else {
            "PartialObjectMetadata"
        };
        assert_eq!(answer.json()["kind"], wanted);
    }
    let answer = send(&plane, Method::DELETE, &one, TABLE, &Value::Null).await;
    assert_eq!(answer.json()["kind"], "Status");
    let answer = send(&plane, Method::GET, &one, TABLE, &Value::Null).await;
    assert_eq!(
        (answer.code, answer.json()["kind"].as_str()),
        (404, Some("Status"))
    );
    plane.stop().await;
}

#[tokio::test]
async fn table_rows_include_the_requested_object() {
    let plane = with_map().await;
    let server = plane.0.server();
    for (include, kind) in [
        ("None", Value::Null),
        ("Metadata", json!("PartialObjectMetadata")),
        ("Object", json!("ConfigMap")),
    ] {
        let path = format!("{MAPS}?includeObject={include}");
        let table = get_as(server, &path, TABLE).await.json();
        assert_eq!(table["rows"][0]["object"]["kind"], kind);
    }
    let path = format!("{MAPS}?includeObject=All");
    let answer = get_as(server, &path, TABLE).await;
    assert_eq!(answer.code, 400);
    assert!(
        answer
            .text()
            .contains("Unable to convert to Table as requested: includeObject")
    );
    let older = TABLE.replace("v=v1", "v=v1beta1");
    let table = get_as(server, MAPS, &older).await.json();
    assert_eq!(table["apiVersion"], "meta.k8s.io/v1beta1");
    plane.stop().await;
}

#[tokio::test]
async fn metadata_form_matches_object_or_list() {
    let plane = with_map().await;
    let server = plane.0.server();
    let one = get_as(server, &format!("{MAPS}/m"), METADATA).await.json();
    assert_eq!(one["kind"], "PartialObjectMetadata");
    assert_eq!(one["apiVersion"], "meta.k8s.io/v1");
    assert_eq!(one["data"], Value::Null);
    let list = get_as(server, MAPS, METADATA_LIST).await.json();
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(list["items"][0]["metadata"]["labels"]["a"], "b");
    let answer = get_as(server, MAPS, METADATA).await;
    assert_eq!(answer.code, 406);
    assert_eq!(
        answer.json()["message"],
        "you requested PartialObjectMetadata, but the requested object is a list \
         (*core.ConfigMapList)"
    );
    let answer = get_as(server, &format!("{MAPS}/m"), METADATA_LIST).await;
    assert_eq!(answer.code, 406);
    let other = format!("{METADATA},application/json");
    assert_eq!(get_as(server, MAPS, &other).await.code, 406);
    plane.stop().await;
}

#[tokio::test]
async fn rejections_list_the_available_types() {
    let plane = with_map().await;
    let one = format!("{MAPS}/m");
    let types = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
    let answer = get_as(plane.0.server(), &one, "text/html").await;
    assert_eq!(answer.code, 406);
    assert_eq!(
        answer.json(),
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": format!("406: Not Acceptable\n\nAvailable representations: {types}"),
            "reason": "NotAcceptable", "details": {}, "code": 406,
        })
    );
    let foo = "application/json;as=Foo;v=v1;g=meta.k8s.io";
    let answer = get_as(plane.0.server(), &one, foo).await;
    assert_eq!(
        answer.json(),
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": format!("only the following media types are accepted: {types}"),
            "reason": "NotAcceptable", "code": 406,
        })
    );
    let headers = [("Content-Type", "text/plain")];
    let answer = exchange(plane.0.server(), Method::POST, MAPS, &headers, "{}").await;
    assert_eq!(
        answer.json(),
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": format!("the body of the request was in an unknown format - accepted \
                                media types include: {types}"),
            "reason": "UnsupportedMediaType", "code": 415,
        })
    );
    plane.stop().await;
}

async fn events(plane: &Plane, query: &str, accept: &str) -> Vec<Value> {
    let path = format!("{MAPS}?watch=true&timeoutSeconds=1&{query}");
    let answer = get_as(plane.0.server(), &path, accept).await;
    assert_eq!(answer.code, 200);
    let text = answer.text();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

const WATCH_LIST: &str =
    "allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";

#[tokio::test(start_paused = true)]
async fn watched_table_sends_its_columns_once() {
    let plane = with_map().await;
    plane
        .create(MAPS, &json!({"metadata": {"name": "n"}}))
        .await;
    let events = events(&plane, WATCH_LIST, TABLE).await;
    let types: Vec<&str> = events.iter().map(|e| e["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["ADDED", "ADDED", "BOOKMARK"]);
    let columns = events[0]["object"]["columnDefinitions"].as_array().unwrap();
    assert_eq!(columns.len(), 3);
    for event in &events[1..] {
        assert_eq!(event["object"]["columnDefinitions"], Value::Null);
    }
    let bookmark = &events[2]["object"];
    assert_eq!(bookmark["kind"], "Table");
    assert_eq!(bookmark["rows"][0]["cells"], json!(["", 0, "<unknown>"]));
    let object = &bookmark["rows"][0]["object"];
    assert_eq!(object["kind"], "PartialObjectMetadata");
    assert_eq!(
        object["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
    assert_eq!(
        bookmark["metadata"]["resourceVersion"],
        object["metadata"]["resourceVersion"]
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn watched_metadata_has_one_object_per_event() {
    let plane = with_map().await;
    let found = events(&plane, WATCH_LIST, METADATA).await;
    let kinds: Vec<&Value> = found.iter().map(|e| &e["object"]["kind"]).collect();
    assert_eq!(kinds, ["PartialObjectMetadata"; 2]);
    let started = tokio::time::Instant::now();
    assert!(events(&plane, WATCH_LIST, METADATA_LIST).await.is_empty());
    assert!(started.elapsed() < std::time::Duration::from_secs(1));
    plane.stop().await;
}

#[tokio::test]
async fn scale_has_separate_columns() {
    let plane = with_map().await;
    let set = json!({"metadata": {"name": "web"}, "spec": {"replicas": 3, "serviceName": "web",
        "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    let sets = "/apis/apps/v1/namespaces/default/statefulsets";
    plane.create(sets, &set).await;
    let answer = get_as(plane.0.server(), &format!("{sets}/web/scale"), TABLE).await;
    let table = answer.json();
    let names: Vec<&Value> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| &column["name"])
        .collect();
    assert_eq!(names, ["Name", "Desired", "Available", "Age"]);
    assert_eq!(table["rows"][0]["cells"], json!(["web", 3, 0, "0s"]));
    plane.stop().await;
}

#[tokio::test]
async fn logs_are_text_except_for_an_explicit_text_type() {
    let plane = with_map().await;
    let pods = "/api/v1/namespaces/default/pods";
    plane.create(pods, &crate::support::pod("p")).await;
    let path = format!("{pods}/p/log");
    for accept in ["", "*/*", "application/json", "text/plain,application/json"] {
        let answer = get_as(plane.0.server(), &path, accept).await;
        assert_ne!(answer.code, 406, "{accept}");
    }
    let types = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
    let refusal = |accept: &'static str| {
        let (server, path) = (plane.0.server(), path.clone());
        async move {
            let answer = get_as(server, &path, accept).await;
            assert_eq!(answer.code, 406, "{accept}");
            answer.json()["message"].as_str().unwrap().to_owned()
        }
    };
    let only = format!("only the following media types are accepted: {types}");
    assert_eq!(refusal("text/plain").await, only);
    let available = format!("Available representations: text/plain, {types}");
    assert!(refusal("text/html").await.ends_with(&available));
    plane.stop().await;
}
