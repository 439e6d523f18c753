//! Run of the real controller on the stored objects of a case, alongside ordinary sets.

mod left;
mod rules;

use std::time::Duration;

use anyhow::Context as _;
use serde_json::json;

use super::case::{Case, Step};
use super::ordinary::ordinary_set;
use super::program::Program;
use super::stage::Stage;
use crate::report::Verdict;
use left::EndState;
use rules::Rule;

/// Time limit for ordinary sets to get their pods, and to scale.
const PROBE_TIME: Duration = Duration::from_secs(1);
/// The same in real time, because computing takes no paused time. A debug build, slowed by other
/// work, only detects gross delays.
const PROBE_REAL_TIME: Duration = Duration::from_secs(if cfg!(debug_assertions) { 10 } else { 1 });
/// Number of created pods after which a set counts as endless.
const ENDLESS_PODS: usize = 1_500;

/// Way that the controller first sees the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// They exist before it starts.
    InLists,
    /// They are created while it watches.
    InWatches,
}

/// Runs a case with stored objects: once listed and once watched by the controller, unless the
/// objects must be created by requests.
///
/// # Errors
///
/// The control plane can't be started, or the record is invalid.
pub async fn run(case: &Case) -> anyhow::Result<Verdict> {
    let mut verdict = Verdict {
        id: format!("{} ({})", case.id, case.about),
        ..Verdict::default()
    };
    let ways: &[Seen] = if must_be_replayed(case) {
        &[Seen::InLists]
    } else {
        &[Seen::InLists, Seen::InWatches]
    };
    for &seen in ways {
        let (differences, rule) = run_once(case, seen).await?;
        let place = |difference| format!("{seen:?}: {difference}");
        verdict
            .differences
            .extend(differences.into_iter().map(place));
        if let Some(rule) = rule
            && !verdict.deviations.contains(&rule.name())
        {
            verdict.deviations.push(rule.name());
        }
    }
    Ok(verdict)
}

async fn run_once(case: &Case, seen: Seen) -> anyhow::Result<(Vec<String>, Option<Rule>)> {
    let record = case.controller.as_ref().context("no object was stored")?;
    let stage = Stage::start(case).await?;
    let elsewhere = format!("{}-probe", case.namespace());
    stage.create_namespace(&elsewhere).await?;
    let mut program = match seen {
        Seen::InLists => {
            put(case, &stage).await?;
            Program::start(&stage)
        }
        Seen::InWatches => {
            let program = Program::start(&stage);
            tokio::time::sleep(PROBE_TIME).await;
            put(case, &stage).await?;
            program
        }
    };
    let seconds = Duration::try_from_secs_f64(record.seconds.max(1.0))?;
    let namespace = case.namespace();
    let is_endless = tokio::select! {
        () = tokio::time::sleep(seconds) => false,
        () = stage.pods_created(&namespace, "", ENDLESS_PODS) => true,
    };
    let left = EndState::read(&stage, &namespace).await?;
    // The probe adds objects, so the case is read before it.
    let mut differences = probe(&stage, &[&elsewhere, &namespace]).await?;
    differences.extend(program.faults());
    let rule = rules::judge(case, record, &left, is_endless, &mut differences);
    program.stop().await?;
    stage.end().await;
    Ok((differences, rule))
}

/// Returns true if the objects can only be created by the recorded requests: the controller created
/// some of them, or the record has only a digest.
fn must_be_replayed(case: &Case) -> bool {
    let by_controller = |step: &Step| matches!(step, Step::ControllerRuns(_));
    case.steps.iter().any(by_controller) || case.recorded().any(|object| object.body.is_none())
}

/// Stores the case's objects in the control plane.
async fn put(case: &Case, stage: &Stage) -> anyhow::Result<()> {
    if !must_be_replayed(case) {
        return stage.store_as_recorded(case.recorded());
    }
    for step in &case.steps {
        match step {
            Step::Request(request) => drop(stage.send(request).await?),
            Step::ControllerRuns(run) => {
                let seconds = Duration::try_from_secs_f64(run.seconds)?;
                super::program::run(stage, seconds).await?;
            }
        }
    }
    Ok(())
}

/// Name of the ordinary sets; no recorded object has it.
const ORDINARY: &str = "ordinary-neighbour";

/// Creates an ordinary set in each namespace, then scales them. Returns a line for each step that
/// takes longer than a second.
async fn probe(stage: &Stage, namespaces: &[&str]) -> anyhow::Result<Vec<String>> {
    let mut differences = Vec::new();
    let set = ordinary_set(ORDINARY, 1);
    let path = |namespace| format!("/apis/apps/v1/namespaces/{namespace}/statefulsets");
    for namespace in namespaces {
        stage.write("POST", &path(namespace), &set).await?;
    }
    differences.extend(pods_within(stage, namespaces, 1).await);
    let scale = json!({"spec": {"replicas": 2}});
    for namespace in namespaces {
        let path = format!("{}/{ORDINARY}", path(namespace));
        stage.write("PATCH", &path, &scale).await?;
    }
    differences.extend(pods_within(stage, namespaces, 2).await);
    Ok(differences)
}

/// Waits until the ordinary set of each namespace has this number of pods. Returns a line for each
/// set that has fewer after a second.
async fn pods_within(stage: &Stage, namespaces: &[&str], pods: usize) -> Vec<String> {
    let started = RealTime::now();
    let prefix = &format!("{ORDINARY}-");
    let served = namespaces.iter().map(|&namespace| async move {
        let came = stage.pods_created(namespace, prefix, pods);
        // An endless set keeps paused time from advancing, so its pods are counted instead.
        let endless = stage.pods_created("", "", ENDLESS_PODS * 4);
        let set = format!("the ordinary set in {namespace}");
        tokio::select! {
            biased;
            () = came => None,
            () = tokio::time::sleep(PROBE_TIME) => {
                Some(format!("{set} doesn't get pod {pods} within a second"))
            }
            () = endless => Some(format!("{set} waits for pod {pods} behind an endless one")),
        }
    });
    let served = futures::future::join_all(served).await;
    let mut differences: Vec<_> = served.into_iter().flatten().collect();
    differences.extend(started.passed(PROBE_REAL_TIME, &format!("pod {pods} of ordinary sets")));
    differences
}

/// A point in real time.
struct RealTime(std::time::Instant);

impl RealTime {
    #[expect(
        clippy::disallowed_methods,
        reason = "computing takes no time of the paused clock"
    )]
    fn now() -> Self {
        Self(std::time::Instant::now())
    }

    /// Returns a difference if too much time has passed.
    fn passed(&self, max: Duration, what: &str) -> Option<String> {
        let took = self.0.elapsed();
        (took > max).then(|| format!("{what} took {took:.1?} of real time, may take {max:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn probe_reports_each_unserved_set() {
        let stage = Stage::with_namespace("n").await.unwrap();
        let differences = probe(&stage, &["n"]).await.unwrap();
        assert_eq!(
            differences,
            [
                "the ordinary set in n doesn't get pod 1 within a second",
                "the ordinary set in n doesn't get pod 2 within a second",
            ]
        );
        stage.end().await;
    }

    #[test]
    fn excess_real_time_is_a_difference() {
        let started = RealTime::now();
        assert_eq!(started.passed(Duration::from_secs(600), "it"), None);
        while started.0.elapsed().is_zero() {
            std::hint::spin_loop();
        }
        let difference = started.passed(Duration::ZERO, "it").unwrap();
        assert!(difference.starts_with("it took "), "{difference}");
    }
}
