//! `/healthz`, `/livez` and `/readyz`, with their individual checks.

use http::StatusCode;
use kube_test_control_plane_api::query::Query;

use crate::reply::{self, Reply};

/// The probes and their checks.
const PROBES: [(&str, &[&str]); 3] = [
    ("healthz", &["ping", "log", "etcd"]),
    ("livez", &["ping", "log", "etcd"]),
    (
        "readyz",
        &["ping", "log", "etcd", "informer-sync", SHUTDOWN],
    ),
];

/// The check that fails while the server stops.
const SHUTDOWN: &str = "shutdown";

/// Responds to a probe, or one of its checks.
pub(super) fn health(is_stopping: bool, path: &str, query: &Query) -> Reply {
    let path = path.trim_matches('/');
    let (probe, only) = path.split_once('/').unwrap_or((path, ""));
    let Some((probe, checks)) = PROBES.iter().find(|(name, _)| *name == probe) else {
        return reply::unknown_path();
    };
    let fails = |check: &str| check == SHUTDOWN && is_stopping;
    if !only.is_empty() {
        return match checks.iter().find(|check| **check == only) {
            None => reply::unknown_path(),
            Some(check) if fails(check) => reply::plain(
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal server error: the server is stopping\n",
            ),
            Some(_) => reply::plain(StatusCode::OK, "ok"),
        };
    }
    let is_failed = |check: &str| fails(check) && query.get("exclude") != Some(check);
    let line = |check: &&str| match (query.get("exclude") == Some(*check), fails(check)) {
        (true, _) => format!("[+]{check} excluded: ok\n"),
        (false, true) => format!("[-]{check} failed: reason withheld\n"),
        (false, false) => format!("[+]{check} ok\n"),
    };
    let lines = || checks.iter().map(line).collect::<Vec<_>>().concat();
    if checks.iter().any(|check| is_failed(check)) {
        let text = format!("{}{probe} check failed\n", lines());
        return reply::plain(StatusCode::INTERNAL_SERVER_ERROR, text);
    }
    if query.has("verbose") {
        let text = format!("{}{probe} check passed\n", lines());
        return reply::plain(StatusCode::OK, text);
    }
    reply::plain(StatusCode::OK, "ok")
}

/// Returns all health paths.
pub(super) fn paths() -> impl Iterator<Item = String> {
    PROBES.into_iter().flat_map(|(probe, checks)| {
        let below = checks.iter().map(move |check| format!("/{probe}/{check}"));
        below.chain([format!("/{probe}")])
    })
}
