//! The current state of a set, pod by pod.

use std::collections::{BTreeMap, BTreeSet};

use kube_apimachinery::error_line::error_line;
use serde::Serialize;

use crate::Session;
use crate::model::{Node, Pod, Set, median_start};
use crate::objects::{Snapshot, read};
use crate::output::{Style, Tone, table};
use crate::server::{NODES, Server, decode};
use crate::why::{Risk, SetState, explain};

/// Most missing pods with a separate row.
const MISSING_SHOWN: usize = 20;

/// Characters of the progress bar.
const BAR_WIDTH: usize = 20;
/// Label of a node with its zone.
const ZONE: &str = "topology.kubernetes.io/zone";

/// The state of a set.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status {
    namespace: String,
    set: String,
    summary: String,
    is_settled: bool,
    progress: Progress,
    pods: Vec<Row>,
    /// Data that go without further action.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    risks: Vec<Risk>,
}

/// The desired pods that are ready in the update revision.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Progress {
    done: usize,
    wanted: usize,
    /// Estimate by the start times of the ready pods; missing without any, and for a stuck set.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds_left: Option<i64>,
}

impl Progress {
    fn new(snapshot: &Snapshot, set: &Set, state: SetState) -> Self {
        let wanted = usize::try_from(set.replicas()).unwrap_or_default();
        let update = &set.status.update_revision;
        let is_done = |pod: &&Pod| {
            let ordinal = set.ordinal(&pod.metadata.name);
            pod.is_ready()
                && pod.metadata.revision() == update
                && ordinal.is_some_and(|ordinal| set.ordinals().contains(&ordinal))
        };
        let done = snapshot.pods_of(set).filter(is_done).count();
        let left = i64::try_from(wanted.saturating_sub(done)).unwrap_or(i64::MAX);
        let each = median_start(snapshot.pods_of(set)).filter(|_| state == SetState::Waiting);
        let each = each.map(|seconds| seconds.saturating_add(set.spec.min_ready_seconds));
        let starts = if set.is_ordered() { left } else { left.min(1) };
        Self {
            done,
            wanted,
            seconds_left: each.map(|seconds| seconds.saturating_mul(starts)),
        }
    }

    fn text(&self) -> String {
        let Self {
            done,
            wanted,
            seconds_left,
        } = self;
        let left = seconds_left.map(|seconds| format!(", about {seconds}s left"));
        let filled = if *wanted == 0 {
            BAR_WIDTH
        } else {
            done.min(wanted) * BAR_WIDTH / wanted
        };
        let bar = "#".repeat(filled) + &".".repeat(BAR_WIDTH - filled);
        format!(
            "[{bar}] {done} of {wanted} pods done{}",
            left.unwrap_or_default()
        )
    }
}

/// A desired or existing pod.
#[derive(Debug, Serialize)]
struct Row {
    ordinal: Option<i64>,
    pod: String,
    revision: String,
    phase: String,
    ready: bool,
    node: String,
    zone: String,
    claims: Vec<String>,
}

/// Reads the state of a set.
pub(crate) async fn status(
    server: &Server,
    session: &Session,
    name: &str,
) -> anyhow::Result<Status> {
    let names = [name.to_owned()];
    let sets = read::sets(server, &session.namespace, &names).await?;
    let mut unread = Vec::new();
    let namespace = read::namespace(server, sets, session.now, &mut unread).await?;
    let snapshot = namespace.into_snapshot();
    let zones = zones(server, &snapshot, &mut unread).await;
    for text in &unread {
        server.note_unread(text);
    }
    let mut status = Status {
        namespace: session.namespace.clone(),
        set: name.to_owned(),
        summary: String::new(),
        is_settled: false,
        progress: Progress::default(),
        pods: Vec::new(),
        risks: Vec::new(),
    };
    if let (Some(set), Some(answer)) = (&snapshot.set, explain::explain(server, &snapshot).await) {
        status.is_settled = answer.finding.state == SetState::Settled;
        let counts = &set.object.status;
        status.summary = format!(
            "{} of {} ready, {} updated; {}",
            counts.ready_replicas,
            set.object.replicas(),
            counts.updated_replicas,
            answer.finding.text
        );
        status.progress = Progress::new(&snapshot, &set.object, answer.finding.state);
        status.pods = rows(&snapshot, &set.object, &zones);
        status.risks = answer.finding.risks;
    }
    Ok(status)
}

/// The zones of the nodes that run pods. Without permission to read nodes, the zones are missing.
async fn zones(
    server: &Server,
    snapshot: &Snapshot,
    unread: &mut Vec<String>,
) -> BTreeMap<String, String> {
    let zone = |node: &Node| {
        Some((
            node.metadata.name.clone(),
            node.metadata.labels.get(ZONE)?.clone(),
        ))
    };
    if !snapshot.nodes().is_empty() {
        return snapshot.nodes().iter().filter_map(zone).collect();
    }
    let keep = |text: &str| Ok(zone(&decode(text)?));
    match server.list(&NODES, None, keep).await {
        Ok(zones) => zones.into_iter().collect(),
        Err(error) => {
            unread.push(error_line(error.as_ref()));
            BTreeMap::new()
        }
    }
}

fn rows(snapshot: &Snapshot, set: &Set, zones: &BTreeMap<String, String>) -> Vec<Row> {
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
            let found = snapshot.claim(&claim)?;
            let phase = if found.metadata.deletion_timestamp.is_some() {
                "Terminating"
            } else {
                &found.status.phase
            };
            Some(format!("{claim} {phase}"))
        });
        let node = pod.map_or("-", |pod| pod.spec.node_name.as_str());
        Row {
            ordinal,
            revision: pod.map_or("-", |pod| pod.metadata.revision()).to_owned(),
            phase: pod.map_or_else(|| "Missing".to_owned(), phase),
            ready: pod.is_some_and(Pod::is_ready),
            node: node.to_owned(),
            zone: zones.get(node).map_or("-", String::as_str).to_owned(),
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
            "ORDINAL", "POD", "REVISION", "PHASE", "READY", "NODE", "ZONE", "CLAIMS",
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
                row.zone.clone(),
                row.claims.join(", "),
            ]
        }));
        let tone = if self.is_settled {
            Tone::Good
        } else {
            Tone::Warn
        };
        let title = format!("{}/{}: {}", self.namespace, self.set, self.summary);
        let progress = self.progress.text();
        let risks = self.risks.iter();
        let risks =
            risks.map(|risk| style.paint(Tone::Bad, &format!("risk: {}", risk.text)) + "\n");
        format!(
            "{}\n{progress}\n{}{}",
            style.paint(tone, &title),
            table(&rows),
            risks.collect::<String>()
        )
    }
}
