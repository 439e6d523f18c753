//! JSON patches (RFC 6902), with limits, because a small patch can build a huge object.

use json_patch::PatchOperation;
use serde_json::{Value, json};

use crate::status::{ApiError, ApiResult};

/// Maximum number of operations in a patch.
const OPERATIONS_MAX: usize = 10_000;

/// Maximum size of all copies by a patch, in bytes of JSON text.
const COPIED_MAX: usize = 3 << 20;

/// Maximum nesting of an object, which is also the parser's limit.
const DEPTH_MAX: usize = 120;

/// Applies the operations in order.
///
/// # Errors
///
/// 413 for too many operations, 422 for one that fails.
pub(super) fn apply(value: &mut Value, operations: &[Value]) -> ApiResult<()> {
    if operations.len() > OPERATIONS_MAX {
        return Err(ApiError::new(
            413,
            "RequestEntityTooLarge",
            format!(
                "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {}",
                operations.len()
            ),
        ));
    }
    if operations.iter().any(is_at_root) {
        return Err(ApiError::unprocessable());
    }
    let operations: Vec<PatchOperation> =
        serde_json::from_value(json!(operations)).map_err(|_| ApiError::unprocessable())?;
    let mut copied = 0;
    for operation in &operations {
        if !fits(value, operation, &mut copied) {
            return Err(ApiError::unprocessable());
        }
        let operation = std::slice::from_ref(operation);
        json_patch::patch(value, operation).map_err(|_| ApiError::unprocessable())?;
    }
    Ok(())
}

/// Returns true for operations that the reference rejects at the root.
fn is_at_root(operation: &Value) -> bool {
    let name = operation.get("op").and_then(Value::as_str);
    matches!(name, Some("remove" | "test" | "add"))
        && operation.get("path").is_none_or(|path| path == "")
}

/// Returns true if the operation's value is within the limits of size and depth.
fn fits(object: &Value, operation: &PatchOperation, copied: &mut usize) -> bool {
    let pointed = |from: &str| object.pointer(from).unwrap_or(&Value::Null);
    let (path, value) = match operation {
        PatchOperation::Add(add) => (add.path.as_str(), &add.value),
        PatchOperation::Replace(replace) => (replace.path.as_str(), &replace.value),
        PatchOperation::Move(moved) => (moved.path.as_str(), pointed(moved.from.as_str())),
        PatchOperation::Copy(copy) => {
            let value = pointed(copy.from.as_str());
            *copied = copied.saturating_add(value.to_string().len());
            (copy.path.as_str(), value)
        }
        PatchOperation::Remove(_) | PatchOperation::Test(_) => return true,
    };
    let above = path.matches('/').count();
    *copied <= COPIED_MAX && above + depth(value) <= DEPTH_MAX
}

fn depth(value: &Value) -> usize {
    let inner = match value {
        Value::Array(elements) => elements.iter().map(depth).max(),
        Value::Object(members) => members.values().map(depth).max(),
        _ => return 0,
    };
    1 + inner.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(operations: &Value) -> Option<u16> {
        let mut object = json!({"spec": {"a": 1}});
        let result = apply(&mut object, operations.as_array().unwrap());
        result.err().map(|err| err.code)
    }

    #[test]
    fn oversized_patch_fails() {
        let copy = json!({"op": "copy", "from": "/spec", "path": "/spec/b"});
        assert_eq!(code(&json!([copy])), None);
        let doubling: Value = (0..64)
            .map(|i| json!({"op": "copy", "from": "/spec", "path": format!("/spec/{i}")}))
            .collect();
        assert_eq!(code(&doubling), Some(422));
        let many: Value = (0..=OPERATIONS_MAX).map(|_| copy.clone()).collect();
        assert_eq!(code(&many), Some(413));
    }

    #[test]
    fn deeply_nested_patch_fails() {
        let deeper: Value = (0..DEPTH_MAX)
            .map(|i| json!({"op": "add", "path": format!("/spec{}", "/b".repeat(i + 1)), "value": {}}))
            .collect();
        assert_eq!(code(&deeper), Some(422));
        let nested = |levels: usize| {
            let value = (0..levels).fold(json!(1), |inner, _| json!([inner]));
            json!([{"op": "replace", "path": "/spec", "value": value}])
        };
        assert_eq!(code(&nested(100)), None);
        assert_eq!(code(&nested(DEPTH_MAX)), Some(422));
    }
}
