//! Go's number format, and the conversion through doubles in recorded revisions.

use serde_json::Number;
use serde_json::Value;

/// Integers up to this absolute value are exact as doubles, so the conversion keeps them.
const EXACT_INTEGER_MAX: u64 = 1 << 53;

/// Lower bound from which Go prints doubles with an exponent.
const EXPONENT_FROM: f64 = 1e21;

/// Upper bound below which Go prints non-zero doubles with an exponent.
const EXPONENT_BELOW: f64 = 1e-6;

/// Replaces each number with its value after Go has decoded it into a `float64` and printed it
/// again.
///
/// Integers up to 2^53 stay unchanged. Others become the shortest decimal that reads back as the
/// same double, padded with zeros: 9223372036854775807 becomes 9223372036854776000. The result is
/// stored as an integer if it fits into 64 bits, so that other encoders print it the same way.
pub fn numbers_as_doubles(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(double) = as_double(number) {
                *number = double;
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(numbers_as_doubles),
        Value::Object(members) => members.values_mut().for_each(numbers_as_doubles),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// Returns true if two values are equal after [`numbers_as_doubles`].
pub fn equal_as_doubles(a: &Value, b: &Value) -> bool {
    let (mut a, mut b) = (a.clone(), b.clone());
    numbers_as_doubles(&mut a);
    numbers_as_doubles(&mut b);
    a == b
}

/// Turns each double that Go prints as a 64-bit integer into that integer: `3e1` into 30. Integers
/// stay exact.
pub fn whole_numbers_as_integers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Some(integer) = as_double(number) {
                *number = integer;
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(whole_numbers_as_integers),
        Value::Object(members) => members.values_mut().for_each(whole_numbers_as_integers),
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Number(_) => {}
    }
}

/// Returns the text that Go's `encoding/json` prints for `number`: integers as decimals, doubles in
/// the shortest form that reads back as the same double, with an exponent below 1e-6 and from 1e21.
pub fn go_number(number: &Number) -> String {
    match number.as_f64() {
        Some(double) if number.is_f64() => go_float(double),
        _ => number.to_string(),
    }
}

/// Returns `number` after the conversion through a double, or `None` if it is unchanged.
fn as_double(number: &Number) -> Option<Number> {
    let magnitude = match (number.as_i64(), number.as_u64()) {
        (Some(signed), _) => signed.unsigned_abs(),
        (None, Some(unsigned)) => unsigned,
        (None, None) => u64::MAX,
    };
    if magnitude <= EXACT_INTEGER_MAX {
        return None;
    }
    let double = number.as_f64()?;
    let text = go_float(double);
    let integer = text.parse::<i64>().ok().map(Number::from);
    let integer = integer.or_else(|| text.parse::<u64>().ok().map(Number::from));
    match integer {
        // Go keeps the sign of a negative zero; an integer would lose it.
        Some(_) if double == 0.0 && double.is_sign_negative() => None,
        Some(integer) => Some(integer),
        None => Number::from_f64(double),
    }
}

/// Prints a double as Go's `encoding/json` does.
fn go_float(double: f64) -> String {
    let magnitude = double.abs();
    if magnitude != 0.0 && !(EXPONENT_BELOW..EXPONENT_FROM).contains(&magnitude) {
        let text = format!("{double:e}");
        return if magnitude < 1.0 {
            text
        } else {
            text.replace('e', "e+")
        };
    }
    format!("{double}")
}
