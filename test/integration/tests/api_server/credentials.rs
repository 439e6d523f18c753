//! Certificates and tokens that change while connections are open, over real connections.

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Request;
use kube::client::Body;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::auth::Identity;
use serde_json::{Value, json};
use statefulset_client::config::{ClientOptions, Source, load};
use statefulset_client::resource::Resource;
use statefulset_client::transport::Transport;

/// Answers who asks.
const SELF_SUBJECT_REVIEWS: Resource = Resource {
    group: "authentication.k8s.io",
    version: "v1",
    plural: "selfsubjectreviews",
    kind: "SelfSubjectReview",
};

async fn plane() -> TestControlPlane {
    let address = "127.0.0.1:0".parse().unwrap();
    TestControlPlane::builder().listen(address).start().await
}

/// Moves what base64 data a member of a kubeconfig holds into a file beside it.
fn to_file(folder: &Path, owner: &mut Value, member: &str) {
    let data = owner
        .as_object_mut()
        .unwrap()
        .remove(&format!("{member}-data"));
    let pem = STANDARD.decode(data.unwrap().as_str().unwrap()).unwrap();
    std::fs::write(folder.join(member), pem).unwrap();
    owner[member] = json!(member);
}

/// A kubeconfig of a user, whose certificates are files.
fn kubeconfig(folder: &Path, plane: &TestControlPlane, user: &str) {
    let mut kubeconfig = plane.kubeconfig_for(&Identity::user(user)).unwrap();
    to_file(
        folder,
        &mut kubeconfig["clusters"][0]["cluster"],
        "certificate-authority",
    );
    to_file(
        folder,
        &mut kubeconfig["users"][0]["user"],
        "client-certificate",
    );
    to_file(folder, &mut kubeconfig["users"][0]["user"], "client-key");
    std::fs::write(folder.join("kubeconfig"), kubeconfig.to_string()).unwrap();
}

async fn connect(folder: &Path) -> Transport {
    let source = Source {
        kubeconfig: Some(folder.join("kubeconfig")),
        ..Source::default()
    };
    Transport::new(load(&source).await.unwrap(), None).unwrap()
}

/// The protocol of the answer, and who the server says that we are.
async fn who(transport: &Transport) -> (http::Version, String) {
    let review =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": SELF_SUBJECT_REVIEWS.kind});
    let request = Request::post(SELF_SUBJECT_REVIEWS.collection_path(""))
        .header("content-type", "application/json")
        .body(Body::from(review.to_string().into_bytes()));
    let response = transport.send(request.unwrap()).await.unwrap();
    let version = response.version();
    let body = response.into_body().collect_bytes().await.unwrap();
    let review: Value = serde_json::from_slice(&body).unwrap();
    let name = review["status"]["userInfo"]["username"].as_str();
    (version, name.unwrap_or_default().to_owned())
}

/// Lets time pass for the client alone.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[tokio::test]
async fn a_client_certificate_that_changes_is_used_without_a_restart() {
    let plane = plane().await;
    let folder = tempfile::tempdir().unwrap();
    kubeconfig(folder.path(), &plane, "jane");
    let transport = connect(folder.path()).await;
    assert_eq!(
        who(&transport).await,
        (http::Version::HTTP_2, "jane".to_owned())
    );

    // The two files change one after the other, and don't fit in between.
    let key = std::fs::read(folder.path().join("client-key")).unwrap();
    kubeconfig(folder.path(), &plane, "joan");
    let new_key = std::fs::read(folder.path().join("client-key")).unwrap();
    std::fs::write(folder.path().join("client-key"), key).unwrap();
    assert_eq!(who(&transport).await.1, "jane", "not looked at so soon");
    pass(Duration::from_secs(61)).await;
    assert_eq!(
        who(&transport).await.1,
        "jane",
        "half a change is of no use"
    );
    std::fs::write(folder.path().join("client-key"), new_key).unwrap();
    pass(Duration::from_secs(61)).await;
    assert_eq!(
        who(&transport).await,
        (http::Version::HTTP_2, "joan".to_owned())
    );
}

#[tokio::test]
async fn a_token_that_the_server_no_longer_knows_is_read_again_at_once() {
    let plane = plane().await;
    let folder = tempfile::tempdir().unwrap();
    let write = |token: &str| std::fs::write(folder.path().join("token"), token).unwrap();
    write("a token of yesterday");
    let mut kubeconfig = plane.kubeconfig().unwrap();
    kubeconfig["users"][0]["user"] = json!({"tokenFile": "token"});
    std::fs::write(folder.path().join("kubeconfig"), kubeconfig.to_string()).unwrap();
    let source = Source {
        kubeconfig: Some(folder.path().join("kubeconfig")),
        ..Source::default()
    };
    let config = load(&source).await.unwrap();
    let client = statefulset_client::config::client(&config, &ClientOptions::default()).unwrap();
    let ask = || client.create(&SELF_SUBJECT_REVIEWS, "", json!({}).to_string());
    assert!(ask().await.unwrap_err().is_unauthorized());
    write(&plane.issue_token(&Identity::user("jane")));
    let answer = ask().await.unwrap();
    assert!(answer.contains(r#""username":"jane""#), "{answer}");
}
