//! `OpenAPI` v3 documents: one per group version, built on the first request.

mod paths;
mod schemas;

use std::sync::{LazyLock, OnceLock};

use bytes::Bytes;
use ring::digest;
use serde_json::{Map, Value, json};

use crate::kinds;

/// The document of a group version.
#[derive(Debug)]
pub struct Document {
    /// The document as JSON.
    pub text: Bytes,
    /// Its hash, which versions the URL.
    pub hash: String,
    /// Its URL, with the hash.
    pub url: String,
}

/// A group version and its document, once it is built.
type Slot = ((&'static str, &'static str), OnceLock<Document>);

/// The rows never change, so the documents don't either.
static DOCUMENTS: LazyLock<Vec<Slot>> = LazyLock::new(|| {
    let served = kinds::group_versions().into_iter();
    served.map(|served| (served, OnceLock::new())).collect()
});

/// Returns the document URLs by group version, as JSON.
pub fn index() -> String {
    let served = DOCUMENTS.iter().filter_map(|((group, version), _)| {
        let document = document(group, version)?;
        let url = json!({"serverRelativeURL": document.url});
        Some((name(group, version), url))
    });
    json!({"paths": served.collect::<Map<_, _>>()}).to_string()
}

/// Returns the document of a group version, if it is served.
pub fn document(group: &str, version: &str) -> Option<&'static Document> {
    let mut slots = DOCUMENTS.iter();
    let (served, slot) = slots.find(|((g, v), _)| *g == group && *v == version)?;
    Some(slot.get_or_init(|| Document::of(served.0, served.1)))
}

impl Document {
    fn of(group: &str, version: &str) -> Self {
        let text = assemble(group, version).to_string();
        let hash = hash(text.as_bytes());
        Self {
            url: format!("/openapi/v3/{}?hash={hash}", name(group, version)),
            text: text.into(),
            hash,
        }
    }
}

fn assemble(group: &str, version: &str) -> Value {
    let schemas = schemas::of(group, version);
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.36.2"},
        "paths": paths::of(group, version, &schemas),
        "components": {"schemas": schemas},
    })
}

fn name(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("api/{version}")
    } else {
        format!("apis/{group}/{version}")
    }
}

/// Hashes a text as Kubernetes does: SHA-512 in upper-case hexadecimal digits.
pub fn hash(text: &[u8]) -> String {
    let hash = digest::digest(&digest::SHA512, text);
    let mut text = String::with_capacity(2 * hash.as_ref().len());
    for byte in hash.as_ref() {
        for digit in [byte >> 4, byte & 0xf] {
            let digit = char::from_digit(digit.into(), 16).unwrap_or_default();
            text.push(digit.to_ascii_uppercase());
        }
    }
    text
}
