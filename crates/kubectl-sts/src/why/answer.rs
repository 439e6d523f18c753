//! Answers, rendered.

use jiff::Timestamp;
use serde::Serialize;
use statefulset_controller::Waiting;

use super::finding::{Finding, SetState};
use crate::model::Set;
use crate::objects::Snapshot;
use crate::output::{Style, Tone, age, brief, printable, table};

/// Characters of a reason in a table.
const REASON_LENGTH: usize = 60;

/// The answer about one set.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer {
    namespace: String,
    set: String,
    replicas: i32,
    ready: i32,
    updated: i32,
    current_revision: String,
    update_revision: String,
    /// The controller's reason to wait, in its words.
    waits_for: Option<String>,
    since: Option<String>,
    #[serde(flatten)]
    pub(crate) finding: Finding,
}

impl Answer {
    /// Combines the controller's reason to wait with the cause.
    pub(crate) fn new(
        snapshot: &Snapshot,
        set: &Set,
        waiting: Option<&Waiting>,
        finding: Finding,
    ) -> Self {
        let status = &set.status;
        Self {
            namespace: snapshot.namespace.clone(),
            set: set.metadata.name.clone(),
            replicas: set.replicas(),
            ready: status.ready_replicas,
            updated: status.updated_replicas,
            current_revision: status.current_revision.clone(),
            update_revision: status.update_revision.clone(),
            waits_for: waiting.map(ToString::to_string),
            since: finding.since.map(|since| since.to_string()),
            finding,
        }
    }

    fn rollout(&self) -> String {
        match (
            self.current_revision.as_str(),
            self.update_revision.as_str(),
        ) {
            ("", "") => "no revision".to_owned(),
            (current, update) if current == update => format!("revision {update}"),
            (current, update) => format!("rollout from {current} to {update}"),
        }
    }
}

impl Answer {
    /// The set's numbers in one line.
    pub(crate) fn title(&self) -> String {
        let Self {
            namespace,
            set,
            ready,
            replicas,
            updated,
            ..
        } = self;
        let rollout = self.rollout();
        format!("{namespace}/{set}: {ready} of {replicas} ready, {updated} updated, {rollout}")
    }

    /// The answer for people.
    pub(crate) fn details(&self, now: Timestamp, style: Style) -> String {
        let finding = &self.finding;
        let (tone, state) = match finding.state {
            SetState::Settled => (Tone::Good, "settled"),
            SetState::Waiting => (Tone::Warn, "waiting"),
            SetState::Stuck => (Tone::Bad, "stuck"),
        };
        let since = finding
            .since
            .map(|since| format!(" for {}", age(Some(since), now)));
        let state = format!("{state}{}: {}", since.unwrap_or_default(), finding.text);
        let mut lines = vec![
            style.paint(Tone::Bold, &self.title()),
            style.paint(tone, &state),
        ];
        let mut add = |label: &str, text: &str| {
            lines.push(format!("  {label:<10}{}", printable(text)));
        };
        if let Some(waits_for) = &self.waits_for {
            add("waiting", waits_for);
        }
        for evidence in &finding.evidence {
            add("evidence", evidence);
        }
        for command in &finding.resolve {
            add("resolve", command);
        }
        if let Some(caution) = &finding.caution {
            add("consider", caution);
        }
        for risk in &finding.risks {
            add("risk", &risk.text);
            if let Some(command) = &risk.protect {
                add("protect", command);
            }
        }
        lines.join("\n") + "\n"
    }
}

/// A table of several answers.
pub(super) fn table_of(answers: &[Answer], now: Timestamp) -> String {
    let titles = [
        "NAMESPACE",
        "SET",
        "READY",
        "STATE",
        "FOR",
        "CAUSE",
        "REASON",
    ];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    rows.extend(answers.iter().map(|answer| {
        let finding = &answer.finding;
        let state = match finding.state {
            SetState::Settled => "settled",
            SetState::Waiting => "waiting",
            SetState::Stuck => "stuck",
        };
        vec![
            answer.namespace.clone(),
            answer.set.clone(),
            format!("{}/{}", answer.ready, answer.replicas),
            state.to_owned(),
            finding
                .since
                .map_or_else(|| "-".to_owned(), |since| age(Some(since), now)),
            finding.cause.to_owned(),
            brief(&finding.text, REASON_LENGTH),
        ]
    }));
    table(&rows)
}
