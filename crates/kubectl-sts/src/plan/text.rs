//! Plans for people.

use super::outcome::{ClaimAtRisk, Plan, PlannedBudget};
use super::steps::Step;
use crate::output::{Style, Tone, table};

/// The plan for people.
pub(crate) fn text(plan: &Plan, style: Style) -> String {
    let Plan { namespace, set, .. } = plan;
    let mut lines = vec![style.paint(Tone::Bold, &format!("{namespace}/{set}"))];
    if plan.steps.is_empty() {
        lines.push("the controller would write nothing".to_owned());
    }
    lines.extend(effects(plan, style));
    let (tone, end) = end(plan);
    lines.push(style.paint(tone, &end));
    lines.join("\n") + "\n"
}

/// The writes of the plan and their effects on claims and budgets, line by line.
pub(crate) fn effects(plan: &Plan, style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    if !plan.steps.is_empty() {
        lines.push(table(&rows(&plan.steps)).trim_end().to_owned());
    }
    for claim in &plan.claims_deleted {
        let tone = if claim.is_dangerous() {
            Tone::Bad
        } else {
            Tone::Warn
        };
        lines.push(style.paint(tone, &claim.line()));
    }
    for claim in &plan.claims_at_risk {
        lines.push(style.paint(Tone::Warn, &at_risk(claim)));
    }
    if plan.all_at_once {
        let line = "OUTAGE: at some point no pod would be ready";
        lines.push(style.paint(Tone::Bad, line));
    }
    for budget in &plan.budgets {
        let (tone, line) = budget_line(budget, plan.least_ready);
        lines.push(style.paint(tone, &line));
    }
    lines
}

fn at_risk(claim: &ClaimAtRisk) -> String {
    let name = &claim.name;
    match &claim.holder {
        Some(holder) => format!(
            "AT RISK: claim {name} is being deleted; only {holder} keeps it, and the change \
             leaves that as it is"
        ),
        None => format!("AT RISK: claim {name} is being deleted"),
    }
}

fn budget_line(budget: &PlannedBudget, least: usize) -> (Tone, String) {
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
    let line = format!(
        "BUDGET: PodDisruptionBudget {name} requires {required} healthy pods, at least {least} \
         stay ready: {end}"
    );
    (tone, line)
}

fn rows(steps: &[Step]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut before: Option<&Step> = None;
    for step in steps {
        if let Some(before) = before
            && before.resource == "pods"
            && step.after > before.after
        {
            let state = match &*before.verb {
                "create" => "ready",
                "resize" => "resized",
                "delete" => "gone",
                _ => "updated",
            };
            rows.push(vec![
                String::new(),
                format!("wait until {} is {state}", before.name),
            ]);
        }
        rows.push(vec![
            format!("{:>6}", format!("+{}s", step.after)),
            step_text(step),
        ]);
        before = Some(step);
    }
    rows
}

fn end(plan: &Plan) -> (Tone, String) {
    let seconds = plan.seconds;
    let basis = match plan.seconds_to_ready {
        Some(ready) => format!("the existing pods took {ready}s to become ready"),
        None => "no existing pod shows how long startup takes".to_owned(),
    };
    match &plan.ends_with {
        None if plan.is_complete => (
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

fn step_text(step: &Step) -> String {
    let kind = match step.resource.as_str() {
        "pods" => "pod",
        "persistentvolumeclaims" => "claim",
        "controllerrevisions" => "revision",
        other => other,
    };
    let revision = match step.revision.as_str() {
        "" => String::new(),
        revision if step.resource == "pods" => format!(" (revision {revision})"),
        _ => String::new(),
    };
    let reason = match &*step.reason {
        "" => String::new(),
        reason => format!(", not updated in place: {reason}"),
    };
    format!("{} {kind} {}{revision}{reason}", step.verb, step.name)
}
