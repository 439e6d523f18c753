//! Tests of configurations: each mistake gives one line that says what to do.

use std::io::Write as _;

use tempfile::NamedTempFile;

use super::*;
use crate::rest::WatchOptions;

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn kubeconfig(server: &str) -> String {
    format!(
        "apiVersion: v1
kind: Config
current-context: c
contexts: [{{name: c, context: {{cluster: k, user: u}}}}]
clusters: [{{name: k, cluster: {{server: {server:?}}}}}]
users: [{{name: u, user: {{token: t}}}}]
"
    )
}

async fn load_file(text: &str, master: Option<&str>) -> Result<Config, ConfigError> {
    let file = file(text);
    let kubeconfig = Some(file.path().to_owned());
    load(&Source {
        kubeconfig,
        master: master.map(str::to_owned),
    })
    .await
}

#[tokio::test]
async fn a_kubeconfig_names_the_server() {
    let config = load_file(&kubeconfig("https://example.test:6443"), None)
        .await
        .unwrap();
    assert_eq!(config.cluster_url, "https://example.test:6443/");
    assert!(!config.default_retry);
}

#[tokio::test]
async fn the_master_flag_wins_over_the_file() {
    let text = kubeconfig("https://example.test:6443");
    let config = load_file(&text, Some("https://other.test")).await.unwrap();
    assert_eq!(config.cluster_url, "https://other.test/");
    let source = Source {
        kubeconfig: None,
        master: Some("127.0.0.1:8080".to_owned()),
    };
    let config = load(&source).await.unwrap();
    assert_eq!(config.cluster_url, "http://127.0.0.1:8080/");
}

#[tokio::test]
async fn mistakes_are_told_in_one_line() {
    let missing = Source {
        kubeconfig: Some("/nonexistent/config".into()),
        master: None,
    };
    let text = load(&missing).await.unwrap_err().to_string();
    assert!(
        text.starts_with("cannot read the kubeconfig /nonexistent/config: "),
        "{text}"
    );
    assert!(text.ends_with("; check --kubeconfig"), "{text}");

    for content in [
        "{{{ not yaml",
        "apiVersion: v1\nkind: Config\n",
        &kubeconfig("ht tp://x"),
    ] {
        let text = load_file(content, None).await.unwrap_err().to_string();
        assert!(text.starts_with("cannot use the kubeconfig "), "{text}");
        assert!(!text.contains('\n'), "{text}");
    }

    let source = Source {
        kubeconfig: None,
        master: Some("ht tp://x".to_owned()),
    };
    let text = load(&source).await.unwrap_err().to_string();
    assert!(
        text.starts_with("--master \"ht tp://x\" is not a URL: "),
        "{text}"
    );
}

#[tokio::test]
async fn a_user_agent_must_fit_into_a_header() {
    let config = Config::new(Uri::from_static("http://127.0.0.1:1"));
    let options = ClientOptions {
        user_agent: "a\nb".to_owned(),
        ..ClientOptions::default()
    };
    let err = client(&config, &options).err().unwrap();
    assert_eq!(
        err.to_string(),
        "the user agent \"a\\nb\" cannot be sent in a header"
    );
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    // Nothing listens on port 1 of the loopback.
    let server = Uri::from_static("http://127.0.0.1:1");
    let client = client(&Config::new(server.clone()), &ClientOptions::default()).unwrap();
    let text = check(&client, &server).await.unwrap_err().to_string();
    assert!(
        text.starts_with("cannot reach the API server at http://127.0.0.1:1/: "),
        "{text}"
    );
    assert!(text.to_lowercase().contains("refused"), "{text}");
    assert!(!text.contains('\n'), "{text}");
}

#[tokio::test]
async fn credentials_that_are_refused_are_told_apart() {
    let service = service_fn(|_: Request<Body>| async {
        Response::builder()
            .status(401)
            .body(Body::empty())
            .map_err(BoxError::from)
    });
    let client = layered(service, &ClientOptions::default());
    let server = Uri::from_static("https://example.test");
    let text = check(&client, &server).await.unwrap_err().to_string();
    assert!(text.contains("does not accept the credentials"), "{text}");
}

#[derive(Default)]
struct Counts(std::sync::Mutex<Vec<String>>);

impl Counts {
    fn push(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl ClientMetrics for Counts {
    fn requested(&self, method: &http::Method, code: Option<u16>) {
        self.push(format!("{method} {code:?}"));
    }

    fn sent(&self, method: &http::Method, bytes: u64) {
        self.push(format!("{method} sends {bytes}"));
    }

    fn rate_limited(&self, method: &http::Method, wait: Duration) {
        self.push(format!("{method} waits {}", wait.as_secs()));
    }

    fn retried(&self, method: &http::Method, code: Option<u16>) {
        self.push(format!("{method} again: {code:?}"));
    }

    fn finished(&self, method: &http::Method, elapsed: Duration, received: Option<u64>) {
        self.push(format!(
            "{method} over after {} {received:?}",
            elapsed.as_secs()
        ));
    }
}

#[tokio::test(start_paused = true)]
async fn every_send_takes_a_token_and_is_counted() {
    let service = service_fn(|_: Request<Body>| async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        let response = Response::builder().status(503).header("Retry-After", "1");
        response
            .body(Body::from(b"busy".to_vec()))
            .map_err(BoxError::from)
    });
    let counts = Arc::new(Counts::default());
    let metrics: Arc<dyn ClientMetrics> = Arc::<Counts>::clone(&counts);
    let options = ClientOptions {
        qps: 0.1,
        burst: 1,
        metrics,
        ..ClientOptions::default()
    };
    let client = layered(service, &options);
    assert!(
        client
            .create(&crate::resource::PODS, "ns", "{}".to_owned())
            .await
            .is_err()
    );
    let lines = counts.take();
    assert_eq!(
        lines[..7],
        [
            "POST waits 0",
            "POST sends 2",
            "POST Some(503)",
            "POST waits 6",
            "POST sends 2",
            "POST Some(503)",
            "POST again: Some(503)",
        ]
    );
    let count = |wanted: &str| lines.iter().filter(|line| *line == wanted).count();
    assert_eq!(count("POST Some(503)"), 11);
    assert_eq!(count("POST again: Some(503)"), 10);
    // The first token at once, then one every 10 s, and 3 s for the last answer.
    assert_eq!(lines.last().unwrap(), "POST over after 103 Some(4)");
}

#[tokio::test]
async fn a_request_without_an_answer_is_over_too_and_a_watch_is_only_counted() {
    let service = service_fn(|request: Request<Body>| async move {
        if crate::metrics::is_watch(request.uri()) {
            Response::builder()
                .body(Body::from(b"{}".to_vec()))
                .map_err(BoxError::from)
        } else {
            Err(BoxError::from("cut"))
        }
    });
    let counts = Arc::new(Counts::default());
    let options = ClientOptions {
        metrics: Arc::<Counts>::clone(&counts),
        ..ClientOptions::default()
    };
    let client = layered(service, &options);
    client.get_path("/version").await.unwrap_err();
    assert_eq!(
        counts.take(),
        [
            "GET waits 0",
            "GET sends 0",
            "GET None",
            "GET over after 0 None"
        ]
    );
    let watch = client
        .watch(&crate::resource::PODS, &WatchOptions::default())
        .await;
    drop(watch.unwrap());
    assert_eq!(counts.take(), ["GET Some(200)"]);
}

#[tokio::test]
async fn a_file_of_authorities_is_named_to_be_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let key = rcgen::generate_simple_self_signed(vec!["example.test".to_owned()]).unwrap();
    std::fs::write(folder.path().join("ca.crt"), key.cert.pem()).unwrap();
    let text = kubeconfig("https://example.test").replace(
        "cluster: {server",
        "cluster: {certificate-authority: ca.crt, proxy-url: \"socks5://127.0.0.1:1080\", server",
    );
    let path = folder.path().join("config");
    std::fs::write(&path, text).unwrap();
    let source = Source {
        kubeconfig: Some(path),
        master: None,
    };
    let config = load(&source).await.unwrap();
    assert_eq!(config.root_cert_file, Some(folder.path().join("ca.crt")));
    assert_eq!(config.proxy_url.unwrap(), "socks5://127.0.0.1:1080");
}

#[test]
fn the_proxy_of_the_environment_is_for_secure_servers_elsewhere() {
    for (server, expected) in [
        ("https://example.test", true),
        ("https://192.0.2.1:6443", true),
        ("http://example.test", false),
        ("https://localhost:6443", false),
        ("https://127.0.0.1:6443", false),
        ("https://[::1]:6443", false),
    ] {
        assert_eq!(
            may_be_proxied(&server.parse().unwrap()),
            expected,
            "{server}"
        );
    }
}
