//! The present state of a set, pod by pod.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::Session;
use crate::model::{Pod, Set};
use crate::output::{Style, Tone, table};
use crate::server::Server;
use crate::why::{State, explain, read};

/// Most missing pods with a separate row.
const MISSING_SHOWN: usize = 20;

/// The state of a set.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status {
    namespace: String,
    set: String,
    summary: String,
    is_settled: bool,
    pods: Vec<Row>,
}

/// A wanted or present pod.
#[derive(Debug, Serialize)]
struct Row {
    ordinal: Option<i64>,
    pod: String,
    revision: String,
    phase: String,
    ready: bool,
    node: String,
    claims: Vec<String>,
}

/// Reads the state of a set.
pub(crate) async fn status(
    server: &Server,
    session: &Session,
    name: &str,
) -> anyhow::Result<Status> {
    let names = [name.to_owned()];
    let sets = read::sets(server, Some(&session.namespace), &names).await?;
    let snapshot = read::snapshot(server, sets, session.now, &mut Vec::new()).await?;
    let mut status = Status {
        namespace: session.namespace.clone(),
        set: name.to_owned(),
        summary: String::new(),
        is_settled: false,
        pods: Vec::new(),
    };
    if let Some(set) = snapshot.sets.first() {
        let answer = explain::explain(&snapshot, set).await;
        status.is_settled = answer.finding.state == State::Settled;
        let counts = &set.object.status;
        status.summary = format!(
            "{} of {} ready, {} updated; {}",
            counts.ready_replicas,
            set.object.replicas(),
            counts.updated_replicas,
            answer.finding.text
        );
        status.pods = rows(&snapshot, &set.object);
    }
    Ok(status)
}

fn rows(snapshot: &read::Snapshot, set: &Set) -> Vec<Row> {
    let mut names: BTreeSet<(Option<i64>, String)> = BTreeSet::new();
    for pod in snapshot.pods_of(set) {
        let name = pod.metadata.name.clone();
        names.insert((set.ordinal(&name), name));
    }
    let wanted = set
        .ordinals()
        .map(|ordinal| (Some(ordinal), format!("{}-{ordinal}", set.metadata.name)));
    // A set may want more pods than any screen has lines.
    let missing: Vec<_> = wanted
        .filter(|name| !names.contains(name))
        .take(MISSING_SHOWN)
        .collect();
    names.extend(missing);
    let templates = &set.spec.volume_claim_templates;
    let row = |(ordinal, name): (Option<i64>, String)| {
        let pod = snapshot
            .pod(&name)
            .filter(|pod| pod.metadata.is_controlled_by(&set.metadata.uid));
        let claims = templates.iter().filter_map(|template| {
            let claim = format!("{}-{name}", template.metadata.name);
            let phase = &snapshot.claim(&claim)?.status.phase;
            Some(format!("{claim} {phase}"))
        });
        Row {
            ordinal,
            revision: pod.map_or("-", |pod| pod.metadata.revision()).to_owned(),
            phase: pod.map_or_else(|| "Missing".to_owned(), phase),
            ready: pod.is_some_and(Pod::is_ready),
            node: pod
                .map_or("-", |pod| pod.spec.node_name.as_str())
                .to_owned(),
            claims: claims.collect(),
            pod: name,
        }
    };
    names.into_iter().map(row).collect()
}

fn phase(pod: &Pod) -> String {
    if pod.metadata.deletion_timestamp.is_some() {
        "Terminating".to_owned()
    } else {
        pod.status.phase.clone()
    }
}

impl Status {
    /// True if nothing is left to do.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_settled
    }

    /// The state for people.
    pub(crate) fn text(&self, style: Style) -> String {
        let titles = [
            "ORDINAL", "POD", "REVISION", "PHASE", "READY", "NODE", "CLAIMS",
        ];
        let mut rows = vec![titles.map(str::to_owned).to_vec()];
        rows.extend(self.pods.iter().map(|row| {
            vec![
                row.ordinal
                    .map_or_else(|| "-".to_owned(), |ordinal| ordinal.to_string()),
                row.pod.clone(),
                row.revision.clone(),
                row.phase.clone(),
                if row.ready { "yes" } else { "no" }.to_owned(),
                row.node.clone(),
                row.claims.join(", "),
            ]
        }));
        let tone = if self.is_settled {
            Tone::Good
        } else {
            Tone::Warn
        };
        let title = format!("{}/{}: {}", self.namespace, self.set, self.summary);
        format!("{}\n{}", style.paint(tone, &title), table(&rows))
    }
}
