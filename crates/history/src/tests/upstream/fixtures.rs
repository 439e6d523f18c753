//! Shared sets, revisions and histories.

use std::sync::Arc;

use serde_json::{Value, json};
use statefulset_client::backoff::NoJitter;
use statefulset_client::cache::indexer::{CachedObject as _, Indexer};
use statefulset_client::fake::FakeClientset;
use statefulset_client::resource::CONTROLLER_REVISIONS;
use statefulset_controller_util::controller_revision::{ControllerRevision, HASH_LABEL};
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_controller_util::testing::WriteLog;
use statefulset_controller_util::tracked_client::TrackedClient;

use crate::controller_history::History;
use crate::controller_history::RealHistory;
use crate::fake::FakeHistory;
use crate::name::{controller_revision_name, hash_controller_revision};
use crate::new_revision::NewRevision;

/// Namespace of all objects.
pub(super) const NAMESPACE: &str = "default";

/// Builds a set of three replicas that selects by expressions only.
///
/// Upstream: `newStatefulSet` of the history tests.
fn set(name: &str, label: (&str, &str)) -> StatefulSet {
    let (key, value) = label;
    let json = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": name},
        "spec": {
            "replicas": 3,
            "serviceName": "governingsvc",
            "selector": {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]},
            "template": serde_json::from_str::<Value>(&raw_template(label, 1)).expect("valid JSON"),
            "volumeClaimTemplates": [{
                "metadata": {"name": "datadir"},
                "spec": {"resources": {"requests": {"storage": "1"}}},
            }],
        },
    });
    StatefulSet::decode(&json.to_string()).expect("a set is being built")
}

/// The set `ss1`.
pub(super) fn ss1() -> StatefulSet {
    set("ss1", ("foo", "bar"))
}

/// The set `ss2`.
pub(super) fn ss2() -> StatefulSet {
    set("ss2", ("goo", "car"))
}

/// Builds a template in the order of Go's struct, as upstream's tests record it. From the second
/// number on, the grace periods differ. Upstream's encoder adds a newline, which stored JSON can't
/// hold.
fn raw_template((key, value): (&str, &str), number: i64) -> String {
    let grace = if number == 1 {
        String::new()
    } else {
        format!(r#","terminationGracePeriodSeconds":{number}"#)
    };
    format!(
        concat!(
            r#"{{"metadata":{{"labels":{{"{}":"{}"}}}},"spec":{{"volumes":[{{"name":"home","#,
            r#""hostPath":{{"path":"/tmp/home"}}}}],"containers":[{{"name":"nginx","image":"nginx","#,
            r#""resources":{{}},"volumeMounts":[{{"name":"datadir","mountPath":"/tmp/"}},"#,
            r#"{{"name":"home","mountPath":"/home"}}]}}]{}}}}}"#
        ),
        key, value, grace
    )
}

/// Builds a revision of `set` with its number, data that differs per number, and the name for a
/// collision count.
///
/// Upstream: `NewControllerRevision`.
pub(super) fn revision(set: &StatefulSet, number: i64, count: Option<i32>) -> NewRevision {
    let label = if set.name() == "ss1" {
        ("foo", "bar")
    } else {
        ("goo", "car")
    };
    let data = raw_template(label, number);
    let hash = hash_controller_revision(&data, count);
    NewRevision {
        parent_name: set.name().into(),
        name: controller_revision_name(set.name(), &hash),
        labels: [(label.0, label.1), (HASH_LABEL, &hash)]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        annotations: std::collections::BTreeMap::new(),
        owner: set.controller_reference(),
        data: data.into(),
        revision: number,
    }
}

/// Builds the object of a revision, with a uid.
pub(super) fn object(revision: &NewRevision) -> Value {
    let mut json: Value = serde_json::from_str(&revision.body(&revision.name)).expect("valid JSON");
    json["metadata"]["namespace"] = NAMESPACE.into();
    json["metadata"]["uid"] = format!("{}-uid", revision.name).into();
    json
}

/// Builds the object of an orphaned revision, with an empty list of owners.
pub(super) fn orphan(revision: &NewRevision) -> Value {
    let mut json = object(revision);
    json["metadata"]["ownerReferences"] = json!([]);
    json
}

/// Decodes an object into the cached form.
pub(super) fn cached(json: &Value) -> ControllerRevision {
    ControllerRevision::decode(&json.to_string()).expect("a revision is being built")
}

/// A history and its backing store.
pub(super) enum World {
    /// A history over an API client. As in upstream's tests, its cache stays empty unless a test
    /// fills it.
    Real {
        history: RealHistory,
        api: FakeClientset,
        cache: Arc<Indexer<ControllerRevision>>,
    },
    /// An in-memory history.
    Fake(FakeHistory),
}

impl World {
    /// Upstream: `NewHistory`.
    pub(super) fn real() -> Self {
        let api = FakeClientset::new();
        let cache = Arc::new(Indexer::new());
        let client = TrackedClient::new(api.rest_client(), Arc::new(WriteLog::default()));
        let history = RealHistory::new(client, Arc::clone(&cache), Arc::new(NoJitter));
        Self::Real {
            history,
            api,
            cache,
        }
    }

    /// Upstream: `NewFakeHistory`.
    pub(super) fn fake() -> Self {
        Self::Fake(FakeHistory::default())
    }

    pub(super) fn history(&self) -> &dyn History {
        match self {
            Self::Real { history, .. } => history,
            Self::Fake(history) => history,
        }
    }

    /// Stores an object without the history; a real history's cache doesn't show it.
    pub(super) fn put_revision(&self, json: &Value) -> ControllerRevision {
        match self {
            Self::Real { api, .. } => api.load(&CONTROLLER_REVISIONS, json.to_string()),
            Self::Fake(history) => {
                history.revisions.put(json.clone());
            }
        }
        cached(json)
    }

    /// Adds an object to the cache.
    pub(super) fn show(&self, json: &Value) {
        match self {
            Self::Real { cache, .. } => {
                cache.add(cached(json));
            }
            Self::Fake(history) => {
                history.revisions.put(json.clone());
            }
        }
    }

    /// Creates a revision through the history, with collision count 0.
    pub(super) async fn create(
        &self,
        set: &StatefulSet,
        revision: &NewRevision,
    ) -> Arc<ControllerRevision> {
        let history = self.history();
        let mut count = 0;
        let created = history.create_controller_revision(set, revision, &mut count);
        created.await.expect("no fault is injected")
    }

    /// Returns the stored object of a name.
    pub(super) fn revision(&self, name: &str) -> Option<Value> {
        match self {
            Self::Real { api, .. } => api.object(&CONTROLLER_REVISIONS, NAMESPACE, name),
            Self::Fake(history) => history.revisions.json(NAMESPACE, name),
        }
    }

    /// Number of stored revisions.
    pub(super) fn count(&self) -> usize {
        match self {
            Self::Real { api, .. } => api.objects(&CONTROLLER_REVISIONS).len(),
            Self::Fake(history) => history.revisions.cache().len(),
        }
    }

    /// Returns the requests so far, as `verb name`; a fake history sends none.
    pub(super) fn requests(&self) -> Vec<String> {
        match self {
            Self::Real { api, .. } => api
                .actions()
                .iter()
                .map(|action| format!("{} {}", action.verb, action.name))
                .collect(),
            Self::Fake(_) => Vec::new(),
        }
    }
}

#[test]
fn names_are_those_that_upstream_computes() {
    for (set, label, count, name) in [
        (ss1(), ("foo", "bar"), None, "ss1-6b6d954576"),
        (ss1(), ("foo", "bar"), Some(0), "ss1-589699ffd4"),
        (ss1(), ("foo", "bar"), Some(1), "ss1-589699ffd5"),
        (ss1(), ("foo", "bar"), Some(2), "ss1-589699ffd6"),
        (ss2(), ("goo", "car"), None, "ss2-598d45b8bd"),
        (ss2(), ("goo", "car"), Some(0), "ss2-68dfbb8cd4"),
        (ss2(), ("goo", "car"), Some(1), "ss2-68dfbb8cd5"),
        (ss2(), ("goo", "car"), Some(2), "ss2-68dfbb8cd6"),
    ] {
        let data = format!("{}\n", raw_template(label, 1));
        let hash = hash_controller_revision(&data, count);
        assert_eq!(controller_revision_name(set.name(), &hash), name);
    }
}
