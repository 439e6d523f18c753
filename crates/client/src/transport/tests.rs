//! Tests of the connections against a server on a loopback port.

use std::io::Write as _;

use http::Uri;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::*;

/// Answers 401 to all but one token, until dropped. Returns the address.
async fn server_that_accepts(token: &'static str) -> (Uri, JoinSet<()>) {
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

async fn ask(transport: &Transport) -> u16 {
    let request = Request::get("/").body(Body::empty()).unwrap();
    transport.send(request).await.unwrap().status().as_u16()
}

#[tokio::test]
async fn a_token_that_is_refused_is_read_again() {
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

#[tokio::test]
async fn a_plugin_whose_token_is_refused_is_asked_again() {
    let (uri, _server) = server_that_accepts("two").await;
    let folder = tempfile::tempdir().unwrap();
    let plugin = folder.path().join("credentials.json");
    let credentials = |token: &str| {
        let text = format!(
            r#"{{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{{"token":"{token}"}}}}"#
        );
        std::fs::write(&plugin, text).unwrap();
    };
    credentials("one");
    let mut config = Config::new(uri);
    config.auth_info.exec = Some(
        serde_json::from_value(serde_json::json!({
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "cat",
            "args": [plugin],
            "interactiveMode": "Never",
        }))
        .unwrap(),
    );
    let transport = Transport::new(config, None).unwrap();
    credentials("two");
    assert_eq!(ask(&transport).await, 401);
    assert_eq!(ask(&transport).await, 401, "not asked again at once");
    tokio::time::pause();
    tokio::time::advance(PLUGIN_INTERVAL_MIN).await;
    tokio::time::resume();
    assert_eq!(ask(&transport).await, 200);
}

#[tokio::test]
async fn a_token_file_that_is_missing_and_a_proxy_of_no_kind_are_told() {
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
