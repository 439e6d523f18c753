//! Tests of permissions that are revoked and granted while the controller runs.

use std::time::Duration;

use kube_test_control_plane::faults::{RequestMatcher, WatchAction};
use kube_test_control_plane::route::Verb;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::harness::{CLUSTER_ROLES, Fixture, assert_begin};

const ROLE: &str = "system:controller:statefulset-controller";

async fn role(fixture: &Fixture) -> Value {
    let text = fixture.admin.get(&CLUSTER_ROLES, "", ROLE).await.unwrap();
    serde_json::from_str(&text).unwrap()
}

async fn put(fixture: &Fixture, role: &Value) {
    let mut role = role.clone();
    role["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("resourceVersion");
    let text = role.to_string();
    let put = fixture.admin.replace(&CLUSTER_ROLES, "", ROLE, text).await;
    put.unwrap();
}

/// Removes a verb on a resource from the role.
fn without(role: &Value, resource: &str, verb: &str) -> Value {
    let mut less = role.clone();
    let rules = less["rules"].as_array_mut().unwrap();
    for rule in &mut *rules {
        let resources = rule["resources"].as_array().unwrap();
        if resources.contains(&json!(resource)) {
            let verbs = rule["verbs"].as_array_mut().unwrap();
            verbs.retain(|other| other != verb);
        }
    }
    rules.retain(|rule| rule["verbs"] != json!([]));
    assert_ne!(less, *role, "the role lacks {verb} on {resource}");
    less
}

#[tokio::test(start_paused = true)]
async fn missing_write_permission_is_logged_with_its_rule() {
    for (resource, verb, right, rule) in [
        (
            "pods",
            "create",
            "create pods in the namespace \"default\"",
            r#"{apiGroups: [""], resources: ["pods"], verbs: ["create"]}"#,
        ),
        (
            "statefulsets/status",
            "update",
            "update statefulsets.apps/status in the namespace \"default\"",
            r#"{apiGroups: ["apps"], resources: ["statefulsets/status"], verbs: ["update"]}"#,
        ),
        (
            "controllerrevisions",
            "create",
            "create controllerrevisions.apps in the namespace \"default\"",
            r#"{apiGroups: ["apps"], resources: ["controllerrevisions"], verbs: ["create"]}"#,
        ),
    ] {
        let fixture = Fixture::start().await;
        let whole = role(&fixture).await;
        put(&fixture, &without(&whole, resource, verb)).await;
        sleep(Duration::from_secs(5)).await;
        fixture.take_lines();
        fixture.create(2).await;
        sleep(Duration::from_secs(600)).await;
        let lines = fixture.take_lines();
        let begin = format!(
            "WARN permission is missing, trying again; grant this user a role with the rule {rule} \
             permission={right} error="
        );
        assert_begin(&lines, &[&begin]);
        let user = "User \"system:serviceaccount:kube-system:statefulset-controller\" cannot";
        assert!(lines[0].contains(user), "{}", lines[0]);

        put(&fixture, &whole).await;
        fixture.complete(2).await;
        assert_begin(
            &fixture.take_lines(),
            &[&format!(
                "INFO permission is granted permission={right} after="
            )],
        );
        assert_eq!(fixture.pod_writes(Verb::Create), ["web-0", "web-1"]);
        fixture.plane.invariants().expect_none();
    }
}

#[tokio::test(start_paused = true)]
async fn missing_read_permission_is_logged_and_the_cache_recovers() {
    let fixture = Fixture::start().await;
    fixture.create(1).await;
    fixture.complete(1).await;
    let whole = role(&fixture).await;
    let less = without(&without(&whole, "pods", "list"), "pods", "watch");
    put(&fixture, &less).await;
    fixture.take_lines();
    // An open watch continues without the permission.
    fixture
        .faults()
        .apply_to_open_watches(RequestMatcher::any().resource("pods"), WatchAction::Close);
    let scaled = json!({"spec": {"replicas": 3}}).to_string();
    let kind = statefulset_client::rest::PatchType::Merge;
    let sets = &statefulset_client::resource::STATEFUL_SETS;
    let patched = fixture
        .admin
        .patch(sets, "default", "web", kind, scaled)
        .await;
    patched.unwrap();
    sleep(Duration::from_secs(600)).await;
    let lines = fixture.take_lines();
    let begin = |verb: &str| {
        format!(
            "WARN permission is missing, trying again; grant this user a role with the rule \
             {{apiGroups: [\"\"], resources: [\"pods\"], verbs: [\"{verb}\"]}} \
             permission={verb} pods in all namespaces error="
        )
    };
    assert_begin(&lines, &[&begin("watch"), &begin("list")]);

    put(&fixture, &whole).await;
    fixture.complete(3).await;
    assert_begin(
        &fixture.take_lines(),
        &[
            "INFO permission is granted permission=list pods in all namespaces after=",
            "INFO permission is granted permission=watch pods in all namespaces after=",
        ],
    );
    assert_eq!(
        fixture.pod_writes(Verb::Create),
        ["web-0", "web-1", "web-2"]
    );
    fixture.plane.invariants().expect_none();
}

#[tokio::test(start_paused = true)]
async fn missing_event_permission_does_not_block_syncs() {
    let fixture = Fixture::start().await;
    let whole = role(&fixture).await;
    put(&fixture, &without(&whole, "events", "create")).await;
    sleep(Duration::from_secs(5)).await;
    fixture.take_lines();
    fixture.create(3).await;
    fixture.complete(3).await;
    let lines = fixture.take_lines();
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(lines[0].contains("permission=create events in the namespace \"default\""));
}
