//! The warnings about types in the status of validating policies.

use std::fs::File;
use std::io::{BufReader, Read};

use flate2::read::GzDecoder;
use kube_test_control_plane::TestControlPlane;
use serde_json::{Value, json};

use crate::support::{Plane, call_patch, eventually};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";

async fn plane() -> Plane {
    let builder = TestControlPlane::builder();
    let builder = builder.configure_actors(|actors| actors.policy_status_controller = true);
    Plane::new(builder.start().await)
}

/// Returns a policy once its status is that of its spec.
async fn observed(plane: &Plane, name: &str) -> Value {
    let path = format!("{POLICIES}/{name}");
    eventually(async || {
        let policy = plane.get(&path).await;
        policy["status"]["observedGeneration"] == policy["metadata"]["generation"]
    })
    .await;
    plane.get(&path).await
}

/// Returns JSON as text, without the numbers at the end of types' names: upstream derives them from
/// the time.
fn without_numbers(value: &Value) -> String {
    let mut shown = String::new();
    for letter in value.to_string().chars() {
        let is_end = shown.ends_with(|before: char| before.is_ascii_alphabetic());
        if !(letter.is_ascii_digit() && is_end) {
            shown.push(letter);
        }
    }
    shown
}

/// Returns a policy for deployments with one expression.
fn policy(name: &str, expression: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["apps"],
                "apiVersions": ["v1"],
                "operations": ["*"],
                "resources": ["deployments"],
            }]},
            "validations": [{"expression": expression}],
        },
    })
}

#[tokio::test(start_paused = true)]
async fn recorded_policies_get_the_same_status() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../test/vectors/type-checks.json.gz"
    );
    let mut text = String::new();
    let mut file = GzDecoder::new(BufReader::new(File::open(path).unwrap()));
    file.read_to_string(&mut text).unwrap();
    let recorded: Value = serde_json::from_str(&text).unwrap();
    let plane = plane().await;
    for definition in recorded["definitions"].as_array().unwrap() {
        plane.create(DEFINITIONS, definition).await;
    }
    let cases = recorded["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 59);
    let mut differences = Vec::new();
    for case in cases {
        plane.create(POLICIES, &case["policy"]).await;
        let name = case["policy"]["metadata"]["name"].as_str().unwrap();
        let found = observed(&plane, name).await;
        let (found, wanted) = (&found["status"], &case["status"]);
        if without_numbers(found) != without_numbers(wanted) {
            differences.push(format!("{name}: {found:#}\ninstead of {wanted:#}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn status_follows_the_spec() {
    let plane = plane().await;
    plane
        .create(POLICIES, &policy("p", "object.spec.foo == 1"))
        .await;
    let found = observed(&plane, "p").await;
    let wanted = json!({"observedGeneration": 1, "typeChecking": {"expressionWarnings": [{
        "fieldRef": "spec.validations[0].expression",
        "warning": "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'foo'\n | \
                    object.spec.foo == 1\n | ...........^\n",
    }]}});
    assert_eq!(found["status"], wanted);
    let managers = found["metadata"]["managedFields"].as_array().unwrap();
    let manager = managers.iter().find(|it| it["operation"] == "Apply");
    let manager = manager.unwrap();
    assert_eq!(manager["manager"], "validatingadmissionpolicy-status");
    assert_eq!(manager["subresource"], "status");

    let repaired = policy("p", "object.spec.replicas == 1");
    let patch = json!({"spec": repaired["spec"]});
    call_patch(&plane, &format!("{POLICIES}/p"), &patch).await;
    let found = observed(&plane, "p").await;
    let wanted = json!({"observedGeneration": 2, "typeChecking": {}});
    assert_eq!(found["status"], wanted);
    plane.stop().await;
}

/// The dot makes a name absolute, which all names are.
#[tokio::test(start_paused = true)]
async fn variables_may_begin_with_a_dot() {
    let plane = plane().await;
    let of_containers = ".object.spec.template.spec.containers.all(it, .it.name != .object.kind)";
    for (name, expression, is_right) in [
        ("right", of_containers, true),
        ("wrong", ".object.spec.foo == 1", false),
    ] {
        plane.create(POLICIES, &policy(name, expression)).await;
        let found = observed(&plane, name).await;
        let warnings = &found["status"]["typeChecking"]["expressionWarnings"];
        assert_eq!(warnings.is_null(), is_right, "{name}: {warnings}");
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn policies_have_no_status_without_the_controller() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    plane
        .create(POLICIES, &policy("p", "object.spec.foo == 1"))
        .await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    let found = plane.get(&format!("{POLICIES}/p")).await;
    assert_eq!(found["status"], json!({}));
    plane.stop().await;
}
