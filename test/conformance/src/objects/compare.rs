//! Comparison of a response with the recorded one.

use std::net::IpAddr;

use serde_json::Value;

use super::case::Case;
use super::difference::{Category, Difference};
use crate::diff::{Rule, diff_by};
use crate::masks::Masks;

/// Fields of an error that are compared.
const ERROR: [&str; 4] = ["reason", "message", "details", "code"];

/// Start of a quoted object in the message of an error, and the mask for it.
const QUOTED: (&str, &str) = (
    "Invalid value: \"{\\\"apiVersion\\\":",
    "Invalid value: \"<object>\"",
);

/// A response of the server.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) warnings: Vec<String>,
    pub(super) body: Value,
}

/// Masked values match; everything else is equal as JSON.
#[derive(Default)]
struct Masked(Masks);

impl Rule for Masked {
    fn equal(&self, _: &str, expected: &Value, actual: &Value) -> bool {
        match (expected, actual) {
            (Value::String(mask), Value::Number(port)) => mask == "<port>" && port.is_u64(),
            (Value::String(mask), Value::String(ip)) if mask == "<ip>" => {
                ip.parse::<IpAddr>().is_ok()
            }
            (Value::String(masked), Value::String(text)) => {
                self.0.match_text(masked, &without_quoted(text))
            }
            _ => expected == actual,
        }
    }

    fn ignores(&self, field: &str) -> bool {
        field == "managedFields"
    }
}

/// Compares a response with the recorded one.
pub(super) fn compare(case: &Case, response: &Response) -> Option<Difference> {
    let is_ok = |status: u16| (200..300).contains(&status);
    let difference = |category, lines| Some(Difference { category, lines });
    if response.status != case.status {
        let category = match (is_ok(case.status), is_ok(response.status)) {
            (true, false) => Category::WronglyRefused,
            (false, true) => Category::WronglyAccepted,
            _ => Category::Status,
        };
        let expected = case.error.as_ref().map_or("", |error| message(error));
        return difference(
            category,
            vec![
                format!("expected {} {expected}", case.status),
                format!("is {} {}", response.status, message(&response.body)),
            ],
        );
    }
    if let Some(object) = &case.object {
        let lines = diff_by(&Masked::default(), object, &response.body);
        if !lines.is_empty() {
            return difference(Category::Object, lines);
        }
    }
    let warnings: Vec<String> = response
        .warnings
        .iter()
        .map(|text| unquoted(text))
        .collect();
    if !are_equal(&case.warnings, &warnings) {
        return difference(
            Category::Warnings,
            vec![
                format!("expected {:#?}", case.warnings),
                format!("are {warnings:#?}"),
            ],
        );
    }
    let error = case.error.as_ref()?;
    let lines: Vec<String> = ERROR
        .iter()
        .flat_map(|field| {
            let [expected, actual] = [error, &response.body].map(|of| &of[field]);
            let lines = diff_by(&Masked::default(), expected, actual);
            lines.into_iter().map(move |line| format!("{field}{line}"))
        })
        .collect();
    if lines.is_empty() {
        return None;
    }
    difference(Category::Text, lines)
}

fn are_equal(expected: &[String], actual: &[String]) -> bool {
    let masks = Masks::default();
    let mut pairs = expected.iter().zip(actual);
    expected.len() == actual.len() && pairs.all(|(mask, text)| masks.match_text(mask, text))
}

fn message(error: &Value) -> &str {
    error["message"].as_str().unwrap_or_default()
}

/// Text of a warning header: its quoted part, after code and agent.
fn unquoted(header: &str) -> String {
    let text = header.strip_prefix("299 - \"");
    let text = text.and_then(|text| text.strip_suffix('"'));
    let mut plain = String::new();
    let mut is_escaped = false;
    for c in text.unwrap_or(header).chars() {
        if c == '\\' && !is_escaped {
            is_escaped = true;
        } else {
            plain.push(c);
            is_escaped = false;
        }
    }
    plain
}

/// The message of an error with a mask for a quoted object.
fn without_quoted(text: &str) -> String {
    let (start, mask) = QUOTED;
    let Some((before, rest)) = text.split_once(start) else {
        return text.to_owned();
    };
    let mut is_escaped = false;
    let end = rest.char_indices().find_map(|(at, c)| match c {
        '"' if !is_escaped => Some(at + 1),
        _ => {
            is_escaped = c == '\\' && !is_escaped;
            None
        }
    });
    format!("{before}{mask}{}", &rest[end.unwrap_or(rest.len())..])
}
