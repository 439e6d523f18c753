//! JSON values in the formats of Go's `fmt`, for error messages. A whole number beyond 64 bits with sign
//! is a float, as in Go.

pub(crate) use kube_apimachinery::json::{float_to_go_format as float, to_go_format as value};
use serde_json::Value;

/// Formats a value as Go's `%#v`.
pub(crate) fn syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => format!("{text:?}"),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| format!("{name:?}:{}", syntax(value));
            let members: Vec<String> = members.iter().map(member).collect();
            format!("map[string]interface {{}}{{{}}}", members.join(", "))
        }
    }
}

/// Returns the Go type of a decoded JSON value, as `%T` prints it.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_formatted_as_in_go() {
        let printed = json!({"b": [1, "x", null], "a": {"c": true}});
        assert_eq!(value(&printed), "map[a:map[c:true] b:[1 x <nil>]]");
        for (number, wanted) in [
            (i64::MIN.into(), "-9223372036854775808"),
            (i64::MAX.into(), "9223372036854775807"),
            (
                json!(9_223_372_036_854_775_808_u64),
                "9.223372036854776e+18",
            ),
            (json!(u64::MAX), "1.8446744073709552e+19"),
        ] {
            assert_eq!(value(&number), wanted);
        }
        assert_eq!(
            syntax(&printed),
            "map[string]interface {}{\"a\":map[string]interface {}{\"c\":true}, \
             \"b\":[]interface {}{1, \"x\", interface {}(nil)}}"
        );
    }

    #[test]
    fn type_names_match_go_json_types() {
        for (value, name) in [
            (json!(null), "<nil>"),
            (json!(true), "bool"),
            (json!(1), "int64"),
            (json!(1.5), "float64"),
            (json!(9_223_372_036_854_775_808_u64), "float64"),
            (json!("x"), "string"),
            (json!([]), "[]interface {}"),
            (json!({}), "map[string]interface {}"),
        ] {
            assert_eq!(type_name(&value), name);
        }
    }
}
