//! Lanes: the actors of a run, and their events.

use std::collections::BTreeMap;

use kube_test_control_plane::store::Change;

use super::entry::{self, Entry, Kind};
use super::html::Text;
use crate::judges::Violation;
use crate::record::{Commit, Record};
use crate::views::{Claim, Pod};

/// A column of the page.
pub(super) struct Lane {
    /// Its title.
    pub(super) title: String,
    /// The instance, for the lane of one.
    pub(super) instance: Option<usize>,
    /// The pod, for the lane of one.
    pub(super) pod: Option<String>,
}

/// The lane of users and faults.
const USERS: usize = 0;

/// The lane of the API server.
const SERVER: usize = 1;

/// The first lane of an instance.
const INSTANCES: usize = 2;

/// The lanes of a run and their entries.
pub(super) struct Lanes {
    /// The lanes, from left to right.
    pub(super) lanes: Vec<Lane>,
    /// The entries, in the order of time.
    pub(super) entries: Vec<Entry>,
}

impl Lanes {
    /// Lays out a run.
    pub(super) fn of(record: &Record, violations: &[Violation]) -> Self {
        let processes = record.requests.iter().map(|it| it.process.instance);
        let syncs = record.syncs.iter().map(|it| it.process.instance);
        let instances = processes.chain(syncs).max().map_or(0, |last| last + 1);
        let mut lanes = vec![lane("users and faults"), lane("API server")];
        lanes.extend((0..instances).map(|number| Lane {
            title: format!("instance {number}"),
            instance: Some(number),
            pod: None,
        }));
        let mut pods = BTreeMap::new();
        for commit in of_storage(record, "pods") {
            pods.insert(commit.entry.object.key.name.to_string(), 0);
        }
        for (name, at) in &mut pods {
            *at = lanes.len();
            lanes.push(Lane {
                title: name.clone(),
                instance: None,
                pod: Some(name.clone()),
            });
        }
        let claims = lanes.len();
        let mut entries = Vec::new();
        if of_storage(record, "persistentvolumeclaims")
            .next()
            .is_some()
        {
            lanes.push(lane("claims"));
            entries
                .extend(of_storage(record, "persistentvolumeclaims").map(|it| claim(it, claims)));
        }
        for (number, violation) in violations.iter().enumerate() {
            entries.push(broken(number, violation));
        }
        entries.extend(record.notes.iter().map(|(at, note)| {
            let lane = match named_instance(note) {
                Some(number) if number < instances => INSTANCES + number,
                _ => USERS,
            };
            Entry::new(*at, lane, Kind::Act, Text(note).to_string())
        }));
        for sync in &record.syncs {
            entries.push(entry::of_sync(sync, INSTANCES + sync.process.instance));
        }
        for request in &record.requests {
            let sync = request.sync.and_then(|sync| record.syncs.get(sync));
            let lane = INSTANCES + request.process.instance;
            entries.push(entry::of_request(request, sync, lane));
        }
        for commit in record.commits.iter().filter(|it| is_shown(it)) {
            entries.push(entry::of_commit(commit, SERVER));
        }
        for (name, at) in &pods {
            entries.extend(pod(record, name, *at));
        }
        entries.sort_by_key(|entry| entry.at);
        Self { lanes, entries }
    }
}

fn lane(title: &str) -> Lane {
    Lane {
        title: title.to_owned(),
        instance: None,
        pod: None,
    }
}

/// Reports whether a commit is more than routine or the preparation of the run.
fn is_shown(commit: &Commit) -> bool {
    let storage = &*commit.entry.object.key.storage;
    !["leases", "events"].contains(&storage) && !commit.at.is_zero()
}

fn of_storage<'a>(record: &'a Record, storage: &'a str) -> impl Iterator<Item = &'a Commit> {
    let commits = record.commits.iter();
    commits.filter(move |commit| &*commit.entry.object.key.storage == storage)
}

/// Finds the instance that a line of the log is about: `instance 1 crashes`, `process 1.0 starts`.
fn named_instance(note: &str) -> Option<usize> {
    let mut words = note.split(' ');
    if !["instance", "process"].contains(&words.next()?) {
        return None;
    }
    words.next()?.split('.').next()?.parse().ok()
}

fn broken(number: usize, violation: &Violation) -> Entry {
    let Violation { rule, message, .. } = violation;
    let html = format!("<b id=\"v{number}\">{}</b> {}", Text(rule), Text(message));
    Entry::new(violation.at, USERS, Kind::Broken, html)
}

/// Follows a pod: one entry for each change of its phase or its revision.
fn pod(record: &Record, name: &str, lane: usize) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut last = (String::new(), String::new(), "");
    for commit in of_storage(record, "pods") {
        let stored = &commit.entry.object;
        if &*stored.key.name != name {
            continue;
        }
        let pod = Pod::read(&stored.draft().to_value());
        let is_gone = commit.entry.change == Change::Deleted;
        let phase = if is_gone { "" } else { phase(&pod) };
        let next = (pod.uid, pod.revision, phase);
        if next == last {
            continue;
        }
        let shown = match phase {
            "" => "gone",
            "running" => "not ready",
            other => other,
        };
        // The hash alone: the lane names the set already.
        let hash = next.1.rsplit('-').next().unwrap_or_default();
        let html = format!("{} {}", Text(shown), Text(if is_gone { "" } else { hash }));
        let mut entry = Entry::new(commit.at, lane, Kind::Act, html.trim_end().to_owned());
        entry.phase = Some(phase);
        entry.pod = Some(name.to_owned());
        entries.push(entry);
        last = next;
    }
    entries
}

/// Returns the class of a pod's bar.
fn phase(pod: &Pod) -> &'static str {
    match pod {
        pod if pod.terminating => "terminating",
        pod if pod.has_ended() => "ended",
        pod if pod.is_ready() => "ready",
        pod if pod.phase == "Running" => "running",
        _ => "pending",
    }
}

fn claim(commit: &Commit, lane: usize) -> Entry {
    let read = Claim::read(&commit.entry.object.draft().to_value());
    let owners: Vec<String> = read
        .owners
        .iter()
        .map(|owner| format!("{} {}", owner.kind, owner.name))
        .collect();
    let state = match commit.entry.change {
        Change::Deleted => "gone".to_owned(),
        _ if read.terminating => "terminating".to_owned(),
        _ if owners.is_empty() => "no owner".to_owned(),
        _ => format!("of {}", owners.join(", ")),
    };
    let html = Text(&format!("{}: {state}", read.name)).to_string();
    Entry::new(commit.at, lane, Kind::Act, html)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_lead_to_their_instance() {
        assert_eq!(named_instance("instance 1 crashes"), Some(1));
        assert_eq!(named_instance("process 2.0 starts"), Some(2));
        assert_eq!(named_instance("calm"), None);
        assert_eq!(named_instance("instance"), None);
    }
}
