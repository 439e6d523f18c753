//! Tests of service account tokens against a scripted server, under paused time.

use futures::future::join_all;
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};
use tower::{BoxError, Layer as _, service_fn};
use tracing::Level;

use super::*;
use crate::clock::{FakeClock, TokioClock};
use crate::fake::CapturedLog;
use crate::fence::Fence;

const ACCOUNT: &str = "/api/v1/namespaces/kube-system/serviceaccounts/web";
const TOKEN: &str = "/api/v1/namespaces/kube-system/serviceaccounts/web/token";

/// The server's state and faults.
struct Server {
    has_namespace: bool,
    has_account: bool,
    /// Lifetime of its tokens.
    lifetime: Duration,
    /// The error for every token request, if any.
    refusal: Option<(u16, &'static str, &'static str)>,
    /// True if it never responds.
    hangs: bool,
    issued: u32,
    requests: Vec<String>,
    bodies: Vec<Value>,
    clock: Arc<FakeClock>,
}

type Shared = Arc<Mutex<Server>>;

impl Server {
    fn answer(&mut self, method: &Method, path: &str) -> (u16, String) {
        let failure = |code: u16, reason: &str, message: &str| {
            let status = json!({
                "kind": "Status", "code": code, "reason": reason, "message": message,
            });
            (code, status.to_string())
        };
        let found = |is_found: bool| {
            if is_found {
                (200, "{}".to_owned())
            } else {
                failure(404, "NotFound", "not found")
            }
        };
        self.requests.push(format!("{method} {path}"));
        match (method.as_str(), path) {
            ("POST", TOKEN) => {
                if let Some((code, reason, message)) = self.refusal {
                    return failure(code, reason, message);
                }
                self.issued += 1;
                let expires = self.clock.now().saturating_add(self.lifetime).unwrap();
                let status = json!({
                    "token": format!("t{}", self.issued),
                    "expirationTimestamp": expires.to_string(),
                });
                (201, json!({"status": status}).to_string())
            }
            ("GET", ACCOUNT) => found(self.has_account),
            ("GET", _) => found(self.has_namespace),
            (_, "/api/v1/namespaces") => {
                self.has_namespace = true;
                (201, "{}".to_owned())
            }
            _ => {
                self.has_account = true;
                failure(409, "AlreadyExists", "another client was faster")
            }
        }
    }
}

fn name() -> ServiceAccountName {
    ServiceAccountName {
        namespace: "kube-system".to_owned(),
        name: "web".to_owned(),
    }
}

/// Returns a server whose tokens are valid for an hour, and the token of an existing account; each
/// response takes a millisecond.
fn fixture(fence: Option<Fence>) -> (Shared, ServiceAccountToken) {
    let clock = Arc::new(FakeClock::default());
    let server = Arc::new(Mutex::new(Server {
        has_namespace: true,
        has_account: true,
        lifetime: Duration::from_secs(3600),
        refusal: None,
        hangs: false,
        issued: 0,
        requests: Vec::new(),
        bodies: Vec::new(),
        clock: Arc::clone(&clock),
    }));
    let shared = Arc::clone(&server);
    let service = service_fn(move |request: Request<Body>| {
        let server = Arc::clone(&shared);
        async move {
            sleep(Duration::from_millis(1)).await;
            if server.lock().unwrap().hangs {
                std::future::pending::<()>().await;
            }
            let (parts, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let mut server = server.lock().unwrap();
            server.bodies.extend(serde_json::from_slice::<Value>(&body));
            let (code, text) = server.answer(&parts.method, parts.uri.path());
            let answer = Response::builder().status(code);
            Ok::<_, BoxError>(answer.body(Body::from(text.into_bytes()))?)
        }
    });
    let client = match fence {
        Some(fence) => RestClient::from_service(fence.layer(service)),
        None => RestClient::from_service(service),
    };
    (server, ServiceAccountToken::new(client, name(), clock))
}

/// Returns the token without the scheme.
async fn token(source: &ServiceAccountToken) -> Result<String, String> {
    let header = source.header().await.map_err(|error| error.to_string())?;
    assert!(header.is_sensitive());
    let text = header.to_str().unwrap();
    Ok(text.strip_prefix("Bearer ").unwrap().to_owned())
}

fn refuse(server: &Shared, refusal: Option<(u16, &'static str, &'static str)>) {
    server.lock().unwrap().refusal = refusal;
}

fn requests(server: &Shared) -> Vec<String> {
    std::mem::take(&mut server.lock().unwrap().requests)
}

const BROKEN: Option<(u16, &str, &str)> = Some((500, "InternalError", "no key to sign with"));

#[tokio::test(start_paused = true)]
async fn missing_account_and_namespace_are_created() {
    let (server, source) = fixture(None);
    (
        server.lock().unwrap().has_namespace,
        server.lock().unwrap().has_account,
    ) = (false, false);
    assert_eq!(token(&source).await.as_deref(), Ok("t1"));
    let accounts = "/api/v1/namespaces/kube-system/serviceaccounts";
    let asked = [
        format!("GET {ACCOUNT}"),
        "GET /api/v1/namespaces/kube-system".to_owned(),
        "POST /api/v1/namespaces".to_owned(),
        format!("POST {accounts}"),
        format!("POST {TOKEN}"),
    ];
    assert_eq!(requests(&server), asked);
    assert_eq!(
        server.lock().unwrap().bodies,
        [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}),
            json!({
                "apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": {"name": "web", "namespace": "kube-system"},
            }),
            json!({
                "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                "spec": {"audiences": [], "expirationSeconds": 3600},
            }),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn token_is_renewed_at_a_fifth_of_its_lifetime() {
    let (server, source) = fixture(None);
    assert_eq!(token(&source).await.as_deref(), Ok("t1"));
    assert_eq!(
        requests(&server),
        [format!("GET {ACCOUNT}"), format!("POST {TOKEN}")]
    );
    tokio::time::advance(Duration::from_secs(2879)).await;
    assert_eq!(token(&source).await.as_deref(), Ok("t1"));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(token(&source).await.as_deref(), Ok("t2"));
    tokio::time::advance(Duration::from_secs(2879)).await;
    assert_eq!(token(&source).await.as_deref(), Ok("t2"));
}

#[tokio::test(start_paused = true)]
async fn clock_skew_does_not_expire_new_token() {
    let (server, source) = fixture(None);
    server.lock().unwrap().lifetime = Duration::ZERO;
    assert_eq!(token(&source).await.as_deref(), Ok("t1"));
    tokio::time::advance(Duration::from_secs(479)).await;
    assert_eq!(token(&source).await.as_deref(), Ok("t1"));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(token(&source).await.as_deref(), Ok("t2"));
}

#[tokio::test(start_paused = true)]
async fn only_rejected_token_is_dropped() {
    let (_server, source) = fixture(None);
    assert_eq!(token(&source).await.as_deref(), Ok("t1"));
    source.drop_refused(&HeaderValue::from_static("Bearer t0"));
    assert_eq!(token(&source).await.as_deref(), Ok("t1"));
    source.drop_refused(&HeaderValue::from_static("Bearer t1"));
    assert_eq!(token(&source).await.as_deref(), Ok("t2"));
}

#[tokio::test(start_paused = true)]
async fn failing_requests_are_retried_and_logged_once() {
    let log = CapturedLog::at(Level::INFO);
    let (server, source) = fixture(None);
    refuse(&server, BROKEN);
    let start = Instant::now();
    for _ in 0..2 {
        assert_eq!(
            token(&source).await.unwrap_err(),
            "cannot get a token of the service account kube-system/web: no key to sign with"
        );
    }
    // Eight attempts of two responses each, and two times 0.5 s + 1 s + 2 s.
    assert_eq!(start.elapsed(), Duration::from_millis(8 * 2 + 2 * 3500));
    assert_eq!(
        log.take(),
        [
            "WARN cannot get a token of the service account, trying again \
             account=kube-system/web error=no key to sign with"
        ]
    );
    refuse(&server, None);
    assert_eq!(token(&source).await.as_deref(), Ok("t1"));
    assert_eq!(
        log.take(),
        ["INFO the service account has a new token account=kube-system/web"]
    );
}

#[tokio::test(start_paused = true)]
async fn recovery_between_attempts_is_not_logged() {
    let log = CapturedLog::at(Level::INFO);
    let (server, source) = fixture(None);
    refuse(&server, BROKEN);
    let recovery = async {
        sleep(Duration::from_secs(1)).await;
        refuse(&server, None);
    };
    let (asked, ()) = tokio::join!(token(&source), recovery);
    assert_eq!(asked.as_deref(), Ok("t1"));
    assert_eq!(log.take(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn missing_permission_is_logged_once_with_its_rule() {
    let log = CapturedLog::at(Level::INFO);
    let (server, source) = fixture(None);
    let message = "serviceaccounts \"web\" is forbidden: User \"jane\" cannot create resource \
                   \"serviceaccounts/token\" in API group \"\" in the namespace \"kube-system\"";
    refuse(&server, Some((403, "Forbidden", message)));
    for _ in 0..2 {
        let error = token(&source).await.unwrap_err();
        assert!(error.ends_with(message), "{error}");
    }
    let rule = "{apiGroups: [\"\"], resources: [\"serviceaccounts/token\"], verbs: [\"create\"]}";
    assert_eq!(
        log.take(),
        [format!(
            "WARN permission is missing, trying again; grant this user a role with the rule {rule} \
             permission=create serviceaccounts/token in the namespace \"kube-system\" error={message}"
        )]
    );
}

#[tokio::test(start_paused = true)]
async fn unrenewable_token_is_used_until_rejected() {
    let log = CapturedLog::at(Level::INFO);
    let (server, source) = fixture(None);
    assert_eq!(token(&source).await.as_deref(), Ok("t1"));
    refuse(&server, BROKEN);
    tokio::time::advance(Duration::from_secs(2880)).await;
    requests(&server);
    // Expired by this process's clock; the server's may differ.
    for _ in 0..100 {
        assert_eq!(token(&source).await.as_deref(), Ok("t1"));
        tokio::time::advance(RENEWAL_PAUSE / 2).await;
    }
    assert_eq!(requests(&server).len(), 50 * 4 * 2);
    assert_eq!(
        log.take(),
        [
            "WARN cannot renew the token of the service account, trying again; keeping the \
             previous one account=kube-system/web error=no key to sign with"
        ]
    );
    source.drop_refused(&HeaderValue::from_static("Bearer t1"));
    assert!(token(&source).await.is_err());
    refuse(&server, None);
    assert_eq!(token(&source).await.as_deref(), Ok("t2"));
    assert_eq!(
        log.take(),
        ["INFO the service account has a new token account=kube-system/web"]
    );
}

#[tokio::test(start_paused = true)]
async fn concurrent_requests_share_one_token_request() {
    let (server, source) = fixture(None);
    refuse(&server, BROKEN);
    let failed = join_all((0..20).map(|_| token(&source))).await;
    assert!(failed.iter().all(Result::is_err), "{failed:?}");
    assert_eq!(requests(&server).len(), 4 * 2);
    refuse(&server, None);
    let given = join_all((0..20).map(|_| token(&source))).await;
    assert_eq!(given, vec![Ok("t1".to_owned()); 20]);
    assert_eq!(requests(&server).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn one_request_renews_while_others_use_current_token() {
    let (server, source) = fixture(None);
    assert_eq!(token(&source).await.as_deref(), Ok("t1"));
    tokio::time::advance(Duration::from_secs(2880)).await;
    let given = join_all((0..3).map(|_| token(&source))).await;
    assert_eq!(given, ["t2", "t1", "t1"].map(|text| Ok(text.to_owned())));
    assert_eq!(server.lock().unwrap().issued, 2);
}

#[tokio::test(start_paused = true)]
async fn dropped_request_passes_its_turn_on() {
    let (server, source) = fixture(None);
    refuse(&server, BROKEN);
    let waited = timeout(Duration::from_secs(1), token(&source)).await;
    assert!(waited.is_err());
    refuse(&server, None);
    assert_eq!(token(&source).await.as_deref(), Ok("t1"));
}

#[tokio::test(start_paused = true)]
async fn hanging_server_delays_renewal_only_briefly() {
    let log = CapturedLog::at(Level::INFO);
    let (server, source) = fixture(None);
    assert_eq!(token(&source).await.as_deref(), Ok("t1"));
    sleep(Duration::from_secs(3000)).await;
    server.lock().unwrap().hangs = true;
    let start = Instant::now();
    assert_eq!(token(&source).await.as_deref(), Ok("t1"));
    assert_eq!(start.elapsed(), Duration::from_secs(5));
    assert_eq!(token(&source).await.as_deref(), Ok("t1"));
    assert_eq!(
        start.elapsed(),
        Duration::from_secs(5),
        "the renewal is postponed"
    );
    // A request dropped during its wait also postpones the renewal.
    sleep(Duration::from_secs(10)).await;
    let waited = timeout(Duration::from_secs(1), token(&source)).await;
    assert!(waited.is_err());
    let start = Instant::now();
    assert_eq!(token(&source).await.as_deref(), Ok("t1"));
    assert_eq!(start.elapsed(), Duration::ZERO);
    server.lock().unwrap().hangs = false;
    sleep(Duration::from_secs(10)).await;
    assert_eq!(token(&source).await.as_deref(), Ok("t2"));
    let lines = log.take();
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines[0].contains("no response within 5 s"), "{lines:#?}");
    assert!(lines[1].contains("has a new token"), "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn requests_without_lease_fail_silently() {
    let log = CapturedLog::at(Level::INFO);
    let clock = TokioClock::new();
    let fence = Fence::new(Arc::new(clock));
    let (server, source) = fixture(Some(fence.clone()));
    server.lock().unwrap().has_account = false;
    let start = Instant::now();
    let error = source.header().await.unwrap_err();
    assert!(matches!(error, NoToken::NotLeading(_)), "{error}");
    assert_eq!(
        start.elapsed(),
        Duration::from_millis(2),
        "no second attempt"
    );
    assert_eq!(
        requests(&server),
        [
            format!("GET {ACCOUNT}"),
            "GET /api/v1/namespaces/kube-system".to_owned()
        ]
    );
    assert_eq!(log.take(), [""; 0]);
    fence.open_until(Duration::from_secs(10));
    assert_eq!(token(&source).await.as_deref(), Ok("t1"));
}

#[tokio::test(start_paused = true)]
async fn response_without_token_is_logged() {
    let client = |text: &'static str| {
        RestClient::from_service(service_fn(move |_: Request<Body>| async move {
            let body = Body::from(text.as_bytes().to_vec());
            Ok::<_, BoxError>(Response::new(body))
        }))
    };
    for (answer, reason) in [
        (r#"{"spec":{}}"#, "missing field `status`"),
        (
            r#"{"status":{"token":"","expirationTimestamp":"2026-01-01T00:00:00Z"}}"#,
            "the token is empty",
        ),
        (
            "{\"status\":{\"token\":\"a\\nb\",\"expirationTimestamp\":\"2026-01-01T00:00:00Z\"}}",
            "failed to parse header value",
        ),
        (
            r#"{"status":{"token":"t","expirationTimestamp":"soon"}}"#,
            "failed to parse",
        ),
    ] {
        let clock = Arc::new(FakeClock::default());
        let source = ServiceAccountToken::new(client(answer), name(), clock);
        let error = token(&source).await.unwrap_err();
        assert!(
            error.contains("request a token of the service account kube-system/web: "),
            "{error}"
        );
        assert!(error.contains(reason), "{error} lacks {reason:?}");
    }
}
