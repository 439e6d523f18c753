//! File format of recorded odd objects.

use std::collections::BTreeMap;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// Requests that create an odd object, and upstream's reaction.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Case {
    /// Three-digit id.
    pub id: String,
    /// Description of the oddity, as a sentence.
    pub about: String,
    /// Requests, and runs of the controller between them, in order.
    pub steps: Vec<Step>,
    /// Object of the case after the steps; `None` if the server rejected it.
    pub stored: Option<Recorded>,
    /// Other objects created by the steps.
    #[serde(default)]
    pub stored_more: Vec<Recorded>,
    /// Outcome of upstream's controller; `None` if no object was created.
    pub controller: Option<ControllerRecord>,
    /// All objects after the controller's run.
    #[serde(rename = "final")]
    pub left: Option<Lists>,
}

impl Case {
    /// Parses a case from its line.
    ///
    /// # Errors
    ///
    /// The line has another format.
    pub fn parse(line: &str) -> anyhow::Result<Self> {
        serde_json::from_str(line).context("not a recorded odd object")
    }

    /// Namespace in every path of the case.
    pub fn namespace(&self) -> String {
        format!("odd-{}", self.id)
    }

    /// All recorded objects; the object of the case comes first.
    pub fn recorded(&self) -> impl Iterator<Item = &Recorded> {
        self.stored.iter().chain(&self.stored_more)
    }
}

/// One step of a case.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Step {
    /// The controller runs for a while.
    ControllerRuns(ControllerRuns),
    /// A client sends a request.
    Request(Request),
}

/// A run of the controller between two requests.
#[derive(Debug, Deserialize)]
pub struct ControllerRuns {
    /// Duration in seconds.
    #[serde(rename = "controllerRuns")]
    pub seconds: f64,
}

/// A request and the status of its response.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// The HTTP method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The content type of the body.
    pub content_type: String,
    /// Body of the request.
    #[serde(rename = "bodyBase64", deserialize_with = "base64")]
    pub body: Bytes,
    /// Status of the response; 0 if the server closed the connection without one.
    pub status: u16,
    /// Reason in a response of kind Status.
    #[serde(default)]
    pub reason: String,
    /// Message in a response of kind Status, with uids masked, truncated to 600 characters.
    #[serde(default)]
    pub message: String,
    /// `Warning` headers of the response, at most 20.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Uids in the body, with the path of each one's object.
    #[serde(default)]
    pub uids: BTreeMap<String, String>,
}

/// Response to a GET.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recorded {
    /// Path of the request.
    pub path: String,
    /// Status of the response; 0 if the server closed the connection.
    pub status: u16,
    /// Body; `None` if the record has only a digest.
    #[serde(rename = "bodyBase64", default, deserialize_with = "base64_if_there")]
    pub body: Option<Bytes>,
    /// SHA-256 of a body of more than 200,000 bytes.
    pub sha256: Option<String>,
    /// Length of such a body.
    pub length: Option<u64>,
}

/// Outcome of upstream's controller.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerRecord {
    /// Duration of its run, in seconds.
    pub seconds: f64,
    /// True if it was started after the steps, and so listed their result.
    pub started_after_steps: bool,
    /// True if its process is still running.
    pub alive: bool,
    /// True if it observed the generation of every set; `None` without sets.
    pub observed: Option<bool>,
    /// Pod names, sorted.
    pub pods: Vec<String>,
    /// Claim names, sorted.
    pub claims: Vec<String>,
    /// Revision names, sorted.
    pub revisions: Vec<String>,
    /// `resource/name` of objects with a deletion timestamp.
    pub terminating: Vec<String>,
    /// Distinct event reasons, sorted.
    pub event_reasons: Vec<String>,
    /// Distinct messages of warning events, at most 10.
    pub warnings: Vec<String>,
    /// True if an ordinary set got its pod within five seconds.
    pub probe_works: bool,
    /// Number of logged errors about the namespace.
    #[serde(default)]
    pub log_errors: u64,
    /// The first such error.
    pub log_error: Option<String>,
    /// Logged panic.
    pub panic: Option<String>,
    /// Retries because its cache was older than its own write.
    #[serde(default)]
    pub stale_reads: u64,
    /// Peak resident memory, in MB.
    #[serde(rename = "peakMB")]
    pub peak_mb: Option<f64>,
}

/// Raw list responses.
#[derive(Debug, Deserialize)]
pub struct Lists {
    /// The sets.
    pub statefulsets: Recorded,
    /// The revisions.
    pub controllerrevisions: Recorded,
    /// The pods.
    pub pods: Recorded,
    /// The claims.
    pub persistentvolumeclaims: Recorded,
}

fn base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    let text = String::deserialize(deserializer)?;
    let bytes = STANDARD.decode(text).map_err(D::Error::custom)?;
    Ok(bytes.into())
}

fn base64_if_there<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Bytes>, D::Error> {
    base64(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_keeps_binary_bodies() {
        let case = Case::parse(
            r#"{"id": "001", "about": "a byte", "steps": [
                {"method": "POST", "path": "/p", "contentType": "application/json",
                 "bodyBase64": "Iv8i", "status": 201, "uids": {"u": "/set"}},
                {"controllerRuns": 0.5}],
                "stored": {"path": "/p/a", "status": 200, "sha256": "00", "length": 3}}"#,
        );
        let case = case.unwrap();
        let [Step::Request(request), Step::ControllerRuns(run)] = &*case.steps else {
            panic!("other steps: {:?}", case.steps);
        };
        assert_eq!(*request.body, *b"\"\xff\"");
        assert_eq!(request.uids["u"], "/set");
        assert!((run.seconds - 0.5).abs() < f64::EPSILON);
        assert_eq!(case.recorded().count(), 1);
        assert_eq!(case.recorded().next().unwrap().body, None);
        assert_eq!(case.namespace(), "odd-001");
    }

    #[test]
    fn parse_rejects_another_format() {
        assert!(Case::parse(r#"{"id": "001", "about": "", "steps": [{}]}"#).is_err());
    }
}
