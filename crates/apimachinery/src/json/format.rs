//! JSON values in the default format of Go's `fmt`. A whole number beyond 64 bits with sign is a float,
//! as in Go.

use serde_json::Value;

/// Formats a value as Go's `%v`.
pub fn to_go_format(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Number(number) if !number.is_i64() => {
            float_to_go_format(number.as_f64().unwrap_or_default())
        }
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(to_go_format).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(members) => {
            let member =
                |(name, value): (&String, &Value)| format!("{name}:{}", to_go_format(value));
            let members: Vec<String> = members.iter().map(member).collect();
            format!("map[{}]", members.join(" "))
        }
    }
}

/// Formats a number as Go's `%v`.
pub fn float_to_go_format(number: f64) -> String {
    let scientific = format!("{number:e}");
    match scientific.split_once('e') {
        Some((digits, exponent)) if !matches!(exponent.parse(), Ok(-4..6)) => {
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(exponent) => ('-', exponent),
                None => ('+', exponent),
            };
            format!("{digits}e{sign}{exponent:0>2}")
        }
        _ => number.to_string(),
    }
}
