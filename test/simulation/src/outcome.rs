//! Outcomes: the results of a run, for reports.

use std::collections::BTreeSet;
use std::time::Duration;

use kube_test_control_plane::route::Verb;
use serde::{Deserialize, Serialize};

use crate::history::History;
use crate::judges::{Case, judge_case};
use crate::plan::Plan;
use crate::record::Record;
use crate::run::run;
use crate::situations::reached;

/// The results of a run, for reports.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// Hash of everything that the API server got.
    pub trace: String,
    /// Simulated seconds.
    pub seconds: f64,
    /// Broken rules, one line each.
    pub violations: Vec<String>,
    /// Names of the broken rules.
    pub rules: BTreeSet<String>,
    /// Situations reached.
    pub situations: BTreeSet<String>,
    /// Number of requests that the API server got.
    pub requests: usize,
    /// Number of the instances' writes, leases and events aside.
    pub writes: usize,
    /// Number of creations of objects that existed already.
    pub duplicates: usize,
    /// Number of other writes that conflicted with the stored object.
    pub conflicts: usize,
    /// Number of syncs.
    pub syncs: usize,
    /// Seconds from the last fault to the last write.
    pub settled_after: Option<f64>,
    /// Number of writes, successful or not, that could let the garbage collector delete a claim.
    pub doomed: usize,
    /// Number of those that a user's change outran.
    pub outrun: usize,
    /// Number of writes of the wrong controller that were stored before every API server applied the
    /// fence.
    #[serde(default)]
    pub overlaps: usize,
}

impl Outcome {
    /// Runs a plan and judges it.
    pub fn of(plan: &Plan) -> Self {
        Self::judged(plan, &run(plan))
    }

    /// Judges a run.
    pub fn judged(plan: &Plan, record: &Record) -> Self {
        let history = History::read(record);
        let case = Case::new(plan, record, &history);
        let verdict = judge_case(&case);
        let situations = reached(&case, &verdict);
        let settled = record.quiet.map(|quiet| quiet.saturating_sub(record.calm));
        let refused = |created: bool| {
            let conflicts = record
                .requests
                .iter()
                .filter(|it| it.is_write() && it.status == Some(409));
            conflicts
                .filter(|it| (it.verb == Some(Verb::Create)) == created)
                .count()
        };
        Self {
            trace: format!("{:016x}", record.trace),
            seconds: record.length.as_secs_f64(),
            violations: verdict.violations.iter().map(ToString::to_string).collect(),
            rules: verdict
                .violations
                .iter()
                .map(|violation| violation.rule.to_owned())
                .collect(),
            situations: situations.into_iter().map(str::to_owned).collect(),
            requests: record.requests_served,
            writes: record.requests.iter().filter(|it| it.is_write()).count(),
            duplicates: refused(true),
            conflicts: refused(false),
            syncs: record.syncs.len(),
            settled_after: settled.as_ref().map(Duration::as_secs_f64),
            doomed: verdict.doomed,
            outrun: verdict.outrun,
            overlaps: verdict.overlaps,
        }
    }
}
