//! Absolute numbers or percentages of a total.

use std::fmt;
use std::fmt::Write as _;
use std::num::IntErrorKind;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;
use serde::de;

/// A number, or a string that may hold a percentage such as `25%`.
///
/// Upstream: `intstr.IntOrString`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IntOrString {
    /// An absolute number.
    Int(i32),
    /// A string: a percentage, or a name.
    String(String),
}

/// Reason why a value has no number. The texts are Go's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IntOrStringError {
    /// The text does not end with `%`.
    #[error("invalid value for IntOrString: invalid type: string is not a percentage")]
    NotAPercentage,
    /// The text before the `%` is not a decimal number.
    #[error(
        "invalid value for IntOrString: invalid value {}: strconv.Atoi: parsing {}: invalid syntax",
        go_quote(.value),
        go_quote(number_of(.value))
    )]
    Syntax {
        /// The whole text.
        value: String,
    },
    /// The number before the `%` doesn't fit into 64 bits.
    #[error(
        "invalid value for IntOrString: invalid value {}: strconv.Atoi: parsing {}: \
         value out of range",
        go_quote(.value),
        go_quote(number_of(.value))
    )]
    OutOfRange {
        /// The whole text.
        value: String,
    },
}

impl IntOrString {
    /// Returns the number, or the percentage of `total`, rounded up or down; a negative percentage
    /// gives a negative number. Saturates at the bounds of `i32`.
    ///
    /// # Errors
    /// The text is not a percentage.
    ///
    /// Upstream: `intstr.GetScaledValueFromIntOrPercent`.
    pub fn scaled_value(&self, total: i32, round_up: bool) -> Result<i32, IntOrStringError> {
        let value = match self {
            Self::Int(number) => return Ok(*number),
            Self::String(value) => value,
        };
        let number = value
            .strip_suffix('%')
            .ok_or(IntOrStringError::NotAPercentage)?;
        let percent: i64 = number.parse().map_err(|err: std::num::ParseIntError| {
            let value = value.clone();
            match err.kind() {
                IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => {
                    IntOrStringError::OutOfRange { value }
                }
                _ => IntOrStringError::Syntax { value },
            }
        })?;
        #[expect(
            clippy::cast_precision_loss,
            reason = "upstream computes in doubles too"
        )]
        let scaled = percent as f64 * f64::from(total) / 100.0;
        let rounded = if round_up {
            scaled.ceil()
        } else {
            scaled.floor()
        };
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a cast from a double saturates"
        )]
        let rounded = rounded as i32;
        Ok(rounded)
    }
}

impl Default for IntOrString {
    /// Returns the number 0, Go's zero value.
    fn default() -> Self {
        Self::Int(0)
    }
}

impl From<i32> for IntOrString {
    fn from(number: i32) -> Self {
        Self::Int(number)
    }
}

impl From<&str> for IntOrString {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl fmt::Display for IntOrString {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => number.fmt(formatter),
            Self::String(text) => text.fmt(formatter),
        }
    }
}

impl Serialize for IntOrString {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Int(number) => serializer.serialize_i32(*number),
            Self::String(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for IntOrString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visitor)
    }
}

/// Deserializes a number, a string, or null, which is 0 as in Go.
struct Visitor;

impl de::Visitor<'_> for Visitor {
    type Value = IntOrString;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a 32-bit integer or a string")
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<IntOrString, E> {
        i32::try_from(number)
            .map(IntOrString::Int)
            .map_err(|_| E::invalid_value(de::Unexpected::Signed(number), &self))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<IntOrString, E> {
        i32::try_from(number)
            .map(IntOrString::Int)
            .map_err(|_| E::invalid_value(de::Unexpected::Unsigned(number), &self))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<IntOrString, E> {
        Ok(IntOrString::from(text))
    }

    fn visit_unit<E: de::Error>(self) -> Result<IntOrString, E> {
        Ok(IntOrString::default())
    }
}

/// Returns the text before the percent sign.
fn number_of(value: &str) -> &str {
    value.strip_suffix('%').unwrap_or(value)
}

/// Quotes a text as Go's `%q` does.
///
/// Upstream: `strconv.Quote`.
pub fn go_quote(text: &str) -> String {
    let escape = |out: &mut String, code: fmt::Arguments<'_>| {
        out.push('\\');
        // Writing to a string can't fail.
        let _ = out.write_fmt(code);
    };
    let mut out = String::from("\"");
    for character in text.chars() {
        let code = u32::from(character);
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '\0'..='\u{1f}' | '\u{7f}' => escape(&mut out, format_args!("x{code:02x}")),
            _ if is_printable(character) => out.push(character),
            '\0'..='\u{ffff}' => escape(&mut out, format_args!("u{code:04x}")),
            _ => escape(&mut out, format_args!("U{code:08x}")),
        }
    }
    out.push('"');
    out
}

/// Returns true if Go prints a character unescaped, outside of ASCII's control range. Go escapes
/// control characters and all spaces but the ASCII one; the standard library's escapes decide about
/// the rest.
fn is_printable(character: char) -> bool {
    character == '\''
        || character == ' '
        || (!character.is_whitespace() && !character.is_control() && {
            let mut escaped = character.escape_debug();
            escaped.next() == Some(character) && escaped.next().is_none()
        })
}

#[cfg(test)]
mod tests;
