//! The recorded requests from which random requests are built.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// A recorded request.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) method: String,
    /// The path with its query.
    pub(crate) path: String,
    /// The content type; empty if absent.
    pub(crate) content_type: String,
    pub(crate) body: Value,
}

/// All recorded requests.
#[derive(Debug, Default)]
pub(crate) struct Corpus {
    pub(crate) steps: Vec<Step>,
    /// Protobuf bodies with their apiVersion and kind.
    pub(crate) messages: Vec<(String, String, Vec<u8>)>,
}

impl Corpus {
    /// Reads the recordings; missing ones are skipped.
    pub(crate) fn read() -> Self {
        let mut corpus = Self::default();
        let cases: Value = serde_json::from_str(&vectors("apiserver.json")).unwrap_or_default();
        let steps = cases.as_array().into_iter().flatten();
        let steps = steps.filter_map(|case| case.get("steps")?.as_array());
        for step in steps.flatten() {
            let text = |pointer: &str| {
                let value = step.pointer(pointer).and_then(Value::as_str);
                value.unwrap_or_default().to_owned()
            };
            corpus.steps.push(Step {
                method: text("/method").replace("WATCH", "GET"),
                path: text("/path").replace("{ns}", "default"),
                content_type: text("/headers/Content-Type"),
                body: step.get("body").cloned().unwrap_or_default(),
            });
        }
        for line in vectors("protobuf.jsonl").lines() {
            let case: Value = serde_json::from_str(line).unwrap_or_default();
            let text = |pointer: &str| case.pointer(pointer).and_then(Value::as_str);
            let (api_version, kind) = (text("/expect/apiVersion"), text("/expect/kind"));
            let bytes = text("/body").and_then(|body| STANDARD.decode(body).ok());
            if let (Some(api_version), Some(kind), Some(bytes)) = (api_version, kind, bytes) {
                let message = (api_version.to_owned(), kind.to_owned(), bytes);
                corpus.messages.push(message);
            }
        }
        corpus
    }
}

fn vectors(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../test/vectors");
    std::fs::read_to_string(format!("{folder}/{name}")).unwrap_or_default()
}
