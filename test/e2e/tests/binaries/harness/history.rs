//! History of the objects in the default namespace, in order.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, channel};

use serde_json::Value;

use super::PATIENCE;
use super::api::{Api, Change, Kind, version};

/// All objects that have had one name.
#[derive(Debug, Default)]
struct Lives {
    /// Uid of each object that has had the name.
    born: Vec<String>,
    /// Uids of the deleted ones.
    gone: Vec<String>,
    /// Current object.
    now: Option<Value>,
}

/// Changes reported by watches since the start.
pub(crate) struct History {
    changes: Receiver<(Kind, Change)>,
    lives: BTreeMap<(Kind, String), Lives>,
    /// Ordinals in the order of the deletion requests.
    deletions: Vec<u32>,
    /// Creations and deletions of pods while another pod, which must come first, was unready.
    out_of_turn: Vec<String>,
}

impl History {
    /// Starts with the current objects.
    pub(crate) fn begin(api: &Api) -> Self {
        let (sender, changes) = channel();
        let mut history = Self::of(changes);
        for kind in Kind::ALL {
            let (objects, version) = api.list(kind);
            for object in objects {
                history.record(kind, Change::Is(object));
            }
            api.watch(kind, version, sender.clone());
        }
        history
    }

    fn of(changes: Receiver<(Kind, Change)>) -> Self {
        Self {
            changes,
            lives: BTreeMap::new(),
            deletions: Vec::new(),
            out_of_turn: Vec::new(),
        }
    }

    /// Processes changes until the condition holds.
    pub(crate) fn until(&mut self, what: &str, wanted: impl Fn(&Self) -> bool) {
        while !wanted(self) {
            self.next(what);
        }
    }

    /// Processes changes until one after the version `after` is a write of the controller.
    pub(crate) fn until_controller_writes(&mut self, after: u64) {
        while self
            .next("a write of the controller")
            .is_none_or(|at| at <= after)
        {}
    }

    /// Processes the next change. Returns its version if it is a write of the controller.
    fn next(&mut self, what: &str) -> Option<u64> {
        match self.changes.recv_timeout(PATIENCE) {
            Ok((kind, change)) => self.record(kind, change),
            Err(error) => panic!("waited for {what}: {error}; {:#?}", self.summary()),
        }
    }

    fn record(&mut self, kind: Kind, change: Change) -> Option<u64> {
        let (Change::Is(object) | Change::Was(object)) = &change;
        let (name, uid) = (text(object, "name"), text(object, "uid"));
        let at = version(object);
        let before = self
            .lives
            .get(&(kind, name.clone()))
            .and_then(|lives| lives.now.clone());
        let by_controller =
            matches!(change, Change::Is(_)) && is_controller_write(kind, before.as_ref(), object);
        if kind == Kind::Pod && by_controller {
            self.check_turn(&name, before.is_none());
        }
        let lives = self.lives.entry((kind, name)).or_default();
        match change {
            Change::Is(object) => {
                if lives.born.last() != Some(&uid) {
                    lives.born.push(uid);
                }
                lives.now = Some(object);
            }
            Change::Was(_) => {
                lives.gone.push(uid);
                lives.now = None;
            }
        }
        by_controller.then_some(at)
    }

    /// Records a pod's creation before a lower one is ready, and its deletion while another is
    /// unready.
    fn check_turn(&mut self, name: &str, creation: bool) {
        let (set, ordinal) = split(name);
        let mut unready = Vec::new();
        for (other, pod) in self.now(Kind::Pod) {
            let (other_set, other_ordinal) = split(other);
            let counts = other_set == set
                && if creation {
                    other_ordinal < ordinal
                } else {
                    other_ordinal != ordinal
                };
            if counts && !is_ready(pod) {
                unready.push(other.to_owned());
            }
        }
        let verb = if creation { "created" } else { "deleted" };
        if !unready.is_empty() {
            let note = format!("{name} {verb} while not ready: {}", unready.join(", "));
            self.out_of_turn.push(note);
        }
        if !creation {
            self.deletions.push(ordinal);
        }
    }

    /// Existing objects of a kind, by name.
    pub(crate) fn now(&self, kind: Kind) -> impl Iterator<Item = (&str, &Value)> {
        self.lives
            .iter()
            .filter(move |((of, _), _)| *of == kind)
            .filter_map(|((_, name), lives)| Some((name.as_str(), lives.now.as_ref()?)))
    }

    /// Generation of a set; 0 if it doesn't exist.
    pub(crate) fn generation(&self, set: &str) -> i64 {
        let mut sets = self.now(Kind::Set);
        let found = sets.find(|(name, _)| *name == set);
        found.map_or(0, |(_, set)| {
            set["metadata"]["generation"].as_i64().unwrap()
        })
    }

    /// Returns true if the set's status reports that its spec is fulfilled.
    pub(crate) fn is_complete(&self, set: &str) -> bool {
        let key = (Kind::Set, set.to_owned());
        let Some(object) = self.lives.get(&key).and_then(|lives| lives.now.as_ref()) else {
            return false;
        };
        let (spec, status) = (&object["spec"], &object["status"]);
        let replicas = &spec["replicas"];
        let pods = self.now(Kind::Pod);
        let ready = pods.filter(|(name, pod)| split(name).0 == set && is_ready(pod));
        status["observedGeneration"] == object["metadata"]["generation"]
            && ["replicas", "readyReplicas", "availableReplicas"]
                .iter()
                .chain(&["currentReplicas", "updatedReplicas"])
                .all(|counter| status[counter] == *replicas)
            && status["currentRevision"] == status["updateRevision"]
            && Some(ready.count() as u64) == replicas.as_u64()
    }

    /// For each name with this prefix: the number of objects of a kind that have had it, and the
    /// number of deleted ones.
    pub(crate) fn counts(&self, kind: Kind, prefix: &str) -> BTreeMap<&str, (usize, usize)> {
        self.lives
            .iter()
            .filter(|((of, name), _)| *of == kind && name.starts_with(prefix))
            .map(|((_, name), lives)| (name.as_str(), (lives.born.len(), lives.gone.len())))
            .collect()
    }

    /// Ordinals in the order of the deletion requests.
    pub(crate) fn deletions(&self) -> &[u32] {
        &self.deletions
    }

    /// Creations and deletions of pods out of order.
    pub(crate) fn out_of_turn(&self) -> &[String] {
        &self.out_of_turn
    }

    /// Every name with its counts, and the states of the sets; for messages.
    fn summary(&self) -> Vec<String> {
        let names = self.lives.iter().map(|((kind, name), lives)| {
            let (born, gone) = (lives.born.len(), lives.gone.len());
            format!("{kind:?} {name}: {born} born, {gone} gone")
        });
        let sets = self.now(Kind::Set);
        names
            .chain(sets.map(|(name, set)| format!("{name}: {}", set["status"])))
            .collect()
    }
}

/// Returns true if the controller made the change. In these tests only the controller creates pods,
/// claims and revisions, requests the deletion of pods, and writes the status of sets.
fn is_controller_write(kind: Kind, before: Option<&Value>, now: &Value) -> bool {
    match (kind, before) {
        (Kind::Revision, _) | (Kind::Claim | Kind::Pod, None) => true,
        (Kind::Set, None) | (Kind::Claim, Some(_)) => false,
        (Kind::Set, Some(before)) => before["status"] != now["status"],
        (Kind::Pod, Some(before)) => is_stopping(now) && !is_stopping(before),
    }
}

fn is_stopping(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let ready = conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    ready && !is_stopping(pod)
}

/// Set name and ordinal of a pod's name.
fn split(pod: &str) -> (&str, u32) {
    let (set, ordinal) = pod.rsplit_once('-').unwrap();
    (set, ordinal.parse().unwrap())
}

fn text(object: &Value, member: &str) -> String {
    let text = object["metadata"][member].as_str();
    text.unwrap_or_else(|| panic!("no {member}: {object}"))
        .to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, uid: &str, ready: &str) -> Value {
        json!({
            "metadata": {"name": name, "uid": uid, "resourceVersion": "7"},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        })
    }

    fn stopping(mut pod: Value) -> Value {
        pod["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
        pod
    }

    fn history(changes: Vec<Change>) -> (History, Vec<bool>) {
        let mut history = History::of(channel().1);
        let writes = changes
            .into_iter()
            .map(|change| history.record(Kind::Pod, change).is_some())
            .collect();
        (history, writes)
    }

    #[test]
    fn recreated_pod_is_counted_twice() {
        let (history, writes) = history(vec![
            Change::Is(pod("web-0", "a", "False")),
            Change::Is(pod("web-0", "a", "True")),
            Change::Is(stopping(pod("web-0", "a", "True"))),
            Change::Was(pod("web-0", "a", "True")),
            Change::Is(pod("web-0", "b", "False")),
        ]);
        assert_eq!(writes, [true, false, true, false, true]);
        let counts = history.counts(Kind::Pod, "web-");
        assert_eq!(counts, BTreeMap::from([("web-0", (2, 1))]));
        assert_eq!(history.deletions(), [0]);
        assert_eq!(history.out_of_turn(), [""; 0]);
    }

    #[test]
    fn pod_changes_out_of_order_are_recorded() {
        let (history, _) = history(vec![
            Change::Is(pod("web-0", "a", "False")),
            Change::Is(pod("other-0", "b", "False")),
            Change::Is(pod("web-1", "c", "True")),
            Change::Is(stopping(pod("web-1", "c", "True"))),
            Change::Is(stopping(pod("web-0", "a", "True"))),
        ]);
        assert_eq!(
            history.out_of_turn(),
            [
                "web-1 created while not ready: web-0",
                "web-1 deleted while not ready: web-0",
                "web-0 deleted while not ready: web-1",
            ]
        );
    }
}
