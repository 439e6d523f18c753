//! The writes that the policies deny and allow, for each user and namespace.

use http::Method;
use kube_test_control_plane::TestControlPlane;
use serde_json::{Value, json};
use statefulset_fence::FenceSettings;
use statefulset_fence::names::{BUILT_IN_USER, FENCE_PROBE, MIRROR_PROBE, USER_DEFAULT};

use crate::support::{Denied, OTHER, SERVED, User, install};

/// Controllers that must keep working everywhere, and an administrator.
const BYSTANDERS: [&str; 7] = [
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "system:serviceaccount:kube-system:namespace-controller",
    "system:serviceaccount:kube-system:node-controller",
    "system:serviceaccount:kube-system:pod-garbage-collector",
    "system:serviceaccount:kube-system:pvc-protection-controller",
    "system:kube-scheduler",
    "admin",
];
const NAMESPACES: [&str; 3] = [SERVED, OTHER, "kube-system"];

/// The kinds of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// An object of a set.
    Sets,
    Events,
    Others,
}

/// Every kind of write to the objects of [`create`], by path behind the namespace.
fn writes() -> Vec<(Of, Method, &'static str, Value)> {
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    let none = Value::Null;
    let status = json!({"status": {"replicas": 0, "observedGeneration": 1}});
    let phase = json!({"status": {"message": "m"}});
    let eviction = json!({"metadata": {"name": "p"}});
    let pods = "/api/v1/NS/pods";
    let pod = "/api/v1/NS/pods/p";
    let claims = "/api/v1/NS/persistentvolumeclaims";
    let claim = "/api/v1/NS/persistentvolumeclaims/c";
    let sets = "/apis/apps/v1/NS/statefulsets";
    let set = "/apis/apps/v1/NS/statefulsets/s";
    let revisions = "/apis/apps/v1/NS/controllerrevisions";
    let revision = "/apis/apps/v1/NS/controllerrevisions/r";
    let maps = "/api/v1/NS/configmaps";
    let (post, patch, delete) = (|| Method::POST, || Method::PATCH, || Method::DELETE);
    vec![
        (Of::Sets, post(), pods, self::pod("new")),
        (Of::Sets, patch(), pod, labels.clone()),
        (Of::Sets, delete(), pod, none.clone()),
        (Of::Sets, delete(), pods, none.clone()),
        (Of::Sets, patch(), "/api/v1/NS/pods/p/status", phase),
        (Of::Sets, post(), "/api/v1/NS/pods/p/eviction", eviction),
        (Of::Sets, post(), claims, self::claim("new")),
        (Of::Sets, patch(), claim, labels.clone()),
        (Of::Sets, delete(), claim, none.clone()),
        (Of::Sets, delete(), claims, none.clone()),
        (Of::Sets, post(), sets, self::set("new")),
        (Of::Sets, patch(), set, labels.clone()),
        (Of::Sets, delete(), set, none.clone()),
        (
            Of::Sets,
            patch(),
            "/apis/apps/v1/NS/statefulsets/s/status",
            status,
        ),
        (
            Of::Sets,
            patch(),
            "/apis/apps/v1/NS/statefulsets/s/scale",
            json!({"spec": {"replicas": 1}}),
        ),
        (Of::Sets, post(), revisions, self::revision("new")),
        (Of::Sets, patch(), revision, json!({"revision": 2})),
        (Of::Sets, delete(), revision, none.clone()),
        (Of::Sets, delete(), revisions, none.clone()),
        (Of::Events, post(), "/api/v1/NS/events", event()),
        (
            Of::Events,
            post(),
            "/apis/events.k8s.io/v1/NS/events",
            new_event(),
        ),
        (Of::Others, post(), maps, json!({"metadata": {"name": "m"}})),
        (Of::Others, post(), "/api/v1/NS/services", service()),
    ]
}

fn pod(name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    })
}

fn claim(name: &str) -> Value {
    let requests = json!({"requests": {"storage": "1Gi"}});
    json!({
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": requests},
    })
}

fn set(name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": 0, "serviceName": "s",
            "selector": {"matchLabels": {"app": "s"}},
            "template": {
                "metadata": {"labels": {"app": "s"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    })
}

fn revision(name: &str) -> Value {
    json!({"metadata": {"name": name}, "revision": 1, "data": {}})
}

fn event() -> Value {
    json!({
        "metadata": {"name": "e", "namespace": "NS"},
        "involvedObject": {"kind": "StatefulSet", "name": "s", "namespace": "NS"},
        "reason": "FailedCreate",
    })
}

fn new_event() -> Value {
    json!({
        "metadata": {"name": "f", "namespace": "NS"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "statefulset-controller", "reportingInstance": "x",
        "action": "a", "reason": "FailedCreate", "type": "Warning",
        "regarding": {"kind": "StatefulSet", "name": "s", "namespace": "NS"},
    })
}

fn service() -> Value {
    json!({"metadata": {"name": "v"}, "spec": {"ports": [{"port": 80}]}})
}

/// Puts a namespace into a path, or into an event.
fn within(namespace: &str, path: &str, body: &Value) -> (String, Value) {
    let path = path.replace("NS", &format!("namespaces/{namespace}"));
    let body = body
        .to_string()
        .replace(r#""NS""#, &format!("{namespace:?}"));
    (path, serde_json::from_str(&body).unwrap())
}

/// A control plane with the fence, and objects in each namespace.
async fn plane(settings: &FenceSettings) -> TestControlPlane {
    let plane = TestControlPlane::builder().start().await;
    install(&plane, settings).await;
    let admin = User::new(&plane, "admin");
    for namespace in NAMESPACES {
        for (path, object) in [
            ("/api/v1/NS/pods", pod("p")),
            ("/api/v1/NS/persistentvolumeclaims", claim("c")),
            ("/apis/apps/v1/NS/statefulsets", set("s")),
            ("/apis/apps/v1/NS/controllerrevisions", revision("r")),
        ] {
            let (path, object) = within(namespace, path, &object);
            admin.ask(Method::POST, &path, &object).await.unwrap();
        }
    }
    plane
}

/// Sends every write of a user in every namespace.
async fn assert_denied(
    plane: &TestControlPlane,
    user: &str,
    denied: impl Fn(&str, Of) -> Option<Denied>,
) {
    let client = User::new(plane, user);
    for namespace in NAMESPACES {
        for (of, method, path, body) in writes() {
            let (path, body) = within(namespace, path, &body);
            let found = client.dry_run(method.clone(), &path, &body).await;
            assert_eq!(found, denied(namespace, of), "{user}: {method} {path}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_controller_writes_only_in_its_own_namespaces() {
    let plane = plane(&FenceSettings::default()).await;
    assert_denied(&plane, BUILT_IN_USER, |namespace, of| {
        (namespace == SERVED && of != Of::Others).then_some(Denied::ByFence)
    })
    .await;
    assert_denied(&plane, USER_DEFAULT, |namespace, of| {
        (namespace != SERVED && of == Of::Sets).then_some(Denied::ByMirror)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn other_controllers_and_users_are_never_denied() {
    let plane = plane(&FenceSettings::default()).await;
    for user in BYSTANDERS {
        assert_denied(&plane, user, |_, _| None).await;
    }
}

#[tokio::test(start_paused = true)]
async fn policies_follow_another_label_and_user() {
    let settings = FenceSettings::default()
        .selector("team=a".parse().unwrap())
        .user("o'brien");
    let plane = plane(&settings).await;
    assert_denied(&plane, "o'brien", |namespace, of| {
        (namespace != SERVED && of == Of::Sets).then_some(Denied::ByMirror)
    })
    .await;
    assert_denied(&plane, USER_DEFAULT, |_, _| None).await;
    assert_denied(&plane, BUILT_IN_USER, |namespace, of| {
        (namespace == SERVED && of != Of::Others).then_some(Denied::ByFence)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn probes_show_everybody_that_the_policies_are_in_force() {
    let plane = plane(&FenceSettings::default()).await;
    let admin = User::new(&plane, "admin");
    for namespace in NAMESPACES {
        let is_served = namespace == SERVED;
        let path = format!("/apis/apps/v1/namespaces/{namespace}/controllerrevisions");
        for (probe, denied) in [
            (FENCE_PROBE, is_served.then_some(Denied::ByFence)),
            (MIRROR_PROBE, (!is_served).then_some(Denied::ByMirror)),
        ] {
            let found = admin.dry_run(Method::POST, &path, &revision(probe)).await;
            assert_eq!(found, denied, "{namespace} {probe}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn label_hands_a_namespace_over_and_back() {
    let plane = plane(&FenceSettings::default()).await;
    let admin = User::new(&plane, "admin");
    let (ours, theirs) = (
        User::new(&plane, USER_DEFAULT),
        User::new(&plane, BUILT_IN_USER),
    );
    let key = FenceSettings::default().selector.key().to_owned();
    let pods = format!("/api/v1/namespaces/{OTHER}/pods");
    for (label, denied) in [
        (json!("true"), [None, Some(Denied::ByFence)]),
        (json!("yes"), [Some(Denied::ByMirror), None]),
        (json!("true"), [None, Some(Denied::ByFence)]),
        (Value::Null, [Some(Denied::ByMirror), None]),
    ] {
        let labels = json!({"metadata": {"labels": {key.as_str(): label}}});
        let path = format!("/api/v1/namespaces/{OTHER}");
        admin.ask(Method::PATCH, &path, &labels).await.unwrap();
        let found = [
            ours.dry_run(Method::POST, &pods, &pod("new")).await,
            theirs.dry_run(Method::POST, &pods, &pod("new")).await,
        ];
        assert_eq!(found, denied, "{label}");
    }
}
