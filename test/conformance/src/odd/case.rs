//! The form of recorded odd objects.

use std::collections::BTreeMap;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// Requests that make an odd object, and what the reference did with it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Case {
    /// Three digits.
    pub id: String,
    /// What is odd, as a sentence.
    pub about: String,
    /// Requests, and runs of the controller between them, in order.
    pub steps: Vec<Step>,
    /// The object that the case is about, after the steps; none if the server refused it.
    pub stored: Option<Recorded>,
    /// The other objects that the steps made.
    #[serde(default)]
    pub stored_more: Vec<Recorded>,
    /// The outcome of the reference's controller; none if no object was made.
    pub controller: Option<ControllerRecord>,
    /// All objects after the controller ran.
    #[serde(rename = "final")]
    pub left: Option<Lists>,
}

impl Case {
    /// Reads a case from its line.
    ///
    /// # Errors
    ///
    /// The line has another form.
    pub fn parse(line: &str) -> anyhow::Result<Self> {
        serde_json::from_str(line).context("no recorded odd object")
    }

    /// The namespace that every path of the case names.
    pub fn namespace(&self) -> String {
        format!("odd-{}", self.id)
    }

    /// Every recorded object: the one that the case is about, then the others.
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
    /// How long it runs.
    #[serde(rename = "controllerRuns")]
    pub seconds: f64,
}

/// A request and the head of its answer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// The HTTP method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The content type of the body.
    pub content_type: String,
    /// The body as sent.
    #[serde(rename = "bodyBase64", deserialize_with = "base64")]
    pub body: Bytes,
    /// The status of the answer; 0 if the server closed the connection without one.
    pub status: u16,
    /// The reason of an answer of kind Status.
    #[serde(default)]
    pub reason: String,
    /// The message of an answer of kind Status, uids masked, cut at 600 characters.
    #[serde(default)]
    pub message: String,
    /// The answer's `Warning` headers, at most 20.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// The uids in the body, with the path of the object that each one belongs to.
    #[serde(default)]
    pub uids: BTreeMap<String, String>,
}

/// The answer to a GET.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recorded {
    /// The path.
    pub path: String,
    /// The status of the answer; 0 if the server closed the connection on it.
    pub status: u16,
    /// The body; none if the record holds a digest alone.
    #[serde(rename = "bodyBase64", default, deserialize_with = "base64_if_there")]
    pub body: Option<Bytes>,
    /// The SHA-256 of a body of more than 200,000 bytes.
    pub sha256: Option<String>,
    /// The length of such a body.
    pub length: Option<u64>,
}

/// The outcome of the reference's controller.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerRecord {
    /// How long it ran.
    pub seconds: f64,
    /// Whether it listed the result of the steps, as it was started after them.
    pub started_after_steps: bool,
    /// Whether its process still runs.
    pub alive: bool,
    /// Whether it observed the generation of every set; none if there is no set.
    pub observed: Option<bool>,
    /// The names of the pods, sorted.
    pub pods: Vec<String>,
    /// The names of the claims, sorted.
    pub claims: Vec<String>,
    /// The names of the revisions, sorted.
    pub revisions: Vec<String>,
    /// `resource/name` of what has a deletion timestamp.
    pub terminating: Vec<String>,
    /// The distinct reasons of events, sorted.
    pub event_reasons: Vec<String>,
    /// The distinct messages of warning events, at most 10.
    pub warnings: Vec<String>,
    /// Whether an ordinary set got its pod within five seconds.
    pub probe_works: bool,
    /// The number of errors logged about the namespace.
    #[serde(default)]
    pub log_errors: u64,
    /// The first of them.
    pub log_error: Option<String>,
    /// The panic that it logged.
    pub panic: Option<String>,
    /// Retries because its cache was older than its own write.
    #[serde(default)]
    pub stale_reads: u64,
    /// Its highest resident memory, in MB.
    #[serde(rename = "peakMB")]
    pub peak_mb: Option<f64>,
}

/// Raw list answers.
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
    fn case_keeps_bytes_that_are_no_text() {
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
    fn case_of_another_form_is_an_error() {
        assert!(Case::parse(r#"{"id": "001", "about": "", "steps": [{}]}"#).is_err());
    }
}
