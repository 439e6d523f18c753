//! Server-side apply and field managers over HTTP.

use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Full};
use kube_test_control_plane::TestControlPlane;
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";
const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";

/// A control plane that prunes unknown fields, as upstream does.
struct Server(TestControlPlane);

/// A response.
struct Answer {
    code: u16,
    headers: HeaderMap,
    body: Value,
}

impl Server {
    async fn start() -> Self {
        Self(TestControlPlane::builder().start().await)
    }

    async fn send(&self, method: Method, path: &str, content_type: &str, body: &str) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("Content-Type", content_type)
            .header("User-Agent", "tool/1.0 (x)")
            .body(Full::from(body.to_owned()))
            .unwrap();
        let (parts, body) = self.0.server().serve(request).await.unwrap().into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Answer {
            code: parts.status.as_u16(),
            headers: parts.headers,
            body: serde_json::from_slice(&bytes).unwrap_or_default(),
        }
    }

    async fn apply(&self, path: &str, config: &Value) -> Answer {
        self.send(Method::PATCH, path, APPLY, &config.to_string())
            .await
    }

    fn revision(&self) -> u64 {
        self.0.server().store().revision()
    }
}

fn map(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": data})
}

fn set(spec: &Value) -> Value {
    let mut set = json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "s"},
        "spec": {
            "serviceName": "s",
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    });
    for (member, value) in spec.as_object().unwrap() {
        set["spec"][member] = value.clone();
    }
    set
}

/// Returns manager, operation and subresource of every entry.
fn managers(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array();
    let entry = |entry: &Value| {
        let text = |member: &str| entry[member].as_str().unwrap_or_default().to_owned();
        format!(
            "{} {} {}",
            text("manager"),
            text("operation"),
            text("subresource")
        )
        .trim_end()
        .to_owned()
    };
    entries.into_iter().flatten().map(entry).collect()
}

/// Returns the fields of a manager.
fn fields(object: &Value, manager: &str) -> Value {
    let entries = object["metadata"]["managedFields"].as_array();
    let found = entries
        .into_iter()
        .flatten()
        .find(|e| e["manager"] == manager);
    found.map_or(Value::Null, |entry| entry["fieldsV1"].clone())
}

#[tokio::test(start_paused = true)]
async fn options_are_validated() {
    let server = Server::start().await;
    let path = format!("{MAPS}/m");
    let config = map(&json!({"a": "1"}));
    for (query, content_type, message) in [
        (
            "",
            APPLY,
            "fieldManager: Required value: is required for apply patch",
        ),
        (
            "?fieldManager=a%09b",
            APPLY,
            "fieldManager: Invalid value: \"a\\tb\": invalid character U+0009 (at position 1)",
        ),
        (
            "?force=true",
            MERGE,
            "force: Forbidden: may not be specified for non-apply patch",
        ),
        (
            "?fieldManager=m&dryRun=Some",
            APPLY,
            "dryRun: Unsupported value: [\"Some\"]: supported values: \"All\"",
        ),
    ] {
        let path = format!("{path}{query}");
        let answer = server
            .send(Method::PATCH, &path, content_type, &config.to_string())
            .await;
        assert_eq!(answer.code, 422);
        let expected = format!("PatchOptions.meta.k8s.io \"\" is invalid: {message}");
        assert_eq!(answer.body["message"], json!(expected));
    }
    let cbor = server
        .send(Method::PATCH, &path, "application/apply-patch+cbor", "")
        .await;
    assert_eq!(cbor.code, 415);
    server.0.stop().await;
}

#[tokio::test(start_paused = true)]
async fn bodies_are_validated() {
    let server = Server::start().await;
    let path = format!("{MAPS}/m?fieldManager=me");
    let config = |metadata: Value| {
        let mut config = map(&json!({}));
        config["metadata"] = metadata;
        config.to_string()
    };
    for (body, code, message) in [
        ("a: [".to_owned(), 400, "error decoding YAML: "),
        (String::new(), 400, "invalid object type: /, Kind="),
        (
            config(json!({"name": "other"})),
            400,
            "the name of the object (other) does not match the name on the URL (m)",
        ),
        (
            config(json!({"generateName": "m"})),
            400,
            "the name of the object (m based on URL) was undeterminable: name must be provided",
        ),
        (
            config(json!({"name": "m", "namespace": "other"})),
            400,
            "the namespace of the provided object does not match the namespace sent on the \
             request",
        ),
        (
            config(json!({"name": "m", "uid": "1"})),
            409,
            "Operation cannot be fulfilled on configmaps \"m\": uid mismatch: the provided \
             object specified uid 1, and no existing object was found",
        ),
    ] {
        let answer = server.send(Method::PATCH, &path, APPLY, &body).await;
        let found = answer.body["message"].as_str().unwrap();
        assert_eq!(answer.code, code, "{found}");
        assert!(found.starts_with(message), "{found}");
    }
    let status = format!("{SETS}/s/status?fieldManager=me");
    let answer = server.apply(&status, &set(&json!({}))).await;
    assert_eq!(
        (answer.code, &answer.body["reason"]),
        (404, &json!("NotFound"))
    );
    server.0.stop().await;
}

#[tokio::test(start_paused = true)]
async fn apply_creates_then_updates() {
    let server = Server::start().await;
    let path = format!("{MAPS}/m?fieldManager=me");
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m, resourceVersion: '7'}\ndata:\n  a: '1'\n";
    let created = server.send(Method::PATCH, &path, APPLY, yaml).await;
    assert_eq!(created.code, 201);
    assert_eq!(managers(&created.body), ["me Apply"]);
    let revision = server.revision();
    let again = server.apply(&path, &map(&json!({"a": "1"}))).await;
    assert_eq!((again.code, &again.body), (200, &created.body));
    assert_eq!(server.revision(), revision);
    let changed = server.apply(&path, &map(&json!({"b": "2"}))).await;
    assert_eq!(changed.body["data"], json!({"b": "2"}));
    let mut stale = map(&json!({"b": "3"}));
    stale["metadata"]["resourceVersion"] = created.body["metadata"]["resourceVersion"].clone();
    let stale = server.apply(&path, &stale).await;
    assert_eq!(
        (stale.code, &stale.body["reason"]),
        (409, &json!("Conflict"))
    );
    let mut other = map(&json!({"b": "3"}));
    other["metadata"]["uid"] = json!("1");
    let other = server.apply(&path, &other).await;
    assert_eq!(
        (other.code, &other.body["reason"]),
        (422, &json!("Invalid"))
    );
    server.0.stop().await;
}

#[tokio::test(start_paused = true)]
async fn applied_objects_stay_when_they_become_empty() {
    let server = Server::start().await;
    let path = format!("{SETS}/s?fieldManager=m");
    let with = |affinity: &Value| {
        let mut set = set(&json!({}));
        set["spec"]["template"]["spec"]["affinity"] = affinity.clone();
        set
    };
    let full = json!({"podAffinity": {}, "podAntiAffinity": {}});
    for affinity in [full, json!({"podAffinity": {}}), json!({})] {
        let answer = server.apply(&path, &with(&affinity)).await;
        assert!(answer.code < 300, "{}", answer.body);
        let found = &answer.body["spec"]["template"]["spec"]["affinity"];
        assert_eq!(*found, affinity);
    }
    server.0.stop().await;
}

#[tokio::test(start_paused = true)]
async fn dry_run_stores_nothing() {
    let server = Server::start().await;
    let path = format!("{MAPS}/m?fieldManager=me&dryRun=All");
    let answer = server.apply(&path, &map(&json!({"a": "1"}))).await;
    assert_eq!(answer.code, 201);
    assert_eq!(answer.body["metadata"]["resourceVersion"], Value::Null);
    assert_eq!(managers(&answer.body), ["me Apply"]);
    let answer = server.send(Method::GET, &format!("{MAPS}/m"), "", "").await;
    assert_eq!(answer.code, 404);
    server.0.stop().await;
}

#[tokio::test(start_paused = true)]
async fn repeated_keys_are_reported() {
    let server = Server::start().await;
    let body = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: '1', a: '2'}\n";
    let path = format!("{MAPS}/m?fieldManager=me&fieldValidation=Strict");
    let strict = server.send(Method::PATCH, &path, APPLY, body).await;
    assert_eq!(strict.code, 400);
    let message = strict.body["message"].as_str().unwrap();
    assert!(
        message.starts_with("error strict decoding YAML: "),
        "{message}"
    );
    let path = format!("{MAPS}/m?fieldManager=me");
    let warned = server.send(Method::PATCH, &path, APPLY, body).await;
    assert_eq!(
        (warned.code, &warned.body["data"]),
        (201, &json!({"a": "2"}))
    );
    let warning = warned.headers["warning"].to_str().unwrap();
    assert!(warning.contains("already set in map"), "{warning}");
    server.0.stop().await;
}

#[tokio::test(start_paused = true)]
async fn user_agent_is_the_default_manager() {
    let server = Server::start().await;
    let body = map(&json!({"a": "1"})).to_string();
    let created = server
        .send(Method::POST, MAPS, "application/json", &body)
        .await;
    assert_eq!(managers(&created.body), ["tool Update"]);
    let path = format!("{MAPS}/m?fieldManager=other");
    let patched = server
        .send(Method::PATCH, &path, MERGE, "{\"data\": {\"b\": \"1\"}}")
        .await;
    assert_eq!(managers(&patched.body), ["other Update", "tool Update"]);
    let put = patched.body.to_string();
    let same = server
        .send(Method::PUT, &path, "application/json", &put)
        .await;
    assert_eq!(same.body, patched.body);
    server.0.stop().await;
}

#[tokio::test(start_paused = true)]
async fn clients_can_write_the_managers() {
    let server = Server::start().await;
    let body = map(&json!({"a": "1"})).to_string();
    server
        .send(Method::POST, MAPS, "application/json", &body)
        .await;
    let path = format!("{MAPS}/m");
    let without = server
        .send(Method::PUT, &path, "application/json", &body)
        .await;
    assert_eq!(managers(&without.body), ["tool Update"]);
    let rename = json!([{
        "op": "replace", "path": "/metadata/managedFields/0/manager", "value": "renamed",
    }]);
    let renamed = server
        .send(
            Method::PATCH,
            &path,
            "application/json-patch+json",
            &rename.to_string(),
        )
        .await;
    assert_eq!(managers(&renamed.body), ["renamed Update"]);
    for reset in ["[]", "[{}]"] {
        let patch = format!("{{\"metadata\": {{\"managedFields\": {reset}}}}}");
        let none = server.send(Method::PATCH, &path, MERGE, &patch).await;
        assert_eq!(managers(&none.body), [""; 0], "{reset}");
        let untracked = server
            .send(Method::PATCH, &path, MERGE, "{\"data\": {\"a\": \"2\"}}")
            .await;
        assert_eq!(managers(&untracked.body), [""; 0]);
        let apply = format!("{path}?fieldManager=me&force=true");
        let applied = server.apply(&apply, &map(&json!({"a": "1"}))).await;
        assert_eq!(
            managers(&applied.body),
            ["me Apply", "before-first-apply Update"]
        );
    }
    server.0.stop().await;
}

#[tokio::test(start_paused = true)]
async fn status_is_applied_through_its_subresource() {
    let server = Server::start().await;
    let mut config = set(&json!({}));
    config["status"] = json!({"replicas": 9});
    let path = format!("{SETS}/s?fieldManager=me");
    let created = server.apply(&path, &config).await;
    assert_eq!(created.body["status"]["replicas"], 0);
    assert_eq!(fields(&created.body, "me").get("f:status"), None);
    let mut config = set(&json!({"replicas": 9}));
    config["status"] = json!({"replicas": 1});
    let path = format!("{SETS}/s/status?fieldManager=ctl");
    let status = server.apply(&path, &config).await;
    assert_eq!(status.body["status"]["replicas"], 1);
    assert_eq!(status.body["spec"]["replicas"], 1);
    assert_eq!(managers(&status.body), ["ctl Apply status", "me Apply"]);
    assert_eq!(
        fields(&status.body, "ctl"),
        json!({"f:status": {"f:replicas": {}}})
    );
    let mut other = config;
    other["status"]["replicas"] = json!(2);
    let path = format!("{SETS}/s/status?fieldManager=other");
    let conflict = server.apply(&path, &other).await;
    assert_eq!(
        conflict.body["message"],
        "Apply failed with 1 conflict: conflict with \"ctl\" with subresource \"status\": \
         .status.replicas"
    );
    server.0.stop().await;
}

#[tokio::test(start_paused = true)]
async fn scale_shares_the_managers_of_replicas() {
    let server = Server::start().await;
    let path = format!("{SETS}/s?fieldManager=me");
    server.apply(&path, &set(&json!({"replicas": 1}))).await;
    let scale = |replicas: u32| {
        json!({
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": "s"},
            "spec": {"replicas": replicas},
        })
    };
    let scaler = format!("{SETS}/s/scale?fieldManager=scaler");
    let conflict = server.apply(&scaler, &scale(2)).await;
    assert_eq!(
        conflict.body["message"],
        "Apply failed with 1 conflict: conflict with \"me\": .spec.replicas"
    );
    let forced = server
        .apply(&format!("{scaler}&force=true"), &scale(2))
        .await;
    assert_eq!(
        (forced.code, &forced.body["spec"]["replicas"]),
        (200, &json!(2))
    );
    let scaled = server.send(Method::GET, &format!("{SETS}/s"), "", "").await;
    assert_eq!(managers(&scaled.body), ["scaler Apply scale", "me Apply"]);
    assert_eq!(fields(&scaled.body, "me")["f:spec"].get("f:replicas"), None);
    let put = server
        .send(
            Method::PUT,
            &scaler,
            "application/json",
            &scale(3).to_string(),
        )
        .await;
    assert_eq!((put.code, &put.body["spec"]["replicas"]), (200, &json!(3)));
    let scaled = server.send(Method::GET, &format!("{SETS}/s"), "", "").await;
    assert_eq!(managers(&scaled.body), ["me Apply", "scaler Update scale"]);
    server.0.stop().await;
}

#[tokio::test(start_paused = true)]
async fn templates_changed_only_by_defaults_conflict() {
    let server = Server::start().await;
    let claim = json!({
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    let mut config = set(&json!({"volumeClaimTemplates": [claim]}));
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let applied = format!("{config}\n");
    config["metadata"]["annotations"] = json!({annotation: applied});
    let path = format!("{SETS}?fieldManager=kubectl-client-side-apply");
    let created = server
        .send(Method::POST, &path, "application/json", &config.to_string())
        .await;
    assert_eq!(created.code, 201);
    let mut config: Value = serde_json::from_str(&applied).unwrap();
    config["spec"]["template"]["spec"]["containers"][0]["image"] = json!("j");
    let path = format!("{SETS}/s?fieldManager=kubectl");
    let conflict = server.apply(&path, &config).await;
    assert_eq!(conflict.code, 409);
    assert_eq!(
        conflict.body["message"],
        "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using \
         apps/v1: .spec.volumeClaimTemplates"
    );
    let forced = server.apply(&format!("{path}&force=true"), &config).await;
    assert_eq!(forced.code, 200);
    let annotation = &forced.body["metadata"]["annotations"][annotation];
    assert_eq!(*annotation, json!(format!("{config}\n")));
    server.0.stop().await;
}

#[tokio::test(start_paused = true)]
async fn server_set_fields_have_no_manager() {
    let server = Server::start().await;
    let pod = json!({
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let pods = "/api/v1/namespaces/default/pods";
    let created = server
        .send(Method::POST, pods, "application/json", &pod.to_string())
        .await;
    assert!(created.body["spec"]["tolerations"].is_array());
    let own = fields(&created.body, "tool");
    assert_eq!(own["f:spec"].get("f:tolerations"), None);
    assert_eq!(own.get("f:status"), None);
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 1}]}});
    let services = "/api/v1/namespaces/default/services";
    let created = server
        .send(
            Method::POST,
            services,
            "application/json",
            &service.to_string(),
        )
        .await;
    assert!(created.body["spec"]["ipFamilies"].is_array());
    let own = fields(&created.body, "tool");
    assert_eq!(own["f:spec"].get("f:ipFamilies"), None);
    assert!(own["f:spec"]["f:ports"]["k:{\"port\":1,\"protocol\":\"TCP\"}"].is_object());
    server.0.stop().await;
}
