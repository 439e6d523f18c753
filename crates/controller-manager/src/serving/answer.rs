//! Response formats: plain text and `Status` objects.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, USER_AGENT, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::Full;
use kube_apimachinery::json::write_go_str;

/// A response with its whole body.
pub(crate) type Answer = Response<Full<Bytes>>;

/// Content type of text from Go's `http.Error` and the health handlers.
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";
/// Content type of JSON.
pub(crate) const JSON: &str = "application/json";

/// User agent prefixes of clients whose users read JSON directly.
const HUMAN_AGENTS: [&str; 3] = ["curl", "Wget", "Mozilla/5.0"];

/// A response whose content type browsers must not override.
pub(crate) fn answer(code: StatusCode, content_type: &'static str, body: String) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    *answer.status_mut() = code;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    answer
}

/// A plain-text success.
pub(crate) fn text(body: impl Into<String>) -> Answer {
    answer(StatusCode::OK, TEXT, body.into())
}

/// A plain-text failure, terminated by a line break.
///
/// Upstream: `http.Error`.
pub(crate) fn error(code: StatusCode, message: &str) -> Answer {
    answer(code, TEXT, format!("{message}\n"))
}

/// The 404 response. Upstream: `http.NotFound`.
pub(crate) fn not_found() -> Answer {
    error(StatusCode::NOT_FOUND, "404 page not found")
}

/// A failure in the form of API servers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failure<'a> {
    pub(crate) code: StatusCode,
    /// Machine-readable reason.
    pub(crate) reason: &'a str,
    /// Human-readable message.
    pub(crate) message: &'a str,
    /// True if the response has a `details` field, which would name the affected object.
    pub(crate) details: bool,
}

impl Failure<'_> {
    /// The `Status` response: one line, or indented for user agents that people read directly.
    ///
    /// Upstream: `responsewriters.ErrorNegotiated`, `isPrettyPrint`.
    pub(crate) fn answer(self, request_headers: &HeaderMap) -> Answer {
        let quoted = |text: &str| {
            let mut out = String::new();
            write_go_str(text, &mut out);
            out
        };
        let mut members = vec![
            ("kind", quoted("Status")),
            ("apiVersion", quoted("v1")),
            ("metadata", "{}".to_owned()),
            ("status", quoted("Failure")),
            ("message", quoted(self.message)),
            ("reason", quoted(self.reason)),
        ];
        if self.details {
            members.push(("details", "{}".to_owned()));
        }
        members.push(("code", self.code.as_u16().to_string()));
        let pretty = is_read_by_people(request_headers);
        let lines: Vec<String> = members
            .iter()
            .map(|(name, value)| {
                if pretty {
                    format!("  \"{name}\": {value}")
                } else {
                    format!("\"{name}\":{value}")
                }
            })
            .collect();
        let body = if pretty {
            format!("{{\n{}\n}}", lines.join(",\n"))
        } else {
            format!("{{{}}}\n", lines.join(","))
        };
        answer(self.code, JSON, body)
    }
}

fn is_read_by_people(headers: &HeaderMap) -> bool {
    let agent = headers
        .get(USER_AGENT)
        .and_then(|value| value.to_str().ok());
    agent.is_some_and(|agent| HUMAN_AGENTS.iter().any(|name| agent.starts_with(name)))
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    async fn body(answer: Answer) -> String {
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn failures_are_one_line_status_objects() {
        let failure = Failure {
            code: StatusCode::UNAUTHORIZED,
            reason: "Unauthorized",
            message: "<a>",
            details: false,
        };
        let answer = failure.answer(&HeaderMap::new());
        assert_eq!(answer.status(), 401);
        assert_eq!(answer.headers()[CONTENT_TYPE], "application/json");
        assert_eq!(
            body(answer).await,
            "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\
             \"message\":\"\\u003ca\\u003e\",\"reason\":\"Unauthorized\",\"code\":401}\n"
        );
    }

    #[tokio::test]
    async fn curl_gets_indented_json() {
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, HeaderValue::from_static("curl/8.5.0"));
        let failure = Failure {
            code: StatusCode::FORBIDDEN,
            reason: "Forbidden",
            message: "no",
            details: true,
        };
        let expected = "{\n  \"kind\": \"Status\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {},\n  \
                        \"status\": \"Failure\",\n  \"message\": \"no\",\n  \"reason\": \"Forbidden\",\n  \
                        \"details\": {},\n  \"code\": 403\n}";
        assert_eq!(body(failure.answer(&headers)).await, expected);
    }

    #[tokio::test]
    async fn not_found_matches_go() {
        let answer = not_found();
        assert_eq!(answer.status(), 404);
        assert_eq!(answer.headers()[CONTENT_TYPE], TEXT);
        assert_eq!(answer.headers()[X_CONTENT_TYPE_OPTIONS], "nosniff");
        assert_eq!(answer.headers()[CACHE_CONTROL], "no-cache, private");
        assert_eq!(body(answer).await, "404 page not found\n");
    }
}
