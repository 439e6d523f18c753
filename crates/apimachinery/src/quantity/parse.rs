//! Parser of quantities, with the limits and shortcuts of the Go implementation.

use std::str::FromStr;

use super::BINARY_SUFFIXES;
use super::DECIMAL_SUFFIXES;
use super::Format;
use super::Quantity;
use super::QuantityError;
use super::digits::Digits;

/// Power of ten of a billionth, the smallest unit of a quantity.
const NANO: i64 = -9;

/// Maximum number of digits that Go stores as a 64-bit integer.
const SHORT_DECIMAL_DIGITS_MAX: usize = 18;

/// The parts of a quantity's text.
struct Parts<'a> {
    negative: bool,
    /// Digits before the point, without leading zeros; `0` if none remain.
    whole: &'a str,
    /// Digits after the point.
    fraction: &'a str,
    /// True if the number has any digit.
    has_digits: bool,
    suffix: &'a str,
}

/// Meaning of a suffix.
#[derive(Clone, Copy)]
enum Scale {
    /// Power of ten, with the notation it was written in.
    Decimal(i64, Format),
    /// Power of 1024.
    Binary(u32),
}

impl FromStr for Quantity {
    type Err = QuantityError;

    /// Parses a quantity without surrounding space.
    ///
    /// Upstream: `resource.ParseQuantity`.
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        let parts = split(text)?;
        let scale = interpret(parts.suffix)?;
        let digits = Digits::new(parts.whole.bytes().chain(parts.fraction.bytes()));
        let fraction_digits = i64::try_from(parts.fraction.len()).unwrap_or(i64::MAX);
        let short = is_short(&parts, scale);
        if !short && !parts.has_digits {
            return Err(QuantityError::Number);
        }
        let mut quantity = match scale {
            Scale::Decimal(power, format) => Quantity {
                negative: parts.negative,
                digits,
                exponent: power.saturating_sub(fraction_digits),
                format,
                text: None,
            },
            Scale::Binary(power) => binary(parts.negative, digits, fraction_digits, power),
        };
        if short && prints_unchanged(&parts, scale) {
            quantity.text = Some(text.to_owned());
        }
        if quantity.is_zero() {
            quantity.exponent = 0;
        } else {
            quantity.round_up(NANO);
        }
        Ok(quantity)
    }
}

/// Splits the text into sign, number and suffix.
///
/// Like upstream, it reads a sign alone, and a suffix without a number, as zero.
fn split(text: &str) -> Result<Parts<'_>, QuantityError> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_digit = |character: char| character.is_ascii_digit();
    let after_whole = unsigned.trim_start_matches(is_digit);
    let whole = unsigned.strip_suffix(after_whole).unwrap_or_default();
    let (fraction, suffix) = match after_whole.strip_prefix('.') {
        Some(after_point) => {
            let suffix = after_point.trim_start_matches(is_digit);
            let fraction = after_point.strip_suffix(suffix).unwrap_or_default();
            (fraction, suffix)
        }
        None => ("", after_whole),
    };
    let letters = |character: char| "eEinumkKMGTP".contains(character);
    let power = suffix.trim_start_matches(letters);
    let power = power.strip_prefix(['+', '-']).unwrap_or(power);
    if !power.chars().all(is_digit) {
        return Err(QuantityError::Format);
    }
    let significant = whole.trim_start_matches('0');
    Ok(Parts {
        negative: text.starts_with('-'),
        whole: if significant.is_empty() {
            "0"
        } else {
            significant
        },
        fraction,
        has_digits: unsigned.is_empty() || !whole.is_empty() || !fraction.is_empty(),
        suffix,
    })
}

/// Returns the meaning of a suffix.
fn interpret(suffix: &str) -> Result<Scale, QuantityError> {
    if let Some((_, power)) = DECIMAL_SUFFIXES.iter().find(|(name, _)| *name == suffix) {
        return Ok(Scale::Decimal(*power, Format::Decimal));
    }
    if let Some((_, power)) = BINARY_SUFFIXES.iter().find(|(name, _)| *name == suffix) {
        return Ok(Scale::Binary(*power));
    }
    let power = suffix
        .strip_prefix(['e', 'E'])
        .ok_or(QuantityError::Suffix)?;
    let power: i64 = power.parse().map_err(|_| QuantityError::Suffix)?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "upstream truncates to 32 bits"
    )]
    let power = power as i32;
    Ok(Scale::Decimal(i64::from(power), Format::DecimalExponent))
}

/// Returns true if Go stores the quantity as a 64-bit integer with a power of ten.
fn is_short(parts: &Parts<'_>, scale: Scale) -> bool {
    match scale {
        Scale::Decimal(power, _) => {
            let fraction_digits = i64::try_from(parts.fraction.len()).unwrap_or(i64::MAX);
            parts.whole.len() + parts.fraction.len() <= SHORT_DECIMAL_DIGITS_MAX
                && power.saturating_sub(fraction_digits) >= NANO
        }
        // Each power of 1024 uses three of the fourteen decimal digits.
        Scale::Binary(power) => {
            let digits_max = 14_usize.checked_sub(3 * power as usize);
            parts.fraction.is_empty() && digits_max.is_some_and(|max| parts.whole.len() <= max)
        }
    }
}

/// Returns true if Go considers the text of a short quantity canonical; it may not quite be.
fn prints_unchanged(parts: &Parts<'_>, scale: Scale) -> bool {
    let last_three_are = |zeros: &str| {
        let digits = [parts.whole, parts.fraction].concat();
        digits.ends_with(zeros)
    };
    match scale {
        Scale::Decimal(power, _) => {
            let fraction_digits = i64::try_from(parts.fraction.len()).unwrap_or(i64::MAX);
            parts.whole != "0" && (power - fraction_digits) % 3 == 0 && !last_three_are("000")
        }
        Scale::Binary(_) => parts
            .whole
            .parse::<u64>()
            .is_ok_and(|number| number % 8 != 0),
    }
}

/// Creates a binary quantity: the number is multiplied out, and capped at the largest 64-bit
/// integer.
fn binary(negative: bool, mut digits: Digits, fraction_digits: i64, power: u32) -> Quantity {
    digits.multiply_1024(power);
    let mut quantity = Quantity {
        negative,
        digits,
        exponent: -fraction_digits,
        format: Format::Binary,
        text: None,
    };
    let largest = Digits::new(i64::MAX.to_string().into_bytes());
    if quantity
        .digits
        .cmp_scaled(quantity.exponent, &largest, 0)
        .is_gt()
    {
        quantity.digits = largest;
        quantity.exponent = 0;
    }
    if quantity
        .digits
        .cmp_scaled(quantity.exponent, &Digits::new(*b"1"), 0)
        .is_lt()
    {
        quantity.format = Format::Decimal;
    }
    quantity
}
