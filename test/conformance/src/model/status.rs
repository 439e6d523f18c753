//! Status: counts, writes, and delayed requeues.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

use super::Sync;
use super::cluster::Kind;
use super::failure::Failure;
use super::object::{is_deleting, label, name, number, text};
use super::revisions::Chosen;
use super::set::{REVISION, Set, is_created, is_ready, is_running_and_ready};

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
}

impl Status {
    pub(super) fn new(set: &Value, chosen: &Chosen) -> Self {
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
        }
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
    fn complete_rolling_update(&mut self, set: &Set) {
        let is_complete = [self.updated_replicas, self.ready_replicas, self.replicas]
            .iter()
            .all(|count| *count == set.replicas);
        if set.strategy() == "RollingUpdate" && is_complete {
            self.current_replicas = self.updated_replicas;
            self.current_revision.clone_from(&self.update_revision);
        }
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
    }

    /// Members in Go's encoding, without omitted zero counts.
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
        members
    }
}

impl Sync {
    /// Completes the status, and writes it if it differs from the stored one.
    pub(super) fn write_status(&mut self, status: &mut Status) -> Result<(), Failure> {
        status.complete_rolling_update(&self.set);
        if self.max_unavailable_gate {
            self.max_unavailable()?;
        }
        let stored = &self.set.value["status"];
        if !status.differs_from(stored) {
            return Ok(());
        }
        let mut members = status.members();
        if self.rules.keep_conditions
            && let Some(conditions) = stored.get("conditions")
        {
            members.insert("conditions".to_owned(), conditions.clone());
        }
        let mut changed = self.set.value.clone();
        changed["status"] = members.into();
        let mut result = Ok(());
        for _ in 0..STATUS_TRIES_MAX {
            // The cache never changes, so each attempt sends the same status.
            result = self.api.put(Kind::Set, "status", changed.clone());
            if !result.as_ref().is_err_and(Failure::is_conflict) {
                break;
            }
        }
        result
    }

    /// Requeue delay for a pod that must only stay ready for some more time.
    pub(super) fn requeue_after(&self, pods: &[Value], status: &Status) -> Option<SignedDuration> {
        let set = &self.set;
        if set.min_ready <= 0 || status.ready_replicas == status.available_replicas {
            return None;
        }
        let ready = pods.iter().filter(|pod| is_ready(pod));
        let next = ready
            .filter_map(|pod| set.available_at(pod))
            .filter(|at| *at > self.now)
            .min();
        let default = SignedDuration::from_secs(set.min_ready);
        Some(next.map_or(default, |moment| moment.duration_since(self.now)))
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
