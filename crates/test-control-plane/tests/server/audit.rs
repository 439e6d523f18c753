//! The audit log.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use kube_test_control_plane::audit::{AuditEntry, AuditFinding, AuditLevel, AuditMark, Settle};
use kube_test_control_plane::faults::{FaultAction, FaultError, RequestMatcher};
use kube_test_control_plane::route::Verb;
use kube_test_control_plane::{ServerConfig, TestControlPlane};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{Plane, exchange, pod};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn plane() -> Plane {
    Plane::new(TestControlPlane::builder().start().await)
}

fn map(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

fn any() -> RequestMatcher {
    RequestMatcher::any()
}

#[tokio::test(start_paused = true)]
async fn audit_log_records_user_and_request() {
    let plane = plane().await;
    plane.create(MAPS, &map("a")).await;
    plane.code(&format!("{MAPS}/nope")).await;
    let entries = plane.0.server().audit().entries();
    let lines: Vec<String> = entries.iter().map(AuditEntry::summary).collect();
    assert_eq!(
        lines,
        [
            "create configmaps default/a 201",
            "get configmaps default/nope 404"
        ]
    );
    assert_eq!(entries[0].user_agent, "test");
    assert_eq!(entries[0].user, "kubernetes-admin");
    assert_eq!(entries[0].body_value()["metadata"]["name"], "a");
    assert_eq!(entries[0].revision_before + 1, entries[0].revision_after);
    assert_eq!(entries[1].reason, "NotFound");
    let writes = plane.0.server().audit().matching(AuditEntry::is_write);
    assert_eq!(writes.len(), 1);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn writes_of_pods_have_the_enforced_policy() {
    let plane = plane().await;
    let name = "pod-security.kubernetes.io/enforce-policy";
    let annotated = async |method: Method, path: &str, body: &Value| {
        let (code, answer) = plane.call(method, path, body).await;
        assert!(code < 300, "{answer}");
        let entries = plane.0.server().audit().entries();
        entries.last().unwrap().annotations.get(name).cloned()
    };
    let pods = "/api/v1/namespaces/default/pods";
    let privileged = Some("privileged:latest".to_owned());
    assert_eq!(annotated(Method::POST, pods, &pod("p")).await, privileged);
    let labels = json!({"metadata": {"labels": {"x": "y"}}});
    let path = format!("{pods}/p");
    assert_eq!(annotated(Method::PATCH, &path, &labels).await, privileged);
    let status = json!({"status": {"phase": "Running"}});
    let part = format!("{path}/status");
    assert_eq!(annotated(Method::PATCH, &part, &status).await, None);
    assert_eq!(annotated(Method::POST, MAPS, &map("a")).await, None);
    // Other policies aren't evaluated.
    let labels = json!({"metadata": {"labels": {"pod-security.kubernetes.io/warn": "baseline"}}});
    annotated(Method::PATCH, "/api/v1/namespaces/default", &labels).await;
    assert_eq!(annotated(Method::POST, pods, &pod("q")).await, None);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn entries_distinguish_writes_changes_and_patches() {
    let plane = plane().await;
    let path = format!("{MAPS}/a");
    plane.create(MAPS, &map("a")).await;
    let labels = json!({"metadata": {"labels": {"x": "y"}}});
    plane.call(Method::PATCH, &path, &labels).await;
    plane.call(Method::PATCH, &path, &labels).await;
    let dry = format!("{path}?dryRun=All");
    plane.call(Method::PATCH, &dry, &map("a")).await;
    plane
        .call(Method::DELETE, &path, &json!({"dryRun": ["All"]}))
        .await;
    let review = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    plane.call(Method::POST, reviews, &review).await;
    let told: Vec<_> = plane.0.server().audit().entries();
    let told: Vec<_> = told
        .iter()
        .map(|e| (e.is_write(), e.is_change(), e.patch_type()))
        .collect();
    assert_eq!(
        told,
        [
            (true, true, None),
            (true, true, Some("strategic")),
            (true, false, Some("strategic")),
            (false, false, Some("strategic")),
            (false, false, None),
            (false, false, None),
        ]
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn expectations_check_a_clients_requests() {
    let plane = plane().await;
    let audit = plane.0.server().audit();
    plane.create(MAPS, &map("a")).await;
    let mark = audit.mark();
    plane.get(MAPS).await;
    plane.code(&format!("{MAPS}/nope")).await;
    audit.expect_no_writes(mark, &any()).unwrap();
    let reads = [any().verbs(&[Verb::Get, Verb::List])];
    audit.expect_only(mark, &any(), &reads).unwrap();

    plane.call(Method::POST, MAPS, &map("a")).await;
    let finding = audit.expect_no_writes(mark, &any()).unwrap_err();
    assert_eq!(
        finding.to_string(),
        "1 requests instead of at most 0:\n  create configmaps default/a 409"
    );
    audit
        .expect_no_writes(mark, &any().user_agent("other"))
        .unwrap();
    let finding = audit.expect_only(mark, &any(), &reads).unwrap_err();
    assert!(matches!(finding, AuditFinding::NotAllowed { found } if found.len() == 1));
    let posts = any().verb(Verb::Create);
    audit.expect_at_most(mark, 1, &posts).unwrap();
    audit
        .expect_at_most(AuditMark::default(), 1, &posts)
        .unwrap_err();
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn truncated_log_is_an_error() {
    let config = ServerConfig::default().audit_limit(3);
    let plane = TestControlPlane::builder().server_config(config);
    let plane = Plane::new(plane.start().await);
    let audit = plane.0.server().audit();
    let mark = audit.mark();
    for _ in 0..4 {
        plane.get(MAPS).await;
    }
    let error = audit.expect_no_writes(mark, &any()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the audit log no longer covers the mark: 1 requests were dropped"
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn minimal_rules_cover_a_clients_requests() {
    let plane = plane().await;
    plane.create(MAPS, &map("a")).await;
    plane.get(MAPS).await;
    plane.get("/api/v1/namespaces/default/secrets").await;
    let set = "/apis/apps/v1/namespaces/default/statefulsets/web/status";
    plane.call(Method::PUT, set, &json!({})).await;
    let rules = plane.0.server().audit().minimal_rules(&any());
    assert_eq!(
        serde_json::to_value(rules).unwrap(),
        json!([
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "list"]},
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]},
            {"apiGroups": ["apps"], "resources": ["statefulsets/status"], "verbs": ["update"]},
        ])
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn cluster_settles_without_changes() {
    let plane = TestControlPlane::builder().all_actors().start().await;
    let plane = Plane::new(plane);
    let audit = plane.0.server().audit();
    let begin = Instant::now();
    let quiet = Duration::from_secs(10);
    plane
        .create("/api/v1/namespaces/default/pods", &pod("p"))
        .await;
    audit.settle(&Settle::quiet_for(quiet)).await.unwrap();
    assert!(begin.elapsed() >= quiet);
    let pod = plane.get("/api/v1/namespaces/default/pods/p").await;
    assert_eq!(pod["status"]["phase"], "Running");

    let busy = async {
        for i in 0.. {
            plane.create(MAPS, &map(&format!("m-{i}"))).await;
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
    };
    let settle = Settle::quiet_for(quiet).within(Duration::from_secs(60));
    let error = tokio::select! {
        settled = audit.settle(&settle) => settled.unwrap_err(),
        () = busy => unreachable!(),
    };
    let text = error.to_string();
    assert!(
        text.starts_with("the cluster did not settle within 60s"),
        "{text}"
    );
    assert!(text.contains("create configmaps default/m-"), "{text}");
    plane.stop().await;
}

/// Stores written bytes.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn written_events_match_the_reference() {
    let plane = plane().await;
    let written = Written::default();
    let server = plane.0.server();
    server
        .audit()
        .write_to(written.clone(), AuditLevel::Request);
    plane.create(MAPS, &map("a")).await;
    let lost = FaultAction::CommitThenDrop;
    server.faults().inject(any(), 1, lost);
    plane.code(&format!("{MAPS}/nope?pretty=0")).await;
    let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
    let mut events: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for event in &mut events {
        let id = event["auditID"].take();
        assert_eq!(id.as_str().map(str::len), Some(36));
    }
    let user = json!({
        "username": "kubernetes-admin",
        "groups": ["system:masters", "system:authenticated"],
    });
    let time = "2026-01-01T00:00:00.000000Z";
    assert_eq!(
        events[0],
        json!({
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Request",
            "auditID": null,
            "stage": "ResponseComplete",
            "requestURI": MAPS,
            "verb": "create",
            "user": user,
            "sourceIPs": ["127.0.0.1"],
            "userAgent": "test",
            "objectRef": {
                "resource": "configmaps",
                "namespace": "default",
                "name": "a",
                "apiVersion": "v1",
            },
            "responseStatus": {"metadata": {}, "code": 201},
            "requestObject": {"metadata": {"name": "a"}},
            "requestReceivedTimestamp": time,
            "stageTimestamp": time,
        })
    );
    assert_eq!(events[1]["requestURI"], format!("{MAPS}/nope?pretty=0"));
    assert_eq!(
        events[1]["responseStatus"],
        json!({
            "metadata": {},
            "status": "Failure",
            "reason": "NotFound",
            "message": "configmaps \"nope\" not found",
            "code": 404,
        })
    );
    let fault = &events[1]["annotations"]["test-control-plane/fault"];
    assert_eq!(fault, "commitThenDrop");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn oldest_large_bodies_are_dropped() {
    let config = ServerConfig::default()
        .audit_limit(4)
        .audit_bodies_max(5_000);
    let plane = TestControlPlane::builder().server_config(config);
    let plane = Plane::new(plane.start().await);
    for (name, size) in [
        ("a", 2_000),
        ("b", 10),
        ("c", 2_000),
        ("d", 2_000),
        ("e", 2_000),
    ] {
        let mut map = map(name);
        map["data"] = json!({"text": "x".repeat(size)});
        plane.create(MAPS, &map).await;
    }
    let entries = plane.0.server().audit().entries();
    let kept: Vec<(&str, bool)> = entries
        .iter()
        .map(|entry| (entry.name.as_str(), entry.body.len() == entry.body_size))
        .collect();
    assert_eq!(kept, [("b", true), ("c", false), ("d", true), ("e", true)]);
    assert!(entries[1].body.is_empty());
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn log_has_impersonators_and_invalid_credentials() {
    let plane = plane().await;
    let server = plane.0.server();
    for headers in [
        [("Impersonate-User", "bob")],
        [("Authorization", "Bearer nonsense")],
    ] {
        let answer = exchange(server, Method::GET, MAPS, &headers, "").await;
        assert!(matches!(answer.code, 401 | 403), "{}", answer.code);
    }
    let entries = server.audit().entries();
    let told: Vec<(&str, Option<&str>, u16)> = entries
        .iter()
        .map(|entry| {
            let impersonator = entry.impersonator.as_ref();
            let impersonator = impersonator.map(|identity| identity.name.as_str());
            (entry.user.as_str(), impersonator, entry.code)
        })
        .collect();
    assert_eq!(
        told,
        [("bob", Some("kubernetes-admin"), 403), ("", None, 401)]
    );
    plane.stop().await;
}

/// Creates an invalid map every two seconds, as an operator that retries.
async fn fail_forever(plane: &Plane) {
    loop {
        plane.call(Method::POST, MAPS, &map("Not A Name")).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn client_that_fails_again_and_again_does_not_settle_without_errors() {
    let plane = plane().await;
    let audit = plane.0.server().audit();
    let mark = audit.mark();
    let settle = Settle::quiet_for(Duration::from_secs(10)).within(Duration::from_secs(60));
    tokio::select! {
        () = fail_forever(&plane) => {}
        settled = audit.settle(&settle) => settled.unwrap(),
    }
    let settle = settle.without_errors();
    let not_settled = tokio::select! {
        () = fail_forever(&plane) => unreachable!("it retries forever"),
        settled = audit.settle(&settle) => settled.unwrap_err(),
    };
    let last = not_settled.changes.last().map(String::as_str);
    assert_eq!(last, Some("create configmaps default/Not A Name 422"));
    let finding = audit.expect_no_errors(mark).unwrap_err();
    let AuditFinding::Failed { found } = &finding else {
        panic!("{finding}");
    };
    let start =
        "create configmaps default/Not A Name 422 Invalid: ConfigMap \"Not A Name\" is invalid";
    assert!(found[0].starts_with(start), "{finding}");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn absent_objects_and_injected_faults_are_no_errors() {
    let plane = plane().await;
    let audit = plane.0.server().audit();
    let mark = audit.mark();
    let path = format!("{MAPS}/nope");
    plane.code(&path).await;
    plane.call(Method::DELETE, &path, &Value::Null).await;
    let faults = plane.0.server().faults();
    faults.inject(
        any().resource("configmaps"),
        1,
        FaultAction::respond(FaultError::Conflict),
    );
    plane.call(Method::POST, MAPS, &map("a")).await;
    audit.expect_no_errors(mark).unwrap();
    let labels = json!({"metadata": {"labels": {"x": "y"}}});
    plane.call(Method::PATCH, &path, &labels).await;
    let errors = audit.errors_since(mark, &any()).unwrap();
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].summary(), "patch configmaps default/nope 404");
    plane.stop().await;
}
