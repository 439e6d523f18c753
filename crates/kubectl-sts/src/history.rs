//! The revisions of a set.

use jiff::Timestamp;
use serde::Serialize;

use crate::Session;
use crate::diff::{Change, changes, shown};
use crate::output::{age, brief, table};
use crate::revisions::{Revisions, template};

/// Changes of a revision that a row names; the others are counted.
const CHANGES_SHOWN: usize = 2;
/// Characters of a value that a row shows.
const VALUE_LENGTH: usize = 40;
/// Pods of a revision that a row names; the others are counted.
const PODS_SHOWN: usize = 4;

/// The revisions of a set, oldest first.
#[derive(Debug, Serialize)]
pub(crate) struct History {
    namespace: String,
    set: String,
    revisions: Vec<Entry>,
}

/// One revision.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    revision: i64,
    name: String,
    #[serde(skip)]
    created_at: Option<Timestamp>,
    created: Option<String>,
    is_current: bool,
    is_update: bool,
    pods: Vec<String>,
    /// Changes from the previous revision; none for the first.
    changes: Vec<Change>,
    #[serde(skip)]
    is_first: bool,
}

impl History {
    /// Compares each revision with the one before.
    pub(crate) fn new(found: &Revisions) -> Self {
        let status = &found.set.status;
        let mut revisions: Vec<Entry> = Vec::new();
        let mut before = None;
        for revision in &found.all {
            let name = revision.metadata.name.clone();
            revisions.push(Entry {
                revision: revision.revision,
                created_at: revision.metadata.creation_timestamp,
                created: revision
                    .metadata
                    .creation_timestamp
                    .map(|at| at.to_string()),
                is_current: name == status.current_revision,
                is_update: name == status.update_revision,
                pods: found.pods.get(&name).cloned().unwrap_or_default(),
                changes: before.map_or_else(Vec::new, |old| changes(old, template(revision))),
                is_first: before.is_none(),
                name,
            });
            before = Some(template(revision));
        }
        Self {
            namespace: found.set.metadata.namespace.clone(),
            set: found.set.metadata.name.clone(),
            revisions,
        }
    }

    /// The revisions for people.
    pub(crate) fn text(&self, session: &Session) -> String {
        if self.revisions.is_empty() {
            let Self { namespace, set, .. } = self;
            return format!("{namespace}/{set} has no revisions: no controller has seen it yet\n");
        }
        let titles = ["REVISION", "NAME", "AGE", "ROLE", "PODS", "CHANGE"];
        let mut rows = vec![titles.map(str::to_owned).to_vec()];
        rows.extend(self.revisions.iter().map(|entry| {
            vec![
                entry.revision.to_string(),
                entry.name.clone(),
                age(entry.created_at, session.now),
                entry.role().to_owned(),
                some_of(&entry.pods, PODS_SHOWN, " "),
                entry.summary(),
            ]
        }));
        table(&rows)
    }
}

impl Entry {
    fn role(&self) -> &'static str {
        match (self.is_current, self.is_update) {
            (true, true) => "current, update",
            (true, false) => "current",
            (false, true) => "update",
            (false, false) => "-",
        }
    }

    fn summary(&self) -> String {
        if self.is_first {
            return "first known".to_owned();
        }
        let side = |value: Option<&serde_json::Value>| {
            value.map_or_else(
                || "none".to_owned(),
                |value| brief(&shown(value), VALUE_LENGTH),
            )
        };
        let line = |change: &Change| {
            let (old, new) = (side(change.old.as_ref()), side(change.new.as_ref()));
            format!("{}: {old} to {new}", change.path)
        };
        let changes: Vec<String> = self.changes.iter().map(line).collect();
        some_of(&changes, CHANGES_SHOWN, "; ")
    }
}

/// The first texts, and the number of the others.
fn some_of(texts: &[String], most: usize, separator: &str) -> String {
    let shown: Vec<&str> = texts.iter().take(most).map(String::as_str).collect();
    match texts.len() {
        0 => "-".to_owned(),
        all if all > most => format!(
            "{}{separator}and {} more",
            shown.join(separator),
            all - most
        ),
        _ => shown.join(separator),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut() {
        let texts = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(some_of(&texts, 3, " "), "a b c");
        assert_eq!(some_of(&texts, 2, " "), "a b and 1 more");
        assert_eq!(some_of(&[], 2, " "), "-");
    }
}
