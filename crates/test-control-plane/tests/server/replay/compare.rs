//! Compares a recorded body, in which some values are masked, with a real one.

use serde_json::Value;

const MASKS: [&str; 7] = [
    "<uid>", "<rv>", "<time>", "<token>", "<suffix>", "<age>", "<n>",
];

/// What differs first, if anything.
pub(super) fn same(wanted: &Value, found: &Value, managed_fields: bool) -> Result<(), String> {
    at("", wanted, found, managed_fields)
}

fn at(path: &str, wanted: &Value, found: &Value, managed_fields: bool) -> Result<(), String> {
    match (wanted, found) {
        (Value::Object(w), Value::Object(f)) => {
            let keys: std::collections::BTreeSet<&String> = w.keys().chain(f.keys()).collect();
            for key in keys {
                if key == "managedFields" && !managed_fields {
                    continue;
                }
                let inner = format!("{path}.{key}");
                match (w.get(key), f.get(key)) {
                    (Some(w), Some(f)) => at(&inner, w, f, managed_fields)?,
                    (Some(w), None) => return Err(format!("{inner}: missing, should be {w}")),
                    (None, f) => return Err(format!("{inner}: should be missing, is {f:?}")),
                }
            }
            Ok(())
        }
        (Value::Array(w), Value::Array(f)) if w.len() == f.len() => {
            for (i, (w, f)) in w.iter().zip(f).enumerate() {
                at(&format!("{path}[{i}]"), w, f, managed_fields)?;
            }
            Ok(())
        }
        (Value::String(w), Value::String(f)) if text_matches(w, f) => Ok(()),
        (Value::Number(w), Value::Number(f)) if w.as_f64() == f.as_f64() => Ok(()),
        _ if wanted == found => Ok(()),
        _ => Err(format!("{path}: should be {wanted}, is {found}")),
    }
}

fn text_matches(wanted: &str, found: &str) -> bool {
    let next = MASKS
        .iter()
        .filter_map(|mask| wanted.find(mask).map(|i| (i, *mask)))
        .min();
    let Some((start, mask)) = next else {
        return wanted == found;
    };
    let Some(rest) = found.strip_prefix(&wanted[..start]) else {
        return false;
    };
    let after = &wanted[start + mask.len()..];
    (0..=rest.len())
        .filter(|i| rest.is_char_boundary(*i))
        .any(|i| mask_matches(mask, &rest[..i]) && text_matches(after, &rest[i..]))
}

fn mask_matches(mask: &str, text: &str) -> bool {
    let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    match mask {
        // Owner references may name uids that the test made up.
        "<uid>" => !text.is_empty(),
        "<rv>" | "<n>" => digits(text),
        "<time>" => kube_apimachinery::time::parse(text).is_ok(),
        "<suffix>" => text.len() == 5,
        "<age>" => text.ends_with(['s', 'm', 'h', 'd']) && digits(&text[..1]),
        _ => true,
    }
}
