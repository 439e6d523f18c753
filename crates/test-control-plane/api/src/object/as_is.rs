//! Objects stored verbatim, such as those that a backup or a server of another version leaves in a
//! store.

use super::stored_text::{read, type_meta};
use super::{Draft, Key, Object};
use crate::go::json::cursor::Cursor;
use crate::go::json::syntax_error;
use crate::kinds::{self, Kind, Trait};

/// A reason why a text can't be stored as an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreAsIsError {
    /// The text isn't JSON by Go's rules.
    #[error("{0}")]
    Syntax(String),
    /// The kind is unknown.
    #[error("no matches for kind {kind:?} in version {api_version:?}")]
    Kind {
        /// The apiVersion in the text.
        api_version: String,
        /// The kind in the text.
        kind: String,
    },
    /// The object has no name.
    #[error("the object has no name")]
    Name,
    /// A field has a value that its type doesn't have.
    #[error("{0}")]
    Value(String),
}

/// An object to store verbatim.
#[derive(Clone)]
pub struct AsIs {
    /// The kind of the object.
    pub kind: &'static Kind,
    /// The storage key of the object.
    pub key: Key,
    draft: Draft,
    text: Vec<u8>,
}

impl AsIs {
    /// Parses the parts of an object that the store needs.
    ///
    /// # Errors
    ///
    /// The text is no object of a known kind, or the object has no name.
    pub fn read(text: &[u8]) -> Result<Self, StoreAsIsError> {
        if let Some(why) = syntax_error(text) {
            return Err(StoreAsIsError::Syntax(why));
        }
        let (api_version, kind_name) = type_meta(text);
        let served = kinds::by_kind(&api_version, &kind_name);
        let kind = served.filter(|kind| !kind.has(Trait::View) && !kind.has(Trait::Virtual));
        let Some(kind) = kind else {
            return Err(StoreAsIsError::Kind {
                api_version,
                kind: kind_name,
            });
        };
        let draft = Draft::of_read(kind.has(Trait::RawData), text, read(text));
        let draft = draft.map_err(StoreAsIsError::Syntax)?;
        let metadata = draft.metadata();
        if metadata.name().is_empty() {
            return Err(StoreAsIsError::Name);
        }
        let namespace = if kind.namespaced {
            metadata.namespace()
        } else {
            ""
        };
        Ok(Self {
            kind,
            key: Key::new(kind, namespace, metadata.name()),
            text: text.trim_ascii().to_vec(),
            draft,
        })
    }

    /// Returns the object for changes before it is stored.
    pub fn into_draft(self) -> Draft {
        self.draft
    }

    /// Returns the object as a stored version.
    pub fn commit(self, resource_version: u64) -> Object {
        let text = with_version(&self.text, resource_version);
        let mut object = Object::of_text(self.kind, self.key, self.draft, resource_version, text);
        let version = self.kind.api_version();
        let head = format!(
            "{{\"kind\":\"{}\",\"apiVersion\":\"{version}\",",
            self.kind.kind
        );
        if object.text.starts_with(head.as_bytes()) {
            object.after_type_meta = head.len();
        }
        object
    }
}

/// Replaces the resource version in the metadata. The rest of the text stays unchanged.
fn with_version(text: &[u8], version: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 32);
    let mut copied = 0;
    let mut put = |out: &mut Vec<u8>, from: usize, to: usize, by: &str| {
        out.extend_from_slice(&text[copied..from]);
        out.extend_from_slice(by.as_bytes());
        copied = to;
    };
    let mut cursor = Cursor::new(text);
    let mut more = cursor.open(b'{', b'}');
    while more {
        let name = cursor.name();
        if name != "metadata" || cursor.peek() != b'{' {
            cursor.raw();
            more = cursor.next(b'}');
            continue;
        }
        let mut is_found = false;
        let start = cursor.at() + 1;
        let mut inner = cursor.open(b'{', b'}');
        let is_empty = !inner;
        while inner {
            let name = cursor.name();
            cursor.peek();
            let from = cursor.at();
            cursor.raw();
            if name == "resourceVersion" {
                is_found = true;
                put(&mut out, from, cursor.at(), &format!("\"{version}\""));
            }
            inner = cursor.next(b'}');
        }
        if !is_found {
            let comma = if is_empty { "" } else { "," };
            let member = format!("\"resourceVersion\":\"{version}\"{comma}");
            put(&mut out, start, start, &member);
        }
        more = cursor.next(b'}');
    }
    out.extend_from_slice(&text[copied..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versioned(text: &str) -> String {
        String::from_utf8(with_version(text.as_bytes(), 7)).unwrap()
    }

    #[test]
    fn only_the_version_is_replaced() {
        assert_eq!(
            versioned(r#"{ "metadata": {"name": "a", "resourceVersion" : "12" }, "x": 1e5 }"#),
            r#"{ "metadata": {"name": "a", "resourceVersion" : "7" }, "x": 1e5 }"#
        );
        assert_eq!(
            versioned(r#"{"spec":{"metadata":{"resourceVersion":"1"}},"metadata":{"name":"a"}}"#),
            r#"{"spec":{"metadata":{"resourceVersion":"1"}},"metadata":{"resourceVersion":"7","name":"a"}}"#
        );
        assert_eq!(
            versioned("{\"metadata\":{}}"),
            "{\"metadata\":{\"resourceVersion\":\"7\"}}"
        );
    }

    #[test]
    fn read_rejects_texts_of_unknown_kinds() {
        for (text, why) in [
            ("{", "unexpected end of JSON input"),
            ("{}", "no matches for kind \"\" in version \"\""),
            (
                r#"{"kind":"Pod","apiVersion":"v9"}"#,
                "no matches for kind \"Pod\" in version \"v9\"",
            ),
            (
                r#"{"kind":"Pod","apiVersion":"v1"}"#,
                "the object has no name",
            ),
        ] {
            let error = AsIs::read(text.as_bytes()).err().unwrap();
            assert_eq!(error.to_string(), why);
        }
    }
}
