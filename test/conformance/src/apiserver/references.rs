//! References in a case: its namespace, and parts of earlier responses.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use serde_json::{Map, Value};

use super::webhooks::Webhooks;

/// Placeholder of the namespace.
const NAMESPACE: &str = "{ns}";

/// Placeholder of the webhooks' URL.
const WEBHOOK_URL: &str = "{webhookUrl}";

/// Placeholder of the webhooks' authority.
const CA_BUNDLE: &str = "{caBundle}";

/// Values for the references of a case.
#[derive(Debug)]
pub(super) struct References {
    /// Texts of placeholders.
    texts: Vec<(&'static str, String)>,
    answers: BTreeMap<String, Value>,
}

impl References {
    pub(super) fn new(namespace: &str, webhooks: Option<&Webhooks>) -> Self {
        let mut texts = vec![(NAMESPACE, namespace.to_owned())];
        if let Some(webhooks) = webhooks {
            texts.push((WEBHOOK_URL, webhooks.url.clone()));
            texts.push((CA_BUNDLE, webhooks.ca_bundle.clone()));
        }
        Self {
            texts,
            answers: BTreeMap::new(),
        }
    }

    /// Stores the response of a step for later ones.
    pub(super) fn keep(&mut self, id: &str, answer: &Value) {
        self.answers.insert(id.to_owned(), answer.clone());
    }

    /// Resolves all references in a value.
    pub(super) fn fill(&self, value: &Value) -> anyhow::Result<Value> {
        Ok(match value {
            Value::String(text) => Value::String(self.fill_text(text)?),
            Value::Array(items) => {
                let items = items.iter().map(|item| self.fill(item));
                Value::Array(items.collect::<anyhow::Result<_>>()?)
            }
            Value::Object(members) => {
                let members = members
                    .iter()
                    .map(|(name, member)| Ok((self.fill_text(name)?, self.fill(member)?)));
                Value::Object(members.collect::<anyhow::Result<Map<_, _>>>()?)
            }
            other => other.clone(),
        })
    }

    /// Resolves all references in a text.
    pub(super) fn fill_text(&self, text: &str) -> anyhow::Result<String> {
        let mut text = text.to_owned();
        for (placeholder, filling) in &self.texts {
            text = text.replace(placeholder, filling);
        }
        let mut filled = String::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((reference, after)) = after.split_once("}}") else {
                break;
            };
            filled.push_str(before);
            filled.push_str(&self.look_up(reference)?);
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    fn look_up(&self, reference: &str) -> anyhow::Result<String> {
        let (id, path) = reference.split_once('.').unwrap_or((reference, ""));
        let pointer = format!("/{}", path.replace('.', "/"));
        let found = self
            .answers
            .get(id)
            .and_then(|answer| answer.pointer(&pointer));
        let found =
            found.with_context(|| format!("no answer before this step holds {reference}"))?;
        Ok(found
            .as_str()
            .map_or_else(|| found.to_string(), str::to_owned))
    }
}

/// Collects the uids in a request: fields of that name, and values that a JSON patch sets there.
pub(super) fn uids(body: &Value, found: &mut BTreeSet<String>) {
    match body {
        Value::Array(items) => items.iter().for_each(|item| uids(item, found)),
        Value::Object(members) => {
            let sets_uid = members
                .get("path")
                .and_then(Value::as_str)
                .is_some_and(|path| path.ends_with("/uid"));
            for (name, member) in members {
                match member {
                    Value::String(text) if name == "uid" || (sets_uid && name == "value") => {
                        found.insert(text.clone());
                    }
                    other => uids(other, found),
                }
            }
        }
        _ => {}
    }
}
