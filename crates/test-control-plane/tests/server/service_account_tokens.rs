//! Service account tokens: creation, and invalidation with the objects they are bound to.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use kube_test_control_plane::auth::{Identity, Peer};
use kube_test_control_plane::{TestControlPlane, TestControlPlaneBuilder};
use serde_json::{Value, json};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

/// Returns a control plane with a service account, and the account's uid.
async fn with_account(builder: TestControlPlaneBuilder) -> (TestControlPlane, String) {
    let plane = builder.start().await;
    let body = json!({"metadata": {"name": "sa1"}});
    let account = post(&plane, ACCOUNTS, &body, 201).await;
    (
        plane,
        account["metadata"]["uid"].as_str().unwrap().to_owned(),
    )
}

async fn post(plane: &TestControlPlane, path: &str, body: &Value, code: u16) -> Value {
    let server = plane.server();
    let (found, answer) = server.call_json(Method::POST, path, "test", body).await;
    assert_eq!(found, code, "{answer}");
    answer
}

async fn delete(plane: &TestControlPlane, path: &str) {
    let options = json!({"gracePeriodSeconds": 0});
    let server = plane.server();
    let (code, answer) = server
        .call_json(Method::DELETE, path, "test", &options)
        .await;
    assert_eq!(code, 200, "{answer}");
}

async fn request(plane: &TestControlPlane, spec: Value) -> Value {
    let path = format!("{ACCOUNTS}/sa1/token");
    post(plane, &path, &json!({"spec": spec}), 201).await
}

async fn token(plane: &TestControlPlane, spec: Value) -> String {
    let answer = request(plane, spec).await;
    answer["status"]["token"].as_str().unwrap().to_owned()
}

/// Returns the user of a token, or the status code of its rejection.
async fn who(plane: &TestControlPlane, token: &str) -> Result<Value, u16> {
    let request = Request::post(WHO)
        .header("Authorization", format!("Bearer {token}"))
        .extension(Peer::default())
        .body(Full::new(Bytes::from_static(b"{}")))
        .unwrap();
    let reply = plane.server().serve(request).await.unwrap();
    if reply.status() != 201 {
        return Err(reply.status().as_u16());
    }
    let body = reply.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    Ok(review["status"]["userInfo"].clone())
}

#[tokio::test(start_paused = true)]
async fn token_authenticates_its_service_account() {
    let (plane, uid) = with_account(TestControlPlane::builder()).await;
    let answer = request(&plane, json!({"expirationSeconds": 3600})).await;
    let token = answer["status"]["token"].as_str().unwrap();
    let mut metadata = answer["metadata"].clone();
    metadata.as_object_mut().unwrap().remove("managedFields");
    assert_eq!(
        metadata,
        json!({"name": "sa1", "namespace": "default", "uid": uid,
            "creationTimestamp": "2026-01-01T00:00:00Z"})
    );
    assert_eq!(answer["kind"], "TokenRequest");
    assert_eq!(answer["apiVersion"], "authentication.k8s.io/v1");
    assert_eq!(
        answer["spec"],
        json!({"audiences": ["https://kubernetes.default.svc"], "expirationSeconds": 3600,
            "boundObjectRef": null})
    );
    assert_eq!(
        answer["status"],
        json!({"token": token, "expirationTimestamp": "2026-01-01T01:00:00Z"})
    );
    let claims = token.split('.').nth(1).unwrap();
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
    let id = claims["jti"].as_str().unwrap();
    assert_eq!(
        claims,
        json!({
            "aud": ["https://kubernetes.default.svc"],
            "exp": 1_767_229_200,
            "iat": 1_767_225_600,
            "iss": "https://kubernetes.default.svc",
            "jti": id,
            "kubernetes.io": {
                "namespace": "default",
                "serviceaccount": {"name": "sa1", "uid": uid},
            },
            "nbf": 1_767_225_600,
            "sub": "system:serviceaccount:default:sa1",
        })
    );
    assert_eq!(
        who(&plane, token).await.unwrap(),
        json!({
            "username": "system:serviceaccount:default:sa1",
            "uid": uid,
            "groups": ["system:serviceaccounts", "system:serviceaccounts:default",
                "system:authenticated"],
            "extra": {"authentication.kubernetes.io/credential-id": [format!("JTI={id}")]},
        })
    );
    let mut forged = token.to_owned();
    forged.pop();
    assert_eq!(who(&plane, &forged).await, Err(401));
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn token_expires() {
    let (plane, _) = with_account(TestControlPlane::builder()).await;
    let token = token(&plane, json!({"expirationSeconds": 600})).await;
    tokio::time::sleep(Duration::from_secs(659)).await;
    assert!(
        who(&plane, &token).await.is_ok(),
        "one minute of clock skew is tolerated"
    );
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(who(&plane, &token).await, Err(401));
    let review = post(&plane, REVIEWS, &json!({"spec": {"token": token}}), 201).await;
    assert_eq!(
        review["status"]["error"],
        "[invalid bearer token, service account token has expired]"
    );
    plane.stop().await;
}

#[tokio::test]
async fn token_ends_with_its_service_account() {
    let (plane, _) = with_account(TestControlPlane::builder()).await;
    let token = token(&plane, json!({})).await;
    let account = format!("{ACCOUNTS}/sa1");
    delete(&plane, &account).await;
    assert_eq!(who(&plane, &token).await, Err(401));
    post(&plane, ACCOUNTS, &json!({"metadata": {"name": "sa1"}}), 201).await;
    assert_eq!(
        who(&plane, &token).await,
        Err(401),
        "another account has the name"
    );
    plane.stop().await;
}

#[tokio::test]
async fn token_ends_with_its_bound_pod() {
    let (plane, _) = with_account(TestControlPlane::builder()).await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod = |name: &str, account: &str| {
        json!({"metadata": {"name": name}, "spec": {"serviceAccountName": account,
            "nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}})
    };
    let created = post(&plane, pods, &pod("p", "sa1"), 201).await;
    post(&plane, pods, &pod("q", "other"), 201).await;
    let uid = &created["metadata"]["uid"];
    let bound = json!({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}});
    let token = token(&plane, bound.clone()).await;
    let shown = who(&plane, &token).await.unwrap();
    let extra = &shown["extra"];
    assert_eq!(extra["authentication.kubernetes.io/pod-name"], json!(["p"]));
    assert_eq!(extra["authentication.kubernetes.io/pod-uid"], json!([uid]));
    assert_eq!(
        extra["authentication.kubernetes.io/node-name"],
        json!(["n1"])
    );

    let path = format!("{ACCOUNTS}/sa1/token");
    for (object, code, message) in [
        (
            json!({"kind": "Pod", "apiVersion": "v1", "name": "q"}),
            400,
            "different serviceaccount",
        ),
        (
            json!({"kind": "Pod", "apiVersion": "v1", "name": "r"}),
            404,
            "pods \"r\" not found",
        ),
        (
            json!({"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "x"}),
            409,
            "Operation cannot be fulfilled on Pod \"p\": the UID in the bound object reference (x)",
        ),
        (
            json!({"kind": "Cat", "apiVersion": "v1", "name": "p"}),
            400,
            "cannot bind token to",
        ),
    ] {
        let body = json!({"spec": {"boundObjectRef": object}});
        let answer = post(&plane, &path, &body, code).await;
        assert!(
            answer["message"].as_str().unwrap().contains(message),
            "{answer}"
        );
    }
    delete(&plane, &format!("{pods}/p")).await;
    assert_eq!(who(&plane, &token).await, Err(401));
    plane.stop().await;
}

#[tokio::test]
async fn token_is_valid_only_for_its_audiences() {
    let (plane, _) = with_account(TestControlPlane::builder()).await;
    let token = token(&plane, json!({"audiences": ["vault", "other"]})).await;
    assert_eq!(who(&plane, &token).await, Err(401));
    let spec = json!({"token": token, "audiences": ["vault"]});
    let review = post(&plane, REVIEWS, &json!({"spec": spec}), 201).await;
    assert_eq!(review["status"]["authenticated"], true);
    assert_eq!(review["status"]["audiences"], json!(["vault"]));
    let review = post(&plane, REVIEWS, &json!({"spec": {"token": token}}), 201).await;
    assert_eq!(
        review["status"],
        json!({"user": {}, "error": "[invalid bearer token, token audiences [\"vault\" \"other\"] \
            is invalid for the target audiences [\"https://kubernetes.default.svc\"]]"})
    );
    plane.stop().await;
}

#[tokio::test]
async fn token_request_is_validated() {
    let (plane, _) = with_account(TestControlPlane::builder()).await;
    let path = format!("{ACCOUNTS}/sa1/token");
    for (body, message) in [
        (
            json!({"spec": {"expirationSeconds": 60}}),
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid \
             value: 60: may not specify a duration less than 10 minutes",
        ),
        (
            json!({"metadata": {"name": "x"}}),
            "TokenRequest.authentication.k8s.io \"sa1\" is invalid: metadata.name: Invalid value: \
             \"x\": must match the service account name if specified",
        ),
    ] {
        let answer = post(&plane, &path, &body, 422).await;
        assert_eq!(answer["message"], message);
    }
    let missing = post(&plane, &format!("{ACCOUNTS}/no/token"), &json!({}), 404).await;
    assert_eq!(missing["message"], "serviceaccounts \"no\" not found");
    plane.stop().await;
}

#[tokio::test]
async fn tokens_can_be_validated_externally() {
    let (plane, _) = with_account(TestControlPlane::builder()).await;
    let token = plane.service_account_token("default", "sa1").await.unwrap();
    let missing = plane.service_account_token("default", "no").await;
    assert_eq!(
        missing.unwrap_err().to_string(),
        "requesting a token of the service account default/no: serviceaccounts \"no\" not found"
    );
    let path = "/.well-known/openid-configuration";
    let server = plane.server();
    let account = Identity::service_account("default", "sa1");
    for user in [&account, &Identity::admin()] {
        let (code, found) = server
            .call_json_as(user, Method::GET, path, "test", &Value::Null)
            .await;
        assert_eq!(code, 200);
        assert_eq!(found["issuer"], "https://kubernetes.default.svc");
        let uri = found["jwks_uri"].as_str().unwrap();
        assert!(uri.ends_with("/openid/v1/jwks"), "{uri}");
    }
    let (_, keys) = server
        .call_json(Method::GET, "/openid/v1/jwks", "test", &Value::Null)
        .await;
    let header = URL_SAFE_NO_PAD.decode(token.split('.').next().unwrap());
    let header: Value = serde_json::from_slice(&header.unwrap()).unwrap();
    assert_eq!(
        header,
        json!({"alg": "ES256", "kid": keys["keys"][0]["kid"]})
    );
    let (code, _) = server
        .call_json_as(
            &Identity::user("a"),
            Method::GET,
            path,
            "test",
            &Value::Null,
        )
        .await;
    assert_eq!(code, 403);
    plane.stop().await;
}
