//! Continue tokens of paged lists.

use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, NO_PAD};
use base64::{Engine, alphabet};
use serde_json::{Value, json};

use crate::go;
use crate::kinds::Kind;
use crate::object::Key;

/// The format version of tokens.
const VERSION: &str = "meta.k8s.io/v1";

/// Go's unpadded base64, which ignores left-over bits.
const BASE64: GeneralPurpose = {
    let config: GeneralPurposeConfig = NO_PAD.with_decode_allow_trailing_bits(true);
    GeneralPurpose::new(&alphabet::URL_SAFE, config)
};

/// The position at which a list was cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The revision of the first page; `None` continues at the newest.
    pub revision: Option<u64>,
    /// The first key of the next page, relative to the collection.
    start: String,
}

impl Position {
    /// Returns the position after an object of a collection, either of one `namespace` or of all.
    pub fn after(last: &Key, namespace: &str, revision: u64) -> Self {
        let mut start = format!("{}\0", last.name);
        if namespace.is_empty() && !last.namespace.is_empty() {
            start = format!("{}/{start}", last.namespace);
        }
        Self {
            revision: Some(revision),
            start,
        }
    }

    /// Returns the first possible key of the next page of a collection, either of one `namespace`
    /// or of all.
    pub fn first(&self, kind: &Kind, namespace: &str) -> Key {
        let storage = &kind.storage;
        if !kind.namespaced || !namespace.is_empty() {
            return Key::of(storage, namespace, &self.start);
        }
        match self.start.split_once('/') {
            Some((namespace, name)) => Key::of(storage, namespace, name),
            // Before every namespace that begins like this.
            None => Key::of(storage, &format!("{}\0", self.start), ""),
        }
    }

    /// Encodes the token of the next page.
    pub fn token(&self) -> String {
        let revision = self.revision.map_or(json!(-1), |revision| json!(revision));
        // Upstream's tokens begin with a slash, except those of an inconsistent continuation.
        let slash = if self.revision.is_some() { "/" } else { "" };
        let start = format!("{slash}{}", self.start);
        let token = json!({"v": VERSION, "rv": revision, "start": start});
        BASE64.encode(token.to_string())
    }

    /// Returns the same position at the newest revision.
    #[must_use]
    pub fn at_newest(&self) -> Self {
        Self {
            revision: None,
            start: self.start.clone(),
        }
    }

    /// Parses a token.
    ///
    /// # Errors
    ///
    /// The reason why the token is invalid.
    pub fn parse(token: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("continue key is not valid: {why}");
        let bytes = BASE64
            .decode(token.trim_end_matches('='))
            .map_err(|_| wrong(&illegal_base64(token)))?;
        if let Some(why) = go::json::syntax_error(&bytes) {
            return Err(wrong(&why));
        }
        let value: Value = serde_json::from_slice(&bytes).map_err(|err| wrong(&err.to_string()))?;
        let text = |member: &str| {
            value
                .get(member)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        if text("v") != VERSION {
            let why = format!(
                "server does not recognize this encoded version {}",
                text("v")
            );
            return Err(wrong(&why));
        }
        let revision = value.get("rv").and_then(Value::as_i64).unwrap_or_default();
        if revision == 0 {
            return Err(wrong(&format!(
                "incorrect encoded start resourceVersion (version {VERSION})"
            )));
        }
        let start = text("start");
        if start.is_empty() {
            return Err(wrong(&format!(
                "encoded start key empty (version {VERSION})"
            )));
        }
        let start = start.strip_prefix('/').unwrap_or(start);
        if start.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(wrong(start));
        }
        Ok(Self {
            revision: u64::try_from(revision).ok(),
            start: start.to_owned(),
        })
    }
}

/// Returns Go's message for text that isn't unpadded URL base64.
fn illegal_base64(token: &str) -> String {
    let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    let at = token.bytes().position(|b| !legal(b)).unwrap_or(token.len());
    format!("illegal base64 data at input byte {at}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    #[test]
    fn tokens_are_relative_to_the_collection() {
        let kind = kinds::by_resource("", "v1", "configmaps").unwrap();
        let key = |namespace: &str, name: &str| Key::new(kind, namespace, name);
        let position = Position::after(&key("t2", "c1"), "t2", 258);
        let token = position.token();
        assert_eq!(
            token,
            "eyJydiI6MjU4LCJzdGFydCI6Ii9jMVx1MDAwMCIsInYiOiJtZXRhLms4cy5pby92MSJ9"
        );
        let position = Position::parse(&token).unwrap();
        let first = position.first(kind, "t2");
        assert!(key("t2", "c1") < first && first < key("t2", "c10"));
        let all = Position::after(&key("t2", "c1"), "", 258);
        let first = all.first(kind, "");
        for before in [key("t1", "d"), key("t2", "c1"), key("t2-b", "z")] {
            assert!(before < first, "{before:?}");
        }
        for after in [key("t2", "c10"), key("t2", "c2"), key("t3", "a")] {
            assert!(first < after, "{after:?}");
        }
        assert_eq!(Position::parse(&all.token()).unwrap(), all);
        assert_eq!(position.at_newest().revision, None);
    }

    #[test]
    fn tokens_of_clients_may_begin_anywhere() {
        let kind = kinds::by_resource("", "v1", "configmaps").unwrap();
        let starts = ["t2", "t2-", "t2-b", "t2/c", "t2/c/d", "u"];
        let keys = [
            "t1/z", "t2-/a", "t2-b/a", "t2.b/a", "t2/b", "t2/c", "t2/d", "t20/a", "u/a",
        ];
        for start in starts {
            let start = start.to_owned();
            let position = Position {
                revision: None,
                start,
            };
            let first = position.first(kind, "");
            for path in keys {
                let (namespace, name) = path.split_once('/').unwrap();
                let is_read = Key::new(kind, namespace, name) >= first;
                assert_eq!(
                    is_read,
                    path >= &*position.start,
                    "{path} {}",
                    position.start
                );
            }
        }
    }

    #[test]
    fn parse_names_the_error_of_a_bad_token() {
        let encode = |text: &str| BASE64.encode(text);
        for (token, message) in [
            (
                "zzz".to_owned(),
                "invalid character 'Ï' looking for beginning of value",
            ),
            ("a!".to_owned(), "illegal base64 data at input byte 1"),
            (
                encode("{}"),
                "server does not recognize this encoded version ",
            ),
            (
                encode("{\"v\":\"meta.k8s.io/v1\",\"start\":\"a\"}"),
                "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
            ),
            (
                encode("{\"v\":\"meta.k8s.io/v1\",\"rv\":1}"),
                "encoded start key empty (version meta.k8s.io/v1)",
            ),
            (
                encode("{\"v\":\"meta.k8s.io/v1\",\"rv\":1,\"start\":\"/../a\"}"),
                "../a",
            ),
        ] {
            let error = Position::parse(&token).unwrap_err();
            assert_eq!(error, format!("continue key is not valid: {message}"));
        }
    }
}
