//! Impersonation.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::auth::Identity;
use serde_json::{Value, json};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn ask(
    plane: &TestControlPlane,
    user: &Identity,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
) -> (u16, Value) {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = Full::new(Bytes::from_static(b"{}"));
    let request = request.extension(user.clone()).body(body).unwrap();
    let reply = plane.server().serve(request).await.unwrap();
    let code = reply.status().as_u16();
    let body = reply.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&body).unwrap())
}

async fn allow(plane: &TestControlPlane, name: &str, rules: Value) {
    let role = json!({"metadata": {"name": name}, "rules": rules});
    let binding = json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [
            {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"},
        ],
    });
    for (kind, body) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let path = format!("{RBAC}/{kind}");
        let server = plane.server();
        let (code, answer) = server.call_json(Method::POST, &path, "test", &body).await;
        assert_eq!(code, 201, "{answer}");
    }
}

async fn who(plane: &TestControlPlane, user: &Identity, headers: &[(&str, &str)]) -> Value {
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let (code, review) = ask(plane, user, Method::POST, path, headers).await;
    assert_eq!(code, 201, "{review}");
    review["status"]["userInfo"].clone()
}

fn message(answer: &(u16, Value)) -> &str {
    answer.1["message"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn administrator_may_impersonate_anyone() {
    let plane = TestControlPlane::builder().start().await;
    let admin = Identity::admin();
    let headers = [
        ("Impersonate-User", "bob"),
        ("Impersonate-Group", "g1"),
        ("Impersonate-Group", "g2"),
        ("Impersonate-Uid", "u1"),
        ("Impersonate-Extra-Scopes", "x"),
        ("Impersonate-Extra-example.com%2Fproject", "p"),
    ];
    assert_eq!(
        who(&plane, &admin, &headers).await,
        json!({
            "username": "bob",
            "uid": "u1",
            "groups": ["g1", "g2", "system:authenticated"],
            "extra": {"scopes": ["x"], "example.com/project": ["p"]},
        })
    );
    for (name, groups) in [
        ("bob", json!(["system:authenticated"])),
        ("system:anonymous", json!(["system:unauthenticated"])),
        (
            "system:node:n1",
            json!(["system:nodes", "system:authenticated"]),
        ),
        (
            "system:serviceaccount:ns:sa",
            json!([
                "system:serviceaccounts",
                "system:serviceaccounts:ns",
                "system:authenticated"
            ]),
        ),
    ] {
        let found = ask(
            &plane,
            &admin,
            Method::GET,
            MAPS,
            &[("Impersonate-User", name)],
        )
        .await;
        assert_eq!(found.0, 403, "{name}");
        if name != "system:anonymous" {
            let info = who(&plane, &admin, &[("Impersonate-User", name)]).await;
            assert_eq!(info, json!({"username": name, "groups": groups}));
        }
    }
    let masters = [
        ("Impersonate-User", "bob"),
        ("Impersonate-Group", "system:masters"),
    ];
    assert_eq!(
        ask(&plane, &admin, Method::GET, MAPS, &masters).await.0,
        200
    );
    plane.stop().await;
}

#[tokio::test]
async fn rejection_names_the_first_missing_permission() {
    let plane = TestControlPlane::builder().start().await;
    let alice = Identity::user("alice");
    let bob = [("Impersonate-User", "bob")];
    let refused = ask(&plane, &alice, Method::GET, MAPS, &bob).await;
    assert_eq!(refused.0, 403);
    assert_eq!(
        message(&refused),
        "configmaps is forbidden: User \"alice\" cannot impersonate-on:user-info:list resource \
         \"configmaps\" in API group \"\" in the namespace \"default\""
    );
    assert_eq!(refused.1["details"], json!({"kind": "configmaps"}));

    let on = json!([{"apiGroups": [""], "resources": ["configmaps"],
        "verbs": ["impersonate-on:user-info:list"]}]);
    allow(&plane, "on", on).await;
    let refused = ask(&plane, &alice, Method::GET, MAPS, &bob).await;
    assert_eq!(
        message(&refused),
        "users.authentication.k8s.io \"bob\" is forbidden: User \"alice\" cannot \
         impersonate:user-info resource \"users\" in API group \"authentication.k8s.io\" at the \
         cluster scope"
    );
    let whom = json!([{"apiGroups": ["authentication.k8s.io"], "resources": ["users"],
        "resourceNames": ["bob"], "verbs": ["impersonate:user-info"]}]);
    allow(&plane, "whom", whom).await;
    let refused = ask(&plane, &alice, Method::GET, MAPS, &bob).await;
    assert!(
        message(&refused).contains("User \"bob\" cannot list"),
        "{refused:?}"
    );
    let masters = [bob[0], ("Impersonate-Group", "system:masters")];
    let refused = ask(&plane, &alice, Method::GET, MAPS, &masters).await;
    assert!(
        message(&refused).ends_with("impersonating the system:masters group is not allowed"),
        "{refused:?}"
    );
    plane.stop().await;
}

#[tokio::test]
async fn verb_impersonate_alone_suffices() {
    let plane = TestControlPlane::builder().start().await;
    let alice = Identity::user("alice");
    let rules = json!([
        {"apiGroups": [""], "resources": ["users", "groups"], "verbs": ["impersonate"]},
        {"apiGroups": ["authentication.k8s.io"], "resources": ["userextras/scopes"],
            "resourceNames": ["x"], "verbs": ["impersonate"]},
    ]);
    allow(&plane, "old", rules).await;
    let headers = [
        ("Impersonate-User", "bob"),
        ("Impersonate-Group", "system:masters"),
        ("Impersonate-Extra-Scopes", "x"),
    ];
    assert_eq!(
        ask(&plane, &alice, Method::GET, MAPS, &headers).await.0,
        200
    );
    for (name, value) in [
        ("Impersonate-Uid", "1"),
        ("Impersonate-Extra-Scopes", "y"),
        ("Impersonate-Extra-Other", "x"),
    ] {
        let headers = [headers[0], (name, value)];
        let refused = ask(&plane, &alice, Method::GET, MAPS, &headers).await;
        assert_eq!(refused.0, 403, "{name}: {value}");
    }
    plane.stop().await;
}

#[tokio::test]
async fn service_account_may_impersonate_its_pods_node() {
    let plane = TestControlPlane::builder().start().await;
    let agent = Identity::service_account("kube-system", "agent")
        .extra("authentication.kubernetes.io/node-name", "n1");
    let rules = json!([
        {"apiGroups": ["authentication.k8s.io"], "resources": ["nodes"], "resourceNames": ["*"],
            "verbs": ["impersonate:associated-node"]},
        {"apiGroups": [""], "resources": ["configmaps"],
            "verbs": ["impersonate-on:associated-node:list"]},
    ]);
    let role = json!({"metadata": {"name": "agent"}, "rules": rules});
    let binding = json!({
        "metadata": {"name": "agent"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "agent"},
        "subjects": [{"kind": "ServiceAccount", "name": "agent", "namespace": "kube-system"}],
    });
    for (kind, body) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let path = format!("{RBAC}/{kind}");
        plane
            .server()
            .call_json(Method::POST, &path, "test", &body)
            .await;
    }
    let own = ask(
        &plane,
        &agent,
        Method::GET,
        MAPS,
        &[("Impersonate-User", "system:node:n1")],
    );
    let refused = own.await;
    assert!(
        message(&refused).contains("User \"system:node:n1\" cannot list"),
        "{refused:?}"
    );
    let other = ask(
        &plane,
        &agent,
        Method::GET,
        MAPS,
        &[("Impersonate-User", "system:node:n2")],
    );
    let refused = other.await;
    assert!(
        message(&refused).contains("impersonate-on:arbitrary-node:list"),
        "{refused:?}"
    );
    plane.stop().await;
}

#[tokio::test]
async fn groups_without_a_user_are_a_bad_request() {
    let plane = TestControlPlane::builder().start().await;
    let headers = [("Impersonate-Group", "g"), ("Impersonate-Extra-k", "v")];
    let refused = ask(&plane, &Identity::admin(), Method::GET, MAPS, &headers).await;
    assert_eq!(refused.0, 400);
    assert_eq!(
        message(&refused),
        "requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"g\"}, \
         Extra:map[string][]string{\"k\":[]string{\"v\"}}} without impersonating a user name"
    );
    plane.stop().await;
}
