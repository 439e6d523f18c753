//! Tests of the API server runner with recorded exchanges.

#![expect(clippy::unwrap_used, reason = "tests and their helpers may panic")]

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use conformance::apiserver::{self, Against, Case};
use conformance::files;
use conformance::json_patches;
use conformance::remote::{Certificates, Remote};
use conformance::report::{Report, Verdict};
use kube_test_control_plane::auth::{Identity, Tokens};
use kube_test_control_plane::{ServerConfig, TestControlPlane};

fn cases() -> Vec<Case> {
    read("apiserver.json")
}

fn read(file: &str) -> Vec<Case> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../vectors");
    files::list(&path.join(file), "cases").unwrap()
}

fn text_of(verdict: &Verdict) -> String {
    format!("{}: {}", verdict.id, verdict.differences.join("\n  "))
}

#[test]
fn responses_match_the_recordings() {
    let report = apiserver::run_cases(&cases(), &Against::Embedded).unwrap();
    let wrong: Vec<String> = report.failed.iter().map(text_of).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(report.passed, 68);
}

#[test]
fn field_ownership_matches_the_recordings() {
    let report = apiserver::run_cases(&read("managed-fields.json"), &Against::Embedded).unwrap();
    let wrong: Vec<String> = report.failed.iter().map(text_of).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(report.passed, 5);
}

#[test]
fn custom_resources_match_the_recordings() {
    let report = apiserver::run_cases(&read("crd.json.gz"), &Against::Embedded).unwrap();
    let wrong: Vec<String> = report.failed.iter().map(text_of).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(report.passed, 84);
}

#[test]
fn json_patches_match_the_recordings() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../vectors/json-patches.json.gz");
    let report = json_patches::run(&[path], &Against::Embedded).unwrap();
    let wrong: Vec<String> = report.failed.iter().map(text_of).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(report.passed, 340);
}

/// Runs cases against a control plane behind a port, like the program.
fn over_tls(
    cases: &[Case],
    certificates: impl FnOnce(&TestControlPlane) -> Certificates,
) -> Report {
    let mut tokens = Tokens::default();
    tokens.insert("administrator's", Identity::admin());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let config = ServerConfig::default().tokens(tokens);
    let plane = TestControlPlane::builder()
        .server_config(config)
        .listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let plane = runtime.block_on(plane.start());
    let remote = Remote::new(
        &plane.url().unwrap(),
        "administrator's",
        &certificates(&plane),
    );
    let report = apiserver::run_cases(cases, &Against::Remote(remote.unwrap()));
    runtime.block_on(plane.stop());
    report.unwrap()
}

/// Cases without waits.
fn quick_cases() -> Vec<Case> {
    let names = [
        "sts-create-defaults",
        "auth",
        "yaml-body",
        "patch-strategic",
    ];
    let mut cases = cases();
    cases.retain(|case| names.contains(&case.name.as_str()));
    assert_eq!(cases.len(), names.len());
    cases
}

#[test]
fn remote_server_gives_the_same_results() {
    let report = over_tls(&quick_cases(), |_| Certificates::Unchecked);
    let failed: Vec<String> = report.failed.iter().map(text_of).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert_eq!(report.passed, 4);
}

#[test]
fn certificate_of_another_authority_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.crt");
    let other = kube_test_control_plane::certificates::TlsMaterial::generate().unwrap();
    std::fs::write(&path, other.ca_pem).unwrap();
    let report = over_tls(&quick_cases(), |_| Certificates::Authority(path));
    assert_eq!((report.passed, report.failed.len()), (0, 4));
    let why = &report.failed[0].differences[0];
    assert!(why.contains("invalid peer certificate"), "{why}");
}

#[test]
fn certificate_of_the_given_authority_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.crt");
    let report = over_tls(&quick_cases(), |plane| {
        let kubeconfig = plane.kubeconfig().unwrap();
        let data = kubeconfig
            .pointer("/clusters/0/cluster/certificate-authority-data")
            .unwrap();
        std::fs::write(&path, decode(data.as_str().unwrap())).unwrap();
        Certificates::Authority(path)
    });
    assert_eq!((report.passed, report.failed.len()), (4, 0));
}

fn decode(base64: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD
        .decode(base64)
        .unwrap()
}

/// A case with one step and its response.
fn case(step: &str) -> Case {
    let text = format!(r#"{{"case": "made-up", "steps": [{step}]}}"#);
    serde_json::from_str(&text).unwrap()
}

fn differences(step: &str) -> Vec<String> {
    differences_in(case(step))
}

fn differences_in(case: Case) -> Vec<String> {
    let report = apiserver::run_cases(&[case], &Against::Embedded).unwrap();
    report
        .failed
        .into_iter()
        .flat_map(|verdict| verdict.differences)
        .collect()
}

#[test]
fn every_part_of_a_response_is_compared() {
    for (step, expected) in [
        (
            r#"{"method": "GET", "path": "/healthz", "response": {"status": 200, "text": "ok"}}"#,
            None,
        ),
        (
            r#"{"method": "GET", "path": "/healthz", "response": {"status": 204, "text": "ok"}}"#,
            Some("step 1, GET /healthz: status: expected 204, is 200: ok"),
        ),
        (
            r#"{"method": "GET", "path": "/healthz", "response": {"status": 200, "text": "no"}}"#,
            Some(r#"step 1, GET /healthz: : expected "no", is "ok""#),
        ),
        (
            r#"{"method": "GET", "path": "/healthz",
                "response": {"status": 200, "text": "ok", "contentType": "application/json"}}"#,
            Some(
                "step 1, GET /healthz: content type: expected \"application/json\", \
                  is \"text/plain; charset=utf-8\"",
            ),
        ),
        (
            r#"{"method": "GET", "path": "/healthz",
                "response": {"status": 200, "text": "ok", "retry-after": "1"}}"#,
            Some(r#"step 1, GET /healthz: retry-after: expected "1", is """#),
        ),
        (
            r#"{"method": "GET", "path": "/healthz",
                "response": {"status": 200, "text": "ok", "warning": "299"}}"#,
            Some(r#"step 1, GET /healthz: warning: expected "299", is """#),
        ),
        (
            r#"{"method": "GET", "path": "/api/v1/namespaces/{ns}/pods/p",
                "response": {"status": 404, "body": {"kind": "Status", "apiVersion": "v1",
                    "metadata": {}, "status": "Failure", "message": "pods \"p\" not found",
                    "reason": "Gone", "details": {"name": "p", "kind": "pods"}, "code": 404}}}"#,
            Some(
                "step 1, GET /api/v1/namespaces/{ns}/pods/p: .reason: expected \"Gone\", \
                  is \"NotFound\"",
            ),
        ),
        (
            r#"{"method": "GET", "path": "/api/v1/namespaces/{{no.name}}",
                "response": {"status": 200}}"#,
            Some(
                "step 1, GET /api/v1/namespaces/{{no.name}}: no answer before this step holds \
                  no.name",
            ),
        ),
        (
            r#"{"method": "WATCH", "path": "/api/v1/namespaces/{ns}/pods?watch=1&timeoutSeconds=1",
                "seconds": 1, "response": {"status": 200, "events": [{}]}}"#,
            Some(
                "step 1, WATCH /api/v1/namespaces/{ns}/pods?watch=1&timeoutSeconds=1: .events: \
                  expected [{}], is []",
            ),
        ),
    ] {
        assert_eq!(differences(step), Vec::from_iter(expected), "{step}");
    }
}

#[test]
fn managed_fields_are_compared_only_on_request() {
    let step = r#"{"method": "POST", "path": "/api/v1/namespaces/{ns}/configmaps",
        "body": {"metadata": {"name": "c", "uid": "u"}, "data": {"a": "b"}},
        "response": {"status": 201, "body": {"kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"name": "c", "namespace": "{ns}", "uid": "<uid>",
                "resourceVersion": "<rv>", "creationTimestamp": "<time>", "managedFields": []},
            "data": {"a": "b"}}}}"#;
    assert_eq!(differences(step), [""; 0]);
    let compared = format!(r#"{{"case": "made-up", "managedFields": true, "steps": [{step}]}}"#);
    let found = differences_in(serde_json::from_str(&compared).unwrap());
    let expected = "step 1, POST /api/v1/namespaces/{ns}/configmaps: .metadata.managedFields: \
                    expected [], is [{";
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with(expected), "{found:?}");
    let differing = step.replace(r#""data": {"a": "b"}}}}"#, r#""data": {"a": "c"}}}}"#);
    assert_eq!(
        differences(&differing),
        [r#"step 1, POST /api/v1/namespaces/{ns}/configmaps: .data.a: expected "c", is "b""#]
    );
}
