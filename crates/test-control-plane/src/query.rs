//! Query strings.

use std::collections::BTreeMap;

use crate::status::{ApiError, ApiResult};

/// The parameters of a request; of a repeated one the first value counts.
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

    /// A parameter's value; none if missing or empty.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0
            .get(key)
            .map(String::as_str)
            .filter(|v| !v.is_empty())
    }

    /// A parameter that is true or false; a missing one is false.
    pub fn flag(&self, key: &str) -> bool {
        self.0
            .get(key)
            .is_some_and(|v| !matches!(v.as_str(), "0" | "false" | "False" | "FALSE"))
    }

    /// A parameter that is an integer.
    ///
    /// # Errors
    ///
    /// 400 if it is something else.
    pub fn integer(&self, key: &str) -> ApiResult<Option<i64>> {
        self.get(key)
            .map(|text| {
                text.parse().map_err(|_| {
                    ApiError::bad_request(format!(
                        "strconv.ParseInt: parsing {text:?}: invalid syntax"
                    ))
                })
            })
            .transpose()
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
}
