//! Entries: what happened at a moment in a lane.

use std::fmt::Write as _;
use std::time::Duration;

use kube_test_control_plane::route::Verb;
use kube_test_control_plane::store::Change;

use super::html::Text;
use crate::record::{Commit, Request, Sync};

/// Number of characters of a body that are shown.
const BODY_MAX: usize = 2_000;

/// The subject of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An act of a user, a fault, a change.
    Act,
    /// A broken rule.
    Broken,
    /// A request that reads, a sync.
    Read,
    /// A request that writes.
    Write,
    /// Routine that is folded: the leader election.
    Routine,
}

/// An event in a lane.
pub(super) struct Entry {
    /// Time after the start of the run.
    pub(super) at: Duration,
    /// The lane.
    pub(super) lane: usize,
    /// Its subject.
    pub(super) kind: Kind,
    /// True if the response was an error, or there was none.
    pub(super) failed: bool,
    /// The pod that it concerns.
    pub(super) pod: Option<String>,
    /// The phase of the lane's pod from here; empty if it's gone.
    pub(super) phase: Option<&'static str>,
    /// The text, as HTML.
    pub(super) html: String,
}

impl Entry {
    /// Creates an entry.
    pub(super) fn new(at: Duration, lane: usize, kind: Kind, html: String) -> Self {
        Self {
            at,
            lane,
            kind,
            failed: false,
            pod: None,
            phase: None,
            html,
        }
    }

    /// Returns its classes.
    pub(super) fn classes(&self) -> &'static str {
        match self.kind {
            Kind::Act => "entry",
            Kind::Broken => "entry bad",
            _ if self.failed => match self.kind {
                Kind::Write => "entry write failed",
                _ => "entry read failed",
            },
            Kind::Write => "entry write",
            Kind::Read | Kind::Routine => "entry read",
        }
    }

    /// Reports whether a folded stretch may hide it.
    pub(super) fn is_quiet(&self) -> bool {
        match self.kind {
            Kind::Act | Kind::Broken | Kind::Write => false,
            Kind::Read | Kind::Routine => !self.failed,
        }
    }
}

/// Describes a sync.
pub(super) fn of_sync(sync: &Sync, lane: usize) -> Entry {
    let html = details(
        &format!("sync {}", sync.set.1),
        &[
            ("process", sync.process.to_string()),
            ("caches", sync.seen.to_string()),
        ],
    );
    Entry::new(sync.at, lane, Kind::Read, html)
}

/// Describes a request.
pub(super) fn of_request(request: &Request, sync: Option<&Sync>, lane: usize) -> Entry {
    let path = [&request.resource, &request.name, &request.subresource];
    let path: Vec<&str> = path
        .into_iter()
        .map(String::as_str)
        .filter(|part| !part.is_empty())
        .collect();
    let verb = request.verb.map_or("?", Verb::name);
    let code = request.status.or(request.processed.map(|it| it.code));
    let shown = code.map_or("never arrived".to_owned(), |code| code.to_string());
    let lost = match (request.status, request.processed) {
        (None, Some(_)) => ", no answer",
        _ => "",
    };
    let mut facts = vec![
        ("process", request.process.to_string()),
        ("sent", seconds(request.sent)),
    ];
    facts.push(match request.processed {
        None => ("processed", "never".to_owned()),
        Some(it) => {
            let versions = match it.after {
                after if after == it.before => format!("revision {after}"),
                after => format!("revision {} to {after}", it.before),
            };
            (
                "processed",
                format!("{}: {}, {versions}", seconds(it.at), it.code),
            )
        }
    });
    let answered = request.answered.map_or("never".to_owned(), seconds);
    facts.push(("answered", answered));
    if let Some(sync) = sync.filter(|_| request.is_write()) {
        facts.push(("sync at", seconds(sync.at)));
        facts.push(("caches", sync.seen.to_string()));
    }
    if request.is_write() && !request.body.is_empty() {
        let body = String::from_utf8_lossy(&request.body);
        facts.push(("body", body.chars().take(BODY_MAX).collect()));
    }
    let title = format!("{verb} {} {shown}{lost}", path.join("/"));
    let kind = match &*request.resource {
        _ if request.is_write() => Kind::Write,
        "leases" | "events" => Kind::Routine,
        _ => Kind::Read,
    };
    let mut entry = Entry::new(request.sent, lane, kind, details(&title, &facts));
    let is_watch = request.verb == Some(Verb::Watch);
    entry.failed = code.is_none_or(|code| code >= 400) || (request.status.is_none() && !is_watch);
    entry.pod =
        (request.resource == "pods" && !request.name.is_empty()).then(|| request.name.clone());
    entry
}

/// Describes a commit of the API server.
pub(super) fn of_commit(commit: &Commit, lane: usize) -> Entry {
    let key = &commit.entry.object.key;
    let change = match commit.entry.change {
        Change::Added => "added",
        Change::Modified => "modified",
        Change::Deleted => "deleted",
    };
    let facts = [
        ("by", commit.agent.to_string()),
        ("processed", seconds(commit.at)),
        ("revision", commit.entry.revision.to_string()),
    ];
    let html = details(&format!("{}/{} {change}", key.storage, key.name), &facts);
    let mut entry = Entry::new(commit.at, lane, Kind::Act, html);
    entry.pod = (&*key.storage == "pods").then(|| key.name.to_string());
    entry
}

/// Returns a line that opens on a click.
fn details(title: &str, facts: &[(&str, String)]) -> String {
    let mut html = format!("<details><summary>{}</summary><dl>", Text(title));
    for (name, value) in facts {
        // Writing to a string does not fail.
        let _ = write!(html, "<dt>{}</dt><dd>{}</dd>", Text(name), Text(value));
    }
    html.push_str("</dl></details>");
    html
}

fn seconds(at: Duration) -> String {
    format!("{:.3} s", at.as_secs_f64())
}
