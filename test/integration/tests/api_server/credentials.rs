//! Tests of certificates and tokens that change while connections are open, over real connections.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::auth::{Identity, Tokens};
use serde_json::{Value, json};
use statefulset_client::config::{ClientOptions, Source, load};
use statefulset_client::resource::Resource;
use statefulset_client::rest::AnswerBody;
use statefulset_client::transport::Transport;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::BoxError;

/// Reviews that return the requesting user.
const SELF_SUBJECT_REVIEWS: Resource = Resource {
    group: "authentication.k8s.io",
    version: "v1",
    plural: "selfsubjectreviews",
    kind: "SelfSubjectReview",
};

/// A port that forwards to one of several servers, as when a server gets a new certificate.
struct Forwarder {
    address: SocketAddr,
    server: watch::Sender<SocketAddr>,
    _forwarding: JoinSet<()>,
}

impl Forwarder {
    async fn to(plane: &TestControlPlane) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (server, mut target) = watch::channel(address_of(plane));
        let mut forwarding = JoinSet::new();
        forwarding.spawn(async move {
            let mut open = JoinSet::new();
            loop {
                tokio::select! {
                    accepted = listener.accept() => {
                        let server = *target.borrow();
                        open.spawn(forward(accepted.unwrap().0, server));
                    }
                    changed = target.changed() => {
                        changed.unwrap();
                        open.shutdown().await;
                    }
                }
            }
        });
        Self {
            address,
            server,
            _forwarding: forwarding,
        }
    }

    /// Breaks open connections, and forwards new ones to another server.
    fn switch_to(&self, plane: &TestControlPlane) {
        self.server.send_replace(address_of(plane));
    }
}

async fn forward(mut client: TcpStream, server: SocketAddr) {
    let mut server = TcpStream::connect(server).await.unwrap();
    // Either end may close the connection.
    let _ = copy_bidirectional(&mut client, &mut server).await;
}

fn address_of(plane: &TestControlPlane) -> SocketAddr {
    let url = plane.url().unwrap();
    url.strip_prefix("https://").unwrap().parse().unwrap()
}

async fn plane() -> TestControlPlane {
    let address = "127.0.0.1:0".parse().unwrap();
    TestControlPlane::builder().listen(address).start().await
}

/// Moves the base64 data of a kubeconfig field into a file next to it.
fn to_file(folder: &Path, owner: &mut Value, member: &str) {
    let data = owner
        .as_object_mut()
        .unwrap()
        .remove(&format!("{member}-data"));
    let pem = STANDARD.decode(data.unwrap().as_str().unwrap()).unwrap();
    std::fs::write(folder.join(member), pem).unwrap();
    owner[member] = json!(member);
}

/// Kubeconfig of a user, with certificates in files.
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
    let source = Source::default().kubeconfig(folder.join("kubeconfig"));
    Transport::new(load(&source).await.unwrap(), None).unwrap()
}

/// Requests the user's own identity.
async fn ask_who(transport: &Transport) -> Result<Response<AnswerBody>, BoxError> {
    let review =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": SELF_SUBJECT_REVIEWS.kind});
    let request = Request::post(SELF_SUBJECT_REVIEWS.collection_path(""))
        .header("content-type", "application/json")
        .body(Body::from(review.to_string().into_bytes()));
    transport.send(request.unwrap()).await
}

/// Returns the protocol of the response, and the user's name according to the server.
async fn who(transport: &Transport) -> (http::Version, String) {
    let response = ask_who(transport).await.unwrap();
    let version = response.version();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    let name = review["status"]["userInfo"]["username"].as_str();
    (version, name.unwrap_or_default().to_owned())
}

/// Advances time for the client alone.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[tokio::test]
async fn changed_client_certificate_applies_without_restart() {
    let plane = plane().await;
    let folder = tempfile::tempdir().unwrap();
    kubeconfig(folder.path(), &plane, "jane");
    let transport = connect(folder.path()).await;
    assert_eq!(
        who(&transport).await,
        (http::Version::HTTP_2, "jane".to_owned())
    );

    // The two files change one after the other, and don't match in between.
    let key = std::fs::read(folder.path().join("client-key")).unwrap();
    kubeconfig(folder.path(), &plane, "joan");
    let new_key = std::fs::read(folder.path().join("client-key")).unwrap();
    std::fs::write(folder.path().join("client-key"), key).unwrap();
    assert_eq!(who(&transport).await.1, "jane", "not checked this soon");
    pass(Duration::from_secs(61)).await;
    assert_eq!(
        who(&transport).await.1,
        "jane",
        "half a change is not applied"
    );
    std::fs::write(folder.path().join("client-key"), new_key).unwrap();
    pass(Duration::from_secs(61)).await;
    assert_eq!(
        who(&transport).await,
        (http::Version::HTTP_2, "joan".to_owned())
    );
}

#[tokio::test]
async fn changed_server_authority_applies_without_restart() {
    let mut tokens = Tokens::default();
    tokens.insert("token-of-jane", Identity::user("jane"));
    let server = async || {
        let plane = TestControlPlane::builder().tokens(tokens.clone());
        plane.listen("127.0.0.1:0".parse().unwrap()).start().await
    };
    let (old, new) = (server().await, server().await);
    let forwarder = Forwarder::to(&old).await;
    let folder = tempfile::tempdir().unwrap();
    // Writes a server's authority to the same file.
    let trust = |plane: &TestControlPlane| {
        let mut kubeconfig = plane
            .kubeconfig_with_token("jane", "token-of-jane")
            .unwrap();
        let cluster = &mut kubeconfig["clusters"][0]["cluster"];
        to_file(folder.path(), cluster, "certificate-authority");
        cluster["server"] = json!(format!("https://{}", forwarder.address));
        kubeconfig
    };
    let kubeconfig = trust(&old).to_string();
    std::fs::write(folder.path().join("kubeconfig"), kubeconfig).unwrap();
    let transport = connect(folder.path()).await;
    assert_eq!(who(&transport).await.1, "jane");

    forwarder.switch_to(&new);
    // The first request may still use the broken connection.
    let first = ask_who(&transport).await.unwrap_err();
    let error = ask_who(&transport).await.err().unwrap_or(first);
    let text = format!("{error:?}");
    assert!(text.contains("InvalidCertificate"), "{text}");
    trust(&new);
    pass(Duration::from_secs(2)).await;
    assert_eq!(
        who(&transport).await,
        (http::Version::HTTP_2, "jane".to_owned())
    );
}

#[tokio::test]
async fn rejected_token_is_reread_immediately() {
    let plane = plane().await;
    let folder = tempfile::tempdir().unwrap();
    let write = |token: &str| std::fs::write(folder.path().join("token"), token).unwrap();
    write("a token of yesterday");
    let mut kubeconfig = plane.kubeconfig().unwrap();
    kubeconfig["users"][0]["user"] = json!({"tokenFile": "token"});
    std::fs::write(folder.path().join("kubeconfig"), kubeconfig.to_string()).unwrap();
    let source = Source::default().kubeconfig(folder.path().join("kubeconfig"));
    let config = load(&source).await.unwrap();
    let client = statefulset_client::config::client(&config, &ClientOptions::default()).unwrap();
    let ask = || client.create(&SELF_SUBJECT_REVIEWS, "", json!({}).to_string());
    assert!(ask().await.unwrap_err().is_unauthorized());
    write(&plane.issue_token(&Identity::user("jane")));
    let answer = ask().await.unwrap();
    assert!(answer.contains(r#""username":"jane""#), "{answer}");
}
