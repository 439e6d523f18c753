//! Tests of the connections against a server on a loopback port.

use std::io::Write as _;

use http::Uri;
use hyper_util::rt::TokioExecutor;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tower::service_fn;

use super::*;
use crate::clock::FakeClock;
use crate::error::Error;
use crate::resource::PODS;
use crate::rest::RestClient;

/// Starts a server that responds with 401 to all but one token, until dropped. Returns its address.
pub(super) async fn server_that_accepts(token: &'static str) -> (Uri, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}", listener.local_addr().unwrap());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            connections.spawn(serve(stream, token));
        }
    });
    (uri.parse().unwrap(), tasks)
}

async fn serve(stream: TcpStream, token: &'static str) {
    let mut stream = BufReader::new(stream);
    let mut accepted = false;
    let mut line = String::new();
    while stream.read_line(&mut line).await.is_ok_and(|read| read > 0) {
        let header = line.trim().to_owned();
        line.clear();
        if header == format!("authorization: Bearer {token}") {
            accepted = true;
        }
        if header.is_empty() {
            let code = if std::mem::take(&mut accepted) {
                200
            } else {
                401
            };
            let answer = format!("HTTP/1.1 {code} X\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    }
}

/// Advances only the client's time.
pub(super) async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

pub(super) async fn ask(transport: &Transport) -> u16 {
    let request = Request::get("/").body(Body::empty()).unwrap();
    transport.send(request).await.unwrap().status().as_u16()
}

#[tokio::test]
async fn rejected_token_is_reread_from_file() {
    let (uri, _server) = server_that_accepts("two").await;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"one").unwrap();
    let mut config = Config::new(uri);
    config.auth_info.token_file = Some(file.path().to_str().unwrap().to_owned());
    config.auth_info.token = Some("overruled".into());
    let transport = Transport::new(config, None).unwrap();
    assert_eq!(ask(&transport).await, 401);
    std::fs::write(file.path(), "two\n").unwrap();
    assert_eq!(ask(&transport).await, 200);
}

#[test]
fn certificate_alerts_are_rejections() {
    let alert = |alert| -> BoxError { rustls::Error::AlertReceived(alert).into() };
    let wrapped = std::io::Error::other(alert(AlertDescription::CertificateExpired));
    assert!(is_certificate_refused(&wrapped));
    assert!(is_certificate_refused(
        alert(AlertDescription::UnknownCA).as_ref()
    ));
    for other in [
        alert(AlertDescription::HandshakeFailure),
        std::io::Error::from(std::io::ErrorKind::ConnectionRefused).into(),
    ] {
        assert!(!is_certificate_refused(other.as_ref()), "{other}");
    }
}

#[tokio::test]
async fn only_broken_connections_may_be_rejections() {
    let client = legacy::Client::builder(TokioExecutor::new()).build_http::<Body>();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server: Uri = format!("http://{}/", listener.local_addr().unwrap())
        .parse()
        .unwrap();
    let hang_up = async { drop(listener.accept().await.unwrap()) };
    let get = || {
        let request = Request::get(server.clone()).body(Body::empty()).unwrap();
        client.request(request)
    };
    let (answer, ()) = tokio::join!(get(), hang_up);
    assert!(may_be_refused(&answer.unwrap_err().into()));
    drop(listener);
    let answer = get().await;
    assert!(!may_be_refused(&answer.unwrap_err().into()));
}

/// Returns a service account's token from a server that issues these tokens in order, and then
/// none.
fn account_token(tokens: &'static [&'static str]) -> ServiceAccountToken {
    let tokens = Mutex::new(tokens.iter());
    let service = service_fn(move |request: Request<Body>| {
        let is_asked_for = request.method() == http::Method::POST;
        let token = is_asked_for
            .then(|| tokens.lock().unwrap().next())
            .flatten();
        let code = if is_asked_for && token.is_none() {
            500
        } else {
            200
        };
        let token = token.copied().unwrap_or_default();
        let text = format!(
            r#"{{"status":{{"token":"{token}","expirationTimestamp":"1970-01-01T01:00:00Z"}}}}"#
        );
        let response = Response::builder().status(code);
        let response = response.body(Body::from(text.into_bytes()));
        std::future::ready(response.map_err(BoxError::from))
    });
    let name = ServiceAccountName {
        namespace: "ns".to_owned(),
        name: "web".to_owned(),
    };
    let client = RestClient::new(kube::Client::new(service, "default"));
    ServiceAccountToken::new(client, name, Arc::new(FakeClock::default()))
}

#[tokio::test]
async fn rejected_service_account_token_is_replaced() {
    let (uri, _server) = server_that_accepts("two").await;
    let mut config = Config::new(uri);
    config.auth_info.token_file = Some("/nonexistent/token".to_owned());
    config.auth_info.token = Some("two".into());
    config.auth_info.client_certificate = Some("/nonexistent/certificate".to_owned());
    let token = account_token(&["one", "two"]);
    let transport = Transport::of_service_account(config, None, token).unwrap();
    assert_eq!(ask(&transport).await, 401);
    assert_eq!(ask(&transport).await, 200);
    assert_eq!(ask(&transport).await, 200, "kept");
}

#[tokio::test(start_paused = true)]
async fn request_without_token_is_not_sent() {
    let config = Config::new(Uri::from_static("http://127.0.0.1:1"));
    let transport = Transport::of_service_account(config, None, account_token(&[])).unwrap();
    let service = service_fn(move |request| {
        let transport = transport.clone();
        async move { transport.send(request).await }
    });
    let client = RestClient::new(kube::Client::new(service, "default"));
    let error = client.get(&PODS, "ns", "web-0").await.unwrap_err();
    assert!(matches!(error, Error::NoCredentials { .. }), "{error:?}");
    assert!(error.is_server_wide() && !error.is_transport());
    let text = error.to_string();
    let start = "GET /api/v1/namespaces/ns/pods/web-0: cannot get a token of the service account \
                 ns/web: ";
    assert!(text.starts_with(start), "{text}");
}

#[tokio::test]
async fn missing_token_file_and_unknown_proxy_are_rejected() {
    let mut config = Config::new(Uri::from_static("http://127.0.0.1:1"));
    config.auth_info.token_file = Some("/nonexistent/token".to_owned());
    let error = Transport::new(config, None).err().unwrap().to_string();
    assert!(
        error.starts_with("cannot read the token file /nonexistent/token: "),
        "{error}"
    );

    let mut config = Config::new(Uri::from_static("https://127.0.0.1:1"));
    config.proxy_url = Some(Uri::from_static("ftp://u:secret@proxy.test"));
    let error = Transport::new(config, None).err().unwrap().to_string();
    assert_eq!(
        error,
        "proxy ftp://proxy.test is neither http, https nor socks5"
    );
}
