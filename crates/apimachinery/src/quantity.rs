//! Kubernetes resource quantities: exact numbers with a suffix, such as `500m` or `1Gi`.
//!
//! A quantity is stored as sign, decimal digits and power of ten, of any size. It prints exactly as
//! the Go implementation prints the same input, oddities included.

mod digits;
mod parse;

use std::cmp::Ordering;
use std::fmt;

use self::digits::Digits;

/// Suffixes of decimal quantities, with their power of ten.
const DECIMAL_SUFFIXES: [(&str, i64); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];

/// Suffixes of binary quantities, with their power of 1024.
const BINARY_SUFFIXES: [(&str, u32); 6] = [
    ("Ki", 1),
    ("Mi", 2),
    ("Gi", 3),
    ("Ti", 4),
    ("Pi", 5),
    ("Ei", 6),
];

/// A quantity of a resource.
///
/// Quantities compare by value: `1` equals `1000m`.
///
/// Upstream: `resource.Quantity`.
#[derive(Clone, Debug)]
pub struct Quantity {
    negative: bool,
    digits: Digits,
    /// Power of ten that multiplies the digits.
    exponent: i64,
    format: Format,
    /// Parsed text, if it prints unchanged.
    text: Option<String>,
}

/// Notation of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// `12e6`
    DecimalExponent,
    /// `12M`
    Decimal,
    /// `12Mi`
    Binary,
}

/// Reason why a text is not a quantity. The texts are Go's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuantityError {
    /// The text is not a number followed by a suffix.
    #[error(
        "quantities must match the regular expression \
         '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Format,
    /// The text has no number before the suffix.
    #[error("unable to parse numeric part of quantity")]
    Number,
    /// The suffix is unknown.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

impl Quantity {
    /// Power of ten of a thousandth.
    const MILLI: i64 = -3;

    /// Most zeros that a sum appends to a number.
    const ZEROS_MAX: i64 = 4096;

    /// Rounds away from zero to thousandths, as the API server's defaulting does for every resource
    /// list.
    ///
    /// Upstream: `Quantity.RoundUp`.
    pub fn round_up_milli(&mut self) {
        if self.exponent < Self::MILLI {
            self.round_up(Self::MILLI);
            self.text = None;
        }
    }

    /// Returns the number, rounded away from zero to an integer. Saturates.
    ///
    /// Upstream: `Quantity.Value`.
    pub fn value(&self) -> i64 {
        self.scaled_value(0)
    }

    /// Returns the number of thousandths, rounded like [`Quantity::value`]. Saturates.
    ///
    /// Upstream: `Quantity.MilliValue`.
    pub fn milli_value(&self) -> i64 {
        self.scaled_value(Self::MILLI)
    }

    /// Returns true if the quantity is zero.
    pub fn is_zero(&self) -> bool {
        self.digits.is_zero()
    }

    /// Returns the sum; `None` if the powers of ten are too far apart to write it down.
    ///
    /// Upstream: `Quantity.Add`.
    pub fn checked_add(&self, other: &Self) -> Option<Self> {
        let (left, right, exponent) = self.aligned(other)?;
        let (negative, digits) = if self.negative == other.negative {
            (self.negative, left.plus(&right))
        } else if left.cmp_scaled(0, &right, 0).is_lt() {
            (other.negative, right.minus(&left))
        } else {
            (self.negative, left.minus(&right))
        };
        let format = if self.is_zero() {
            other.format
        } else {
            self.format
        };
        Some(Self {
            negative: negative && !digits.is_zero(),
            digits,
            exponent,
            format,
            text: None,
        })
    }

    /// Returns the difference, as [`checked_add`](Self::checked_add).
    ///
    /// Upstream: `Quantity.Sub`.
    pub fn checked_sub(&self, other: &Self) -> Option<Self> {
        let negated = Self {
            negative: !other.negative,
            ..other.clone()
        };
        self.checked_add(&negated)
    }

    /// Returns the digits of both for the smaller power of ten.
    fn aligned(&self, other: &Self) -> Option<(Digits, Digits, i64)> {
        let exponent = self.exponent.min(other.exponent);
        let scaled = |of: &Self| {
            let zeros = of.exponent.checked_sub(exponent)?;
            if !of.is_zero() && zeros > Self::ZEROS_MAX {
                return None;
            }
            let mut digits = of.digits.clone();
            digits.append_zeros(zeros);
            Some(digits)
        };
        Some((scaled(self)?, scaled(other)?, exponent))
    }

    /// Rounds away from zero so that the power of ten is at least `exponent`.
    fn round_up(&mut self, exponent: i64) {
        if self.exponent < exponent {
            self.digits.drop_last_rounding_up(exponent - self.exponent);
            self.exponent = exponent;
        }
    }

    /// Returns the multiple of 10^exponent, rounded away from zero. Saturates.
    fn scaled_value(&self, exponent: i64) -> i64 {
        let mut scaled = self.clone();
        scaled.round_up(exponent);
        let magnitude = scaled.digits.to_u128(scaled.exponent - exponent);
        let magnitude = i128::try_from(magnitude).unwrap_or(i128::MAX);
        let signed = if self.negative { -magnitude } else { magnitude };
        i64::try_from(signed).unwrap_or(if self.negative { i64::MIN } else { i64::MAX })
    }

    /// Returns the canonical text, computed from the number.
    ///
    /// Upstream: `Quantity.CanonicalizeBytes`.
    fn canonical(&self) -> String {
        if self.is_zero() {
            return String::from("0");
        }
        let sign = if self.negative { "-" } else { "" };
        if let Some(binary) = self.canonical_binary() {
            return format!("{sign}{binary}");
        }
        let mut digits = self.digits.clone();
        let mut exponent = self.exponent + digits.strip_trailing_zeros();
        let surplus = exponent.rem_euclid(3);
        digits.append_zeros(surplus);
        exponent -= surplus;
        let suffix = match self.format {
            Format::DecimalExponent if exponent == 0 => String::new(),
            Format::DecimalExponent => format!("e{exponent}"),
            // Upstream prints no suffix for unknown powers, although the number is then wrong.
            Format::Decimal | Format::Binary => DECIMAL_SUFFIXES
                .iter()
                .find(|(_, power)| *power == exponent)
                .map_or_else(String::new, |(suffix, _)| (*suffix).to_owned()),
        };
        format!("{sign}{digits}{suffix}")
    }

    /// Returns the unsigned canonical text of a binary quantity; `None` if it prints in decimal
    /// form: below 1024, or for a fraction.
    fn canonical_binary(&self) -> Option<String> {
        if self.format != Format::Binary {
            return None;
        }
        let mut digits = self.digits.clone();
        let exponent = self.exponent + digits.strip_trailing_zeros();
        if exponent < 0 {
            return None;
        }
        let mut number = digits.to_u128(exponent);
        if number < 1024 {
            return None;
        }
        let mut power = 0;
        while number.is_multiple_of(1024) {
            number /= 1024;
            power += 1;
        }
        let suffix = BINARY_SUFFIXES.iter().find(|(_, of)| *of == power);
        Some(format!(
            "{number}{}",
            suffix.map_or("", |(suffix, _)| suffix)
        ))
    }
}

impl Default for Quantity {
    /// Returns zero, Go's zero value, which prints as `0`.
    fn default() -> Self {
        Self {
            negative: false,
            digits: Digits::default(),
            exponent: 0,
            format: Format::DecimalExponent,
            text: None,
        }
    }
}

impl fmt::Display for Quantity {
    /// Writes the text of Go's `Quantity.String` after parsing: the canonical form, except that
    /// some inputs print unchanged (`1.500` doesn't become `1500m`).
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            Some(text) => formatter.write_str(text),
            None => formatter.write_str(&self.canonical()),
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |quantity: &Self| match (quantity.is_zero(), quantity.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let magnitude = |left: &Self, right: &Self| {
            left.digits
                .cmp_scaled(left.exponent, &right.digits, right.exponent)
        };
        sign(self).cmp(&sign(other)).then_with(|| match sign(self) {
            0 => Ordering::Equal,
            1 => magnitude(self, other),
            _ => magnitude(other, self),
        })
    }
}

#[cfg(test)]
mod tests;
