//! JSON patches (RFC 6902), as the reference applies them.
//!
//! Upstream: `applyJSPatch` and `gopkg.in/evanphx/json-patch.v4`. It differs from the RFC: a test
//! compares the text of scalars; a missing member of an object equals null, can be copied, and can
//! be replaced; indices may be negative.

mod document;
mod operation;

use crate::go::json::syntax_error;
use crate::options::FieldValidation;
use crate::status::{ApiError, ApiResult};
use document::{Document, Failed};
use operation::Operation;

pub(crate) use operation::MEMBERS;

/// Maximum number of operations in a patch.
///
/// Upstream: `maxJSONPatchOperations`
const OPERATIONS_MAX: usize = 10_000;

/// Maximum size of all copies by a patch, in bytes of JSON text.
///
/// Upstream: `JSONPatchMaxCopyBytes`
const COPIED_MAX: usize = 3 << 20;

/// A JSON patch.
#[derive(Clone, Debug)]
pub struct JsonPatch {
    operations: Vec<Operation>,
}

impl JsonPatch {
    /// Decodes a patch.
    ///
    /// # Errors
    ///
    /// 400 for a body that isn't a JSON patch.
    pub(super) fn parse(body: &[u8], validation: FieldValidation) -> ApiResult<Self> {
        match operation::decode(body, validation) {
            Ok(operations) => Ok(Self { operations }),
            Err(why) if validation == FieldValidation::Ignore => Err(ApiError::bad_request(why)),
            Err(why) => Err(ApiError::bad_request(format!(
                "error decoding patch: {why}"
            ))),
        }
    }

    /// Applies the operations in order to the text of an object.
    ///
    /// # Errors
    ///
    /// 413 for too many operations, 422 for one that fails.
    pub(super) fn apply(&self, text: &[u8]) -> ApiResult<Vec<u8>> {
        let count = self.operations.len();
        if count > OPERATIONS_MAX {
            return Err(ApiError::new(
                413,
                "RequestEntityTooLarge",
                format!(
                    "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {count}"
                ),
            ));
        }
        let mut document = Document::new(text);
        let mut copied = 0;
        for operation in &self.operations {
            apply(&mut document, operation, &mut copied)
                .map_err(|Failed| ApiError::unprocessable())?;
        }
        let patched = document.text(document.root());
        // Operations may nest values deeper than the decoder accepts.
        match syntax_error(&patched) {
            None => Ok(patched),
            Some(_) => Err(ApiError::unprocessable()),
        }
    }
}

/// Applies an operation. `copied` counts the bytes of all copies.
fn apply(document: &mut Document, operation: &Operation, copied: &mut usize) -> Result<(), Failed> {
    let path = operation.path.as_deref().ok_or(Failed);
    match operation.op.as_str() {
        "add" => {
            let place = document.place(path?)?;
            let value = document.value(operation.value.as_deref());
            document.add(&place, value)
        }
        "remove" => {
            let place = document.place(path?)?;
            document.remove(&place)
        }
        "replace" => {
            let value = document.value(operation.value.as_deref());
            match path? {
                "" => document.replace_root(value),
                path => {
                    let place = document.place(path)?;
                    document.set(&place, value)
                }
            }
        }
        "test" => {
            let value = document.value(operation.value.as_deref());
            let found = match path? {
                "" => document.root(),
                path => {
                    let place = document.place(path)?;
                    document.get(&place)?
                }
            };
            if document.passes(found, value) {
                Ok(())
            } else {
                Err(Failed)
            }
        }
        "move" => {
            let source = document.place(operation.from.as_deref().ok_or(Failed)?)?;
            let value = document.get(&source)?;
            document.remove(&source)?;
            let place = document.place(path?)?;
            document.add(&place, value)
        }
        "copy" => {
            let source = document.place(operation.from.as_deref().ok_or(Failed)?)?;
            let value = document.get(&source)?;
            let place = document.place(path?)?;
            let (copy, size) = document.copy(value);
            *copied = copied.saturating_add(size);
            if *copied > COPIED_MAX {
                return Err(Failed);
            }
            document.add(&place, copy)
        }
        _ => Err(Failed),
    }
}

#[cfg(test)]
mod tests;
