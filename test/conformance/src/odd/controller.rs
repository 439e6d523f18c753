//! The stored objects of a case, served to the real controller over the API beside an ordinary set.

mod left;
mod rules;

use std::time::Duration;

use anyhow::Context as _;
use serde_json::json;

use super::case::{Case, Step};
use super::program::Program;
use super::stage::Stage;
use crate::report::Verdict;
use left::Left;
use rules::Rule;

/// How long an ordinary set may take, to get its pod and to be scaled.
const PROBE_TIME: Duration = Duration::from_secs(1);
/// A controller that is still creating pods is looked at after so many of them.
const ENDLESS_PODS: usize = 1_500;

/// How a controller comes to see the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// They are there before it starts.
    InLists,
    /// They come while it watches.
    InWatches,
}

/// Runs a case whose objects were stored: once where the controller lists them, and once where it
/// watches them come, unless they have to be made by requests.
///
/// # Errors
///
/// The control plane can't be started, or the record is not in order.
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
    let probe = Probe::prepare(&stage, case).await?;
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
        () = stage.pods_created(&namespace, ENDLESS_PODS) => true,
    };
    let left = Left::read(&stage, &namespace).await?;
    let mut differences = Vec::new();
    if !program.has_synced() {
        differences.push("the caches aren't filled".to_owned());
    }
    differences.extend(probe.differences().await?);
    if !program.is_alive() {
        differences.push("the program has ended".to_owned());
    }
    let rule = rules::judge(case, record, &left, is_endless, &mut differences);
    program.stop().await?;
    stage.end().await;
    Ok((differences, rule))
}

/// Whether the objects can only be made by the recorded requests: the controller made some of them,
/// or the record holds a digest alone.
fn must_be_replayed(case: &Case) -> bool {
    let by_controller = |step: &Step| matches!(step, Step::ControllerRuns(_));
    case.steps.iter().any(by_controller) || case.recorded().any(|object| object.body.is_none())
}

/// Brings the case's objects into the control plane.
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

/// An ordinary set in a namespace of its own.
struct Probe<'a> {
    stage: &'a Stage,
    namespace: String,
}

impl<'a> Probe<'a> {
    async fn prepare(stage: &'a Stage, case: &Case) -> anyhow::Result<Self> {
        let namespace = format!("{}-probe", case.namespace());
        stage.create_namespace(&namespace).await?;
        Ok(Self { stage, namespace })
    }

    /// Creates the set, then scales it; tells what of it isn't done within a second.
    async fn differences(&self) -> anyhow::Result<Vec<String>> {
        let path = format!("/apis/apps/v1/namespaces/{}/statefulsets", self.namespace);
        let set = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "probe"},
            "spec": {
                "replicas": 1, "serviceName": "probe", "podManagementPolicy": "Parallel",
                "selector": {"matchLabels": {"app": "probe"}},
                "template": {
                    "metadata": {"labels": {"app": "probe"}},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                },
            },
        });
        self.stage.write("POST", &path, &set).await?;
        let mut differences = self.pods_within(1).await;
        let scale = json!({"spec": {"replicas": 2}});
        let path = format!("{path}/probe");
        self.stage.write("PATCH", &path, &scale).await?;
        differences.extend(self.pods_within(2).await);
        Ok(differences)
    }

    async fn pods_within(&self, pods: usize) -> Vec<String> {
        let came = self.stage.pods_created(&self.namespace, pods);
        // An endless set keeps time from passing here: then its pods count instead.
        let endless = self.stage.pods_created("", ENDLESS_PODS * 4);
        tokio::select! {
            biased;
            () = came => Vec::new(),
            () = tokio::time::sleep(PROBE_TIME) => {
                vec![format!("an ordinary set doesn't get pod {pods} within a second")]
            }
            () = endless => vec![format!("an ordinary set waits for pod {pods} behind an endless one")],
        }
    }
}
