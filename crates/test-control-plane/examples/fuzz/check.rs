//! Checks of every response.

use std::collections::HashSet;

use serde_json::Value;

use crate::requests::Attempt;
use crate::session::Answer;

/// Server errors that upstream also returns, by parts of their messages.
const KNOWN_ERRORS: &[&str] = &[
    // Versions that are not numbers, in updates and watches.
    "strconv.ParseUint: parsing",
    "resourceVersion should not be set on objects to be created",
    // Objects that server-side apply can't convert.
    "failed to convert new object",
    "failed to create typed patch object",
    "field not declared in schema",
    "does not contain declared merge key",
    // Bindings.
    "target.name: Required value",
    "target.kind: Unsupported value",
];

/// Known errors of delete options.
const KNOWN_DELETE_ERRORS: &[&str] = &[
    "couldn't get version/kind; json parse error",
    "json: cannot unmarshal",
    "unexpected EOF",
    "proto:",
    "provided data does not appear to be a protobuf message",
    "empty body",
    "Object 'Kind' is missing",
];

/// Checks a response.
///
/// # Errors
///
/// The problem with the response.
pub(crate) fn answer(attempt: &Attempt, answer: &Answer) -> Result<(), String> {
    let text = String::from_utf8_lossy(&answer.body);
    let wrong = |why: &str| {
        let start: String = text.chars().take(2_000).collect();
        Err(format!("{why}: {} {start}", answer.code))
    };
    let content_type = answer.headers.get("content-type");
    let content_type = content_type
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    if !content_type.starts_with("application/json") || attempt.method == "HEAD" {
        let message = yaml_message(&text);
        let is_fine = attempt.method == "HEAD" || !is_unknown_error(attempt, answer, &message);
        return if is_fine {
            Ok(())
        } else {
            wrong("a server error")
        };
    }
    // A watch has one line per event.
    let mut lines = serde_json::Deserializer::from_slice(&answer.body).into_iter::<Value>();
    let first = match lines.next() {
        Some(Ok(first)) => first,
        Some(Err(err)) if only_go_reads(&err.to_string()) => return Ok(()),
        Some(Err(err)) => return wrong(&format!("invalid JSON: {err}")),
        None if text.is_empty() && attempt.target.contains("watch") => return Ok(()),
        None => return wrong("an empty answer"),
    };
    for line in lines {
        match line {
            Ok(event) if event.get("type").is_some() && event.get("object").is_some() => {}
            Ok(_) => return wrong("no event"),
            Err(err) if only_go_reads(&err.to_string()) => return Ok(()),
            Err(err) => return wrong(&format!("invalid JSON: {err}")),
        }
    }
    if answer.code < 400 {
        let is_object = first.get("kind").is_some() || first.get("type").is_some();
        let is_document = ["openapi", "paths", "gitVersion"];
        let is_document = is_document.iter().any(|member| first.get(member).is_some());
        return if is_object || is_document {
            Ok(())
        } else {
            wrong("no object")
        };
    }
    let text_at = |member: &str| {
        first
            .get(member)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let is_status = text_at("kind") == "Status"
        && text_at("apiVersion") == "v1"
        && text_at("status") == "Failure"
        && !text_at("message").is_empty()
        && first.get("metadata").is_some_and(Value::is_object)
        && first.get("code") == Some(&Value::from(answer.code));
    if !is_status {
        return wrong("no Status");
    }
    if is_unknown_error(attempt, answer, text_at("message")) {
        return wrong("a server error");
    }
    Ok(())
}

/// Reports whether a strict parser rejects JSON that Go accepts: raw text is returned as it was
/// sent.
fn only_go_reads(why: &str) -> bool {
    const REFUSALS: [&str; 5] = [
        "recursion limit exceeded",
        "invalid unicode code point",
        "lone leading surrogate",
        "unexpected end of hex escape",
        "number out of range",
    ];
    REFUSALS.iter().any(|refusal| why.contains(refusal))
}

/// Returns the message of a YAML status, without quotes and line breaks; other text unchanged.
fn yaml_message(text: &str) -> String {
    let status: Result<Value, _> = serde_saphyr::from_str(text);
    let message = status.ok().and_then(|status| {
        let message = status.get("message")?.as_str()?;
        Some(message.to_owned())
    });
    message.unwrap_or_else(|| text.to_owned())
}

fn is_unknown_error(attempt: &Attempt, answer: &Answer, message: &str) -> bool {
    let holds = |known: &[&str]| known.iter().any(|known| message.contains(known));
    let is_known = holds(KNOWN_ERRORS) || attempt.method == "DELETE" && holds(KNOWN_DELETE_ERRORS);
    answer.code >= 500 && answer.code != 504 && !is_known
}

/// Checks that writing back a read object has changed nothing.
///
/// # Errors
///
/// The difference.
pub(crate) fn same_object(path: &str, read: &Answer, written: &Answer) -> Result<(), String> {
    let text = |answer: &Answer| String::from_utf8_lossy(&answer.body).into_owned();
    if written.code == 200 && (read.body == written.body || has_twins(&read.body)) {
        return Ok(());
    }
    Err(format!(
        "{path} changed when it was written back\nread {}\nwritten {} {}",
        text(read),
        written.code,
        text(written)
    ))
}

/// Reports whether an object's managers have duplicate entries, which a patch of a scale can
/// create. The next write merges them.
fn has_twins(object: &[u8]) -> bool {
    let object: Value = serde_json::from_slice(object).unwrap_or_default();
    let entries = object
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array);
    let mut seen = HashSet::new();
    entries.into_iter().flatten().any(|entry| {
        let members = ["manager", "operation", "apiVersion", "subresource"];
        !seen.insert(members.map(|member| entry.get(member).map(Value::to_string)))
    })
}
