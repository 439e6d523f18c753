//! Tests of the page of a run.

use super::page;
use crate::judges::{self, Violation};
use crate::plan::{Action, Plan, SetSpec, Settings};
use crate::run::run;

/// Elements without an end tag.
const VOID: [&str; 2] = ["meta", "input"];

/// Checks that each start tag has its end tag. Attributes contain no `>`: the page escapes it.
fn check_balance(html: &str) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = html;
    while let Some((_, after)) = rest.split_once('<') {
        let (tag, after) = after.split_once('>').ok_or("a tag has no end")?;
        rest = after;
        let name = tag.trim_start_matches('/').split(' ').next().unwrap_or("");
        if tag.starts_with('!') || VOID.contains(&name) {
            continue;
        }
        if tag.starts_with('/') {
            let last = open.pop();
            if last != Some(name) {
                return Err(format!("</{name}> ends {last:?}"));
            }
            continue;
        }
        open.push(name);
        if ["script", "style"].contains(&name) {
            let end = format!("</{name}>");
            let at = rest.find(&end).ok_or("a script has no end")?;
            rest = &rest[at..];
        }
    }
    open.is_empty()
        .then_some(())
        .ok_or(format!("{open:?} have no end"))
}

fn small_plan() -> Plan {
    let spec = SetSpec {
        replicas: 2,
        claims: 1,
        ..SetSpec::default()
    };
    Plan::new(1, Settings::default())
        .at(1_000, Action::Create(spec))
        .at(60_000, Action::image("<b>\"&'"))
}

#[test]
fn balance_is_checked() {
    assert_eq!(
        check_balance("<!DOCTYPE html><p><meta a=\"1\">x</p>"),
        Ok(())
    );
    assert_eq!(check_balance("<script>a < b</script>"), Ok(()));
    check_balance("<p><b>x</p></b>").expect_err("crossed tags");
    check_balance("<p>x").expect_err("an open tag");
}

#[test]
fn page_shows_each_pod_and_stands_alone() {
    let plan = small_plan();
    let record = run(&plan);
    let mut violations = judges::judge(&plan, &record).violations;
    violations.push(Violation {
        rule: "X-1",
        at: record.calm,
        message: "<script>alert(1)</script>".to_owned(),
    });
    let html = page(&plan, &record, &violations);
    check_balance(&html).expect("a well-formed page");
    for lane in ["web-0", "web-1", "claims", "instance 0", "API server"] {
        assert!(html.contains(&format!(">{lane}</th>")), "a lane {lane}");
    }
    for phase in ["pending", "ready", "terminating", "gone"] {
        assert!(html.contains(&format!("\">{phase}")), "a phase {phase}");
    }
    let last = violations.len() - 1;
    assert!(html.contains(&format!("href=\"#v{last}\"")));
    assert!(html.contains(&format!("id=\"v{last}\"")));
    assert!(!html.contains("<script>alert"), "text is escaped");
    assert!(!html.contains("http"), "nothing outside is loaded");
}

#[test]
fn page_of_an_empty_run_is_well_formed() {
    let plan = Plan::new(1, Settings::default());
    let html = page(&plan, &crate::record::Record::default(), &[]);
    check_balance(&html).expect("a well-formed page");
}
