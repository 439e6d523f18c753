//! The steps of a command and its conclusion.

use serde::Serialize;

use crate::output::{Style, Tone, printable};

/// Columns of an outcome in a text.
const OUTCOME_WIDTH: usize = 8;

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    /// As it must be.
    Ok,
    /// Written.
    Done,
    /// A fact without a verdict.
    Note,
    /// Not as it must be.
    Fail,
}

/// A step.
#[derive(Clone, Debug, Serialize)]
struct Step {
    outcome: Outcome,
    text: String,
}

impl Step {
    /// The step in one line.
    fn line(&self, style: Style) -> String {
        let (outcome, tone) = match self.outcome {
            Outcome::Ok => ("ok", Tone::Good),
            Outcome::Done => ("done", Tone::Good),
            Outcome::Note => ("note", Tone::Bold),
            Outcome::Fail => ("fail", Tone::Bad),
        };
        let outcome = style.paint(tone, &format!("{outcome:<OUTCOME_WIDTH$}"));
        outcome + &printable(&self.text) + "\n"
    }
}

/// The steps so far, each reported when it is made.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    steps: Vec<Step>,
    /// The conclusion in one sentence.
    conclusion: String,
}

impl Report {
    pub(crate) fn new() -> Self {
        Self {
            steps: Vec::new(),
            conclusion: String::new(),
        }
    }

    pub(crate) fn step(&mut self, outcome: Outcome, text: impl Into<String>) {
        let text = text.into();
        self.steps.push(Step { outcome, text });
    }

    /// The last step in one line.
    pub(crate) fn last_line(&self, style: Style) -> String {
        self.steps
            .last()
            .map_or_else(String::new, |step| step.line(style))
    }

    pub(crate) fn conclude(&mut self, conclusion: impl Into<String>) {
        self.conclusion = conclusion.into();
    }

    /// True if a step is not as it must be.
    pub(crate) fn has_findings(&self) -> bool {
        let mut steps = self.steps.iter();
        steps.any(|step| step.outcome == Outcome::Fail)
    }

    /// One line for each step, and the conclusion.
    pub(crate) fn text(&self, style: Style) -> String {
        let steps: String = self.steps.iter().map(|step| step.line(style)).collect();
        steps + &self.conclusion()
    }

    /// The conclusion in one line.
    pub(crate) fn conclusion(&self) -> String {
        printable(&self.conclusion) + "\n"
    }
}
