//! Updates of running pods: how many at a time, in which steps, and with which end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kube_test_control_plane::route::Verb;
use serde_json::Value;

use super::super::progress::update_of;
use super::choices::{Choices, InPlace};
use super::restart::is_restart;
use super::{Case, Verdict, Write};
use crate::agent::Agent;
use crate::plan::opt_ins::{HOLD_KEY, IN_PLACE, IN_PLACE_SINCE, RESIZE, RESIZE_DELAY};
use crate::record::SetKey;
use crate::views::{Pod, Set};

/// Labels that the controller sets on every pod.
const OWN_LABELS: [&str; 3] = [
    "statefulset.kubernetes.io/pod-name",
    "apps.kubernetes.io/pod-index",
    "controller-revision-hash",
];

/// Keys of pods that users of a plan change.
const OF_USERS: [&str; 4] = ["app", HOLD_KEY, RESIZE, RESIZE_DELAY];

/// Reports whether a pod is in flight.
pub(in super::super) fn is_marked(pod: &Pod) -> bool {
    pod.labels.contains_key(IN_PLACE)
}

/// Reports whether a field of a pod, as a JSON pointer, may change in place. [`judge_commits`] judges the
/// values.
pub(in super::super) fn is_change(pointer: &str) -> bool {
    let label = pointer.strip_prefix("/metadata/labels/");
    let own = &OWN_LABELS[..2];
    label.is_some_and(|label| !own.contains(&label)) || pointer == "/metadata/annotations"
}

/// Reports whether a sync updates a pod in place, or goes on with it.
pub(in super::super) fn is_updated_in_place(write: &Write<'_>, ordinal: u32) -> bool {
    let set = write.view.set;
    let mut earlier = write.earlier.iter();
    let writes = earlier.any(|it| {
        let changes = it.verb == Some(Verb::Update) || it.resizes();
        let is_pod = changes && it.resource == "pods";
        is_pod && super::super::write::ordinal(&it.name, &set.name) == Some(ordinal)
    });
    let pod = write.view.members.get(&ordinal);
    writes || pod.is_some_and(|pod| is_marked(pod))
}

/// no pod is replaced for an update that a running pod can follow, unless its node or the API
/// server refuse that.
pub(super) fn judge(case: &Case<'_>, write: &Write<'_>, choices: &Choices, verdict: &mut Verdict) {
    let (Some((ordinal, pod)), Some(in_place)) = (write.deleted_pod(), choices.in_place) else {
        return;
    };
    let set = write.view.set;
    if write.evicts() || !set.range().contains(&ordinal) || pod.has_ended() || pod.terminating {
        return;
    }
    let refused = |code: u16| matches!(code, 403 | 404 | 422);
    let is_refused = write.earlier.iter().any(|it| {
        let is_of_pod = it.resource == "pods" && it.name == pod.name;
        is_of_pod && it.verb != Some(Verb::Get) && it.status.is_some_and(refused)
    });
    let waits = pod.resize.is_some() || stored(case, write).is_some_and(|it| it.resize.is_some());
    let is_over = is_over(pod, choices, write) || is_restart(case, write);
    if is_refused || waits || is_over || !pod.is_ready() {
        return;
    }
    let Some(update) = update_of(case, write) else {
        return;
    };
    let key = (write.request.namespace.clone(), pod.revision.clone());
    let Some(own) = case.history.revisions.at(&key, write.seen.revisions) else {
        return;
    };
    if own.name != update.name && follows(&own.recorded, &update.recorded, in_place) {
        let message = format!("{}: it could be updated in place", write.named());
        verdict.broken("X-14", write.request.sent, message);
    }
}

/// Reports whether the time of a pod in flight is over.
fn is_over(pod: &Pod, choices: &Choices, write: &Write<'_>) -> bool {
    let since = pod.annotations.get(IN_PLACE_SINCE);
    let since = since.and_then(|it| Timestamp::from_second(it.parse().ok()?).ok());
    let end = since.and_then(|since| since.checked_add(choices.in_place_timeout).ok());
    end.is_some_and(|end| end <= write.now)
}

/// Returns the newest stored version of the pod that a write is about.
fn stored<'a>(case: &'a Case<'_>, write: &Write<'_>) -> Option<&'a Arc<Pod>> {
    case.history.pods.at(&write.key(), write.newest)
}

/// Reports whether a running pod can follow the change between two templates of a plan: their labels,
/// annotations and cores alone may differ, and both or none have cores.
fn follows(own: &Value, update: &Value, in_place: InPlace) -> bool {
    let fixed = |template: &Value| {
        let mut template = template.clone();
        template["metadata"] = Value::Null;
        template["spec"]["containers"][0]["resources"] = Value::Null;
        template
    };
    let cpu = |template: &Value| cores(template).map(str::to_owned);
    let [old, new] = [own, update].map(cpu);
    let is_resized = old != new;
    fixed(own) == fixed(update)
        && old.is_some() == new.is_some()
        && !(is_resized && in_place == InPlace::Metadata)
}

fn cores(template: &Value) -> Option<&str> {
    let cores = template.pointer("/spec/containers/0/resources/requests/cpu")?;
    cores.as_str()
}

/// at most as many pods are in flight as may be unavailable. X-15: a pod gets the name of a
/// revision only with its labels and annotations, and once it runs with its cores.
pub(super) fn judge_commits(case: &Case<'_>, verdict: &mut Verdict) {
    let mut in_flight: BTreeMap<SetKey, BTreeSet<String>> = BTreeMap::new();
    for commit in &case.record.commits {
        let (key, at) = (&commit.entry.object.key, commit.entry.revision);
        if &*key.storage != "pods" {
            continue;
        }
        let name = (key.namespace.to_string(), key.name.to_string());
        let Some((set, _)) = name.1.rsplit_once('-') else {
            continue;
        };
        let set = (name.0.clone(), set.to_owned());
        let flight = in_flight.entry(set.clone()).or_default();
        let now = case.history.pods.at(&name, at);
        let newest = case.history.sets.at(&set, at);
        let is_desired = |pod: &Pod| {
            let ordinal = newest.and_then(|set| Some((set, pod.ordinal(&set.name)?)));
            ordinal.is_some_and(|(set, ordinal)| set.range().contains(&ordinal))
        };
        let goes_on = now.is_some_and(|pod| {
            is_marked(pod) && !pod.has_ended() && !pod.terminating && is_desired(pod)
        });
        let is_ours = commit.agent.parse::<Agent>().is_ok();
        if !goes_on {
            flight.remove(&name.1);
        } else if flight.insert(name.1.clone()) && is_ours {
            let budget = budget(case, commit.request, &set, at);
            if let Some(max) = budget.filter(|max| flight.len() > *max) {
                let message = format!("pods {flight:?} are in flight, limit {max}");
                verdict.broken("X-12", commit.at, message);
            }
        }
        let before = case.history.pods.at(&name, at.saturating_sub(1));
        let (Some(before), Some(now)) = (before, now) else {
            continue;
        };
        let is_renamed = before.uid == now.uid && before.revision != now.revision;
        if is_ours
            && is_renamed
            && let Some(why) = differs(case, &set.0, now, at)
        {
            let message = format!("{} gets revision {}: {why}", now.name, now.revision);
            verdict.broken("X-15", commit.at, message);
        }
    }
}

/// Returns the number of pods that may be unavailable: by the specs that the sync of a request may have
/// known.
fn budget(case: &Case<'_>, request: Option<usize>, set: &SetKey, at: u64) -> Option<usize> {
    let request = case.record.requests.get(request?)?;
    let sync = case.record.syncs.get(request.sync?)?;
    let known = case.history.sets.during(set, sync.seen.sets, at);
    let gate = case.plan.settings.max_unavailable;
    known.map(|set| set.max_unavailable(gate)).max()
}

/// Returns what a pod lacks of its revision.
fn differs(case: &Case<'_>, namespace: &str, pod: &Pod, at: u64) -> Option<String> {
    let key = (namespace.to_owned(), pod.revision.clone());
    let revision = case.history.revisions.at(&key, at)?;
    for (place, texts) in [("labels", &pod.labels), ("annotations", &pod.annotations)] {
        let wanted = revision.recorded.pointer(&format!("/metadata/{place}"));
        for (key, value) in wanted.and_then(Value::as_object).into_iter().flatten() {
            let is_own = OWN_LABELS.contains(&&**key) || OF_USERS.contains(&&**key);
            if !is_own && texts.get(key).map(String::as_str) != value.as_str() {
                return Some(format!("{place} {key} is not {value}"));
            }
        }
        // Users give pods keys of their own, so only those of other templates count.
        let others = case.history.revisions.all_at(namespace, at);
        let others: Vec<&Value> = others.map(|it| &it.recorded).collect();
        let mut strays = texts.keys().filter(|key| {
            let has = |template: &Value| {
                let texts = template.pointer(&format!("/metadata/{place}"));
                texts.is_some_and(|texts| texts.get(&**key).is_some())
            };
            let is_mark = [IN_PLACE, IN_PLACE_SINCE].contains(&&***key);
            let is_of_template = others.iter().any(|it| has(it));
            (is_mark || is_of_template) && !has(&revision.recorded)
        });
        if let Some(stray) = strays.next() {
            return Some(format!("{place} {stray} is left"));
        }
    }
    let cores = cores(&revision.recorded).unwrap_or_default();
    if pod.cpu != cores || pod.actual_cpu != cores {
        let (cpu, actual) = (&pod.cpu, &pod.actual_cpu);
        return Some(format!(
            "cpu {cpu:?}, in fact {actual:?}, instead of {cores:?}"
        ));
    }
    let resize = pod.resize.as_ref();
    resize.map(|reason| format!("its resize is not completed: {reason:?}"))
}

/// at the end no pod is in flight, and all are what their revisions say.
pub(super) fn pending(
    case: &Case<'_>,
    set: &Set,
    members: &[&Arc<Pod>],
) -> Vec<(&'static str, String)> {
    let newest = case.history.newest;
    let mut keys = case.history.sets.keys();
    let Some((namespace, _)) = keys.find(|(_, name)| *name == set.name) else {
        return Vec::new();
    };
    let mut tasks = Vec::new();
    for pod in members {
        if is_marked(pod) {
            tasks.push(("X-13", format!("pod {} is still in flight", pod.name)));
        } else if let Some(why) = differs(case, namespace, pod, newest) {
            tasks.push(("X-13", format!("pod {}: {why}", pod.name)));
        }
    }
    tasks
}
