//! Preflight checks before and after a switch to this controller, and before an upgrade of a cluster
//! with the built-in one.
//!
//! Each check judges a few objects and never writes. A check without permission to read them stays
//! open.

mod admission;
mod check;
mod controller;
mod differences;
mod fence;
mod flow_control;
mod rights;
mod sets;
mod shipped;
mod upgrade;
mod version;

use serde::Serialize;

use crate::Session;
use crate::output::{Style, counted};
use crate::release::Release;
use crate::server::Server;
use check::{Check, Verdict};

/// The checklist.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Preflight {
    /// The step that is checked: `switch` or `upgrade`.
    step: &'static str,
    /// True if nothing is left to do before the step.
    is_ready: bool,
    checks: Vec<Check>,
}

/// Checks the cluster before an upgrade.
pub(crate) async fn upgrade(server: &Server, session: &Session, to: Release) -> Preflight {
    let checks = upgrade::checks(server, session.now, to).await;
    Preflight::new("upgrade", checks)
}

/// Checks the cluster before a switch.
pub(crate) async fn preflight(server: &Server, session: &Session) -> Preflight {
    let mut checks = vec![
        version::check(server).await,
        controller::check(server, session.now).await,
        rights::check(server).await,
        admission::check(server).await,
        flow_control::check(server).await,
    ];
    checks.extend(sets::check(server, session.now).await);
    Preflight::new("switch", checks)
}

impl Preflight {
    fn new(step: &'static str, checks: Vec<Check>) -> Self {
        Self {
            step,
            is_ready: checks.iter().all(Check::is_passed),
            checks,
        }
    }

    /// True if something is left to do before the step.
    pub(crate) fn has_findings(&self) -> bool {
        !self.is_ready
    }

    /// One line for each check, its details below it, and the conclusion.
    pub(crate) fn text(&self, style: Style) -> String {
        let text: String = self.checks.iter().map(|check| check.text(style)).collect();
        let stops = self.count(Verdict::Stop);
        let open = self.count(Verdict::Todo) + self.count(Verdict::Unread);
        let step = self.step;
        let conclusion = match (stops, open) {
            (0, 0) => format!("the cluster is ready to {step}"),
            (0, open) => format!("{} before the {step}", counted(open, "open point")),
            (1, _) => format!("1 check blocks the {step}"),
            (stops, _) => format!("{stops} checks block the {step}"),
        };
        text + &conclusion + "\n"
    }

    fn count(&self, verdict: Verdict) -> usize {
        let found = self.checks.iter().filter(|check| check.verdict == verdict);
        found.count()
    }
}
