//! Unknown and repeated members of a body, for `fieldValidation`.

use std::collections::BTreeSet;
use std::fmt;

use kube_apimachinery::schema;
use serde::Deserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::config::UnknownFields;
use crate::kinds::Kind;
use crate::object::Draft;
use crate::options::FieldValidation;
use crate::server::ApiServer;
use crate::status::{ApiError, ApiResult};

impl ApiServer {
    /// Looks for members of a body that the server would drop: warnings, or an error if the client
    /// wants to be strict.
    ///
    /// # Errors
    ///
    /// 400 for a strict client.
    pub(crate) fn check_fields(
        &self,
        kind: &Kind,
        draft: &Draft,
        body: &[u8],
        validation: FieldValidation,
    ) -> ApiResult<Vec<String>> {
        if validation == FieldValidation::Ignore {
            return Ok(Vec::new());
        }
        let mut found = repeated(body);
        if self.config().unknown_fields == UnknownFields::Prune {
            found.extend(unknown(kind, draft));
        }
        if validation == FieldValidation::Warn || found.is_empty() {
            return Ok(found);
        }
        Err(ApiError::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: strict decoding error: {}",
            kind.kind,
            kind.version,
            kind.kind,
            found.join(", ")
        )))
    }
}

fn unknown(kind: &Kind, draft: &Draft) -> Vec<String> {
    let mut found = Vec::new();
    for (pointer, type_name, at) in crate::normalize::typed_parts(kind) {
        let Some(part) = draft.value.pointer(pointer) else {
            continue;
        };
        for (path, _) in schema::unknown_members(type_name, part) {
            let path = path.to_string();
            let dot = if at.is_empty() { "" } else { "." };
            found.push(format!("unknown field {:?}", format!("{at}{dot}{path}")));
        }
    }
    found
}

/// Members that occur twice in one object of a JSON text; none if it isn't JSON.
fn repeated(body: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let seed = Walk {
        path: String::new(),
        found: &mut found,
    };
    let mut parser = serde_json::Deserializer::from_slice(body);
    // Text that doesn't parse is reported elsewhere.
    let _ = seed.deserialize(&mut parser);
    found
}

struct Walk<'a> {
    path: String,
    found: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(key) = map.next_key::<String>()? {
            let path = if self.path.is_empty() {
                key.clone()
            } else {
                format!("{}.{key}", self.path)
            };
            if !seen.insert(key) {
                self.found.push(format!("duplicate field {path:?}"));
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            map.next_value_seed(Walk {
                path,
                found: self.found,
            })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut index = 0;
        loop {
            let walk = Walk {
                path: format!("{}[{index}]", self.path),
                found: self.found,
            };
            if list.next_element_seed(walk)?.is_none() {
                return Ok(());
            }
            index += 1;
        }
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_members_are_found_at_any_depth() {
        let body = br#"{"a":{"b":1,"b":2},"c":[{"d":1},{"d":1,"d":null}],"e":"x"}"#;
        let expected = ["duplicate field \"a.b\"", "duplicate field \"c[1].d\""];
        assert_eq!(repeated(body), expected);
        assert!(repeated(b"no json").is_empty());
    }
}
