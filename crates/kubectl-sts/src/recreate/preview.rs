//! The effects of a recreation, before it begins.

use serde::Serialize;

use crate::diff::{Change, shown};
use crate::output::{Style, Tone, counted, printable};
use crate::plan::{self, Recreation};

/// The effects of a recreation.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Preview {
    /// The fields that change.
    pub(super) changes: Vec<Change>,
    /// Pods, claims and revisions that stay.
    pub(super) kept: Kept,
    #[serde(flatten)]
    pub(super) recreation: Recreation,
    pub(super) notes: Vec<String>,
}

/// Numbers of the objects that stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Kept {
    pub(super) pods: usize,
    pub(super) claims: usize,
    pub(super) revisions: usize,
}

impl Preview {
    /// True if data would be lost, or every pod be down at once.
    pub(super) fn is_dangerous(&self) -> bool {
        self.recreation.plan.is_dangerous()
    }

    /// The pods that are replaced or removed.
    pub(super) fn disturbed(&self) -> Vec<String> {
        let Recreation {
            restarts, removals, ..
        } = &self.recreation;
        restarts.iter().chain(removals).cloned().collect()
    }

    /// The effects for people.
    pub(super) fn text(&self, style: Style) -> String {
        let none = "none".to_owned();
        let mut lines: Vec<String> = Vec::new();
        for Change { path, old, new } in &self.changes {
            let side = |value: &Option<_>| value.as_ref().map_or_else(|| none.clone(), shown);
            lines.push(printable(&format!(
                "change  {path}: {} to {}",
                side(old),
                side(new)
            )));
        }
        let Kept {
            pods,
            claims,
            revisions,
        } = self.kept;
        lines.push(format!(
            "keep    {}, {} and {}",
            counted(pods, "pod"),
            counted(claims, "claim"),
            counted(revisions, "revision")
        ));
        let Recreation {
            restarts, removals, ..
        } = &self.recreation;
        for (verb, pods) in [("restart", restarts), ("remove", removals)] {
            if !pods.is_empty() {
                let line = format!("{verb:<8}{}", pods.join(", "));
                lines.push(style.paint(Tone::Warn, &line));
            }
        }
        let notes = self.notes.iter();
        lines.extend(notes.map(|note| printable(&format!("note    {note}"))));
        let plan = plan::effects(&self.recreation.plan, style);
        lines.extend(plan);
        if restarts.is_empty() && removals.is_empty() {
            lines.push(style.paint(Tone::Good, "no pod restarts"));
        }
        lines.join("\n") + "\n"
    }
}
