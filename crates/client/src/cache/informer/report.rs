//! The informer's log: one line when list or watch fails, and one when both work again.
//!
//! [`ApiHealthLog`](crate::rest::api_health::ApiHealthLog) logs server faults and missing
//! permissions once for all caches.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::cache::indexer::SetAside;
use crate::error::Error;
use crate::fault_log::FaultLog;
use crate::resource::GroupResource;

/// Maximum number of undecodable objects logged by name at a time.
const SET_ASIDE_LOGGED_MAX: usize = 20;

/// Logs one informer's failures, each once until it changes.
#[derive(Debug)]
pub(super) struct Reporter {
    resource: GroupResource,
    /// The informer's namespace, as log text.
    scope: String,
    failure: FaultLog<String>,
    /// The objects logged as set aside, as `namespace/name`.
    set_aside: BTreeSet<String>,
    /// True if the log says that more objects are set aside than it names.
    has_more: bool,
}

impl Reporter {
    pub(super) fn new(resource: GroupResource, namespace: &str) -> Self {
        let scope = if namespace.is_empty() {
            "all namespaces".to_owned()
        } else {
            format!("namespace {namespace}")
        };
        Self {
            resource,
            scope,
            failure: FaultLog::default(),
            set_aside: BTreeSet::new(),
            has_more: false,
        }
    }

    /// Logs a failed list or watch, unless the same failure was logged last.
    pub(super) fn failed(&mut self, verb: &str, err: &Error) {
        if err.is_server_wide() || err.is_server_failure() {
            tracing::debug!(resource = %self.resource, error = %err, verb, "trying again");
            return;
        }
        let line = line(verb, self.resource, &self.scope, err);
        if self.failure.begin(line.clone()) {
            tracing::warn!(resource = %self.resource, "{line}");
        } else {
            tracing::debug!(resource = %self.resource, "{line}");
        }
    }

    /// Logs a set-aside object, once.
    pub(super) fn set_aside(&mut self, object: &SetAside) {
        let name = full_name(&object.namespace, &object.name);
        let is_named = self.set_aside.contains(&name);
        if !is_named && self.set_aside.len() >= SET_ASIDE_LOGGED_MAX {
            if !std::mem::replace(&mut self.has_more, true) {
                tracing::warn!(
                    resource = %self.resource,
                    object = name,
                    "cannot decode more than {SET_ASIDE_LOGGED_MAX} objects, logging no more names; the metric informer_objects_set_aside counts them"
                );
            }
            return;
        }
        if self.set_aside.insert(name.clone()) {
            tracing::warn!(
                resource = %self.resource,
                object = name,
                error = object.error.text(),
                "cannot decode an object, keeping its last state and not syncing its StatefulSet; fix or delete the object"
            );
        }
    }

    /// Logs that an object is no longer set aside, if its start was logged.
    pub(super) fn not_set_aside(&mut self, namespace: &str, name: &str) {
        if self.set_aside.is_empty() {
            return;
        }
        let object = full_name(namespace, name);
        if self.set_aside.remove(&object) {
            self.no_longer(&object);
        }
    }

    /// Logs the changes after a list: exactly these objects, in order, are set aside.
    pub(super) fn set_aside_in_list(&mut self, objects: &[Arc<SetAside>]) {
        let names = objects
            .iter()
            .map(|object| full_name(&object.namespace, &object.name));
        let names: BTreeSet<String> = names.collect();
        let (left, gone) = std::mem::take(&mut self.set_aside)
            .into_iter()
            .partition(|object| names.contains(object));
        self.set_aside = left;
        let gone: BTreeSet<String> = gone;
        for object in gone {
            self.no_longer(&object);
        }
        for object in objects {
            self.set_aside(object);
        }
    }

    /// Logs that an object is decodable again or gone, so that the next one is logged by name.
    fn no_longer(&mut self, object: &str) {
        self.has_more = false;
        let resource = self.resource;
        tracing::info!(%resource, object, "object can be decoded again, or is gone");
    }

    /// Logs the recovery, if a failure was logged.
    pub(super) fn recovered(&mut self) {
        if self.failure.end().is_some() {
            tracing::info!(resource = %self.resource, "list and watch work again");
        }
    }
}

fn full_name(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

/// Returns the log line for a failure, with advice. The informer retries in any case.
fn line(verb: &str, resource: GroupResource, scope: &str, err: &Error) -> String {
    let advice = if err.is_forbidden() {
        format!("grant this identity the verbs list and watch on {resource} in {scope}")
    } else if err.is_not_found() {
        format!("check that the server serves {resource}")
    } else if matches!(err, Error::Decode { .. }) {
        "check that nothing between this program and the API server changes its responses"
            .to_owned()
    } else {
        "see the API server's log".to_owned()
    };
    format!("cannot {verb} {resource}, trying again: {err}; {advice}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::{PODS, STATEFUL_SETS};

    #[test]
    fn log_line_names_resource_and_missing_permission() {
        let err = Error::api(403, "Forbidden", "statefulsets.apps is forbidden: no");
        assert_eq!(
            line(
                "list",
                STATEFUL_SETS.group_resource(),
                "all namespaces",
                &err
            ),
            "cannot list statefulsets.apps, trying again: statefulsets.apps is forbidden: no; \
             grant this identity the verbs list and watch on statefulsets.apps in all namespaces"
        );
        let err = Error::api(404, "NotFound", "page not found");
        assert_eq!(
            line("watch", PODS.group_resource(), "namespace db", &err),
            "cannot watch pods, trying again: page not found; check that the server serves pods"
        );
    }
}
