//! Tests of configurations: each mistake gives one line with advice.

use std::error::Error as _;
use std::io::Write as _;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tempfile::NamedTempFile;

use super::*;
use crate::clock::FakeClock;
use crate::error::Error;
use crate::fake::CapturedLog;
use crate::rest::WatchOptions;
use crate::rest::metrics::ClientMetrics;
use crate::transport::ServiceAccountName;

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

/// Returns a certificate in PEM.
fn self_signed() -> String {
    let key = rcgen::generate_simple_self_signed(vec!["example.test".to_owned()]).unwrap();
    key.cert.pem()
}

async fn load_file(text: &str, master: Option<&str>) -> Result<Config, ConfigError> {
    let file = file(text);
    let kubeconfig = Some(file.path().to_owned());
    load(&Source {
        kubeconfig,
        master: master.map(str::to_owned),
        ..Source::default()
    })
    .await
}

#[tokio::test]
async fn kubeconfig_sets_server() {
    let config = load_file(&kubeconfig("https://example.test:6443"), None)
        .await
        .unwrap();
    assert_eq!(config.cluster_url, "https://example.test:6443/");
    assert!(!config.default_retry);
}

#[tokio::test]
async fn master_flag_overrides_kubeconfig() {
    let text = kubeconfig("https://example.test:6443");
    let config = load_file(&text, Some("https://other.test")).await.unwrap();
    assert_eq!(config.cluster_url, "https://other.test/");
    let source = Source {
        master: Some("127.0.0.1:8080".to_owned()),
        ..Source::default()
    };
    let config = load(&source).await.unwrap();
    assert_eq!(config.cluster_url, "http://127.0.0.1:8080/");
}

#[tokio::test]
async fn errors_fit_in_one_line() {
    let missing = Source {
        kubeconfig: Some("/nonexistent/config".into()),
        ..Source::default()
    };
    let text = load(&missing).await.unwrap_err().to_string();
    assert!(
        text.starts_with("cannot read the kubeconfig /nonexistent/config: "),
        "{text}"
    );
    assert!(text.ends_with("; check --kubeconfig"), "{text}");

    for (content, problem) in [
        (
            "{{{ not yaml",
            "it is not the YAML of a kubeconfig, see line 1, ",
        ),
        (
            "apiVersion: v1\nkind: Config\n",
            "failed to determine current context",
        ),
        (&kubeconfig("ht tp://x"), "server \"ht tp://x\": "),
    ] {
        let error = load_file(content, None).await.unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("cannot use the kubeconfig "), "{text}");
        assert!(!text.contains('\n'), "{text}");
        assert_eq!(text.matches(problem).count(), 1, "{text}");
        let source = error.source().expect("the problem is kept").to_string();
        assert!(source.starts_with(problem), "{source}");
    }

    for master in ["ht tp://x", "tcp://x", "https://", ""] {
        let source = Source {
            master: Some(master.to_owned()),
            ..Source::default()
        };
        let text = load(&source).await.unwrap_err().to_string();
        let start = format!("--master {master:?} is not a URL: ");
        assert!(text.starts_with(&start), "{text}");
    }
}

#[tokio::test]
async fn kubeconfig_errors_omit_secrets() {
    let good = kubeconfig("https://example.test").replace("token: t", "token: TOP-SECRET");
    for bad in [
        good.replace("user: {token: TOP-SECRET}", "user: [TOP-SECRET, }"),
        good.replace("user: {token: TOP-SECRET}", "user: TOP-SECRET"),
        good.replace("current-context: c", "current-context: [TOP-SECRET]"),
    ] {
        let err = load_file(&bad, None).await.unwrap_err();
        let text = err.to_string();
        let shown = text.contains("it is not the YAML of a kubeconfig, see line ");
        assert!(shown, "{text}");
        assert!(!format!("{text} {err:?}").contains("SECRET"), "{err:?}");
    }
    let proxied = good.replace(
        "cluster: {server",
        "cluster: {proxy-url: \"ftp://u:SECRET@proxy.corp\", server",
    );
    let text = load_file(&proxied, None).await.unwrap_err().to_string();
    assert!(
        text.ends_with(r#": proxy-url: unsupported scheme "ftp", must be http, https, or socks5"#),
        "{text}"
    );
}

#[tokio::test]
async fn tls_settings_imply_https_scheme() {
    let authority = format!(
        "certificate-authority-data: {}, server",
        STANDARD.encode(self_signed())
    );
    let text = kubeconfig("10.0.0.1:6443");
    for (text, expected) in [
        (text.clone(), "http://10.0.0.1:6443/"),
        (text.replace("server", &authority), "https://10.0.0.1:6443/"),
        (
            text.replace("server", "insecure-skip-tls-verify: true, server"),
            "https://10.0.0.1:6443/",
        ),
        (
            text.replace("token: t", "client-certificate: f, client-key: f"),
            "https://10.0.0.1:6443/",
        ),
    ] {
        let config = load_file(&text, None).await.unwrap();
        assert_eq!(config.cluster_url, expected, "{text}");
    }
    for bad in ["", "tcp://x", "/path", "https://"] {
        let text = load_file(&kubeconfig(bad), None).await.unwrap_err();
        let text = text.to_string();
        assert!(text.contains(&format!(": server {bad:?}: ")), "{text}");
    }
}

#[tokio::test]
async fn credentials_are_sent_only_to_https_servers() {
    let log = CapturedLog::at(tracing::Level::WARN);
    let text = kubeconfig("https://example.test").replace(
        "{token: t}",
        "{token: t, tokenFile: f, username: u, password: p, as: jane, as-uid: u7, \
         as-groups: [g], as-user-extra: {reason: [r]}, \
         exec: {command: 'false', apiVersion: client.authentication.k8s.io/v1}}",
    );
    let config = load_file(&text, None).await.unwrap();
    assert!(config.auth_info.token.is_some());
    assert_eq!(log.take(), [""; 0]);
    let plain = text.replace("https:", "http:");
    for (text, master) in [
        (&text, Some("10.0.0.1:8080")),
        (&text, Some("http://10.0.0.1")),
        (&plain, None),
    ] {
        let info = load_file(text, master).await.unwrap().auth_info;
        let rest = serde_json::to_value(info).unwrap();
        assert_eq!(
            rest,
            serde_json::json!({
                "as": "jane", "as-uid": "u7", "as-groups": ["g"], "as-user-extra": {"reason": ["r"]},
            })
        );
        assert_eq!(
            log.take(),
            ["WARN the API server's address is not https: sending no credentials"]
        );
    }
}

#[tokio::test]
async fn master_flag_replaces_kubeconfig_server() {
    let text = kubeconfig("http://localhost:8080").replace(
        "cluster: {server",
        "cluster: {tls-server-name: other.test, server",
    );
    let file = file(&text);
    let source = |master: Option<&str>| Source {
        kubeconfig: Some(file.path().to_owned()),
        master: master.map(str::to_owned),
        proxy: ProxyConfig {
            https_proxy: "proxy.corp:3128".to_owned(),
            no_proxy: ".svc,".to_owned(),
        },
    };
    let config = load(&source(None)).await.unwrap();
    assert_eq!(config.tls_server_name.as_deref(), Some("other.test"));
    assert_eq!(config.proxy_url, None);
    let config = load(&source(Some("https://example.test"))).await.unwrap();
    assert_eq!(config.tls_server_name, None);
    assert_eq!(config.proxy_url.unwrap(), "http://proxy.corp:3128/");
    let config = load(&source(Some("https://api.svc"))).await.unwrap();
    assert_eq!(config.proxy_url, None);
}

#[tokio::test]
async fn master_flag_takes_scheme_from_kubeconfig() {
    let text = kubeconfig("https://example.test");
    let url = load_file(&text, Some("10.0.0.1:6443")).await.unwrap();
    assert_eq!(url.cluster_url, "http://10.0.0.1:6443/");
    let text = text.replace(
        "cluster: {server",
        "cluster: {insecure-skip-tls-verify: true, server",
    );
    let url = load_file(&text, Some("10.0.0.1:6443")).await.unwrap();
    assert_eq!(url.cluster_url, "https://10.0.0.1:6443/");
}

#[tokio::test]
async fn kubeconfig_proxy_applies_to_every_server() {
    let text = kubeconfig("https://example.test").replace(
        "cluster: {server",
        "cluster: {proxy-url: \"socks5://proxy.test\", server",
    );
    let file = file(&text);
    let source = Source {
        kubeconfig: Some(file.path().to_owned()),
        proxy: ProxyConfig {
            https_proxy: "ftp://never.looked.at".to_owned(),
            no_proxy: "*,proxy.test,example.test".to_owned(),
        },
        ..Source::default()
    };
    let config = load(&source).await.unwrap();
    assert_eq!(config.proxy_url.unwrap(), "socks5://proxy.test:1080/");
}

#[tokio::test]
async fn invalid_proxy_error_omits_password() {
    let source = Source {
        master: Some("https://example.test".to_owned()),
        proxy: ProxyConfig {
            https_proxy: "ftp://u:secret@proxy.test".to_owned(),
            no_proxy: String::new(),
        },
        ..Source::default()
    };
    assert_eq!(
        load(&source).await.unwrap_err().to_string(),
        "cannot use the proxy of the environment: unsupported scheme \"ftp\", must be http, https, \
         or socks5; check HTTPS_PROXY"
    );
}

#[tokio::test]
async fn invalid_user_agent_is_rejected() {
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
async fn unreachable_server_error_names_server() {
    // Port 1 of the loopback has no listener.
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
async fn rejected_credentials_have_their_own_error() {
    let service = service_fn(|_: Request<Body>| async {
        Response::builder()
            .status(401)
            .body(Body::empty())
            .map_err(BoxError::from)
    });
    let client = layered(service, &ClientOptions::default());
    let server = Uri::from_static("https://example.test");
    let text = check(&client, &server).await.unwrap_err().to_string();
    assert!(text.contains("rejects the credentials"), "{text}");
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
async fn retries_are_rate_limited_and_counted() {
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
    // The first token at once, then one every 10 s, and 3 s for the last response.
    assert_eq!(lines.last().unwrap(), "POST over after 103 Some(4)");
}

#[tokio::test(start_paused = true)]
async fn requests_sent_at_once_are_sent_once() {
    let service = service_fn(|_: Request<Body>| async {
        let response = Response::builder().status(429).header("Retry-After", "1");
        response.body(Body::empty()).map_err(BoxError::from)
    });
    let counts = Arc::new(Counts::default());
    let options = ClientOptions {
        qps: 0.1,
        burst: 1,
        metrics: Arc::<Counts>::clone(&counts),
        ..ClientOptions::default()
    };
    let client = layered(service, &options).at_once();
    for _ in 0..2 {
        let name = ("ns", "web-0");
        let deleted = client.delete(&crate::resource::PODS, name.0, name.1, "{}".to_owned());
        deleted.await.unwrap_err();
        let lines = counts.take();
        let sent = lines.iter().filter(|line| *line == "DELETE Some(429)");
        assert_eq!(sent.count(), 1);
        assert_eq!(lines.last().unwrap(), "DELETE over after 0 Some(0)");
    }
}

#[tokio::test]
async fn failed_requests_are_observed_and_watches_counted() {
    let service = service_fn(|request: Request<Body>| async move {
        if crate::rest::metrics::is_watch(request.uri()) {
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

#[tokio::test(start_paused = true)]
async fn custom_kube_client_gets_all_layers() {
    let asked = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let asking = Arc::clone(&asked);
    let service = service_fn(move |_: Request<Body>| {
        let busy = asking.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
        async move {
            let response = Response::builder().status(if busy { 429 } else { 200 });
            response
                .header("Retry-After", "1")
                .body(Body::from(b"{}".to_vec()))
        }
    });
    let clock = Arc::new(crate::clock::TokioClock::new());
    let options = ClientOptions {
        qps: 0.1,
        burst: 1,
        fence: Some(Fence::new(clock)),
        ..ClientOptions::default()
    };
    let client = around(kube::Client::new(service, "default"), &options);
    let start = tokio::time::Instant::now();
    assert_eq!(client.get_path("/version").await.unwrap(), "{}");
    // Retried as the server requests, when the rate limit allows it.
    assert_eq!(start.elapsed(), Duration::from_secs(10));
    let written = client.create(&crate::resource::PODS, "ns", "{}".to_owned());
    let error = written.await.unwrap_err();
    assert!(matches!(error, Error::NotLeading { .. }), "{error}");
    let asked = asked.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(asked, 2, "the fence blocks the write");
}

#[tokio::test]
async fn authority_file_is_kept_for_reloading() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ca.crt"), self_signed()).unwrap();
    let text = kubeconfig("https://example.test").replace(
        "cluster: {server",
        "cluster: {certificate-authority: ca.crt, proxy-url: \"socks5://127.0.0.1:1080\", server",
    );
    let path = folder.path().join("config");
    std::fs::write(&path, text).unwrap();
    let source = Source {
        kubeconfig: Some(path),
        ..Source::default()
    };
    let config = load(&source).await.unwrap();
    assert_eq!(config.root_cert.unwrap().len(), 1);
    assert_eq!(config.root_cert_file, Some(folder.path().join("ca.crt")));
    assert_eq!(config.proxy_url.unwrap(), "socks5://127.0.0.1:1080/");
}

#[tokio::test]
async fn service_account_tokens_require_https() {
    let account = || {
        let service =
            service_fn(async |_: Request<Body>| Err::<Response<Body>, BoxError>("unused".into()));
        let name = ServiceAccountName {
            namespace: "ns".to_owned(),
            name: "web".to_owned(),
        };
        let client = RestClient::new(kube::Client::new(service, "default"));
        ServiceAccountToken::new(client, name, Arc::new(FakeClock::default()))
    };
    let options = ClientOptions::default();
    let made = |server: &'static str| {
        let config = Config::new(Uri::from_static(server));
        client_of_service_account(&config, account(), &options).map(drop)
    };
    assert_eq!(
        made("http://127.0.0.1:8001").unwrap_err().to_string(),
        "cannot set up the connection to http://127.0.0.1:8001/: service account tokens are \
         sent only to https servers"
    );
    made("https://127.0.0.1:6443").unwrap();
}
