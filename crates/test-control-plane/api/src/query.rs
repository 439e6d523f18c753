//! Query strings and URL escapes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use kube_apimachinery::go_duration;

use crate::go::strconv::parse_int;
use crate::status::{ApiError, ApiResult};

/// The parameters of a request. The first value of a repeated one wins.
#[derive(Clone, Debug, Default)]
pub struct Query(BTreeMap<String, String>);

impl Query {
    /// Parses the part of a URL after the question mark.
    pub fn parse(text: &str) -> Self {
        let mut map = BTreeMap::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            map.entry(decode(key)).or_insert_with(|| decode(value));
        }
        Self(map)
    }

    /// Returns a parameter's value; `None` if it is missing or empty.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0
            .get(key)
            .map(String::as_str)
            .filter(|v| !v.is_empty())
    }

    /// Returns true if the parameter exists, with or without a value.
    pub fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// Parses a boolean parameter; a missing one is false.
    pub fn flag(&self, key: &str) -> bool {
        self.0
            .get(key)
            .is_some_and(|v| v != "0" && !v.eq_ignore_ascii_case("false"))
    }

    /// Parses a boolean parameter; `None` if it is missing.
    pub(crate) fn optional_flag(&self, key: &str) -> Option<bool> {
        self.0.contains_key(key).then(|| self.flag(key))
    }

    /// Parses an integer parameter.
    ///
    /// # Errors
    ///
    /// 400 with Go's message if it isn't an integer.
    pub fn integer(&self, key: &str) -> ApiResult<Option<i64>> {
        let Some(text) = self.0.get(key) else {
            return Ok(None);
        };
        let parsed = parse_int(text).map_err(ApiError::bad_request)?;
        Ok(Some(parsed))
    }

    /// Returns the client's timeout for the request.
    ///
    /// # Errors
    ///
    /// 400 for text that isn't a duration.
    pub fn timeout(&self) -> ApiResult<Option<Duration>> {
        let parsed = self.get("timeout").map(go_duration::parse_clamped);
        parsed.transpose().map_err(|why| {
            ApiError::bad_request(format!(
                "invalid timeout specified in the request URL - {why}"
            ))
        })
    }
}

/// Decodes the escapes of a URL path.
pub fn decode_path(path: &str) -> Cow<'_, str> {
    if path.contains('%') {
        // A plus sign is an escape only in queries.
        decode(&path.replace('+', "%2B")).into()
    } else {
        path.into()
    }
}

fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let escaped = (bytes[i] == b'%')
            .then(|| text.get(i + 1..i + 3))
            .flatten()
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        if let Some(byte) = escaped {
            out.push(byte);
            i += 3;
        } else {
            out.push(if bytes[i] == b'+' { b' ' } else { bytes[i] });
            i += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded() {
        let query = Query::parse("&limit=500&labelSelector=app%3Dx%2Ctier+in+(a)&watch&empty=");
        assert_eq!(query.get("limit"), Some("500"));
        assert_eq!(query.get("labelSelector"), Some("app=x,tier in (a)"));
        assert!(query.flag("watch"));
        assert!(!query.flag("dryRun"));
        assert_eq!(query.get("empty"), None);
        assert_eq!(query.integer("limit").unwrap(), Some(500));
        assert!(Query::parse("limit=x").integer("limit").is_err());
    }

    #[test]
    fn paths_keep_their_plus_signs() {
        assert_eq!(decode_path("/a%3Ab/c+d"), "/a:b/c+d");
        assert_eq!(decode_path("/a/b+c"), "/a/b+c");
    }

    #[test]
    fn timeout_is_a_go_duration() {
        let timeout = |text| Query::parse(text).timeout();
        assert_eq!(timeout("timeout=32s"), Ok(Some(Duration::from_secs(32))));
        assert_eq!(timeout("timeout="), Ok(None));
        let message = timeout("timeout=abc").unwrap_err().message;
        assert_eq!(
            message,
            "invalid timeout specified in the request URL - time: invalid duration \"abc\""
        );
    }
}
