//! YAML answers, to the character as the reference writes them.
//!
//! Upstream: the emitter of `sigs.k8s.io/yaml`.

mod resolve;
mod scalar;
mod writer;

use serde_json::Value;

use self::writer::Writer;

/// The YAML form of JSON text: members in the order of their names, lists not indented. None if the
/// text isn't JSON.
pub fn from_json(text: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(text).ok()?;
    let mut writer = Writer::default();
    writer.document(&value);
    Some(writer.finish())
}

#[cfg(test)]
mod tests;
