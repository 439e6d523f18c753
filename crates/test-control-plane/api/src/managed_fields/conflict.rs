//! Apply conflicts with other managers.

use std::collections::BTreeMap;

use serde_json::json;

use super::managers::{ManagerId, Operation};
use super::path::{Path, display};
use super::set::Set;
use crate::status::ApiError;

/// A changed field that another manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    /// The owner.
    pub manager: ManagerId,
    /// The field.
    pub path: Path,
}

/// All conflicts of an apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Conflicts(pub(crate) Vec<Conflict>);

impl Conflicts {
    /// Returns the fields of all conflicts.
    pub(crate) fn fields(&self) -> Set {
        let mut set = Set::EMPTY;
        for conflict in &self.0 {
            set.insert(&conflict.path);
        }
        set
    }

    /// Drops the conflicts about these fields.
    pub(crate) fn except(self, fields: &Set) -> Self {
        let others = self.0.into_iter();
        Self(
            others
                .filter(|conflict| !fields.has(&conflict.path))
                .collect(),
        )
    }

    /// Returns the 409 error with a cause for each conflict.
    pub(crate) fn error(&self) -> ApiError {
        let causes: Vec<_> = self
            .0
            .iter()
            .map(|conflict| {
                json!({
                    "reason": "FieldManagerConflict",
                    "message": format!("conflict with {}", shown(&conflict.manager)),
                    "field": display(&conflict.path),
                })
            })
            .collect();
        ApiError {
            details: Some(json!({"causes": causes})),
            ..ApiError::new(409, "Conflict", self.message())
        }
    }

    fn message(&self) -> String {
        if let [Conflict { manager, path }] = self.0.as_slice() {
            let (manager, path) = (shown(manager), display(path));
            return format!("Apply failed with 1 conflict: conflict with {manager}: {path}");
        }
        let mut by_manager: BTreeMap<&ManagerId, Vec<String>> = BTreeMap::new();
        for Conflict { manager, path } in &self.0 {
            by_manager.entry(manager).or_default().push(display(path));
        }
        let mut lines = Vec::new();
        for (manager, paths) in by_manager {
            lines.push(format!("conflicts with {}:", shown(manager)));
            lines.extend(paths.into_iter().map(|path| format!("- {path}")));
        }
        let lines = lines.join("\n");
        format!("Apply failed with {} conflicts: {lines}", self.0.len())
    }
}

/// Formats a manager for messages.
fn shown(manager: &ManagerId) -> String {
    let mut text = format!("{:?}", manager.name);
    if !manager.subresource.is_empty() {
        text = format!("{text} with subresource {:?}", manager.subresource);
    }
    match manager.operation {
        Operation::Apply => text,
        Operation::Update => format!("{text} using {}", manager.api_version),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::managed_fields::path::PathElement;

    fn conflict(manager: ManagerId, field: &str) -> Conflict {
        let path = vec![PathElement::field("data"), PathElement::field(field)];
        Conflict { manager, path }
    }

    #[test]
    fn one_conflict_is_reported_on_one_line() {
        let applier = ManagerId::new(Operation::Apply, "m1", "v1", "");
        let error = Conflicts(vec![conflict(applier, "a")]).error();
        assert_eq!(
            error.message,
            "Apply failed with 1 conflict: conflict with \"m1\": .data.a"
        );
        let cause = json!({
            "reason": "FieldManagerConflict",
            "message": "conflict with \"m1\"",
            "field": ".data.a",
        });
        assert_eq!(error.details, Some(json!({"causes": [cause]})));
    }

    #[test]
    fn conflicts_are_grouped_by_manager() {
        let updater = ManagerId::new(Operation::Update, "upd", "v1", "status");
        let applier = ManagerId::new(Operation::Apply, "m1", "v1", "");
        let conflicts = Conflicts(vec![
            conflict(updater.clone(), "b"),
            conflict(applier, "a"),
            conflict(updater, "c"),
        ]);
        assert_eq!(
            conflicts.error().message,
            "Apply failed with 3 conflicts: conflicts with \"m1\":\n- .data.a\n\
             conflicts with \"upd\" with subresource \"status\" using v1:\n- .data.b\n- .data.c"
        );
        let known = Set::from([["data", "a"].as_slice(), &["data", "c"]]);
        let others = conflicts.clone().except(&known);
        assert_eq!(others.fields(), Set::from([["data", "b"].as_slice()]));
        assert_eq!(conflicts.fields().paths().len(), 3);
    }
}
