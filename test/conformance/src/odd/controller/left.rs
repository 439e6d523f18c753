//! State that the controller left in a namespace.

use std::collections::BTreeSet;

use anyhow::{Context as _, ensure};
use kube_apimachinery::json::Document;
use serde::Deserialize;

use crate::odd::case::ControllerRecord;
use crate::odd::stage::Stage;

/// Properties that are compared with a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct EndState {
    /// True if the generation of every set is observed; `None` without sets.
    pub(super) observed: Option<bool>,
    pub(super) pods: BTreeSet<String>,
    pub(super) claims: BTreeSet<String>,
    pub(super) revisions: BTreeSet<String>,
    /// `resource/name` of objects with a deletion timestamp.
    pub(super) terminating: BTreeSet<String>,
    pub(super) event_reasons: BTreeSet<String>,
}

#[derive(Deserialize)]
struct List {
    items: Vec<Object>,
}

#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
    #[serde(default)]
    status: Option<Status>,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    #[serde(default)]
    generation: i64,
    #[serde(default)]
    deletion_timestamp: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    #[serde(default)]
    observed_generation: i64,
}

impl EndState {
    /// Reads the state from the API.
    pub(super) async fn read(stage: &Stage, namespace: &str) -> anyhow::Result<Self> {
        let mut left = Self::default();
        let sets = list(stage, namespace, "apis/apps/v1", "statefulsets").await?;
        let is_observed = |set: &Object| {
            let status = set.status.as_ref();
            status.is_some_and(|status| status.observed_generation == set.metadata.generation)
        };
        left.observed = (!sets.is_empty()).then(|| sets.iter().all(is_observed));
        left.note_terminating("statefulsets", &sets);
        let pods = list(stage, namespace, "api/v1", "pods").await?;
        left.note_terminating("pods", &pods);
        left.pods = names(pods);
        let claims = list(stage, namespace, "api/v1", "persistentvolumeclaims").await?;
        left.note_terminating("persistentvolumeclaims", &claims);
        left.claims = names(claims);
        let revisions = list(stage, namespace, "apis/apps/v1", "controllerrevisions").await?;
        left.note_terminating("controllerrevisions", &revisions);
        left.revisions = names(revisions);
        let events = list(stage, namespace, "api/v1", "events").await?;
        left.event_reasons = events.into_iter().map(|event| event.reason).collect();
        Ok(left)
    }

    /// State that upstream left.
    pub(super) fn recorded(record: &ControllerRecord) -> Self {
        let set = |names: &[String]| names.iter().cloned().collect();
        Self {
            observed: record.observed,
            pods: set(&record.pods),
            claims: set(&record.claims),
            revisions: set(&record.revisions),
            terminating: set(&record.terminating),
            event_reasons: set(&record.event_reasons),
        }
    }

    fn note_terminating(&mut self, resource: &str, objects: &[Object]) {
        let terminating = objects
            .iter()
            .filter(|object| object.metadata.deletion_timestamp.is_some());
        self.terminating
            .extend(terminating.map(|object| format!("{resource}/{}", object.metadata.name)));
    }

    /// Differences from an expectation.
    pub(super) fn differences(&self, expected: &Self) -> Vec<String> {
        let mut differences = Vec::new();
        if self.observed != expected.observed {
            let (expected, found) = (expected.observed, self.observed);
            differences.push(format!("observed: expected {expected:?}, is {found:?}"));
        }
        for (what, expected, found) in [
            ("pods", &expected.pods, &self.pods),
            ("claims", &expected.claims, &self.claims),
            ("revisions", &expected.revisions, &self.revisions),
            ("terminating", &expected.terminating, &self.terminating),
            ("events", &expected.event_reasons, &self.event_reasons),
        ] {
            let lacks: Vec<_> = expected.difference(found).take(5).collect();
            let has: Vec<_> = found.difference(expected).take(5).collect();
            if !(lacks.is_empty() && has.is_empty()) {
                differences.push(format!("{what}: lacks {lacks:?}, has {has:?} beyond"));
            }
        }
        differences
    }
}

fn names(objects: Vec<Object>) -> BTreeSet<String> {
    objects
        .into_iter()
        .map(|object| object.metadata.name)
        .collect()
}

async fn list(
    stage: &Stage,
    namespace: &str,
    root: &str,
    resource: &str,
) -> anyhow::Result<Vec<Object>> {
    let path = format!("/{root}/namespaces/{namespace}/{resource}");
    let answer = stage.get(&path).await?;
    ensure!(answer.status == 200, "GET {path}: {}", answer.status);
    let document = Document::new(answer.body.to_vec());
    let list: List =
        serde_json::from_str(document.text()).with_context(|| format!("GET {path}"))?;
    Ok(list.items)
}
