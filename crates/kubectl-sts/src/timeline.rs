//! The history of a set, as far as its objects and events record it.

mod picture;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::Session;
use crate::diff::{changes, shown};
use crate::model::{Event, ManagedSet, Pod, Revision, Set};
use crate::output::{Style, Tone, brief, table};
use crate::revisions::template;
use crate::server::{EVENTS, PODS, REVISIONS, STATEFUL_SETS, Server, decode};

pub(crate) use picture::draw;

/// Characters of a changed value.
const VALUE_LENGTH: usize = 40;

/// The history of a set.
#[derive(Debug, Serialize)]
pub(crate) struct Timeline {
    namespace: String,
    set: String,
    entries: Vec<Entry>,
    #[serde(skip)]
    bars: Vec<Bar>,
    #[serde(skip)]
    now: Timestamp,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Entry {
    #[serde(skip)]
    moment: Timestamp,
    at: String,
    object: String,
    text: String,
    /// True if it is a warning or a crash.
    is_bad: bool,
}

/// The life of a pod in the picture.
#[derive(Clone, Debug)]
struct Bar {
    pod: String,
    ordinal: Option<i64>,
    revision: String,
    created: Timestamp,
    ready: Option<Timestamp>,
}

/// Reads the history of a set.
pub(crate) async fn timeline(
    server: &Server,
    session: &Session,
    name: &str,
) -> anyhow::Result<Timeline> {
    let namespace = session.namespace.as_str();
    let text = server.get_text(&STATEFUL_SETS, namespace, name).await?;
    let set: Set = decode(&text)?;
    let managed: ManagedSet = decode(&text)?;
    let uid = set.metadata.uid.clone();
    let own = |text: &str| {
        let revision: Revision = decode(text)?;
        Ok(revision.metadata.is_controlled_by(&uid).then_some(revision))
    };
    let mut revisions = server.list(&REVISIONS, Some(namespace), own).await?;
    revisions.sort_by_key(|revision| revision.revision);
    let own = |text: &str| {
        let pod: Pod = decode(text)?;
        Ok(pod.metadata.is_controlled_by(&uid).then_some(pod))
    };
    let pods = server.list(&PODS, Some(namespace), own).await?;
    let own = |text: &str| {
        let event: Event = decode(text)?;
        let about = &event.involved_object;
        let is_pod = about.kind == "Pod" && set.ordinal(&about.name).is_some();
        Ok((about.uid == uid || is_pod).then_some(event))
    };
    let events = server.list(&EVENTS, Some(namespace), own).await?;

    let mut entries = Vec::new();
    let created = set.metadata.creation_timestamp;
    add(&mut entries, created, "set", "created".to_owned(), false);
    for change in managed.metadata.managed_fields {
        let text = change.text();
        add(&mut entries, change.time, "set", text, false);
    }
    add_revisions(&mut entries, &revisions);
    for pod in &pods {
        add_pod(&mut entries, pod);
    }
    for event in &events {
        add_event(&mut entries, event, name);
    }
    // Within a second, revisions come before pods, and pods before events.
    entries.sort_by_key(|entry| entry.moment);
    entries.dedup();
    let bars = pods.iter().filter_map(|pod| Bar::new(&set, pod));
    Ok(Timeline {
        namespace: namespace.to_owned(),
        set: name.to_owned(),
        entries,
        bars: bars.collect(),
        now: session.now,
    })
}

fn add(
    entries: &mut Vec<Entry>,
    moment: Option<Timestamp>,
    object: &str,
    text: String,
    is_bad: bool,
) {
    if let Some(moment) = moment {
        entries.push(Entry {
            moment,
            at: moment.to_string(),
            object: object.to_owned(),
            text,
            is_bad,
        });
    }
}

fn add_revisions(entries: &mut Vec<Entry>, revisions: &[Revision]) {
    let mut before: Option<&Value> = None;
    for revision in revisions {
        let change = before.map_or_else(
            || "first known".to_owned(),
            |before| {
                let side = |value: Option<&Value>| {
                    value.map_or_else(
                        || "none".to_owned(),
                        |value| brief(&shown(value), VALUE_LENGTH),
                    )
                };
                let changes = changes(before, template(revision)).into_iter();
                let changes = changes.map(|it| {
                    format!(
                        "{}: {} to {}",
                        it.path,
                        side(it.old.as_ref()),
                        side(it.new.as_ref())
                    )
                });
                changes.collect::<Vec<_>>().join("; ")
            },
        );
        let metadata = &revision.metadata;
        let text = format!(
            "revision {} ({}): {change}",
            revision.revision, metadata.name
        );
        add(entries, metadata.creation_timestamp, "set", text, false);
        before = Some(template(revision));
    }
}

fn add_pod(entries: &mut Vec<Entry>, pod: &Pod) {
    let name = &pod.metadata.name;
    let text = format!("created with revision {}", pod.metadata.revision());
    add(entries, pod.metadata.creation_timestamp, name, text, false);
    if let Some(scheduled) = pod
        .condition("PodScheduled")
        .filter(|it| it.status == "True")
    {
        let text = format!("scheduled to {}", pod.spec.node_name);
        add(entries, scheduled.last_transition_time, name, text, false);
    }
    if let Some(ready) = pod.condition("Ready") {
        let is_ready = ready.status == "True";
        let text = if is_ready { "ready" } else { "not ready" };
        add(
            entries,
            ready.last_transition_time,
            name,
            text.to_owned(),
            false,
        );
    }
    for container in pod.containers() {
        let states = [&container.last_state, &container.state];
        for end in states
            .into_iter()
            .filter_map(|state| state.terminated.as_ref())
        {
            let text = format!(
                "container {} ended with exit code {} ({}), {} restarts",
                container.name, end.exit_code, end.reason, container.restart_count
            );
            add(entries, end.finished_at, name, text, end.exit_code != 0);
        }
    }
}

fn add_event(entries: &mut Vec<Entry>, event: &Event, set: &str) {
    let about = event.involved_object.name.as_str();
    let object = if about == set { "set" } else { about };
    let times = match event.count {
        0 | 1 => String::new(),
        count => format!(" ({count} times)"),
    };
    let text = format!("{}: {}{times}", event.reason, event.message);
    add(entries, event.last(), object, text, event.kind == "Warning");
}

impl Bar {
    fn new(set: &Set, pod: &Pod) -> Option<Self> {
        let ready = pod
            .condition("Ready")
            .filter(|ready| ready.status == "True");
        Some(Self {
            pod: pod.metadata.name.clone(),
            ordinal: set.ordinal(&pod.metadata.name),
            revision: pod.metadata.revision().to_owned(),
            created: pod.metadata.creation_timestamp?,
            ready: ready.and_then(|ready| ready.last_transition_time),
        })
    }
}

/// A time without its fraction of a second, which only some writers record.
fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

impl Timeline {
    /// The history for people, oldest first.
    pub(crate) fn text(&self, style: Style) -> String {
        let mut rows: Vec<Vec<String>> = Vec::new();
        for entry in &self.entries {
            rows.push(vec![
                seconds(entry.moment),
                entry.object.clone(),
                entry.text.clone(),
            ]);
        }
        let text = table(&rows);
        let lines = text.lines().zip(&self.entries);
        let lines = lines.map(|(line, entry)| {
            if entry.is_bad {
                style.paint(Tone::Bad, line)
            } else {
                line.to_owned()
            }
        });
        lines.fold(String::new(), |text, line| text + &line + "\n")
    }

    /// Numbers of the revisions in the order of their pods, for colours.
    fn revisions(&self) -> BTreeMap<&str, usize> {
        let mut bars: Vec<&Bar> = self.bars.iter().collect();
        bars.sort_by_key(|bar| bar.created);
        let mut numbers = BTreeMap::new();
        for bar in bars {
            let next = numbers.len();
            numbers.entry(bar.revision.as_str()).or_insert(next);
        }
        numbers
    }
}
