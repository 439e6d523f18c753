//! YAML responses, equal to upstream's in every character.
//!
//! Upstream: the emitter of `sigs.k8s.io/yaml`.

mod resolve;
mod scalar;
mod writer;

use serde_json::Value;

use self::writer::Writer;

/// Converts JSON text to YAML: members sorted by name, lists not indented. Returns `None` if the
/// text isn't JSON.
pub fn from_json(text: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(text).ok()?;
    let mut writer = Writer::default();
    writer.document(&value);
    Some(writer.finish())
}

#[cfg(test)]
mod tests;
