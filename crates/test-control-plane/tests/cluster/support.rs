//! Helpers of several tests.

use serde_json::Value;

/// Returns the fields of a value that another lacks or has differently.
pub(crate) fn missing(wanted: &Value, found: &Value, path: &str) -> Vec<String> {
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => wanted
            .iter()
            .flat_map(|(name, wanted)| {
                let found = found.get(name).unwrap_or(&Value::Null);
                missing(wanted, found, &format!("{path}.{name}"))
            })
            .collect(),
        (Value::Array(wanted), Value::Array(found)) if wanted.len() == found.len() => {
            let pairs = wanted.iter().zip(found).enumerate();
            pairs
                .flat_map(|(at, (wanted, found))| missing(wanted, found, &format!("{path}[{at}]")))
                .collect()
        }
        _ if wanted == found => Vec::new(),
        _ => vec![format!("{path}: {wanted} became {found}")],
    }
}
