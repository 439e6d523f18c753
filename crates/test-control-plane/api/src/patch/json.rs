//! JSON patches (RFC 6902), as upstream applies them.
//!
//! Upstream: `applyJSPatch` and `gopkg.in/evanphx/json-patch.v4`. It differs from the RFC: a test
//! compares the text of scalars; a missing member of an object equals null, can be copied, and can
//! be replaced; indices may be negative.

mod document;
mod operation;

use crate::go::json::syntax_error;
use crate::options::FieldValidation;
use crate::status::{ApiError, ApiResult};
use document::Document;
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

/// An operation that doesn't apply.
#[derive(Clone, Debug, Default)]
pub struct Failed {
    /// The text of the library that upstream uses.
    pub text: String,
    /// True for a test of an existing value.
    pub is_test: bool,
}

impl From<String> for Failed {
    fn from(text: String) -> Self {
        let is_test = false;
        Self { text, is_test }
    }
}

impl JsonPatch {
    /// Decodes a patch.
    ///
    /// # Errors
    ///
    /// 400 for a body that isn't a JSON patch.
    pub fn parse(body: &[u8], validation: FieldValidation) -> ApiResult<Self> {
        match operation::decode(body, validation) {
            Ok(operations) => Ok(Self { operations }),
            Err(why) if validation == FieldValidation::Ignore => Err(ApiError::bad_request(why)),
            Err(why) => Err(ApiError::bad_request(format!(
                "error decoding patch: {why}"
            ))),
        }
    }

    /// Returns true if there are no operations.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
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
        let patched = self.run(text).map_err(|_| ApiError::unprocessable())?;
        // Operations may nest values deeper than the decoder accepts.
        match syntax_error(&patched) {
            None => Ok(patched),
            Some(_) => Err(ApiError::unprocessable()),
        }
    }

    /// Applies the operations in order to the text of an object.
    ///
    /// # Errors
    ///
    /// An operation fails.
    pub fn run(&self, text: &[u8]) -> Result<Vec<u8>, Failed> {
        let mut document = Document::new(text);
        let mut copied = 0;
        for operation in &self.operations {
            apply(&mut document, operation, &mut copied)?;
        }
        Ok(document.text(document.root()))
    }
}

/// Upstream's text for an absent value.
const MISSING: &str = "missing value";

/// Applies an operation. `copied` counts the bytes of all copies.
fn apply(document: &mut Document, operation: &Operation, copied: &mut usize) -> Result<(), Failed> {
    let op = operation.op.as_str();
    if !["add", "copy", "move", "remove", "replace", "test"].contains(&op) {
        return Err(Failed::from(format!("Unexpected kind: {op}")));
    }
    let path = operation.path.as_deref();
    let path = path.ok_or_else(|| format!("{op} operation failed to decode path: {MISSING}"))?;
    let absent = || absent(op, "doc is missing path", path);
    match op {
        "add" => {
            let place = document.place(path).ok_or_else(absent)?;
            let value = document.value(operation.value.as_deref());
            document
                .add(&place, value)
                .map_err(|why| wrong(op, path, &why))?;
        }
        "remove" => {
            let place = document.place(path).ok_or_else(absent)?;
            document
                .remove(&place)
                .map_err(|why| wrong(op, path, &why))?;
        }
        "replace" => {
            let value = document.value(operation.value.as_deref());
            if path.is_empty() {
                return document.replace_root(value).map_err(Failed::from);
            }
            let place = document.place(path).ok_or_else(absent)?;
            document
                .set(&place, value)
                .map_err(|why| wrong("remove", path, &why))?;
        }
        "test" => test(document, operation, path)?,
        _ => {
            let from = operation.from.as_deref();
            let from =
                from.ok_or_else(|| format!("{op} operation failed to decode from: {MISSING}"))?;
            transfer(document, op, from, path, copied)?;
        }
    }
    Ok(())
}

fn absent(op: &str, what: &str, path: &str) -> String {
    let path = match op {
        "add" | "remove" => format!("\"{path}\""),
        _ => path.to_owned(),
    };
    format!("{op} operation does not apply: {what}: {path}: {MISSING}")
}

fn wrong(op: &str, path: &str, why: &str) -> String {
    format!("error in {op} for path: '{path}': {why}")
}

fn test(document: &mut Document, operation: &Operation, path: &str) -> Result<(), Failed> {
    let value = document.value(operation.value.as_deref());
    let found = if path.is_empty() {
        document.root()
    } else {
        let place = document.place(path);
        let place = place.ok_or_else(|| absent("test", "is missing path", path))?;
        document
            .get(&place)
            .map_err(|why| wrong("test", path, &why))?
    };
    if document.passes(found, value) {
        return Ok(());
    }
    Err(Failed {
        text: format!("testing value {path} failed: test failed"),
        is_test: true,
    })
}

/// Moves or copies a value.
fn transfer(
    document: &mut Document,
    op: &str,
    from: &str,
    path: &str,
    copied: &mut usize,
) -> Result<(), Failed> {
    let source = document.place(from);
    let source = source.ok_or_else(|| absent(op, "doc is missing from path", from))?;
    let mut value = document.get(&source).map_err(|why| match op {
        "move" => wrong(op, source.key(), &why),
        _ => format!("error in copy for from: '{from}': {why}"),
    })?;
    if op == "move" {
        document
            .remove(&source)
            .map_err(|why| wrong(op, source.key(), &why))?;
    }
    let place = document.place(path);
    let place = place.ok_or_else(|| absent(op, "doc is missing destination path", path))?;
    if op == "copy" {
        let (copy, size) = document.copy(value);
        *copied = copied.saturating_add(size);
        if *copied > COPIED_MAX {
            return Err(Failed::default());
        }
        value = copy;
    }
    document.add(&place, value).map_err(|why| match op {
        "move" => wrong(op, path, &why),
        _ => format!("error while adding value during copy: {why}"),
    })?;
    Ok(())
}

#[cfg(test)]
mod tests;
