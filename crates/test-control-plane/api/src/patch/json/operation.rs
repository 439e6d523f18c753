//! Decoding of a patch's operations, with Go's messages.

use crate::go::json::cursor::{Cursor, is_huge, numbers};
use crate::go::json::{syntax_error, type_name};
use crate::options::FieldValidation;

/// An operation as sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Operation {
    /// The name of the operation; empty if it is missing.
    pub(super) op: String,
    /// The path that the operation is about.
    pub(super) path: Option<String>,
    /// The path of the source of a copy or a move.
    pub(super) from: Option<String>,
    /// The text of the value, nulls included.
    pub(super) value: Option<Vec<u8>>,
}

/// The members of an operation.
pub(crate) const MEMBERS: [&str; 4] = ["op", "path", "from", "value"];

/// Decodes the operations of a patch.
///
/// # Errors
///
/// Go's message for a body that isn't a list of operations. Without field validation upstream
/// decodes the body once, as a list of maps; else also as a list of operations, which checks the
/// types of the members.
pub(super) fn decode(body: &[u8], validation: FieldValidation) -> Result<Vec<Operation>, String> {
    let is_typed = validation != FieldValidation::Ignore;
    let (list, element) = if is_typed {
        ("[]handlers.jsonPatchOp", "handlers.jsonPatchOp")
    } else {
        ("jsonpatch.Patch", "jsonpatch.Operation")
    };
    if let Some(why) = syntax_error(body) {
        return Err(why);
    }
    let mut cursor = Cursor::new(body);
    match cursor.peek() {
        b'[' => {}
        b'n' => return Ok(Vec::new()),
        _ => return Err(cannot_unmarshal(cursor.raw(), &value_of(list))),
    }
    let mut operations = Vec::new();
    let mut more = cursor.open(b'[', b']');
    while more {
        let raw = cursor.raw();
        operations.push(match raw.first() {
            Some(b'{') => operation(raw, is_typed)?,
            Some(b'n') => Operation::default(),
            _ => return Err(cannot_unmarshal(raw, &value_of(element))),
        });
        more = cursor.next(b']');
    }
    Ok(operations)
}

fn operation(text: &[u8], is_typed: bool) -> Result<Operation, String> {
    let mut operation = Operation::default();
    let mut cursor = Cursor::new(text);
    let mut more = cursor.open(b'{', b'}');
    while more {
        let name = cursor.name();
        let raw = cursor.raw();
        match &*name {
            "op" => operation.op = text_of(&name, raw, is_typed)?.unwrap_or_default(),
            "path" => operation.path = text_of(&name, raw, is_typed)?,
            "from" => operation.from = text_of(&name, raw, is_typed)?,
            "value" => {
                if is_typed && let Some(number) = numbers(raw).find(|number| is_huge(number)) {
                    let number = String::from_utf8_lossy(number);
                    return Err(format!(
                        "json: cannot unmarshal number {number} into Go struct field \
                         jsonPatchOp.value of type float64"
                    ));
                }
                operation.value = Some(raw.to_vec());
            }
            _ => {}
        }
        more = cursor.next(b'}');
    }
    Ok(operation)
}

/// Returns the text of a member; `None` for a null and, unless members are typed, for any other
/// value.
fn text_of(name: &str, raw: &[u8], is_typed: bool) -> Result<Option<String>, String> {
    match raw.first() {
        Some(b'"') => Ok(Some(Cursor::new(raw).string())),
        Some(b'n') => Ok(None),
        _ if !is_typed => Ok(None),
        _ => {
            let into = format!("struct field jsonPatchOp.{name} of type string");
            Err(cannot_unmarshal(raw, &into))
        }
    }
}

fn value_of(found: &str) -> String {
    format!("value of type {found}")
}

fn cannot_unmarshal(raw: &[u8], into: &str) -> String {
    let found = type_name(&String::from_utf8_lossy(raw));
    format!("json: cannot unmarshal {found} into Go {into}")
}
