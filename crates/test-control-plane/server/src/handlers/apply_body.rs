//! The body of an apply: a configuration in YAML or JSON.

use serde_json::Value;

use kube_test_control_plane_api::decode;
use kube_test_control_plane_api::options::FieldValidation;
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use kube_test_control_plane_api::strict::has_repeated;

/// An applied configuration.
#[derive(Debug)]
pub(super) struct Configuration {
    /// The configuration.
    pub(super) value: Value,
    /// Error for repeated keys, if there are any.
    repeated: Option<String>,
}

impl Configuration {
    /// Parses a body; the last occurrence of a repeated key wins.
    ///
    /// # Errors
    ///
    /// 400 for text that isn't YAML, or not an object.
    pub(super) fn parse(body: &[u8]) -> ApiResult<Self> {
        let text = String::from_utf8_lossy(body);
        let invalid = |why: &str| ApiError::bad_request(format!("error decoding YAML: {why}"));
        if let Ok(mut value @ Value::Object(_)) = serde_json::from_str(&text)
            && !has_repeated(text.as_bytes())
        {
            // Upstream reads JSON as YAML, too.
            decode::make_whole_integers(&mut value);
            return Ok(Self {
                value,
                repeated: None,
            });
        }
        let unconverted = |why: String| format!("error converting YAML to JSON: {why}");
        let value = decode::yaml(body).map_err(|why| invalid(&unconverted(why)))?;
        let repeated = decode::repeated_keys(&text).map(unconverted);
        match value {
            Value::Object(_) | Value::Null => Ok(Self { value, repeated }),
            other => Err(invalid(&format!(
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go \
                 value of type map[string]interface {{}}",
                json_type(&other)
            ))),
        }
    }

    /// Returns the warning for the client, if any.
    ///
    /// # Errors
    ///
    /// 400 for repeated keys with strict field validation.
    pub(super) fn warning(&self, validation: FieldValidation) -> ApiResult<Option<&str>> {
        match (&self.repeated, validation) {
            (None, _) | (_, FieldValidation::Ignore) => Ok(None),
            (Some(why), FieldValidation::Strict) => {
                let why = format!("error strict decoding YAML: {why}");
                Err(ApiError::bad_request(why))
            }
            (Some(why), FieldValidation::Warn | FieldValidation::Unspecified) => Ok(Some(why)),
        }
    }
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::Null | Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_and_yaml_are_parsed() {
        for body in [
            "{\"a\": {\"b\": [1, true]}}",
            "{\"a\": {\"b\": [1.0, true]}}",
            "a: {b: [1, true]}",
            "a:\n  b:\n  - 1\n  - true\n",
        ] {
            let read = Configuration::parse(body.as_bytes()).unwrap();
            assert_eq!(read.value, json!({"a": {"b": [1, true]}}));
            assert_eq!(read.warning(FieldValidation::Strict), Ok(None));
        }
        assert_eq!(Configuration::parse(b"").unwrap().value, Value::Null);
    }

    #[test]
    fn repeated_keys_are_reported() {
        for body in ["a: 1\nb: 2\na: 3\n", "{\"a\": 1,\n\"b\": 2,\n\"a\": 3}"] {
            let read = Configuration::parse(body.as_bytes()).unwrap();
            assert_eq!(read.value, json!({"a": 3, "b": 2}));
            let why = "error converting YAML to JSON: yaml: unmarshal errors:\n  line 3: key \
                       \"a\" already set in map";
            assert_eq!(read.warning(FieldValidation::Unspecified), Ok(Some(why)));
            assert_eq!(read.warning(FieldValidation::Ignore), Ok(None));
            let err = read.warning(FieldValidation::Strict).unwrap_err();
            assert_eq!(err.message, format!("error strict decoding YAML: {why}"));
            assert_eq!(err.code, 400);
        }
    }

    #[test]
    fn other_bodies_are_rejected() {
        for body in ["[1]", "x", "a: [", "a: b: c"] {
            let err = Configuration::parse(body.as_bytes()).unwrap_err();
            assert_eq!(err.code, 400);
            assert!(err.message.starts_with("error decoding YAML: "), "{err}");
        }
    }
}
