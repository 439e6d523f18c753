//! Removal of `managedFields`, which no decision reads; often half of an object's text.

use std::borrow::Cow;

use kube_apimachinery::json::RawObject;
use memchr::memmem;

/// The list in the form that API servers write.
const FIELDS: &str = r#""managedFields":["#;
/// Marks the end of the metadata: a `managedFields` list after it must stay.
const SPEC: &str = r#""spec""#;

/// Returns an object's text with `null` for the `managedFields` in its metadata; every other value
/// keeps its bytes. The end of the list is found by its brackets, in half the time of parsing it.
/// Returns the whole text if the list is not where API servers write it.
pub(crate) fn null_managed_fields(json: &str) -> Cow<'_, str> {
    without_list(json).unwrap_or(Cow::Borrowed(json))
}

fn without_list(json: &str) -> Option<Cow<'_, str>> {
    let (before, list) =
        json.split_at_checked(memmem::find(json.as_bytes(), FIELDS.as_bytes())?)?;
    if memmem::find(before.as_bytes(), SPEC.as_bytes()).is_some() {
        return None;
    }
    // The name and the colon stay.
    let (name, list) = list.split_at_checked(FIELDS.len() - 1)?;
    let after = list.get(list_len(list)?..)?;
    Some([before, name, "null", after].concat().into())
}

/// Length of the list that the text begins with.
fn list_len(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut bytes = text.as_bytes().iter();
    loop {
        match bytes.next()? {
            b'"' => loop {
                match bytes.next()? {
                    b'"' => break,
                    b'\\' => drop(bytes.next()),
                    _ => {}
                }
            },
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 1 => return Some(text.len() - bytes.len()),
            b'}' | b']' => depth -= 1,
            _ => {}
        }
    }
}

/// Takes an object apart, without `managedFields` in its metadata; every other value keeps its bytes.
/// A PUT without them leaves the server's unchanged; altered ones would replace them.
///
/// # Errors
///
/// The object or its metadata is not an object.
pub(crate) fn without_managed_fields(json: &str) -> Result<RawObject<'_>, serde_json::Error> {
    RawObject::parse_edited(json, "metadata", |metadata| {
        metadata.remove("managedFields");
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_in_the_metadata_becomes_null() {
        for (text, expected) in [
            (
                r#"{"metadata":{"a":{},"managedFields":[{"f":{"a]\"":{}},"m":"\\"}],"z":1},"spec":{}}"#,
                r#"{"metadata":{"a":{},"managedFields":null,"z":1},"spec":{}}"#,
            ),
            (
                r#"{"metadata":{"managedFields":[]},"spec":{"metadata":{"managedFields":[1]}}}"#,
                r#"{"metadata":{"managedFields":null},"spec":{"metadata":{"managedFields":[1]}}}"#,
            ),
            (
                r#"{"metadata":{"managedFields":[[]]}}"#,
                r#"{"metadata":{"managedFields":null}}"#,
            ),
        ] {
            assert_eq!(null_managed_fields(text), expected);
        }
    }

    #[test]
    fn other_texts_stay_whole() {
        for text in [
            "",
            r#"{"metadata":{"managedFields":null},"spec":{}}"#,
            r#"{"metadata":{"managedFields": []},"spec":{}}"#,
            r#"{"metadata":{"note":"\"managedFields\":["},"spec":{}}"#,
            r#"{"spec":{"template":{"metadata":{"managedFields":[]}}},"metadata":{}}"#,
            r#"{"spec":{},"metadata":{"managedFields":[]}}"#,
            r#"{"spec" : {"metadata":{"managedFields":[]}},"metadata":{}}"#,
            r#"{"metadata":{"managedFields":["#,
            r#"{"metadata":{"managedFields":["x\"]"#,
            r#"{"metadata":{"managedFields":[{"#,
        ] {
            assert_eq!(null_managed_fields(text), text);
        }
    }
}
