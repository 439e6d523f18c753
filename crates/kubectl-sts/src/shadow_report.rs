//! The report of a shadow: the controller that compares its decisions with those of another one.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, bail};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Session;
use crate::output::{Style, Tone, age, counted, printable, table};
use crate::server::{PODS, Server, decode};

/// The flag that makes a controller a shadow.
const FLAG: &str = "--shadow";
/// The port of a controller without another one in its flags.
const PORT: &str = "10257";
/// Differences that a text shows; the other forms hold all.
const SHOWN_MAX: usize = 10;

/// The report, as the shadow serves it.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct ShadowReport {
    since: Option<Timestamp>,
    now: Timestamp,
    sets: usize,
    decisions: BTreeMap<String, u64>,
    differences: Vec<Difference>,
}

/// A decision that differs.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Difference {
    at: Timestamp,
    namespace: String,
    set: String,
    write: String,
    is_missing: bool,
    decided: Vec<String>,
    waiting: Option<String>,
    /// The objects of the decision, in a report that was saved with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    objects: Vec<Value>,
}

/// Reads the report from a file, or from the shadow's pod through the API server.
pub(crate) async fn read(
    server: &Server,
    session: &Session,
    file: Option<&Path>,
) -> anyhow::Result<ShadowReport> {
    let text = match file {
        Some(file) => {
            let action = || format!("read {}", file.display());
            std::fs::read_to_string(file).with_context(action)?
        }
        None => from_pod(server, &session.namespace).await?,
    };
    serde_json::from_str(&text).context("decode the report")
}

async fn from_pod(server: &Server, namespace: &str) -> anyhow::Result<String> {
    let shadows = |text: &str| {
        let pod: Value = decode(text)?;
        let is_shadow = arguments(&pod).any(|word| word == FLAG || word == "--shadow=true");
        let is_running = pod.pointer("/status/phase").and_then(Value::as_str) == Some("Running");
        let port = arguments(&pod).find_map(|word| word.strip_prefix("--secure-port="));
        let port = port.unwrap_or(PORT).to_owned();
        let name = pod.pointer("/metadata/name").and_then(Value::as_str);
        let name = name.unwrap_or_default().to_owned();
        Ok((is_shadow && is_running).then_some((name, port)))
    };
    let found = server.list(&PODS, Some(namespace), shadows).await?;
    let Some((name, port)) = found.first() else {
        bail!(
            "no running pod in namespace {namespace} has the flag {FLAG}; choose another \
             namespace with -n, or a saved report with -f"
        );
    };
    server.proxied(namespace, name, port, "shadow").await
}

/// The words of the commands of a pod's containers.
fn arguments(pod: &Value) -> impl Iterator<Item = &str> {
    let containers = pod.pointer("/spec/containers").and_then(Value::as_array);
    let containers = containers.into_iter().flatten();
    let lists = containers.flat_map(|container| [container.get("command"), container.get("args")]);
    let lists = lists.flatten().filter_map(Value::as_array);
    lists.flatten().filter_map(Value::as_str)
}

impl ShadowReport {
    /// True if a decision differs.
    pub(crate) fn has_findings(&self) -> bool {
        self.different() > 0
    }

    fn different(&self) -> u64 {
        self.decisions.get("different").copied().unwrap_or_default()
    }

    /// The report for people.
    pub(crate) fn text(&self, style: Style) -> String {
        let time = match self.since {
            Some(since) => format!("compared for {}", age(Some(since), self.now)),
            None => "not compared yet: the caches are being filled".to_owned(),
        };
        let title = format!("{}, {time}", counted(self.sets, "set"));
        let mut rows = vec![["VERDICT", "WRITES"].map(str::to_owned).to_vec()];
        for verdict in ["equal", "late", "refused", "foreign", "different"] {
            let count = self.decisions.get(verdict).copied().unwrap_or_default();
            rows.push(vec![verdict.to_owned(), count.to_string()]);
        }
        let mut text = style.paint(Tone::Bold, &title) + "\n" + &table(&rows);
        for difference in self.differences.iter().take(SHOWN_MAX) {
            text += &difference.text(style);
        }
        let hidden = self.differences.len().saturating_sub(SHOWN_MAX);
        if hidden > 0 {
            text += &["and ", &hidden.to_string(), " more, with -o json\n"].concat();
        }
        let (tone, end) = match self.different() {
            0 => (Tone::Good, "no decision differs".to_owned()),
            1 => (Tone::Bad, "1 decision differs".to_owned()),
            count => (Tone::Bad, format!("{count} decisions differ")),
        };
        text + &style.paint(tone, &end) + "\n"
    }
}

impl Difference {
    fn text(&self, style: Style) -> String {
        let line = |label: &str, text: &str| format!("  {label:<10}{}\n", printable(text));
        let shadow = match self.decided.as_slice() {
            [] => line("shadow", "no write"),
            decided => decided.iter().map(|it| line("shadow", it)).collect(),
        };
        let waiting = self.waiting.iter().map(|it| line("waiting", it));
        let title = style.paint(Tone::Bad, &self.title());
        title + "\n" + &shadow + &waiting.collect::<String>()
    }

    fn title(&self) -> String {
        let Self {
            at,
            namespace,
            set,
            write,
            ..
        } = self;
        let verb = if self.is_missing {
            "did not send"
        } else {
            "sent"
        };
        format!("{namespace}/{set} at {at}: the other controller {verb}: {write}")
    }
}
