//! Endpoints by path.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt as _, Limited};
use statefulset_client::metrics::text;
use tokio::time::timeout;

use super::answer::{self, Answer, JSON};
use super::health::{Endpoint, Health};
use super::zpages::{self, StatusPage};

/// Content type of metrics.
const METRICS: &str = text::CONTENT_TYPE;
/// Paths that `/statusz` lists: top-level paths, like upstream.
const LISTED: [&str; 6] = [
    "/configz", "/flagz", "/healthz", "/livez", "/metrics", "/readyz",
];
/// Maximum size of a new verbosity, in bytes.
const VERBOSITY_BYTES_MAX: usize = 64;
/// Time limit for reading a request body.
const BODY_MAX: Duration = Duration::from_secs(10);

/// Sets the log verbosity.
pub(crate) type SetVerbosity = dyn Fn(i32) -> Result<(), String> + Send + Sync;

/// Returns the report of a shadow as JSON, with or without the objects of its differences.
pub(crate) type ShadowReport = dyn Fn(bool) -> String + Send + Sync;

/// Content of the endpoints.
pub(crate) struct Endpoints {
    /// `/healthz`, `/livez`, `/readyz`, `/metrics/slis`.
    pub(crate) health: Arc<Health>,
    /// `/metrics`, in the text format.
    pub(crate) metrics: Box<dyn Fn() -> String + Send + Sync>,
    /// `/configz`, as JSON.
    pub(crate) configz: String,
    /// `/flagz`, by name and value; `None` if the gate is off.
    pub(crate) flagz: Option<Vec<(String, String)>>,
    /// `/statusz`; `None` if the gate is off.
    pub(crate) statusz: Option<StatusPage>,
    /// Name of the program.
    pub(crate) program: String,
    /// `/shadow`, and `/shadow/objects` for true; `None` without `--shadow`.
    pub(crate) shadow: Option<Box<ShadowReport>>,
    /// `/debug/flags/v`; `None` without `--profiling`.
    pub(crate) set_verbosity: Option<Box<SetVerbosity>>,
}

impl Endpoints {
    /// Responds to an authorized request. `path` is decoded.
    ///
    /// Upstream: `NewBaseHandler`.
    pub(super) async fn answer<B>(&self, path: &str, parts: &Parts, body: B) -> Answer
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let query = parts.uri.query().unwrap_or_default();
        let headers = &parts.headers;
        match path {
            "/healthz" => self.health.answer(Endpoint::Healthz, query),
            "/livez" => self.health.answer(Endpoint::Livez, query),
            "/readyz" => self.health.answer(Endpoint::Readyz, query),
            "/metrics" => answer::answer(StatusCode::OK, METRICS, (self.metrics)()),
            "/metrics/slis" if parts.method == Method::DELETE => {
                self.health.slis().reset();
                answer::text("metrics reset\n")
            }
            "/metrics/slis" => answer::answer(StatusCode::OK, METRICS, self.health.slis().gather()),
            "/configz" => answer::answer(StatusCode::OK, JSON, self.configz.clone()),
            "/flagz" => match &self.flagz {
                Some(flags) => zpages::flags(headers, &self.program, flags),
                None => answer::not_found(),
            },
            "/statusz" => match &self.statusz {
                Some(page) => page.answer(headers, &self.listed()),
                None => answer::not_found(),
            },
            "/shadow" | "/shadow/objects" => match &self.shadow {
                Some(report) => {
                    let report = report(path == "/shadow/objects");
                    answer::answer(StatusCode::OK, JSON, report)
                }
                None => answer::not_found(),
            },
            "/debug/flags/v" => match &self.set_verbosity {
                Some(set) => set_verbosity(&**set, &parts.method, body).await,
                None => answer::not_found(),
            },
            _ => answer::not_found(),
        }
    }

    fn listed(&self) -> Vec<&'static str> {
        let without_flags = |path: &&str| *path != "/flagz" || self.flagz.is_some();
        LISTED.into_iter().filter(without_flags).collect()
    }
}

/// Upstream: `StringFlagPutHandler`, `GlogSetter`.
async fn set_verbosity<B>(set: &SetVerbosity, method: &Method, body: B) -> Answer
where
    B: Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if method != Method::PUT {
        return plain(StatusCode::NOT_ACCEPTABLE, "unsupported http method");
    }
    let bad = |message: &str| plain(StatusCode::BAD_REQUEST, message);
    let reading = Limited::new(body, VERBOSITY_BYTES_MAX).collect();
    let bytes = match timeout(BODY_MAX, reading).await {
        Ok(Ok(collected)) => collected.to_bytes(),
        Ok(Err(error)) => return bad(&format!("error reading request body: {error}")),
        Err(_) => return bad("error reading request body: it takes too long"),
    };
    let text = String::from_utf8_lossy(&bytes);
    let Ok(level) = text.parse::<i32>() else {
        let quoted = kube_apimachinery::int_or_string::go_quote(&text);
        return bad(&format!(
            "failed set klog.logging.verbosity {text}: strconv.ParseInt: parsing {quoted}: \
             invalid syntax"
        ));
    };
    match set(level) {
        Ok(()) => {
            let done = format!("successfully set klog.logging.verbosity to {text}");
            plain(StatusCode::OK, &done)
        }
        Err(error) => bad(&format!(
            "failed set klog.logging.verbosity {text}: {error}"
        )),
    }
}

/// Upstream: `writePlainText`.
fn plain(code: StatusCode, text: &str) -> Answer {
    answer::answer(code, "text/plain", format!("{text}\n"))
}
