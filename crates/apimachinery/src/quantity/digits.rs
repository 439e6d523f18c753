//! Natural numbers of any size, as decimal digits.

use std::cmp::Ordering;
use std::fmt;

/// A natural number as ASCII digits without leading zeros; zero has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Digits(Vec<u8>);

impl Digits {
    /// Creates a number from ASCII digits; the caller excludes anything else.
    pub(super) fn new(digits: impl IntoIterator<Item = u8>) -> Self {
        Self(
            digits
                .into_iter()
                .skip_while(|&digit| digit == b'0')
                .collect(),
        )
    }

    pub(super) fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes trailing zeros and returns their number.
    pub(super) fn strip_trailing_zeros(&mut self) -> i64 {
        let zeros = self
            .0
            .iter()
            .rev()
            .take_while(|&&digit| digit == b'0')
            .count();
        self.0.truncate(self.0.len() - zeros);
        length(zeros)
    }

    /// Multiplies by 10^zeros; `zeros` must be small.
    pub(super) fn append_zeros(&mut self, zeros: i64) {
        if !self.is_zero() {
            (0..zeros).for_each(|_| self.0.push(b'0'));
        }
    }

    /// Divides by 10^count and rounds up.
    pub(super) fn drop_last_rounding_up(&mut self, count: i64) {
        let keep = usize::try_from(length(self.0.len()) - count).unwrap_or(0);
        let inexact = self.0.drain(keep..).any(|digit| digit != b'0');
        if inexact {
            self.increment();
        }
    }

    /// Multiplies by 1024^power.
    pub(super) fn multiply_1024(&mut self, power: u32) {
        for _ in 0..power {
            let mut carry = 0;
            for digit in self.0.iter_mut().rev() {
                carry += u16::from(*digit - b'0') * 1024;
                *digit = ascii(carry);
                carry /= 10;
            }
            while carry > 0 {
                self.0.insert(0, ascii(carry));
                carry /= 10;
            }
        }
    }

    /// Returns the number times 10^exponent, for a non-negative exponent. Saturates.
    pub(super) fn to_u128(&self, exponent: i64) -> u128 {
        if self.is_zero() {
            return 0;
        }
        let number = self.0.iter().try_fold(0_u128, |number, digit| {
            number
                .checked_mul(10)?
                .checked_add(u128::from(digit - b'0'))
        });
        let factor = u32::try_from(exponent)
            .ok()
            .and_then(|power| 10_u128.checked_pow(power));
        let product = number
            .zip(factor)
            .and_then(|(number, factor)| number.checked_mul(factor));
        product.unwrap_or(u128::MAX)
    }

    /// Compares the numbers `self` · 10^exponent and `other` · 10^`other_exponent`.
    pub(super) fn cmp_scaled(&self, exponent: i64, other: &Self, other_exponent: i64) -> Ordering {
        if self.is_zero() || other.is_zero() {
            return other.is_zero().cmp(&self.is_zero());
        }
        let magnitude = length(self.0.len()) + exponent;
        let other_magnitude = length(other.0.len()) + other_exponent;
        let digit = |digits: &Self, at: usize| digits.0.get(at).copied().unwrap_or(b'0');
        magnitude.cmp(&other_magnitude).then_with(|| {
            (0..self.0.len().max(other.0.len()))
                .map(|at| digit(self, at).cmp(&digit(other, at)))
                .find(|ordering| ordering.is_ne())
                .unwrap_or(Ordering::Equal)
        })
    }

    /// Returns the sum.
    pub(super) fn plus(&self, other: &Self) -> Self {
        let (mut sum, mut carry) = (Vec::new(), 0);
        for at in 0..self.0.len().max(other.0.len()) {
            carry += self.digit_before_end(at) + other.digit_before_end(at);
            sum.push(ascii(carry));
            carry /= 10;
        }
        sum.push(ascii(carry));
        Self::new(sum.into_iter().rev())
    }

    /// Returns the difference to a number that is not larger.
    pub(super) fn minus(&self, smaller: &Self) -> Self {
        let (mut difference, mut borrowed) = (Vec::new(), 0);
        for at in 0..self.0.len() {
            let digit = 10 + self.digit_before_end(at) - smaller.digit_before_end(at) - borrowed;
            difference.push(ascii(digit));
            borrowed = u16::from(digit < 10);
        }
        Self::new(difference.into_iter().rev())
    }

    /// Returns the digit at a place from the end.
    fn digit_before_end(&self, at: usize) -> u16 {
        self.0
            .iter()
            .rev()
            .nth(at)
            .map_or(0, |digit| u16::from(*digit - b'0'))
    }

    fn increment(&mut self) {
        for digit in self.0.iter_mut().rev() {
            if *digit < b'9' {
                *digit += 1;
                return;
            }
            *digit = b'0';
        }
        self.0.insert(0, b'1');
    }
}

impl fmt::Display for Digits {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|&digit| write!(formatter, "{}", char::from(digit)))
    }
}

/// Converts a count of digits to the type of exponents.
fn length(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Returns the last decimal digit of a number as ASCII.
fn ascii(number: u16) -> u8 {
    b'0' + (number % 10).to_le_bytes()[0]
}
