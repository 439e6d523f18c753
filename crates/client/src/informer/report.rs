//! One clear line when a cache cannot be kept, and one when it can again.
//!
//! What is wrong with the server or the rights is told by
//! [`ServerState`](crate::server_state::ServerState), once for all caches.

use crate::error::Error;
use crate::resource::GroupResource;

/// Logs the failures of one informer, each once until it changes.
#[derive(Debug)]
pub(super) struct Reporter {
    resource: GroupResource,
    last: Option<String>,
}

impl Reporter {
    pub(super) fn new(resource: GroupResource) -> Self {
        Self {
            resource,
            last: None,
        }
    }

    /// Logs a failure to list or watch, unless it is the one logged last.
    pub(super) fn failed(&mut self, verb: &str, err: &Error) {
        if err.is_told_by_server_state() || err.is_server_failure() {
            tracing::debug!(resource = %self.resource, error = %err, verb, "trying again");
            return;
        }
        let line = line(verb, self.resource, err);
        if self.last.as_ref() == Some(&line) {
            tracing::debug!(resource = %self.resource, "{line}");
            return;
        }
        tracing::warn!(resource = %self.resource, "{line}");
        self.last = Some(line);
    }

    /// Logs that things work again, if a failure was logged.
    pub(super) fn recovered(&mut self) {
        if self.last.take().is_some() {
            tracing::info!(resource = %self.resource, "list and watch work again");
        }
    }
}

/// What went wrong and what to do about it; it is tried again in any case.
fn line(verb: &str, resource: GroupResource, err: &Error) -> String {
    let advice = if err.is_forbidden() {
        format!("grant this identity the verbs list and watch on {resource} in all namespaces")
    } else if err.is_not_found() {
        format!("check that the server serves {resource}")
    } else if matches!(err, Error::Decode { .. }) {
        "mend or delete what cannot be read; nothing is synced from an incomplete cache".to_owned()
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
    fn a_line_names_the_resource_and_what_to_grant() {
        let err = Error::api(403, "Forbidden", "statefulsets.apps is forbidden: no");
        assert_eq!(
            line("list", STATEFUL_SETS.group_resource(), &err),
            "cannot list statefulsets.apps, trying again: statefulsets.apps is forbidden: no; \
             grant this identity the verbs list and watch on statefulsets.apps in all namespaces"
        );
        let err = Error::api(404, "NotFound", "page not found");
        assert_eq!(
            line("watch", PODS.group_resource(), &err),
            "cannot watch pods, trying again: page not found; check that the server serves pods"
        );
    }

    #[test]
    fn an_object_that_cannot_be_read_is_named() {
        let object = r#"{"metadata":{"namespace":"ns","name":"web"},"spec":7}"#;
        let object: &serde_json::value::RawValue = serde_json::from_str(object).unwrap();
        let source = serde_json::from_str::<u8>("{}").unwrap_err();
        let err = crate::informer::list::undecodable(&STATEFUL_SETS, object, source);
        let line = line("list", STATEFUL_SETS.group_resource(), &err);
        assert!(line.contains("read StatefulSet ns/web: "), "{line}");
        assert!(
            line.contains("; mend or delete what cannot be read"),
            "{line}"
        );
    }
}
