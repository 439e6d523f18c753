//! A rule of a schema.

use std::sync::OnceLock;

use serde_json::Value;

use crate::cel::Program;
use crate::members::text;

/// A rule: a field of `x-kubernetes-validations`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rule {
    /// `rule`.
    pub(crate) source: String,
    /// `message`.
    pub(crate) message: String,
    /// `messageExpression`.
    pub(crate) message_expression: String,
    /// `reason`.
    pub(crate) reason: Option<String>,
    /// `fieldPath`.
    pub(crate) field_path: String,
    /// `optionalOldSelf`.
    pub(crate) optional_old: Option<bool>,
    program: OnceLock<Option<Program>>,
    message_program: OnceLock<Option<Program>>,
}

impl Rule {
    /// Reads the rules of a schema.
    pub(crate) fn read_all(schema: &Value) -> Vec<Self> {
        let rules = schema
            .get("x-kubernetes-validations")
            .and_then(Value::as_array);
        let rules = rules.into_iter().flatten();
        rules
            .map(|rule| Self {
                source: text(rule, "rule").to_owned(),
                message: text(rule, "message").to_owned(),
                message_expression: text(rule, "messageExpression").to_owned(),
                reason: rule
                    .get("reason")
                    .and_then(Value::as_str)
                    .map(str::to_owned),
                field_path: text(rule, "fieldPath").to_owned(),
                optional_old: rule.get("optionalOldSelf").and_then(Value::as_bool),
                ..Self::default()
            })
            .collect()
    }

    /// Returns the compiled rule; `None` on a syntax error, which validation rejects before
    /// storage.
    pub(crate) fn program(&self) -> Option<&Program> {
        let program = self
            .program
            .get_or_init(|| Program::parse(&self.source).ok());
        program.as_ref()
    }

    /// Returns the compiled `messageExpression`, if there is one.
    pub(crate) fn message_program(&self) -> Option<&Program> {
        let source = &self.message_expression;
        let program = self
            .message_program
            .get_or_init(|| Program::parse(source).ok());
        program.as_ref().filter(|_| !source.is_empty())
    }

    /// Returns the static failure message: `message`, or else the rule itself.
    pub(crate) fn failure(&self) -> String {
        match self.message.trim() {
            "" => format!("failed rule: {}", self.source.trim()),
            message => message.to_owned(),
        }
    }
}
