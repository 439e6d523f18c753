//! The `/statusz` and `/flagz` pages, for people and for programs.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use http::header::ACCEPT;
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use kube_apimachinery::json::write_go_str;
use statefulset_client::clock::Clock;

use super::answer::{self, Answer, Failure, JSON};

/// Upstream: `headerFmt`.
const WARNING: &str = "Warning: This endpoint is not meant to be machine parseable, has no \
                       formatting compatibility guarantees and is for debugging purposes only.";
/// API group of the JSON objects.
const GROUP: &str = "config.k8s.io";
/// Served versions, all with the same fields.
const VERSIONS: [&str; 2] = ["v1alpha1", "v1beta1"];

/// Response format.
#[derive(Debug, PartialEq, Eq)]
enum Form {
    Text,
    /// An object of this version.
    Object(&'static str),
}

/// Format requested by the `Accept` headers; `None` if no supported one is acceptable.
fn form(headers: &HeaderMap, kind: &str) -> Option<Form> {
    let mut wanted = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|range| !range.is_empty())
        .peekable();
    if wanted.peek().is_none() {
        return Some(Form::Text);
    }
    wanted.find_map(|range| form_of(range, kind))
}

fn form_of(range: &str, kind: &str) -> Option<Form> {
    let mut parts = range.split(';').map(str::trim);
    let media_type = parts.next()?;
    let parameters: Vec<(&str, &str)> = parts
        .filter_map(|part| part.split_once('='))
        .filter(|(name, _)| *name != "q")
        .collect();
    match media_type {
        "text/plain" | "text/*" | "*/*" => parameters
            .iter()
            .all(|(name, value)| *name == "charset" && value.eq_ignore_ascii_case("utf-8"))
            .then_some(Form::Text),
        "application/json" => {
            let parameter = |wanted: &str| {
                let mut all = parameters.iter();
                all.find(|(name, _)| *name == wanted)
                    .map(|(_, value)| *value)
            };
            let version = parameter("v")?;
            let named = parameter("g") == Some(GROUP) && parameter("as") == Some(kind);
            let known = VERSIONS.into_iter().find(|known| *known == version)?;
            named.then_some(Form::Object(known))
        }
        _ => None,
    }
}

fn not_acceptable(headers: &HeaderMap, kind: &str) -> Answer {
    let objects = VERSIONS.map(|it| format!("application/json;v={it};g={GROUP};as={kind}"));
    let message = format!(
        "only the following media types are accepted: text/plain, {}",
        objects.join(", ")
    );
    let failure = Failure {
        code: StatusCode::NOT_ACCEPTABLE,
        reason: "NotAcceptable",
        message: &message,
        details: false,
    };
    failure.answer(headers)
}

fn quoted(text: &str) -> String {
    let mut out = String::new();
    write_go_str(text, &mut out);
    out
}

/// Leading fields of all objects.
fn object_head(kind: &str, version: &str, program: &str) -> String {
    format!(
        "\"kind\":\"{kind}\",\"apiVersion\":\"{GROUP}/{version}\",\"metadata\":{{\"name\":{}}}",
        quoted(program)
    )
}

/// Content of `/statusz`.
pub(crate) struct StatusPage {
    /// Name of the program.
    pub(crate) program: String,
    /// Version of the program.
    pub(crate) version: String,
    /// Emulated Kubernetes version, as `1.36`.
    pub(crate) emulated: String,
    /// Start time.
    pub(crate) started: Timestamp,
    /// Clock for the uptime.
    pub(crate) clock: Arc<dyn Clock>,
}

impl StatusPage {
    /// Responds with the page. `paths` are the listed endpoints.
    ///
    /// Upstream: `handleStatusz`.
    pub(crate) fn answer(&self, headers: &HeaderMap, paths: &[&str]) -> Answer {
        let up = self.clock.now().duration_since(self.started);
        let up = Duration::try_from(up).unwrap_or_default().as_secs();
        let Self {
            program,
            version,
            emulated,
            started,
            ..
        } = self;
        match form(headers, "Statusz") {
            None => not_acceptable(headers, "Statusz"),
            Some(Form::Text) => {
                let since = started.strftime("%a %b %e %H:%M:%S UTC %Y");
                let (hours, minutes, seconds) = (up / 3600, up / 60 % 60, up % 60);
                answer::text(format!(
                    "\n{program} statusz\n{WARNING}\n\nStarted: {since}\n\
                     Up: {hours} hr {minutes:02} min {seconds:02} sec\n\
                     Binary version: {version}\nEmulation version: {emulated}\nPaths: {}\n",
                    paths.join(" ")
                ))
            }
            Some(Form::Object(form)) => {
                let paths: Vec<String> = paths.iter().map(|path| quoted(path)).collect();
                let since = started.strftime("%Y-%m-%dT%H:%M:%SZ");
                let body = format!(
                    "{{{},\"startTime\":\"{since}\",\"uptimeSeconds\":{up},\
                     \"binaryVersion\":{},\"emulationVersion\":{},\"paths\":[{}]}}\n",
                    object_head("Statusz", form, program),
                    quoted(version),
                    quoted(emulated),
                    paths.join(",")
                );
                answer::answer(StatusCode::OK, JSON, body)
            }
        }
    }
}

/// Responds with the flags of `program`, by name and value, in the given order.
///
/// Upstream: `handleFlagz`.
pub(crate) fn flags(headers: &HeaderMap, program: &str, flags: &[(String, String)]) -> Answer {
    match form(headers, "Flagz") {
        None => not_acceptable(headers, "Flagz"),
        Some(Form::Text) => {
            let mut text = format!("\n{program} flags\n{WARNING}\n\n");
            for (name, value) in flags {
                // Writing to a string can't fail.
                let _ = writeln!(text, "{name}={value}");
            }
            answer::text(text)
        }
        Some(Form::Object(form)) => {
            let members: Vec<String> = flags
                .iter()
                .map(|(name, value)| format!("{}:{}", quoted(name), quoted(value)))
                .collect();
            let body = format!(
                "{{{},\"flags\":{{{}}}}}\n",
                object_head("Flagz", form, program),
                members.join(",")
            );
            answer::answer(StatusCode::OK, JSON, body)
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http_body_util::BodyExt as _;
    use statefulset_client::clock::FakeClock;

    use super::*;

    fn accept(value: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if !value.is_empty() {
            headers.insert(ACCEPT, HeaderValue::from_static(value));
        }
        headers
    }

    async fn body(answer: Answer) -> (u16, String) {
        let code = answer.status().as_u16();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        (code, String::from_utf8(bytes.to_vec()).unwrap())
    }

    fn page() -> StatusPage {
        let started: Timestamp = "2026-07-20T06:14:02Z".parse().unwrap();
        let clock = FakeClock::new(started);
        clock.advance(Duration::from_secs(3 * 3600 + 22 * 60 + 2));
        StatusPage {
            program: "it".to_owned(),
            version: "1.36.2".to_owned(),
            emulated: "1.36".to_owned(),
            started,
            clock: Arc::new(clock),
        }
    }

    #[tokio::test]
    async fn default_format_is_text() {
        let answer = page().answer(&accept(""), &["/healthz", "/metrics"]);
        let expected = format!(
            "\nit statusz\n{WARNING}\n\nStarted: Mon Jul 20 06:14:02 UTC 2026\n\
             Up: 3 hr 22 min 02 sec\nBinary version: 1.36.2\nEmulation version: 1.36\n\
             Paths: /healthz /metrics\n"
        );
        assert_eq!(body(answer).await, (200, expected));
        let given = [
            ("a-b".to_owned(), "1".to_owned()),
            ("c".to_owned(), "[]".to_owned()),
        ];
        let answer = flags(&accept("text/plain"), "it", &given);
        let expected = format!("\nit flags\n{WARNING}\n\na-b=1\nc=[]\n");
        assert_eq!(body(answer).await, (200, expected));
    }

    #[tokio::test]
    async fn object_formats_match_the_reference() {
        let headers = accept("application/json;v=v1beta1;g=config.k8s.io;as=Statusz");
        let answer = page().answer(&headers, &["/healthz"]);
        assert_eq!(answer.headers()["content-type"], "application/json");
        let expected = "{\"kind\":\"Statusz\",\"apiVersion\":\"config.k8s.io/v1beta1\",\
                        \"metadata\":{\"name\":\"it\"},\"startTime\":\"2026-07-20T06:14:02Z\",\
                        \"uptimeSeconds\":12122,\"binaryVersion\":\"1.36.2\",\
                        \"emulationVersion\":\"1.36\",\"paths\":[\"/healthz\"]}\n";
        assert_eq!(body(answer).await, (200, expected.to_owned()));
        let headers = accept("application/json;v=v1alpha1;g=config.k8s.io;as=Flagz");
        let answer = flags(&headers, "it", &[("v".to_owned(), "\"2\"".to_owned())]);
        let expected = "{\"kind\":\"Flagz\",\"apiVersion\":\"config.k8s.io/v1alpha1\",\
                        \"metadata\":{\"name\":\"it\"},\"flags\":{\"v\":\"\\\"2\\\"\"}}\n";
        assert_eq!(body(answer).await, (200, expected.to_owned()));
    }

    #[tokio::test]
    async fn accept_header_selects_the_format() {
        for (value, expected) in [
            ("", Some(Form::Text)),
            ("*/*", Some(Form::Text)),
            (
                "text/html, text/plain;charset=UTF-8;q=0.5",
                Some(Form::Text),
            ),
            ("text/plain;charset=latin1", None),
            ("application/json", None),
            ("application/json;v=v1beta1;g=config.k8s.io;as=Flagz", None),
            ("application/json;v=v9;g=config.k8s.io;as=Statusz", None),
            (
                "application/yaml, application/json; v=v1beta1; g=config.k8s.io; as=Statusz",
                Some(Form::Object("v1beta1")),
            ),
        ] {
            assert_eq!(form(&accept(value), "Statusz"), expected, "{value}");
        }
        let (code, body) = body(page().answer(&accept("application/json"), &[])).await;
        assert_eq!(code, 406);
        assert!(body.contains("\"reason\":\"NotAcceptable\""), "{body}");
    }
}
