//! A job and its pods as one sync sees them.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube_test_control_plane_api::members::{list_at, number_at, text, text_at};
use kube_test_control_plane_api::object::Object;
use serde_json::{Value, json};

use super::indexes;
use super::pods::JobPod;

/// The controller of jobs, as in `spec.managedBy`.
const OWN_NAME: &str = "kubernetes.io/job-controller";

/// The pause after a first failure; it doubles with each other one.
const FIRST_PAUSE: Duration = Duration::from_secs(10);

/// The longest pause after failures.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// A job and its pods.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) job: Value,
    pub(super) pods: Vec<JobPod>,
    pub(super) now: Timestamp,
    pub(super) is_deleting: bool,
    pub(super) is_suspended: bool,
    pub(super) is_indexed: bool,
    /// The desired number of successes; `None` if one ends the job.
    pub(super) completions: Option<i64>,
}

impl View {
    pub(super) fn new(job: &Object, pods: Vec<JobPod>, now: Timestamp) -> Self {
        let is_deleting = job.deleting;
        let job = job.value();
        let spec = |member: &str| job.pointer(&format!("/spec/{member}"));
        Self {
            is_suspended: spec("suspend") == Some(&json!(true)),
            is_indexed: spec("completionMode") == Some(&json!("Indexed")),
            completions: spec("completions").and_then(Value::as_i64),
            is_deleting,
            now,
            pods,
            job,
        }
    }

    /// Reports whether another controller runs the job.
    pub(super) fn is_foreign(&self) -> bool {
        !matches!(text_at(&self.job, "/spec/managedBy"), "" | OWN_NAME)
    }

    /// Returns a condition that holds.
    pub(super) fn condition(&self, kind: &str) -> Option<&Value> {
        let mut conditions = list_at(&self.job, "/status/conditions");
        conditions.find(|it| text(it, "type") == kind && text(it, "status") == "True")
    }

    pub(super) fn completions_count(&self) -> u32 {
        let completions = self.completions.unwrap_or_default();
        u32::try_from(completions).unwrap_or_default()
    }

    pub(super) fn noted(&self, member: &str) -> BTreeSet<&str> {
        let noted = list_at(
            &self.job,
            &format!("/status/uncountedTerminatedPods/{member}"),
        );
        noted.filter_map(Value::as_str).collect()
    }

    /// Returns the uids of the ended pods that no counter includes yet.
    pub(super) fn uncounted(&self, has_succeeded: bool) -> BTreeSet<&str> {
        let member = if has_succeeded { "succeeded" } else { "failed" };
        let tracked = self
            .pods
            .iter()
            .filter(|pod| pod.is_tracked && pod.is_over());
        let ended = tracked.filter(|pod| pod.has_succeeded() == has_succeeded);
        let mut uids: BTreeSet<&str> = ended.map(|pod| &*pod.uid).collect();
        uids.extend(self.noted(member));
        uids
    }

    fn counted(&self, member: &str, has_succeeded: bool) -> i64 {
        let uncounted = self.uncounted(has_succeeded).len();
        let counted = number_at(&self.job, &format!("/status/{member}"));
        counted.saturating_add(i64::try_from(uncounted).unwrap_or(i64::MAX))
    }

    pub(super) fn failed(&self) -> i64 {
        self.counted("failed", false)
    }

    pub(super) fn succeeded(&self) -> i64 {
        if self.is_indexed {
            let count = self.succeeded_indexes().len();
            return i64::try_from(count).unwrap_or(i64::MAX);
        }
        self.counted("succeeded", true)
    }

    pub(super) fn succeeded_indexes(&self) -> BTreeSet<u32> {
        let count = self.completions_count();
        let noted = text_at(&self.job, "/status/completedIndexes");
        let mut found = indexes::parse(noted, count);
        let succeeded = self.pods.iter().filter(|pod| pod.has_succeeded());
        found.extend(
            succeeded
                .filter_map(|pod| pod.index)
                .filter(|index| *index < count),
        );
        found
    }

    /// Returns the number of pods that should run now.
    ///
    /// Upstream: `manageJob`, the part that computes `wantActive`.
    pub(super) fn wanted_active(&self) -> usize {
        if self.is_suspended {
            return 0;
        }
        let active = self.pods.iter().filter(|pod| pod.is_active()).count();
        let parallelism = number_at(&self.job, "/spec/parallelism");
        let succeeded = self.succeeded();
        let wanted = match self.completions {
            None if succeeded > 0 => return active,
            None => parallelism,
            Some(completions) => (completions - succeeded).min(parallelism),
        };
        let wanted = usize::try_from(wanted).unwrap_or_default();
        if text_at(&self.job, "/spec/podReplacementPolicy") == "Failed" {
            let ending = self
                .pods
                .iter()
                .filter(|pod| pod.is_deleting && !pod.is_over());
            return wanted.saturating_sub(ending.count());
        }
        wanted
    }

    /// Returns the time until the next pod may be created, after failures.
    ///
    /// Upstream: `getRemainingTime`
    pub(super) fn back_off(&self) -> Duration {
        let ended = |has_succeeded: bool| {
            let over = self.pods.iter().filter(|pod| pod.is_over());
            let ended = over.filter(move |pod| pod.has_succeeded() == has_succeeded);
            ended.filter_map(|pod| pod.ended)
        };
        let last_success = ended(true).max();
        let failures: Vec<Timestamp> = ended(false)
            .filter(|end| Some(*end) > last_success)
            .collect();
        let Some(last) = failures.iter().max() else {
            return Duration::ZERO;
        };
        let doublings = u32::try_from(failures.len() - 1)
            .unwrap_or(u32::MAX)
            .min(10);
        let pause = (FIRST_PAUSE * 2u32.pow(doublings)).min(LONGEST_PAUSE);
        let passed = self.now.duration_since(*last).max(SignedDuration::ZERO);
        pause.saturating_sub(passed.unsigned_abs())
    }
}
