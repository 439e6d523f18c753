//! The lines of a recreation, each reported when its step is made.

use crate::output::{Style, printable};
use crate::report::{Outcome, Report};

/// The steps so far.
pub(super) struct Progress<'a> {
    pub(super) report: Report,
    live: &'a mut dyn FnMut(&str),
    style: Style,
    /// The last reason to wait.
    waits: String,
}

impl<'a> Progress<'a> {
    pub(super) fn new(live: &'a mut dyn FnMut(&str), style: Style) -> Self {
        Self {
            report: Report::new(),
            live,
            style,
            waits: String::new(),
        }
    }

    /// Reports a text of whole lines.
    pub(super) fn text(&mut self, text: &str) {
        (self.live)(text);
    }

    pub(super) fn step(&mut self, outcome: Outcome, text: &str) {
        self.report.step(outcome, text);
        (self.live)(&self.report.last_line(self.style));
    }

    /// Reports a reason to wait, unless it is the last one.
    pub(super) fn waits(&mut self, reason: &str) {
        if self.waits != reason {
            reason.clone_into(&mut self.waits);
            (self.live)(&format!("waiting: {}\n", printable(reason)));
        }
    }
}
