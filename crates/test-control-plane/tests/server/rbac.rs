//! Authorization by roles and bindings.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::auth::{AuthorizationMode, Identity};
use kube_test_control_plane::faults::RequestMatcher;
use serde_json::{Value, json};
use tower::Service;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

async fn ask(
    plane: &TestControlPlane,
    user: &Identity,
    method: Method,
    path: &str,
) -> (u16, Value) {
    write(plane, user, method, path, &Value::Null).await
}

async fn write(
    plane: &TestControlPlane,
    user: &Identity,
    method: Method,
    path: &str,
    body: &Value,
) -> (u16, Value) {
    let server = plane.server();
    server.call_json_as(user, method, path, "test", body).await
}

async fn create(plane: &TestControlPlane, path: &str, body: &Value) {
    let server = plane.server();
    let (code, answer) = server.call_json(Method::POST, path, "test", body).await;
    assert_eq!(code, 201, "{answer}");
}

fn role(name: &str, rules: &Value) -> Value {
    json!({"metadata": {"name": name}, "rules": rules})
}

fn binding(name: &str, kind: &str, role: &str, subject: &Value) -> Value {
    json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [subject],
    })
}

fn user(name: &str) -> Value {
    json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name})
}

fn message(answer: &(u16, Value)) -> &str {
    answer.1["message"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn role_applies_where_it_is_bound() {
    let plane = TestControlPlane::builder().start().await;
    let alice = Identity::user("alice").group("devs");
    let maps = "/api/v1/namespaces/default/configmaps";
    let refused = ask(&plane, &alice, Method::GET, maps).await;
    assert_eq!(refused.0, 403);
    assert_eq!(
        message(&refused),
        "configmaps is forbidden: User \"alice\" cannot list resource \"configmaps\" in API group \
         \"\" in the namespace \"default\""
    );
    let roles = &format!("{RBAC}/namespaces/default/roles");
    let bindings = &format!("{RBAC}/namespaces/default/rolebindings");
    let rules = json!([
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "create"]},
        {"apiGroups": [""], "resources": ["pods"], "resourceNames": ["p1"],
            "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["apps"], "resources": ["statefulsets/status"], "verbs": ["patch"]},
    ]);
    create(&plane, roles, &role("r", &rules)).await;
    create(&plane, bindings, &binding("b", "Role", "r", &user("alice"))).await;
    let pods = "/api/v1/namespaces/default/pods";
    let status = "/apis/apps/v1/namespaces/default/statefulsets/web/status";
    for (method, path, code) in [
        (Method::GET, maps.to_owned(), 200),
        (Method::GET, format!("{maps}?watch=1&timeoutSeconds=1"), 403),
        (Method::DELETE, maps.to_owned(), 403),
        (Method::GET, "/api/v1/configmaps".to_owned(), 403),
        (
            Method::GET,
            "/api/v1/namespaces/kube-system/configmaps".to_owned(),
            403,
        ),
        (Method::PATCH, format!("{maps}/z"), 403),
        (Method::GET, format!("{pods}/p1"), 404),
        (Method::GET, format!("{pods}/p2"), 403),
        (Method::GET, pods.to_owned(), 403),
        (
            Method::GET,
            format!("{pods}?fieldSelector=metadata.name%3Dp1"),
            200,
        ),
        (Method::PATCH, status.to_owned(), 404),
        (Method::PUT, status.to_owned(), 403),
        (Method::GET, "/apis/no.such.group/v1/things".to_owned(), 403),
        (Method::GET, "/apis/apps/v1".to_owned(), 200),
        (Method::GET, "/metrics".to_owned(), 403),
    ] {
        let (found, answer) = write(&plane, &alice, method.clone(), &path, &json!({})).await;
        assert_eq!(found, code, "{method} {path}: {answer}");
    }
    plane.stop().await;
}

#[tokio::test]
async fn bindings_of_groups_and_accounts_apply_immediately() {
    let plane = TestControlPlane::builder().start().await;
    let dev = Identity::user("bob").group("devs");
    let account = Identity::service_account("default", "robot");
    let pods = "/api/v1/namespaces/default/pods";
    let bindings = &format!("{RBAC}/namespaces/default/rolebindings");
    let group = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "devs"});
    // A service account without a namespace has the binding's.
    let robot = json!({"kind": "ServiceAccount", "name": "robot"});
    for (who, name, subject) in [(&dev, "g", &group), (&account, "s", &robot)] {
        assert_eq!(ask(&plane, who, Method::GET, pods).await.0, 403);
        create(
            &plane,
            bindings,
            &binding(name, "ClusterRole", "view", subject),
        )
        .await;
        assert_eq!(ask(&plane, who, Method::GET, pods).await.0, 200);
        assert_eq!(ask(&plane, who, Method::GET, "/api/v1/pods").await.0, 403);
        let path = format!("{bindings}/{name}");
        let server = plane.server();
        server
            .call_json(Method::DELETE, &path, "test", &Value::Null)
            .await;
        assert_eq!(ask(&plane, who, Method::GET, pods).await.0, 403);
    }
    plane.stop().await;
}

#[tokio::test]
async fn rejection_reports_bindings_to_missing_roles() {
    let plane = TestControlPlane::builder().start().await;
    let alice = Identity::user("alice");
    let body = binding("b", "ClusterRole", "nowhere", &user("alice"));
    create(&plane, &format!("{RBAC}/clusterrolebindings"), &body).await;
    let refused = ask(&plane, &alice, Method::GET, "/api/v1/nodes").await;
    assert_eq!(
        message(&refused),
        "nodes is forbidden: User \"alice\" cannot list resource \"nodes\" in API group \"\" at \
         the cluster scope: RBAC: clusterrole.rbac.authorization.k8s.io \"nowhere\" not found"
    );
    plane.stop().await;
}

#[tokio::test]
async fn aggregated_roles_grant_the_selected_rules() {
    let plane = TestControlPlane::builder().start().await;
    let alice = Identity::user("alice");
    let body = binding("b", "ClusterRole", "view", &user("alice"));
    create(&plane, &format!("{RBAC}/clusterrolebindings"), &body).await;
    assert_eq!(
        ask(&plane, &alice, Method::GET, "/api/v1/pods").await.0,
        200
    );
    assert_eq!(
        ask(&plane, &alice, Method::GET, "/api/v1/secrets").await.0,
        403
    );
    let mut part = role(
        "more",
        &json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]}]),
    );
    part["metadata"]["labels"] = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    create(&plane, &format!("{RBAC}/clusterroles"), &part).await;
    assert_eq!(
        ask(&plane, &alice, Method::GET, "/api/v1/secrets").await.0,
        200
    );
    plane.stop().await;
}

#[tokio::test]
async fn users_can_grant_only_the_permissions_they_hold() {
    let plane = TestControlPlane::builder().start().await;
    let alice = Identity::user("alice").group("devs");
    let bindings = &format!("{RBAC}/namespaces/default/rolebindings");
    let roles = &format!("{RBAC}/namespaces/default/roles");
    create(
        &plane,
        bindings,
        &binding("a", "ClusterRole", "admin", &user("alice")),
    )
    .await;
    let pods = role(
        "p",
        &json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
    );
    let (code, answer) = write(&plane, &alice, Method::POST, roles, &pods).await;
    assert_eq!(code, 201, "{answer}");
    let all = role(
        "all",
        &json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]),
    );
    let refused = write(&plane, &alice, Method::POST, roles, &all).await;
    assert_eq!(refused.0, 403);
    let held = "is attempting to grant RBAC permissions not currently held:\n\
                {APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}";
    assert_eq!(
        message(&refused),
        format!(
            "roles.rbac.authorization.k8s.io \"all\" is forbidden: user \"alice\" \
             (groups=[\"devs\" \"system:authenticated\"]) {held}"
        )
    );
    let details = json!({"name": "all", "group": "rbac.authorization.k8s.io", "kind": "roles"});
    assert_eq!(refused.1["details"], details);
    let grown = json!({"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
    let path = format!("{roles}/p");
    let refused = write(&plane, &alice, Method::PATCH, &path, &grown).await;
    assert!(message(&refused).contains(held), "{refused:?}");
    let labelled = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(
        write(&plane, &alice, Method::PATCH, &path, &labelled)
            .await
            .0,
        200
    );

    let to_all = binding("c", "ClusterRole", "cluster-admin", &user("bob"));
    let refused = write(&plane, &alice, Method::POST, bindings, &to_all).await;
    assert!(
        message(&refused).contains("{NonResourceURLs:[\"*\"], Verbs:[\"*\"]}"),
        "{refused:?}"
    );
    let to_none = binding("d", "Role", "nowhere", &user("bob"));
    let refused = write(&plane, &alice, Method::POST, bindings, &to_none).await;
    assert_eq!(refused.0, 404);
    assert_eq!(
        message(&refused),
        "roles.rbac.authorization.k8s.io \"nowhere\" not found"
    );
    let to_view = binding("e", "ClusterRole", "view", &user("bob"));
    assert_eq!(
        write(&plane, &alice, Method::POST, bindings, &to_view)
            .await
            .0,
        201
    );

    let special = json!([{"apiGroups": ["rbac.authorization.k8s.io"],
        "resources": ["roles", "clusterroles"], "verbs": ["escalate", "bind"]}]);
    create(&plane, roles, &role("special", &special)).await;
    create(
        &plane,
        bindings,
        &binding("s", "Role", "special", &user("alice")),
    )
    .await;
    assert_eq!(
        write(&plane, &alice, Method::POST, roles, &all).await.0,
        201
    );
    assert_eq!(
        write(&plane, &alice, Method::POST, bindings, &to_all)
            .await
            .0,
        201
    );
    plane.stop().await;
}

#[tokio::test]
async fn create_by_put_needs_both_permissions() {
    let plane = TestControlPlane::builder().start().await;
    let alice = Identity::user("alice");
    let roles = &format!("{RBAC}/namespaces/default/roles");
    let bindings = &format!("{RBAC}/namespaces/default/rolebindings");
    let mut rules = json!([{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
        "verbs": ["update"]}]);
    create(&plane, roles, &role("r", &rules)).await;
    create(&plane, bindings, &binding("b", "Role", "r", &user("alice"))).await;
    let lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    let body = json!({"metadata": {"name": "l"}, "spec": {}});
    let refused = write(&plane, &alice, Method::PUT, lease, &body).await;
    assert_eq!(refused.0, 403);
    assert_eq!(
        message(&refused),
        "leases.coordination.k8s.io \"l\" is forbidden: "
    );
    rules[0]["verbs"] = json!(["update", "create"]);
    let path = format!("{roles}/r");
    let server = plane.server();
    server
        .call_json(Method::PUT, &path, "test", &role("r", &rules))
        .await;
    assert_eq!(
        write(&plane, &alice, Method::PUT, lease, &body).await.0,
        201
    );
    plane.stop().await;
}

#[tokio::test]
async fn create_by_apply_needs_both_permissions() {
    let plane = TestControlPlane::builder().start().await;
    let alice = Identity::user("alice");
    let roles = &format!("{RBAC}/namespaces/default/roles");
    let bindings = &format!("{RBAC}/namespaces/default/rolebindings");
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]}]);
    create(&plane, roles, &role("r", &rules)).await;
    let to_alice = binding("b", "Role", "r", &user("alice"));
    create(&plane, bindings, &to_alice).await;
    let apply = async |name: &str| {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        let path = format!("/api/v1/namespaces/default/configmaps/{name}?fieldManager=a");
        let request = Request::patch(path)
            .header("Content-Type", "application/apply-patch+yaml")
            .extension(alice.clone())
            .body(Full::new(Bytes::from(body.to_string())))
            .unwrap();
        plane
            .server()
            .serve(request)
            .await
            .unwrap()
            .status()
            .as_u16()
    };
    assert_eq!(apply("z").await, 403);
    let maps = "/api/v1/namespaces/default/configmaps";
    create(&plane, maps, &json!({"metadata": {"name": "z"}})).await;
    assert_eq!(apply("z").await, 200);
    plane.stop().await;
}

#[tokio::test]
async fn controller_role_exists_and_suffices() {
    let plane = TestControlPlane::builder().start().await;
    let controller = Identity::service_account("kube-system", "statefulset-controller");
    for (method, path, code) in [
        (Method::GET, "/apis/apps/v1/statefulsets", 200),
        (Method::GET, "/api/v1/pods", 200),
        (Method::GET, "/api/v1/secrets", 403),
        (
            Method::DELETE,
            "/apis/apps/v1/namespaces/default/statefulsets/x",
            403,
        ),
        (Method::DELETE, "/api/v1/namespaces/default/pods/x", 404),
        (
            Method::PATCH,
            "/api/v1/namespaces/default/persistentvolumeclaims/x",
            403,
        ),
    ] {
        let (found, answer) = ask(&plane, &controller, method, path).await;
        assert_eq!(found, code, "{path}: {answer}");
    }
    plane.stop().await;
}

#[tokio::test]
async fn other_modes_decide_differently() {
    let alice = Identity::user("alice");
    let nodes = "/api/v1/nodes";
    let plane = TestControlPlane::builder()
        .authorization(AuthorizationMode::AlwaysAllow)
        .start()
        .await;
    assert_eq!(ask(&plane, &alice, Method::GET, nodes).await.0, 200);
    plane.stop().await;

    let plane = TestControlPlane::builder()
        .authorization(AuthorizationMode::AlwaysDeny)
        .start()
        .await;
    let refused = ask(&plane, &alice, Method::GET, "/version").await;
    assert_eq!(
        message(&refused),
        "forbidden: User \"alice\" cannot get path \"/version\": Everything is forbidden."
    );
    assert_eq!(
        ask(&plane, &Identity::admin(), Method::GET, nodes).await.0,
        200
    );
    plane.stop().await;

    let plane = TestControlPlane::builder()
        .authorization(AuthorizationMode::Node)
        .start()
        .await;
    let kubelet = Identity::node("n1");
    assert_eq!(ask(&plane, &kubelet, Method::GET, nodes).await.0, 200);
    assert_eq!(ask(&plane, &alice, Method::GET, nodes).await.0, 403);
    assert_eq!(
        ask(&plane, &kubelet, Method::DELETE, "/api/v1/nodes/n1")
            .await
            .0,
        403
    );
    plane.stop().await;
}

#[tokio::test]
async fn rejected_requests_are_logged() {
    let plane = TestControlPlane::builder().start().await;
    ask(
        &plane,
        &Identity::user("alice"),
        Method::GET,
        "/api/v1/secrets",
    )
    .await;
    let entries = plane.server().audit().entries();
    let [entry] = entries.as_slice() else {
        panic!("{entries:?}");
    };
    assert_eq!((entry.user.as_str(), entry.code), ("alice", 403));
    assert_eq!(entry.summary(), "list secrets / 403");
    plane.stop().await;
}

#[tokio::test]
async fn minimal_rules_suffice_for_the_same_requests() {
    let plane = TestControlPlane::builder().start().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    let body = json!({"metadata": {"name": "l"}, "spec": {}});
    let requests = [
        (Method::GET, maps, 200),
        (Method::PUT, lease, 201),
        (Method::DELETE, lease, 200),
    ];
    for (method, path, code) in &requests {
        let found = write(&plane, &Identity::admin(), method.clone(), path, &body).await;
        assert_eq!(found.0, *code, "{found:?}");
    }
    let rules = plane
        .server()
        .audit()
        .minimal_rules(&RequestMatcher::default());
    let alice = plane.service_as(Identity::user("alice"));
    create(
        &plane,
        &format!("{RBAC}/clusterroles"),
        &role("minimal", &json!(rules)),
    )
    .await;
    let to_alice = binding("minimal", "ClusterRole", "minimal", &user("alice"));
    create(&plane, &format!("{RBAC}/clusterrolebindings"), &to_alice).await;
    for (method, path, code) in requests {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("Content-Type", "application/json");
        let request = request.body(Full::new(Bytes::from(body.to_string())));
        let reply = alice.clone().call(request.unwrap()).await.unwrap();
        assert_eq!(reply.status(), code, "{path}");
    }
    let pods = Request::get("/api/v1/pods").body(Full::new(Bytes::new()));
    let reply = alice.clone().call(pods.unwrap()).await.unwrap();
    assert_eq!(reply.status(), 403);
    plane.stop().await;
}
