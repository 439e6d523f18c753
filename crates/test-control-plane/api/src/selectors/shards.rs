//! Shard selectors of lists and watches: ranges of the hashes of a field.
//!
//! Upstream: gate `ShardedListAndWatch`, `sharding.Parse`

use std::fmt;

use kube_apimachinery::hash::fnv1a_64;

use crate::object::Object;
use crate::status::{ApiError, ApiResult};

/// Exclusive upper bound of the hashes, 2^64, the only bound of 17 digits.
const END: &str = "0x10000000000000000";
/// Number of digits of every other bound.
const DIGITS: usize = 16;

/// The parameter `shardSelector`: an object matches if the hash of its field is in one of the
/// ranges.
#[derive(Clone, Debug)]
pub struct ShardSelector {
    field: Field,
    ranges: Vec<Range>,
}

/// A range of hashes, as sent; `end` is exclusive.
#[derive(Clone, Debug)]
struct Range {
    start: Bound,
    end: Bound,
}

/// A bound of a range: its number and its text, which begins with `0x`.
#[derive(Clone, Debug)]
struct Bound {
    number: u128,
    text: String,
}

/// The field whose value is hashed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Field {
    Uid,
    Namespace,
}

impl ShardSelector {
    /// Parses terms such as
    /// `shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')` between `||`.
    ///
    /// # Errors
    ///
    /// 500 for anything else, as in upstream: bounds of fewer digits, several fields, empty
    /// ranges.
    pub fn parse(text: &str) -> ApiResult<Self> {
        parse(text)
            .map_err(|problem| ApiError::internal(format!("invalid shard selector: {problem}")))
    }

    /// Returns true if the object matches.
    pub fn matches(&self, object: &Object) -> bool {
        let value = match self.field {
            Field::Uid => &*object.uid,
            Field::Namespace => &*object.key.namespace,
        };
        let hash = u128::from(fnv1a_64(value));
        let mut ranges = self.ranges.iter();
        ranges.any(|range| (range.start.number..range.end.number).contains(&hash))
    }
}

/// Writes the selector in the form of the list's `shardInfo`.
impl fmt::Display for ShardSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.field.path();
        for (index, Range { start, end }) in self.ranges.iter().enumerate() {
            let separator = if index == 0 { "" } else { " || " };
            let (start, end) = (&start.text, &end.text);
            write!(f, "{separator}shardRange({path}, '{start}', '{end}')")?;
        }
        Ok(())
    }
}

impl Field {
    fn path(self) -> &'static str {
        match self {
            Self::Uid => "object.metadata.uid",
            Self::Namespace => "object.metadata.namespace",
        }
    }
}

fn parse(text: &str) -> Result<ShardSelector, String> {
    if text.trim().is_empty() {
        return Err(
            "empty shard selector is not allowed; omit the parameter for unfiltered lists"
                .to_owned(),
        );
    }
    let mut ranges = Vec::new();
    let mut fields = Vec::new();
    for term in text.split("||") {
        let (field, range) = parse_term(term.trim())?;
        fields.push(field);
        ranges.push(range);
    }
    let field = fields[0];
    if let Some(other) = fields.iter().find(|other| **other != field) {
        let (first, other) = (field.path(), other.path());
        return Err(format!(
            "all shard ranges must use the same field, got {first:?} and {other:?}"
        ));
    }
    Ok(ShardSelector { field, ranges })
}

fn parse_term(term: &str) -> Result<(Field, Range), String> {
    let Some((function, arguments)) = term
        .strip_suffix(')')
        .and_then(|call| call.split_once('('))
        .map(|(function, arguments)| (function.trim(), arguments))
    else {
        return Err(format!(
            "unexpected expression {term:?}; expected shardRange() call or || operator"
        ));
    };
    if function != "shardRange" {
        return Err(format!(
            "unsupported function {function:?}; only shardRange() and || are allowed"
        ));
    }
    let arguments: Vec<&str> = arguments.split(',').map(str::trim).collect();
    let [path, start, end] = *arguments else {
        let count = arguments.len();
        return Err(format!(
            "shardRange() requires exactly 3 arguments, got {count}"
        ));
    };
    let field = [Field::Uid, Field::Namespace]
        .into_iter()
        .find(|field| field.path() == path)
        .ok_or_else(|| {
            format!("unsupported field path {path:?}; supported: object.metadata.uid, object.metadata.namespace")
        })?;
    let start = parse_bound(start, "hexStart")?;
    let end = parse_bound(end, "hexEnd")?;
    if start.number >= end.number {
        let (start, end) = (start.text, end.text);
        return Err(format!(
            "shard range start {start} must be less than end {end}"
        ));
    }
    Ok((field, Range { start, end }))
}

/// Parses a bound in quotes: 16 lower-case hexadecimal digits after `0x`, or 2^64.
fn parse_bound(literal: &str, name: &str) -> Result<Bound, String> {
    let text = ['\'', '"'].into_iter().find_map(|quote| {
        let text = literal.strip_prefix(quote)?.strip_suffix(quote)?;
        (!text.contains(quote)).then_some(text)
    });
    let Some(text) = text else {
        return Err(format!("{name} must be a string literal (e.g. '0xff')"));
    };
    let Some(digits) = text.strip_prefix("0x") else {
        return Err(format!("{name} must have '0x' prefix, got {text:?}"));
    };
    if digits.is_empty() {
        return Err(format!("{name}: hex value is required after '0x'"));
    }
    if digits.len() > END.len() - 2 {
        let length = digits.len();
        return Err(format!(
            "{name}: hex value too long ({length} chars, max 17): {digits:?}"
        ));
    }
    let is_hex = |c: &char| c.is_ascii_digit() || ('a'..='f').contains(c);
    if let Some(wrong) = digits.chars().find(|c| !is_hex(c)) {
        let wrong = wrong.to_string();
        return Err(format!(
            "{name}: invalid hex character {wrong:?} in {text:?}"
        ));
    }
    if digits.len() > DIGITS && text != END {
        return Err(format!(
            "{name}: 17-digit hex value must be '{END}' (2^64), got {text:?}"
        ));
    }
    if digits.len() < DIGITS {
        let padded = format!("0x{digits:0>DIGITS$}");
        return Err(format!(
            "{name} must be a 0x-prefixed 16-digit hex value, got {text:?} (did you mean {padded:?}?)"
        ));
    }
    let number = u128::from_str_radix(digits, 16).map_err(|err| format!("{name}: {err}"))?;
    let text = text.to_owned();
    Ok(Bound { number, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID_HALF: &str =
        "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')";

    fn problem(text: &str) -> String {
        let error = ShardSelector::parse(text).unwrap_err();
        assert_eq!(error.code, 500, "{text}");
        let problem = error.message.strip_prefix("invalid shard selector: ");
        problem.unwrap().to_owned()
    }

    #[test]
    fn terms_are_ranges_of_one_field() {
        let two = format!(
            "{UID_HALF} || shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')"
        );
        for (text, written) in [
            (UID_HALF, UID_HALF),
            (&two, &two),
            (
                "  shardRange( object.metadata.uid ,\"0x0000000000000000\",'0x8000000000000000' ) ",
                UID_HALF,
            ),
        ] {
            assert_eq!(ShardSelector::parse(text).unwrap().to_string(), written);
        }
    }

    #[test]
    fn other_expressions_are_rejected() {
        for text in [
            " ",
            "object.metadata.uid",
            "shardRange(metadata.uid,'0x0000000000000000','0x0000000000000001')",
            "shardRange(object.metadata.name,'0x0000000000000000','0x0000000000000001')",
            "other(object.metadata.uid,'0x0000000000000000','0x0000000000000001')",
            "shardRange(object.metadata.uid,'0x0000000000000000')",
            "shardRange(object.metadata.uid,0,8)",
            "shardRange(object.metadata.uid,'0x0000000000000000','0x0000000000000001') ||",
        ] {
            problem(text);
        }
    }

    #[test]
    fn bounds_have_sixteen_digits() {
        for (start, end, expected) in [
            (
                "0x0",
                "0x8000000000000000",
                "hexStart must be a 0x-prefixed 16-digit hex value, got \"0x0\" (did you mean \"0x0000000000000000\"?)",
            ),
            (
                "0x0000000000000000",
                "0x10000000000000001",
                "hexEnd: 17-digit hex value must be '0x10000000000000000' (2^64), got \"0x10000000000000001\"",
            ),
            (
                "0x000000000000000A",
                "0x8000000000000000",
                "hexStart: invalid hex character \"A\" in \"0x000000000000000A\"",
            ),
            (
                "0x8000000000000000",
                "0x8000000000000000",
                "shard range start 0x8000000000000000 must be less than end 0x8000000000000000",
            ),
            (
                "8000000000000000",
                "0x8000000000000000",
                "hexStart must have '0x' prefix, got \"8000000000000000\"",
            ),
        ] {
            let text = format!("shardRange(object.metadata.uid, '{start}', '{end}')");
            assert_eq!(problem(&text), expected);
        }
    }

    #[test]
    fn ranges_of_two_fields_are_rejected() {
        let text = format!(
            "{UID_HALF}||shardRange(object.metadata.namespace,'0x8000000000000000','0x10000000000000000')"
        );
        let expected = "all shard ranges must use the same field, got \"object.metadata.uid\" and \
                        \"object.metadata.namespace\"";
        assert_eq!(problem(&text), expected);
    }
}
