//! Fields of a log line.

use std::fmt;

use tracing::field::{Field, Visit};

/// Message and key-value pairs of a line, in order.
#[derive(Debug, Default, Clone)]
pub(super) struct Fields {
    pub(super) message: String,
    pub(super) pairs: Vec<(&'static str, Value)>,
}

/// Value of a field.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// Text, printed in quotes.
    Text(String),
    /// A number or a boolean, printed bare.
    Plain(String),
}

impl Fields {
    /// Appends fields; a repeated name replaces the earlier value.
    pub(super) fn extend(&mut self, later: Self) {
        let names: Vec<_> = later.pairs.iter().map(|(name, _)| *name).collect();
        self.pairs.retain(|(name, _)| !names.contains(name));
        self.pairs.extend(later.pairs);
        self.message = later.message;
    }

    fn push(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::Text(text) | Value::Plain(text)) => self.message = text,
            // Upstream calls it `err` and prints it first.
            ("error", value) => self.pairs.insert(0, ("err", value)),
            (name, value) => self.pairs.push((name, value)),
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.push(field, Value::Text(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.push(field, Value::Text(value.to_owned()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.push(field, Value::Plain(value.to_string()));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.push(field, Value::Plain(value.to_string()));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.push(field, Value::Plain(value.to_string()));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        let text = value.to_string();
        self.push(
            field,
            if value.is_finite() {
                Value::Plain(text)
            } else {
                Value::Text(text)
            },
        );
    }
}
