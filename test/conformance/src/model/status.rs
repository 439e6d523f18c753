//! Status: counts, writes, and delayed requeues.

use jiff::{SignedDuration, Timestamp};
use kube_apimachinery::time::format_seconds;
use serde_json::{Map, Value, json};

use super::cluster::Kind;
use super::failure::Failure;
use super::object::{is_deleting, label, list, name, number, text};
use super::revisions::Chosen;
use super::set::{REVISION, Set, is_created, is_ready, is_running_and_ready};
use super::sync::Sync;

/// Maximum number of attempts at a status write.
const STATUS_TRIES_MAX: usize = 5;

/// Status computed by a sync.
pub(super) struct Status {
    observed_generation: i64,
    replicas: i64,
    ready_replicas: i64,
    pub(super) current_replicas: i64,
    updated_replicas: i64,
    available_replicas: i64,
    current_revision: String,
    update_revision: String,
    collision_count: i64,
    /// None if the status has no conditions.
    conditions: Option<Value>,
    /// True if a change of conditions alone is a difference.
    compares_conditions: bool,
}

/// States of the condition `Progressing`.
#[derive(Clone, Copy)]
pub(super) enum Progress {
    Deleting,
    Waiting,
    Done,
}

const OWN_REASONS: [&str; 2] = ["RecreateInProgress", "RecreateCompleted"];

impl Status {
    fn new(set: &Value, chosen: &Chosen) -> Self {
        Self {
            observed_generation: number(set, "/metadata/generation"),
            replicas: 0,
            ready_replicas: 0,
            current_replicas: 0,
            updated_replicas: 0,
            available_replicas: 0,
            current_revision: name(&chosen.current).to_owned(),
            update_revision: name(&chosen.update).to_owned(),
            collision_count: chosen.collision_count,
            conditions: None,
            compares_conditions: false,
        }
    }

    /// Sets the condition `Progressing`. Its time changes with its status.
    pub(super) fn set_progress(&mut self, progress: Progress, now: Timestamp) {
        let (status, reason, message) = match progress {
            Progress::Deleting => ("True", OWN_REASONS[0], "Deleting old revision pods"),
            Progress::Waiting => {
                let message = "Waiting for new-revision pods to be created";
                ("True", OWN_REASONS[0], message)
            }
            Progress::Done => ("False", OWN_REASONS[1], "All pods recreated successfully"),
        };
        let mut list = self.list();
        let place = list.iter().position(|it| it["type"] == "Progressing");
        let earlier = place.map(|place| &list[place]);
        let since = earlier
            .filter(|it| it["status"] == status)
            .and_then(|it| it["lastTransitionTime"].as_str())
            .map_or_else(|| format_seconds(now), str::to_owned);
        let condition = json!({
            "type": "Progressing", "status": status, "lastTransitionTime": since,
            "reason": reason, "message": message,
        });
        match place {
            Some(place) => list[place] = condition,
            None => list.push(condition),
        }
        self.conditions = Some(list.into());
    }

    fn list(&self) -> Vec<Value> {
        let list = self.conditions.as_ref().and_then(Value::as_array);
        list.cloned().unwrap_or_default()
    }

    /// Returns true if the conditions differ in more than times.
    fn conditions_differ(&self, stored: &Value) -> bool {
        let meaning = |list: &[Value]| -> Vec<[String; 4]> {
            let of = |it: &Value| {
                ["type", "status", "reason", "message"]
                    .map(|member| it[member].as_str().unwrap_or_default().to_owned())
            };
            list.iter().map(of).collect()
        };
        meaning(&self.list()) != meaning(list(stored, "/conditions"))
    }

    /// Recomputes the counts from these pods.
    pub(super) fn count(&mut self, set: &Set, pods: &[Value], now: Timestamp) {
        let count = |is_counted: &dyn Fn(&Value) -> bool| {
            i64::try_from(pods.iter().filter(|pod| is_counted(pod)).count()).unwrap_or(i64::MAX)
        };
        let is_of = |pod: &Value, revision: &str| {
            is_created(pod) && !is_deleting(pod) && label(pod, REVISION) == revision
        };
        self.replicas = count(&is_created);
        self.ready_replicas = count(&is_running_and_ready);
        self.available_replicas =
            count(&|pod| is_running_and_ready(pod) && set.is_available(pod, now));
        self.current_replicas = count(&|pod| is_of(pod, &self.current_revision));
        self.updated_replicas = count(&|pod| is_of(pod, &self.update_revision));
    }

    /// Makes the update revision the current one, once every pod has it and is ready.
    fn complete(&mut self, set: &Set, every_strategy: bool) -> bool {
        let is_complete = [self.updated_replicas, self.ready_replicas, self.replicas]
            .iter()
            .all(|count| *count == set.replicas);
        let completes = is_complete && (every_strategy || set.strategy() == "RollingUpdate");
        if completes {
            self.current_replicas = self.updated_replicas;
            self.current_revision.clone_from(&self.update_revision);
        }
        completes
    }

    fn differs_from(&self, stored: &Value) -> bool {
        self.observed_generation > number(stored, "/observedGeneration")
            || self.replicas != number(stored, "/replicas")
            || self.ready_replicas != number(stored, "/readyReplicas")
            || self.current_replicas != number(stored, "/currentReplicas")
            || self.updated_replicas != number(stored, "/updatedReplicas")
            || self.available_replicas != number(stored, "/availableReplicas")
            || self.current_revision != text(stored, "/currentRevision")
            || self.update_revision != text(stored, "/updateRevision")
            || (self.compares_conditions && self.conditions_differ(stored))
    }

    /// Fields in Go's encoding, without omitted zero counts.
    fn members(&self) -> Map<String, Value> {
        let mut members = Map::new();
        let mut add = |name: &str, value: Value, is_omitted: bool| {
            if !is_omitted {
                members.insert(name.to_owned(), value);
            }
        };
        let counts = [
            ("observedGeneration", self.observed_generation, true),
            ("replicas", self.replicas, false),
            ("readyReplicas", self.ready_replicas, true),
            ("currentReplicas", self.current_replicas, true),
            ("updatedReplicas", self.updated_replicas, true),
            ("collisionCount", self.collision_count, false),
            ("availableReplicas", self.available_replicas, false),
        ];
        for (name, count, is_optional) in counts {
            add(name, count.into(), is_optional && count == 0);
        }
        for (name, revision) in [
            ("currentRevision", &self.current_revision),
            ("updateRevision", &self.update_revision),
        ] {
            add(name, revision.as_str().into(), revision.is_empty());
        }
        if let Some(conditions) = &self.conditions {
            add("conditions", conditions.clone(), false);
        }
        members
    }
}

/// Formats a non-negative duration like Go.
pub(super) fn go_duration(duration: SignedDuration) -> String {
    const UNITS: [(&str, i128); 3] = [("ns", 1), ("µs", 1_000), ("ms", 1_000_000)];
    const SECOND: i128 = 1_000_000_000;
    let decimal = |nanos: i128, unit: i128| {
        let digits = unit.ilog10() as usize;
        let text = format!("{}.{:0digits$}", nanos / unit, nanos % unit);
        if unit == 1 || nanos % unit == 0 {
            (nanos / unit).to_string()
        } else {
            text.trim_end_matches('0').to_owned()
        }
    };
    let nanos = duration.as_nanos();
    if nanos > 0 && nanos < SECOND {
        let (name, unit) = UNITS[(nanos.ilog10() / 3) as usize];
        return format!("{}{name}", decimal(nanos, unit));
    }
    let (hours, minutes) = (nanos / SECOND / 3600, nanos / SECOND / 60 % 60);
    let seconds = decimal(nanos % (60 * SECOND), SECOND);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, minutes) => format!("{minutes}m{seconds}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
    }
}

/// A status with the stored conditions, as far as the version keeps them.
pub(super) fn new_status(sync: &Sync, chosen: &Chosen) -> Status {
    let mut status = Status::new(&sync.set.value, chosen);
    let stored = sync.set.value.pointer("/status/conditions").cloned();
    status.compares_conditions = sync.minor >= 37 || sync.rules.keep_conditions;
    if sync.minor >= 37 {
        status.conditions = stored;
    } else if sync.rules.keep_conditions {
        status.conditions = stored;
        let mut kept = status.list();
        let count = kept.len();
        kept.retain(|it| {
            it["type"] != "Progressing" || OWN_REASONS.iter().all(|own| it["reason"] != *own)
        });
        if kept.len() < count {
            status.conditions = (!kept.is_empty()).then(|| kept.into());
        }
    }
    status
}

/// Completes the status, and writes it if it differs from the stored one.
pub(super) fn write_status(sync: &mut Sync, status: &mut Status) -> Result<(), Failure> {
    let is_complete = status.complete(&sync.set, sync.minor >= 37);
    if is_complete && sync.recreates() {
        status.set_progress(Progress::Done, sync.now);
    }
    if sync.max_unavailable_gate {
        sync.set.max_unavailable()?;
    }
    let stored = &sync.set.value["status"];
    if !status.differs_from(stored) {
        return Ok(());
    }
    let members = status.members();
    let mut changed = sync.set.value.clone();
    changed["status"] = members.into();
    let mut result = Ok(());
    for _ in 0..STATUS_TRIES_MAX {
        // The cache never changes, so each attempt sends the same status.
        result = sync.api.put(Kind::Set, "status", changed.clone());
        if !result.as_ref().is_err_and(Failure::is_conflict) {
            break;
        }
    }
    result
}

/// Requeue delay for a pod that must only stay ready for some more time.
pub(super) fn requeue_after(
    sync: &Sync,
    pods: &[Value],
    status: &Status,
) -> Option<SignedDuration> {
    let set = &sync.set;
    if set.min_ready <= 0 || status.ready_replicas == status.available_replicas {
        return None;
    }
    let ready = pods.iter().filter(|pod| is_ready(pod));
    let next = ready
        .filter_map(|pod| set.available_at(pod))
        .filter(|at| *at > sync.now)
        .min();
    let default = SignedDuration::from_secs(set.min_ready);
    Some(next.map_or(default, |moment| moment.duration_since(sync.now)))
}
