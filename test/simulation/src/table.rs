//! The history of a run as a table of lines.

use std::fmt::Write as _;
use std::time::Duration;

use kube_test_control_plane::store::Change;

use crate::record::{Record, Request};

/// Returns what happened, in the order of time: steps and processes, requests of the instances
/// (writes only, unless `reads`), commits of others.
pub fn table(record: &Record, reads: bool) -> String {
    let mut lines: Vec<(Duration, usize, String)> = Vec::new();
    for (at, note) in &record.notes {
        lines.push((*at, 0, format!("* {note}")));
    }
    for sync in record.syncs.iter().filter(|_| reads) {
        let line = format!("  {} sync {} with {}", sync.process, sync.set.1, sync.seen);
        lines.push((sync.at, 1, line));
    }
    for request in &record.requests {
        if reads || request.is_write() {
            lines.push((request.sent, 1, request_line(request)));
        }
    }
    for commit in record.commits.iter().filter(|it| it.request.is_none()) {
        let key = &commit.entry.object.key;
        let change = match commit.entry.change {
            Change::Added => "added",
            Change::Modified => "modified",
            Change::Deleted => "deleted",
        };
        if ["leases", "events"].contains(&&*key.storage) || commit.at.is_zero() {
            continue;
        }
        let line = format!(
            "      {} {} {change} by {} [{}]",
            key.storage, key.name, commit.agent, commit.entry.revision
        );
        lines.push((commit.at, 2, line));
    }
    lines.sort_by_key(|(at, rank, _)| (*at, *rank));
    let mut text = String::new();
    for (at, _, line) in lines {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{:>10.3} {line}", at.as_secs_f64());
    }
    text
}

fn request_line(request: &Request) -> String {
    let Request {
        process,
        resource,
        subresource,
        name,
        ..
    } = request;
    let verb = request.verb.map_or("?", |verb| verb.name());
    let fate = match request.processed {
        Some(done) => format!(
            "{} at {:.3} [{}]",
            done.code,
            done.at.as_secs_f64(),
            done.after
        ),
        None if request.denied.is_some() => "denied by the fence".to_owned(),
        None => "never arrived".to_owned(),
    };
    let answer = match (request.status, request.answered) {
        (Some(status), Some(at)) => format!("{status} at {:.3}", at.as_secs_f64()),
        _ => "no answer".to_owned(),
    };
    let slash = if subresource.is_empty() { "" } else { "/" };
    format!("  {process} {verb} {resource}{slash}{subresource} {name}: {fate}, {answer}")
}
