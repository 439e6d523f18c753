//! Reviews of users, tokens and access.

use http::Method;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::auth::{Authorization, Identity, Tokens};
use serde_json::{Value, json};

const AUTHORIZATION: &str = "/apis/authorization.k8s.io/v1";
const AUTHENTICATION: &str = "/apis/authentication.k8s.io/v1";

async fn ask(plane: &TestControlPlane, user: &Identity, path: &str, body: Value) -> (u16, Value) {
    let server = plane.server();
    server
        .call_json_as(user, Method::POST, path, "test", &body)
        .await
}

async fn bind_view(plane: &TestControlPlane, user: &str) {
    let binding = json!({
        "metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    let path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
    let (code, answer) = plane
        .server()
        .call_json(Method::POST, path, "test", &binding)
        .await;
    assert_eq!(code, 201, "{answer}");
}

fn list_pods(namespace: &str) -> Value {
    json!({"namespace": namespace, "verb": "list", "resource": "pods"})
}

#[tokio::test]
async fn self_review_returns_decision_and_reason() {
    let plane = TestControlPlane::builder().start().await;
    bind_view(&plane, "alice").await;
    let alice = Identity::user("alice");
    let path = &format!("{AUTHORIZATION}/selfsubjectaccessreviews");
    let before = plane.server().store().revision();
    for (namespace, status) in [
        (
            "default",
            json!({"allowed": true, "reason": "RBAC: allowed by RoleBinding \"b/default\" of \
                ClusterRole \"view\" to User \"alice\""}),
        ),
        ("kube-system", json!({"allowed": false})),
    ] {
        let spec = json!({"resourceAttributes": list_pods(namespace)});
        let (code, review) = ask(&plane, &alice, path, json!({"spec": spec})).await;
        assert_eq!(code, 201);
        let found = review["metadata"].as_object().unwrap();
        assert!(
            found.keys().all(|member| member == "managedFields"),
            "{review}"
        );
        assert_eq!(review["kind"], "SelfSubjectAccessReview");
        assert_eq!(review["apiVersion"], "authorization.k8s.io/v1");
        assert_eq!(review["spec"], spec);
        assert_eq!(review["status"], status);
    }
    let spec = json!({"nonResourceAttributes": {"path": "/version", "verb": "get"}});
    let (_, review) = ask(&plane, &alice, path, json!({"spec": spec})).await;
    assert_eq!(
        review["status"]["reason"],
        "RBAC: allowed by ClusterRoleBinding \"system:discovery\" of ClusterRole \
         \"system:discovery\" to Group \"system:authenticated\""
    );
    assert_eq!(
        plane.server().store().revision(),
        before,
        "nothing is stored"
    );
    plane.stop().await;
}

#[tokio::test]
async fn review_of_others_needs_a_permission() {
    let plane = TestControlPlane::builder().start().await;
    bind_view(&plane, "alice").await;
    let (admin, alice) = (Identity::admin(), Identity::user("alice"));
    let all = format!("{AUTHORIZATION}/subjectaccessreviews");
    let local = format!("{AUTHORIZATION}/namespaces/default/localsubjectaccessreviews");
    let spec = json!({"resourceAttributes": list_pods("default"), "user": "alice"});
    for path in [&all, &local] {
        assert_eq!(
            ask(&plane, &alice, path, json!({"spec": spec})).await.0,
            403
        );
        let (code, review) = ask(&plane, &admin, path, json!({"spec": spec})).await;
        assert_eq!(code, 201, "{review}");
        assert_eq!(review["status"]["allowed"], true);
    }
    let spec = json!({"resourceAttributes": list_pods("default"), "groups": ["system:masters"]});
    let (_, review) = ask(&plane, &admin, &all, json!({"spec": spec})).await;
    assert_eq!(review["status"], json!({"allowed": true}));
    plane.stop().await;
}

#[tokio::test]
async fn review_needs_exactly_one_subject() {
    let plane = TestControlPlane::builder().start().await;
    let admin = Identity::admin();
    let own = format!("{AUTHORIZATION}/selfsubjectaccessreviews");
    let all = format!("{AUTHORIZATION}/subjectaccessreviews");
    let local = format!("{AUTHORIZATION}/namespaces/default/localsubjectaccessreviews");
    let pods = list_pods("default");
    for (path, body, code, message) in [
        (
            &own,
            json!({"spec": {}}),
            422,
            "spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes \
             or resourceAttributes must be specified",
        ),
        (
            &own,
            json!({"spec": {"resourceAttributes": pods, "nonResourceAttributes": {"path": "/"}}}),
            422,
            "spec.nonResourceAttributes: Invalid value: {\"path\":\"/\"}: cannot be specified in \
             combination with resourceAttributes",
        ),
        (
            &own,
            json!({"metadata": {"name": "x"}, "spec": {"resourceAttributes": pods}}),
            422,
            "\"name\":\"x\"}: must be empty",
        ),
        (
            &all,
            json!({"spec": {"resourceAttributes": pods}}),
            422,
            "spec.user: Invalid value: \"\": at least one of user or group must be specified",
        ),
        (
            &local,
            json!({"spec": {"resourceAttributes": list_pods("other"), "user": "a"}}),
            422,
            "spec.resourceAttributes.namespace: Invalid value: \"other\": must match \
             metadata.namespace",
        ),
        (
            &local,
            json!({"metadata": {"namespace": "other"}, "spec": {"user": "a"}}),
            400,
            "the namespace of the provided object does not match the namespace sent on the \
             request",
        ),
        (
            &format!("{AUTHORIZATION}/selfsubjectrulesreviews"),
            json!({"spec": {}}),
            400,
            "no namespace on request",
        ),
        (
            &format!("{AUTHENTICATION}/tokenreviews"),
            json!({"spec": {}}),
            400,
            "token is required for TokenReview in authentication",
        ),
        (
            &own,
            json!({"spec": {"resourceAttributes": 1}}),
            400,
            "cannot be handled as a",
        ),
    ] {
        let (found, answer) = ask(&plane, &admin, path, body).await;
        let text = answer["message"].as_str().unwrap();
        assert_eq!(found, code, "{text}");
        assert!(text.contains(message), "{text}");
    }
    for method in [Method::GET, Method::DELETE] {
        let server = plane.server();
        let (code, _) = server.call_json(method, &own, "test", &Value::Null).await;
        assert_eq!(code, 405);
    }
    plane.stop().await;
}

#[tokio::test]
async fn rules_review_lists_the_rules_of_roles() {
    let plane = TestControlPlane::builder().start().await;
    let path = &format!("{AUTHORIZATION}/selfsubjectrulesreviews");
    let body = json!({"spec": {"namespace": "default"}});
    let (code, review) = ask(&plane, &Identity::user("alice"), path, body.clone()).await;
    assert_eq!(code, 201);
    assert_eq!(
        review,
        json!({
            "kind": "SelfSubjectRulesReview",
            "apiVersion": "authorization.k8s.io/v1",
            "metadata": {},
            "spec": {},
            "status": {
                "resourceRules": [
                    {
                        "verbs": ["create"],
                        "apiGroups": ["authorization.k8s.io"],
                        "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
                    },
                    {
                        "verbs": ["create"],
                        "apiGroups": ["authentication.k8s.io"],
                        "resources": ["selfsubjectreviews"],
                    },
                ],
                "nonResourceRules": [
                    {"verbs": ["get"], "nonResourceURLs": ["/api", "/api/*", "/apis", "/apis/*",
                        "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz", "/version",
                        "/version/"]},
                    {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/livez", "/readyz",
                        "/version", "/version/"]},
                ],
                "incomplete": false,
            },
        })
    );
    let (_, review) = ask(&plane, &Identity::admin(), path, body.clone()).await;
    let all = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
    assert_eq!(review["status"]["resourceRules"][0], all);
    plane.stop().await;

    let plane = TestControlPlane::builder()
        .authorization("Node,AlwaysAllow".parse::<Authorization>().unwrap())
        .start()
        .await;
    let (_, review) = ask(&plane, &Identity::node("n"), path, body).await;
    assert_eq!(review["status"]["resourceRules"], json!([all]));
    assert_eq!(review["status"]["incomplete"], true);
    plane.stop().await;
}

#[tokio::test]
async fn self_subject_review_returns_the_user() {
    let plane = TestControlPlane::builder().start().await;
    let alice = Identity::user("alice").uid("alice-uid").group("devs");
    let path = format!("{AUTHENTICATION}/selfsubjectreviews");
    let (code, review) = ask(&plane, &alice, &path, json!({})).await;
    assert_eq!(code, 201);
    assert_eq!(
        review,
        json!({
            "kind": "SelfSubjectReview",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"},
            "status": {"userInfo": {"username": "alice", "uid": "alice-uid",
                "groups": ["devs", "system:authenticated"]}},
        })
    );
    plane.stop().await;
}

#[tokio::test]
async fn token_review_returns_the_user_or_an_error() {
    let mut tokens = Tokens::default();
    tokens.insert(
        "alicetoken",
        Identity::user("alice").uid("alice-uid").group("devs"),
    );
    let plane = TestControlPlane::builder().tokens(tokens).start().await;
    let path = &format!("{AUTHENTICATION}/tokenreviews");
    for (spec, status) in [
        (
            json!({"token": "alicetoken"}),
            json!({
                "authenticated": true,
                "user": {"username": "alice", "uid": "alice-uid",
                    "groups": ["devs", "system:authenticated"]},
                "audiences": ["https://kubernetes.default.svc"],
            }),
        ),
        (
            json!({"token": "wrong"}),
            json!({"user": {}, "error": "invalid bearer token"}),
        ),
        (
            json!({"token": "alicetoken", "audiences": ["other"]}),
            json!({"user": {}, "error": "invalid bearer token"}),
        ),
    ] {
        let (code, review) = ask(&plane, &Identity::admin(), path, json!({"spec": spec})).await;
        assert_eq!(code, 201, "{review}");
        assert_eq!(review["spec"], spec);
        assert_eq!(review["status"], status);
    }
    plane.stop().await;
}
