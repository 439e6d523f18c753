//! The gate before the removal of a pod.
//!
//! Before a pod of a set with a gate is removed, it gets a label with the time of the request. An
//! agent of the user sees the label, does its work, and lifts the gate.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use statefulset_controller_util::live::Live;
use statefulset_controller_util::pod::Pod;
use statefulset_pod_control::{Error, PodSlot, SetPodControl};

use crate::due::{after, time_left};
use crate::rollout::Rollout;
use crate::values::GateKey;
use crate::wait::Wait;

/// Label of a pod whose removal is requested. Its value is the time, in seconds since 1970.
pub const REQUESTED_LABEL: &str = "statefulset-controller-manager/removal-requested";

/// The gate before the removal of a set's pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemovalGate<'a> {
    /// The label or annotation that holds.
    pub key: &'a GateKey,
    /// Time after the request at which the gate no longer holds.
    pub timeout: Option<Duration>,
}

/// The state of a pod's gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// The pod may be removed.
    Open,
    /// The gate holds.
    Closed {
        /// Time at which it no longer does, if that is limited.
        opens_at: Option<Timestamp>,
    },
}

impl RemovalGate<'_> {
    /// Reads the pod live, and requests its removal if the gate holds and that wasn't done. A pod
    /// that no longer exists needs no gate. A requested pod whose cached label holds isn't read: the
    /// watch shows when it is lifted.
    ///
    /// # Errors
    ///
    /// The pod can't be read, or its label can't be written.
    pub async fn passage(
        &self,
        control: &SetPodControl<'_>,
        pod: &Pod,
        now: Timestamp,
    ) -> Result<Passage, Error> {
        if let Some(requested) = requested_at(pod)
            && self.key.holds(|key| pod.labels.get(key))
        {
            let passage = self.passage_at(requested, now);
            if passage != Passage::Open {
                return Ok(passage);
            }
        }
        match control.read_live(pod).await? {
            None => Ok(Passage::Open),
            Some(live) => self.passage_of(control, live, now).await,
        }
    }

    /// Requests the removal of a pod that was just read, if the gate holds and that wasn't done.
    ///
    /// # Errors
    ///
    /// The pod's label can't be written.
    pub(crate) async fn passage_of(
        &self,
        control: &SetPodControl<'_>,
        mut live: Live<Pod>,
        now: Timestamp,
    ) -> Result<Passage, Error> {
        if !self.holds(&live) {
            return Ok(Passage::Open);
        }
        let requested = requested_at(&live.object).unwrap_or(now);
        let passage = self.passage_at(requested, now);
        if passage != Passage::Open && requested_at(&live.object).is_none() {
            set_label(&mut live, Some(requested));
            control.write_live(live).await?;
        }
        Ok(passage)
    }

    /// Returns the reason to wait for the pod, if the gate holds.
    pub(crate) fn wait(&self, pod: &Pod, passage: Passage) -> Option<Wait> {
        match passage {
            Passage::Open => None,
            Passage::Closed { opens_at } => Some(Wait::RemovalGate {
                pod: (&pod.name).into(),
                gate: self.key.to_string().into(),
                opens_at,
            }),
        }
    }

    fn passage_at(&self, requested: Timestamp, now: Timestamp) -> Passage {
        let opens_at = self.opens_at(requested);
        if opens_at.is_some_and(|opens_at| time_left(opens_at, now).is_none()) {
            return Passage::Open;
        }
        Passage::Closed { opens_at }
    }

    /// Returns the time at which the gate of a pod no longer holds, if that is limited.
    pub(crate) fn opens_at(&self, requested: Timestamp) -> Option<Timestamp> {
        self.timeout.map(|timeout| after(requested, timeout))
    }

    /// Returns true if the pod has the label or annotation.
    fn holds(&self, live: &Live<Pod>) -> bool {
        let mut places = ["/metadata/labels", "/metadata/annotations"].into_iter();
        places.any(|place| {
            let members = live.json.pointer(place);
            self.key.holds(|key| members?.get(key)?.as_str())
        })
    }
}

/// Returns the time of the request to remove the pod.
pub fn requested_at(pod: &Pod) -> Option<Timestamp> {
    let seconds = pod.labels.get(REQUESTED_LABEL)?.parse().ok()?;
    Timestamp::from_second(seconds).ok()
}

/// Returns the desired pods whose removal was requested and that the update doesn't replace.
pub fn kept_by_update(rollout: Rollout<'_>) -> impl Iterator<Item = (&PodSlot, &Arc<Pod>)> {
    let slots = rollout.desired.iter();
    let kept = slots.filter(move |slot| !rollout.reaches(slot));
    let pods = kept.filter_map(|slot| Some((slot, slot.existing()?)));
    pods.filter(|(_, pod)| !pod.is_terminating() && pod.labels.get(REQUESTED_LABEL).is_some())
}

/// Withdraws the request to remove a pod.
///
/// # Errors
///
/// The pod can't be read or written.
pub async fn withdraw(control: &SetPodControl<'_>, pod: &Pod) -> Result<(), Error> {
    let Some(mut live) = control.read_live(pod).await? else {
        return Ok(());
    };
    if live.object.labels.get(REQUESTED_LABEL).is_none() {
        return Ok(());
    }
    set_label(&mut live, None);
    control.write_live(live).await
}

/// Sets the label to a time, or removes it.
fn set_label(live: &mut Live<Pod>, requested: Option<Timestamp>) {
    let Some(metadata) = live.json.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    let labels = metadata.entry("labels").or_insert_with(|| json!({}));
    if !labels.is_object() {
        *labels = Value::Object(Map::new());
    }
    let Some(labels) = labels.as_object_mut() else {
        return;
    };
    match requested {
        Some(time) => {
            let value = time.as_second().to_string();
            labels.insert(REQUESTED_LABEL.to_owned(), Value::from(value));
        }
        None => drop(labels.remove(REQUESTED_LABEL)),
    }
}
