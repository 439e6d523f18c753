//! The reading of a webhook's HTTP response, as upstream's REST client does.
//!
//! Upstream: `Result.Into` of `k8s.io/client-go/rest`

use bytes::Bytes;
use kube_apimachinery::schema::{self, UnknownMembers};
use serde_json::Value;

use crate::decode;
use crate::members::text;

/// The most bytes of a text that an error quotes.
///
/// Upstream: `maxUnstructuredResponseTextBytes`
const QUOTED_MAX: usize = 2048;

/// The response of a webhook's server.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// The HTTP status code.
    pub code: u16,
    /// The header `Content-Type`; empty if there is none.
    pub content_type: String,
    /// The body.
    pub body: Bytes,
}

impl Reply {
    /// Decodes the body as a review of a kind in a group version.
    ///
    /// # Errors
    ///
    /// The response reports a failure or contains something else; the text is upstream's.
    pub fn review(&self, kind: &str, api_version: &str) -> Result<Value, String> {
        if !(200..=206).contains(&self.code) {
            return Err(self.failure());
        }
        if self.body.is_empty() {
            // Upstream's client assumes JSON.
            let content_type = match self.content_type.as_str() {
                "" => "application/json",
                given => given,
            };
            return Err(format!(
                "0-length response with status code: {} and content type: {content_type}",
                self.code
            ));
        }
        let value = self.decoded()?;
        let found_kind = Some(text(&value, "kind")).filter(|kind| !kind.is_empty());
        let found_version = Some(text(&value, "apiVersion")).filter(|version| !version.is_empty());
        let found = (
            found_kind.unwrap_or(kind),
            found_version.unwrap_or(api_version),
        );
        if found != (kind, api_version) {
            return Err(other_kind(found, (kind, api_version)));
        }
        let value = match value {
            Value::Null => Value::Object(serde_json::Map::new()),
            other => other,
        };
        schema::normalize_owned(kind, value, UnknownMembers::Drop, "")
            .map_err(|error| error.to_string())
    }

    /// Returns the JSON of the body, which may be YAML.
    fn decoded(&self) -> Result<Value, String> {
        let is_json = self.body.trim_ascii_start().starts_with(b"{");
        let body = if is_json {
            self.body.clone()
        } else {
            decode::yaml(&self.body)?.to_string().into()
        };
        match decode::type_error(&body) {
            Some(_) if *body == *b"null" => Ok(Value::Null),
            Some(why) => Err(format!(
                "couldn't get version/kind; json parse error: {why}"
            )),
            None => serde_json::from_slice(&body).map_err(|error| error.to_string()),
        }
    }

    /// Returns the message of a response with another code than that of a success: that of the
    /// status in its body, or one for the code.
    ///
    /// Upstream: `newUnstructuredResponseError`, `NewGenericServerResponse`
    fn failure(&self) -> String {
        if let Some(message) = self.status_message() {
            return message;
        }
        let is_text = self.content_type.is_empty() || self.content_type.starts_with("text/");
        let shown = String::from_utf8_lossy(&self.body[..self.body.len().min(QUOTED_MAX)]);
        let said = if is_text { shown.trim() } else { "unknown" };
        let fixed = match self.code {
            400 => "the server rejected our request for an unknown reason",
            401 => "the server has asked for the client to provide credentials",
            404 => "the server could not find the requested resource",
            405 => "the server does not allow this method on the requested resource",
            406 if matches!(said, "" | "unknown") => {
                "the server was unable to respond with a content type that the client supports"
            }
            403 | 406 | 415 => said,
            409 => "the server reported a conflict",
            422 => "the server rejected our request due to an error in our request",
            429 => "the server has received too many requests and has asked us to try again later",
            503 => "the server is currently unable to handle the request",
            504 => {
                "the server was unable to return a response in the time allotted, but may still \
                 be processing the request"
            }
            500.. => {
                return format!(
                    "an error on the server ({said:?}) has prevented the request from succeeding"
                );
            }
            code => {
                return format!(
                    "the server responded with the status code {code} but did not return more \
                     information"
                );
            }
        };
        fixed.to_owned()
    }

    /// Returns the message of a failure's `Status` in the body.
    fn status_message(&self) -> Option<String> {
        let value = self.decoded().ok()?;
        if text(&value, "kind") != "Status" || !matches!(text(&value, "apiVersion"), "" | "v1") {
            return None;
        }
        let status = schema::normalize_owned("Status", value, UnknownMembers::Drop, "").ok()?;
        (text(&status, "status") == "Failure").then(|| text(&status, "message").to_owned())
    }
}

/// The kinds that upstream's decoder for reviews knows besides reviews.
const KNOWN: [&str; 5] = [
    "APIGroup",
    "APIGroupList",
    "APIResourceList",
    "APIVersions",
    "Status",
];

fn other_kind((kind, version): (&str, &str), (wanted, wanted_version): (&str, &str)) -> String {
    let short = |version: &str| {
        let parts = version.rsplit_once('/');
        parts.map_or(version, |(_, short)| short).to_owned()
    };
    let group = |version: &str| {
        let parts = version.rsplit_once('/');
        parts.map_or("", |(group, _)| group).to_owned()
    };
    let is_review = kind == wanted
        && group(version) == group(wanted_version)
        && matches!(short(version).as_str(), "v1" | "v1beta1");
    if is_review || version == "v1" && KNOWN.contains(&kind) {
        let (from, to) = (short(version), short(wanted_version));
        return format!("converting ({from}.{kind}) to ({to}.{wanted}): unknown conversion");
    }
    format!(
        "no kind {kind:?} is registered for version {version:?} in scheme \
         \"pkg/runtime/scheme.go:110\""
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(code: u16, content_type: &str, body: &str) -> Result<Value, String> {
        let reply = Reply {
            code,
            content_type: content_type.to_owned(),
            body: body.as_bytes().to_vec().into(),
        };
        reply.review("AdmissionReview", "admission.k8s.io/v1")
    }

    #[test]
    fn reviews_may_be_yaml_and_omit_their_kind() {
        let review = reply(200, "text/plain", "response:\n  allowed: true\n").unwrap();
        assert_eq!(review["response"]["allowed"], true);
        let review = reply(201, "", "{\"response\": {\"uid\": \"a\"}}").unwrap();
        assert_eq!(review["response"]["uid"], "a");
        assert!(reply(200, "", "null").unwrap().get("response").is_none());
    }

    #[test]
    fn wrong_values_are_reported_as_in_go() {
        let wrong = reply(200, "", "{\"response\": {\"allowed\": \"yes\"}}");
        let expected = "json: cannot unmarshal string into Go struct field \
                        AdmissionResponse.response.allowed of type bool";
        assert_eq!(wrong.unwrap_err(), expected);
        let wrong = reply(200, "", "{\"response\": {\"patch\": \"!\"}}");
        assert_eq!(wrong.unwrap_err(), "illegal base64 data at input byte 0");
        let wrong = reply(200, "", "{\"kind\": 5}").unwrap_err();
        let expected = "couldn't get version/kind; json parse error: json: cannot unmarshal number \
                        into Go struct field .kind of type string";
        assert_eq!(wrong, expected);
    }

    #[test]
    fn failures_have_the_message_of_their_status_or_code() {
        for (code, content_type, body, expected) in [
            (
                500,
                "text/plain; charset=utf-8",
                "boom\n",
                "an error on the server (\"boom\") has prevented the request from succeeding",
            ),
            (
                502,
                "application/json",
                "boom",
                "an error on the server (\"unknown\") has prevented the request from succeeding",
            ),
            (403, "text/plain", "no", "no"),
            (
                403,
                "",
                "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"m\"}",
                "m",
            ),
            (
                302,
                "",
                "",
                "the server responded with the status code 302 but did not return more information",
            ),
        ] {
            assert_eq!(reply(code, content_type, body).unwrap_err(), expected);
        }
    }

    #[test]
    fn other_kinds_are_not_converted() {
        let other = |version: &str, kind: &str| {
            let body = format!("{{\"apiVersion\":\"{version}\",\"kind\":\"{kind}\"}}");
            reply(200, "", &body).unwrap_err()
        };
        let unknown = "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown \
                       conversion";
        assert_eq!(
            other("admission.k8s.io/v1beta1", "AdmissionReview"),
            unknown
        );
        assert!(other("v1", "ConfigMap").starts_with("no kind \"ConfigMap\" is registered"));
    }
}
