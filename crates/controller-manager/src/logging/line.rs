//! Log lines in the two formats of kube-controller-manager.

use std::fmt::Write as _;

use jiff::Timestamp;
use tracing::{Level, Metadata};

use super::fields::{Fields, Value};

/// Format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people, in the format of klog.
    Text,
    /// For machines, one JSON object a line, in the format of component-base.
    Json,
}

/// Content of a line.
pub(super) struct Line<'a> {
    pub(super) time: Timestamp,
    pub(super) process: u32,
    pub(super) metadata: &'a Metadata<'a>,
    pub(super) fields: &'a Fields,
}

impl Line<'_> {
    pub(super) fn render(&self, format: Format) -> String {
        match format {
            Format::Text => self.text(),
            Format::Json => self.json(),
        }
    }

    /// The klog format, with UTC time: `I0102 15:04:05.000000       1 file.rs:12] "message"
    /// key="value"`.
    fn text(&self) -> String {
        let severity = match *self.metadata.level() {
            Level::ERROR => 'E',
            Level::WARN => 'W',
            _ => 'I',
        };
        let time = self.time.strftime("%m%d %H:%M:%S.%6f");
        let path = self.metadata.file().unwrap_or("?");
        let file = path.rsplit('/').next().unwrap_or(path);
        let line = self.metadata.line().unwrap_or_default();
        let message = quoted(&self.fields.message);
        let mut text = format!(
            "{severity}{time} {:>7} {file}:{line}] {message}",
            self.process
        );
        for (name, value) in &self.fields.pairs {
            // Writing to a string can't fail.
            let _ = match value {
                Value::Text(value) => write!(text, " {name}={}", quoted(value)),
                Value::Plain(value) => write!(text, " {name}={value}"),
            };
        }
        text.push('\n');
        text
    }

    /// The component-base format: an object with the time in milliseconds, the caller, the message,
    /// the verbosity unless it is an error, and the fields.
    fn json(&self) -> String {
        let nanoseconds = self.time.as_nanosecond();
        let (milliseconds, rest) = (nanoseconds / 1_000_000, nanoseconds % 1_000_000);
        let caller = quoted(&self.caller());
        let message = quoted(&self.fields.message);
        let mut json =
            format!(r#"{{"ts":{milliseconds}.{rest:06},"caller":{caller},"msg":{message}"#);
        let verbosity = match *self.metadata.level() {
            Level::ERROR => None,
            Level::WARN | Level::INFO => Some(0),
            Level::DEBUG => Some(4),
            Level::TRACE => Some(5),
        };
        if let Some(verbosity) = verbosity {
            let _ = write!(json, r#","v":{verbosity}"#);
        }
        for (name, value) in &self.fields.pairs {
            let _ = match value {
                Value::Text(value) => write!(json, r#","{name}":{}"#, quoted(value)),
                Value::Plain(value) => write!(json, r#","{name}":{value}"#),
            };
        }
        json.push_str("}\n");
        json
    }

    /// Folder, file and line, without `src`.
    fn caller(&self) -> String {
        let path = self.metadata.file().unwrap_or("?");
        let mut parts: Vec<_> = path.split('/').filter(|part| *part != "src").collect();
        let place = parts.split_off(parts.len().saturating_sub(2)).join("/");
        format!("{place}:{}", self.metadata.line().unwrap_or_default())
    }
}

/// A text quoted like a JSON string, on one line.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
