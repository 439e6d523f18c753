//! Texts of requests and responses with custom resources, which have no Go type.

use http::Method;
use kube_test_control_plane::TestControlPlane;
use serde_json::{Value, json};

use crate::support::{Answer, Plane, define_widgets, exchange, get_as, raw};

const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

async fn plane() -> Plane {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    define_widgets(&plane).await;
    plane
}

fn widget(name: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}})
}

/// Changes a widget, and creates it if it is applied.
async fn patch(plane: &Plane, name: &str, content_type: &str, patch: &Value) -> Answer {
    let path = format!("{WIDGETS}/{name}?fieldManager=m");
    let headers = [("Content-Type", content_type)];
    exchange(
        plane.0.server(),
        Method::PATCH,
        &path,
        &headers,
        patch.to_string(),
    )
    .await
}

/// Returns the names of an object's fields, in the order of its text.
fn order(text: &str) -> Vec<String> {
    let known = ["apiVersion", "data", "items", "kind", "metadata", "zz"];
    let mut found: Vec<(usize, &str)> = Vec::new();
    let (mut depth, mut start) = (0, None);
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b'"' if depth == 1 => match start.take() {
                None => start = Some(index + 1),
                Some(from) => found.push((from, &text[from..index])),
            },
            _ => {}
        }
    }
    let names = found.into_iter().map(|(_, name)| name.to_owned());
    names.filter(|name| known.contains(&&**name)).collect()
}

#[tokio::test(start_paused = true)]
async fn fields_are_in_the_order_of_their_names() {
    let plane = plane().await;
    let server = plane.0.server();
    let sorted = ["apiVersion", "data", "kind", "metadata", "zz"];
    let body = r#"{"zz":1,"kind":"Widget","apiVersion":"example.com/v1","data":{"b":1,"a":2},
        "metadata":{"name":"a"}}"#;
    let json = "application/json";
    let (code, text) = raw(server, Method::POST, WIDGETS, json, body.to_owned()).await;
    assert_eq!(
        (code, order(&text)),
        (201, sorted.map(String::from).to_vec())
    );
    assert!(text.contains(r#""data":{"a":2,"b":1}"#), "{text}");
    let read = async |path: &str| get_as(server, path, json).await.text();
    assert_eq!(read(&format!("{WIDGETS}/a")).await, text);
    let list = read(WIDGETS).await;
    assert_eq!(order(&list), ["apiVersion", "items", "kind", "metadata"]);
    let one = text.trim_end();
    assert!(
        list.starts_with(&format!(
            r#"{{"apiVersion":"example.com/v1","items":[{one}],"#
        )),
        "{list}"
    );
    assert!(
        list.contains(r#""metadata":{"continue":"","resourceVersion":""#),
        "{list}"
    );
    let query = "watch=1&timeoutSeconds=1&allowWatchBookmarks=true&sendInitialEvents=true&\
                 resourceVersionMatch=NotOlderThan";
    let events = read(&format!("{WIDGETS}?{query}")).await;
    let mut events = events.lines();
    let added = format!(r#"{{"type":"ADDED","object":{one}}}"#);
    assert_eq!(events.next(), Some(&*added));
    let bookmark = r#"{"type":"BOOKMARK","object":{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"annotations":"#;
    let found = events.next().unwrap();
    assert!(found.starts_with(bookmark), "{found}");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn lists_and_bookmarks_of_built_in_kinds_keep_the_order_of_their_types() {
    let plane = plane().await;
    let server = plane.0.server();
    let maps = "/api/v1/namespaces/default/configmaps";
    for name in ["a", "b"] {
        plane
            .create(maps, &json!({"metadata": {"name": name}}))
            .await;
    }
    let json = "application/json";
    let list = get_as(server, &format!("{maps}?limit=1"), json)
        .await
        .text();
    let begin = r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":""#;
    assert!(list.starts_with(begin), "{list}");
    let at = |part: &str| list.find(part).unwrap();
    assert!(at("continue") < at("remainingItemCount"), "{list}");
    let query = "watch=1&timeoutSeconds=1&allowWatchBookmarks=true&sendInitialEvents=true&\
                 resourceVersionMatch=NotOlderThan";
    let events = get_as(server, &format!("{maps}?{query}"), json)
        .await
        .text();
    let bookmark =
        r#"{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":"#;
    assert!(events.contains(bookmark), "{events}");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn patched_version_names_its_group() {
    let plane = plane().await;
    plane
        .create(
            WIDGETS,
            &json!({"spec": {"a": 1}, "kind": "Widget",
        "apiVersion": "example.com/v1", "metadata": {"name": "a"}}),
        )
        .await;
    for (version, named, group) in [
        ("x/v1", "Widget.x", json!("x")),
        ("v9", "Widget", Value::Null),
        ("example.com/v9", "Widget.example.com", json!("example.com")),
    ] {
        let change = json!({"apiVersion": version});
        let answer = patch(&plane, "a", "application/merge-patch+json", &change).await;
        let status = answer.json();
        let message = format!(
            "{named} \"a\" is invalid: apiVersion: Invalid value: \"{version}\": must be \
             example.com/v1"
        );
        assert_eq!((answer.code, &status["message"]), (422, &json!(message)));
        assert_eq!(status["details"]["group"], group);
        // A version without a schema has only unknown fields, another group has none to check.
        let warning = if version == "example.com/v9" {
            "299 - \"unknown field \\\"spec\\\"\""
        } else {
            ""
        };
        assert_eq!(answer.header("warning"), warning, "{version}");
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn body_without_a_kind_is_quoted_as_sent() {
    let plane = plane().await;
    let server = plane.0.server();
    let yaml = "metadata: {name: x}\napiVersion: example.com/v1\n";
    for (content_type, body, beginning) in [
        (
            "application/json",
            "{ \"apiVersion\": \"example.com/v1\",  \"metadata\":{\"name\":\"x\"}}  ",
            "{ \"apiVersion\": \"example.com/v ...",
        ),
        (
            "application/yaml",
            yaml,
            "6d657461646174613a207b6e616d653a20787d0a61706956657273696f6e ...",
        ),
    ] {
        let (code, text) = raw(server, Method::POST, WIDGETS, content_type, body.to_owned()).await;
        let status: Value = serde_json::from_str(&text).unwrap();
        let message = format!(
            "the object provided is unrecognized (must be of type Widget): Object 'Kind' is \
             missing in '{body}' ({beginning})"
        );
        assert_eq!((code, &status["message"]), (400, &json!(message)));
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn only_metadata_has_a_protobuf_form() {
    let plane = plane().await;
    let server = plane.0.server();
    plane.create(WIDGETS, &widget("a")).await;
    let types = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
    let message = format!("only the following media types are accepted: {types}");
    let one = format!("{WIDGETS}/a");
    for path in [
        WIDGETS,
        &one,
        &format!("{WIDGETS}?watch=1&timeoutSeconds=1"),
    ] {
        let answer = get_as(server, path, PROTOBUF).await;
        assert_eq!(
            (answer.code, answer.header("content-type")),
            (406, PROTOBUF),
            "{path}"
        );
        let has_message = answer
            .bytes
            .windows(message.len())
            .any(|part| part == message.as_bytes());
        assert!(has_message, "{path}");
    }
    let headers = [("Accept", PROTOBUF), ("Content-Type", "application/json")];
    let body = widget("b").to_string();
    let answer = exchange(server, Method::POST, WIDGETS, &headers, body).await;
    assert_eq!(answer.code, 406);
    assert_eq!(
        plane.code(&format!("{WIDGETS}/b")).await,
        404,
        "nothing was created"
    );
    let answer = get_as(server, &one, &format!("{PROTOBUF},application/json")).await;
    assert_eq!(
        (answer.code, answer.header("content-type")),
        (200, "application/json")
    );
    let metadata = format!("{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
    let answer = get_as(server, &one, &metadata).await;
    assert_eq!(
        (answer.code, answer.header("content-type")),
        (200, PROTOBUF)
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn resource_with_an_array_of_items_is_stored_but_not_returned() {
    let plane = plane().await;
    let message = "*unstructured.Unstructured is not a list: no Items field in this object";
    let failed = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "code": 500,
    });
    let mut sent = widget("a");
    sent["items"] = json!([{"a": 1}]);
    let apply = "application/apply-patch+yaml";
    let answer = patch(&plane, "a", apply, &sent).await;
    assert_eq!((answer.code, answer.json()), (500, failed.clone()));
    let (code, answer) = plane
        .call(Method::GET, &format!("{WIDGETS}/a"), &Value::Null)
        .await;
    assert_eq!((code, answer), (500, failed));
    let list = plane.get(WIDGETS).await;
    assert_eq!(list["items"][0]["items"], sent["items"]);
    sent["items"] = json!({"a": 1});
    assert_eq!(patch(&plane, "a", apply, &sent).await.code, 200);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn whole_numbers_beyond_64_bits_are_floats() {
    let plane = plane().await;
    let server = plane.0.server();
    let body = r#"{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"a"},"spec":
        {"b":18446744073709551615,"c":9223372036854775808,"n":-9223372036854775809}}"#;
    let json = "application/json";
    let (code, text) = raw(server, Method::POST, WIDGETS, json, body.to_owned()).await;
    let stored =
        r#""spec":{"b":18446744073709552000,"c":9223372036854776000,"n":-9223372036854776000}"#;
    assert!(code == 201 && text.contains(stored), "{text}");
    plane.stop().await;
}
