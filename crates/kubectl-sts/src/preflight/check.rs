//! One point of the checklist.

use kube_apimachinery::error_line::error_line;
use serde::Serialize;

use crate::output::{Style, Tone, printable};

/// Details that a text shows of one check; the other forms hold all.
const SHOWN_MAX: usize = 8;
/// Columns of a verdict in a text.
const VERDICT_WIDTH: usize = 8;
/// Columns of a check's name in a text.
const NAME_WIDTH: usize = 14;

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    /// The switch needs no change here.
    Ok,
    /// A permission is missing, so that the objects couldn't be read.
    Unread,
    /// Something is left to do.
    Todo,
    /// The switch would do harm.
    Stop,
}

/// A point of the checklist.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Check {
    /// Stable name, for programs.
    #[serde(rename = "check")]
    pub(super) name: &'static str,
    pub(super) verdict: Verdict,
    /// The outcome in one sentence.
    pub(super) text: String,
    /// Objects concerned, commands and facts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) details: Vec<String>,
}

impl Check {
    /// A check with this outcome.
    pub(super) fn new(name: &'static str, verdict: Verdict, text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            name,
            verdict,
            text,
            details: Vec::new(),
        }
    }

    /// A check whose objects can't be read.
    pub(super) fn unread(name: &'static str, error: &anyhow::Error) -> Self {
        Self::new(name, Verdict::Unread, error_line(error.as_ref()))
    }

    /// Adds details.
    pub(super) fn with(mut self, details: impl IntoIterator<Item = String>) -> Self {
        self.details.extend(details);
        self
    }

    /// True if nothing is left to do.
    pub(super) fn is_passed(&self) -> bool {
        self.verdict == Verdict::Ok
    }

    /// The lines of a text.
    pub(super) fn text(&self, style: Style) -> String {
        let (verdict, tone) = match self.verdict {
            Verdict::Ok => ("ok", Tone::Good),
            Verdict::Unread => ("unread", Tone::Warn),
            Verdict::Todo => ("todo", Tone::Warn),
            Verdict::Stop => ("stop", Tone::Bad),
        };
        let verdict = style.paint(tone, &format!("{verdict:<VERDICT_WIDTH$}"));
        let name = self.name;
        let first = format!("{verdict}{name:<NAME_WIDTH$}{}\n", printable(&self.text));
        let shown = self.details.iter().take(SHOWN_MAX);
        let hidden = self.details.len().saturating_sub(SHOWN_MAX);
        let more = (hidden > 0).then(|| format!("and {hidden} more, with -o json"));
        let indent = " ".repeat(VERDICT_WIDTH + NAME_WIDTH);
        let below = shown.map(|detail| printable(detail)).chain(more);
        below.fold(first, |text, line| text + &indent + &line + "\n")
    }
}
