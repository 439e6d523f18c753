//! Plans for people.

use super::{Plan, PlannedBudget, Step};
use crate::output::{Style, Tone, table};

impl Plan {
    /// The plan for people.
    pub(crate) fn text(&self, style: Style) -> String {
        let Self { namespace, set, .. } = self;
        let mut text = style.paint(Tone::Bold, &format!("{namespace}/{set}")) + "\n";
        if self.steps.is_empty() {
            text.push_str("the controller would write nothing\n");
        } else {
            text.push_str(&table(&self.rows()));
        }
        for claim in &self.claims_deleted {
            let class = if claim.storage_class.is_empty() {
                "none"
            } else {
                &claim.storage_class
            };
            let line = format!(
                "DATA LOSS: claim {} ({}, storage class {class}) would be deleted",
                claim.name, claim.size
            );
            text.push_str(&(style.paint(Tone::Bad, &line) + "\n"));
        }
        if self.all_at_once {
            let line = "OUTAGE: at some point no pod would be ready";
            text.push_str(&(style.paint(Tone::Bad, line) + "\n"));
        }
        for budget in &self.budgets {
            let PlannedBudget {
                name,
                required,
                is_broken,
            } = budget;
            let (tone, end) = if *is_broken {
                (Tone::Bad, "the plan violates it")
            } else {
                (Tone::Good, "the plan respects it")
            };
            let least = self.least_ready;
            let line = format!(
                "BUDGET: PodDisruptionBudget {name} requires {required} healthy pods, at least \
                 {least} stay ready: {end}"
            );
            text.push_str(&(style.paint(tone, &line) + "\n"));
        }
        let (tone, end) = self.end();
        text + &style.paint(tone, &end) + "\n"
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let mut rows = Vec::new();
        let mut before: Option<&Step> = None;
        for step in &self.steps {
            if let Some(before) = before
                && before.resource == "pods"
                && step.after > before.after
            {
                let state = if before.verb == "create" {
                    "ready"
                } else {
                    "gone"
                };
                rows.push(vec![
                    String::new(),
                    format!("wait until {} is {state}", before.name),
                ]);
            }
            rows.push(vec![
                format!("{:>6}", format!("+{}s", step.after)),
                step.text(),
            ]);
            before = Some(step);
        }
        rows
    }

    fn end(&self) -> (Tone, String) {
        let seconds = self.seconds;
        let basis = match self.seconds_to_ready {
            Some(ready) => format!("the existing pods took {ready}s to become ready"),
            None => "no existing pod shows how long startup takes".to_owned(),
        };
        match &self.ends_with {
            None if self.is_complete => (
                Tone::Good,
                format!("complete after about {seconds}s ({basis})"),
            ),
            None => (
                Tone::Warn,
                format!("not complete after {seconds}s ({basis})"),
            ),
            Some(reason) => (
                Tone::Warn,
                format!("stops after about {seconds}s: {reason}"),
            ),
        }
    }
}

impl Step {
    fn text(&self) -> String {
        let kind = match self.resource.as_str() {
            "pods" => "pod",
            "persistentvolumeclaims" => "claim",
            "controllerrevisions" => "revision",
            other => other,
        };
        let revision = match self.revision.as_str() {
            "" => String::new(),
            revision if self.resource == "pods" => format!(" (revision {revision})"),
            _ => String::new(),
        };
        format!("{} {kind} {}{revision}", self.verb, self.name)
    }
}
