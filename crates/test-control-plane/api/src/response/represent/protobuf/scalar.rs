//! Encoding of scalars that are messages.

use kube_apimachinery::time;

use crate::go::wire;

pub(super) fn quantity(number: u32, text: &str, out: &mut Vec<u8>) {
    let text = if text.is_empty() { "0" } else { text };
    wire::message(out, number, |out| wire::bytes(out, 1, text));
}

pub(super) enum IntOrString<'a> {
    Int(i64),
    String(&'a str),
}

pub(super) fn int_or_string(number: u32, value: &IntOrString<'_>, out: &mut Vec<u8>) {
    let (kind, int, string) = match value {
        IntOrString::Int(int) => (0, *int, ""),
        IntOrString::String(string) => (1, 0, *string),
    };
    wire::message(out, number, |out| {
        wire::number(out, 1, kind);
        wire::number(out, 2, int);
        wire::bytes(out, 3, string);
    });
}

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Appends a time; the zero time is an empty message.
pub(super) fn timestamp(number: u32, text: &str, out: &mut Vec<u8>) {
    wire::message(out, number, |out| {
        if let Ok(time) = time::parse(text) {
            let nanos = i64::from(time.subsec_nanosecond());
            // Go counts the nanoseconds forward, also before 1970.
            wire::number(out, 1, time.as_second() - i64::from(nanos < 0));
            wire::number(out, 2, nanos.rem_euclid(NANOS_PER_SECOND));
        }
    });
}
