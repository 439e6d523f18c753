//! Pods as protobuf messages, which servers and this program read faster than JSON.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use kube_apimachinery::owner_reference::OwnerReference;
use kube_apimachinery::pod::{PodPhase, Readiness};
use kube_apimachinery::protobuf::{Value, WireError, fields, merge};

use super::unready::{ContainerTrouble, Unready};
use super::{ClaimVolume, Pod};

#[cfg(test)]
mod tests;

/// Go's zero time, of an empty message.
const ZERO_TIME: Timestamp = Timestamp::constant(-62_135_596_800, 0);

/// Decodes a message of the kind `Pod`. The result equals that of the pod's JSON. As in Go,
/// the occurrences of an embedded message merge.
///
/// # Errors
///
/// The bytes are not a message, or a string is invalid UTF-8.
pub(super) fn decode(message: &[u8]) -> Result<Pod, WireError> {
    let (mut metadata, mut spec, mut status) = (Cow::default(), Cow::default(), Cow::default());
    for field in fields(message, "Pod") {
        match field? {
            (1, Value::Bytes(occurrence)) => merge(&mut metadata, occurrence),
            (2, Value::Bytes(occurrence)) => merge(&mut spec, occurrence),
            (3, Value::Bytes(occurrence)) => merge(&mut status, occurrence),
            _ => {}
        }
    }
    let mut pod = Pod::default();
    read_metadata(&metadata, &mut pod)?;
    pod.claim_volumes = claim_volumes(&spec)?;
    read_status(&status, &mut pod)?;
    if !pod.readiness.ready {
        let since = pod.readiness.last_transition_time;
        let unready = Unready {
            since: since.or(creation_timestamp(&metadata)?),
            // An unreadable status of a container tells nothing; no decision of upstream needs it.
            trouble: trouble(&status).unwrap_or_default(),
        };
        pod.unready = Some(Box::new(unready));
    }
    Ok(pod)
}

fn read_metadata(message: &[u8], pod: &mut Pod) -> Result<(), WireError> {
    let mut labels = Vec::new();
    for field in fields(message, "ObjectMeta") {
        match field? {
            (1, value) => pod.name = Box::<str>::from(value.text()?).into(),
            (3, value) => pod.namespace = value.text()?.into(),
            (5, value) => pod.uid = value.text()?.into(),
            (6, value) => pod.resource_version = value.text()?.into(),
            // A pointer: even the zero time is one.
            (9, value) => pod.deletion_timestamp = Some(time(value)?.unwrap_or(ZERO_TIME)),
            (11, Value::Bytes(entry)) => labels.push(pair(entry, "LabelsEntry")?),
            (13, Value::Bytes(owner)) if pod.controller.is_none() => {
                let owner = owner_reference(owner)?;
                pod.controller = owner.is_controller().then(|| Arc::new(owner));
            }
            _ => {}
        }
    }
    pod.labels = labels.into_iter().collect();
    Ok(())
}

fn owner_reference(message: &[u8]) -> Result<OwnerReference, WireError> {
    let mut owner = OwnerReference::default();
    for field in fields(message, "OwnerReference") {
        match field? {
            (1, value) => owner.kind = value.text()?.into(),
            (3, value) => owner.name = value.text()?.into(),
            (4, value) => owner.uid = value.text()?.into(),
            (5, value) => owner.api_version = value.text()?.into(),
            (6, value) => owner.controller = Some(value.number() != 0),
            (7, value) => owner.block_owner_deletion = Some(value.number() != 0),
            _ => {}
        }
    }
    Ok(owner)
}

/// Reads a `PodSpec`.
fn claim_volumes(message: &[u8]) -> Result<Box<[ClaimVolume]>, WireError> {
    let mut volumes = Vec::new();
    for field in fields(message, "PodSpec") {
        if let (1, Value::Bytes(volume)) = field? {
            volumes.extend(claim_volume(volume)?);
        }
    }
    Ok(volumes.into())
}

fn claim_volume(message: &[u8]) -> Result<Option<ClaimVolume>, WireError> {
    let (mut name, mut source) = ("", Cow::default());
    for field in fields(message, "Volume") {
        match field? {
            (1, value) => name = value.text()?,
            (2, Value::Bytes(occurrence)) => merge(&mut source, occurrence),
            _ => {}
        }
    }
    Ok(claim_name(&source)?.map(|claim_name| ClaimVolume {
        name: name.into(),
        claim_name,
    }))
}

/// Reads a `VolumeSource`.
fn claim_name(message: &[u8]) -> Result<Option<Box<str>>, WireError> {
    let mut claim = None;
    for field in fields(message, "VolumeSource") {
        if let (10, Value::Bytes(occurrence)) = field? {
            merge(claim.get_or_insert_default(), occurrence);
        }
    }
    let name = |claim: Cow<'_, [u8]>| {
        let (name, _) = pair(&claim, "PersistentVolumeClaimVolumeSource")?;
        Ok(name.into())
    };
    claim.map(name).transpose()
}

fn read_status(message: &[u8], pod: &mut Pod) -> Result<(), WireError> {
    let mut readiness = None;
    for field in fields(message, "PodStatus") {
        match field? {
            (1, value) => pod.phase = PodPhase::from_text(value.text()?),
            (2, Value::Bytes(condition)) if readiness.is_none() => {
                readiness = ready_condition(condition)?;
            }
            _ => {}
        }
    }
    pod.readiness = readiness.unwrap_or_default();
    Ok(())
}

/// Reads a `PodCondition`. Returns none of another type than Ready.
fn ready_condition(message: &[u8]) -> Result<Option<Readiness>, WireError> {
    let (mut is_ready_type, mut readiness) = (false, Readiness::default());
    for field in fields(message, "PodCondition") {
        match field? {
            (1, value) => is_ready_type = value.text()? == "Ready",
            (2, value) => readiness.ready = value.text()? == "True",
            (4, value) => readiness.last_transition_time = time(value)?,
            _ => {}
        }
    }
    Ok(is_ready_type.then_some(readiness))
}

/// Reads the creation time of an `ObjectMeta`.
fn creation_timestamp(message: &[u8]) -> Result<Option<Timestamp>, WireError> {
    let mut created = None;
    for field in fields(message, "ObjectMeta") {
        if let (8, value) = field? {
            created = time(value)?;
        }
    }
    Ok(created)
}

/// Reads the trouble of the first container in a `PodStatus`, init containers first.
fn trouble(message: &[u8]) -> Result<Option<ContainerTrouble>, WireError> {
    let (mut of_init_containers, mut of_containers) = (None, None);
    for field in fields(message, "PodStatus") {
        let (number, value) = field?;
        let found = match number {
            8 => &mut of_containers,
            10 => &mut of_init_containers,
            _ => continue,
        };
        if found.is_none() {
            let reason = waiting_reason(value.bytes())?;
            *found = ContainerTrouble::of_waiting(&reason);
        }
    }
    Ok(of_init_containers.or(of_containers))
}

/// Reads the reason in the waiting state of a `ContainerStatus`; empty without one.
fn waiting_reason(message: &[u8]) -> Result<String, WireError> {
    let (mut state, mut waiting) = (Cow::default(), Cow::default());
    for field in fields(message, "ContainerStatus") {
        if let (2, Value::Bytes(occurrence)) = field? {
            merge(&mut state, occurrence);
        }
    }
    for field in fields(&state, "ContainerState") {
        if let (1, Value::Bytes(occurrence)) = field? {
            merge(&mut waiting, occurrence);
        }
    }
    let (reason, _) = pair(&waiting, "ContainerStateWaiting")?;
    Ok(reason.to_owned())
}

/// Reads the first two fields, for example of a map's entry.
fn pair<'a>(entry: &'a [u8], name: &str) -> Result<(&'a str, &'a str), WireError> {
    let (mut key, mut text) = ("", "");
    for field in fields(entry, name) {
        match field? {
            (1, value) => key = value.text()?,
            (2, value) => text = value.text()?,
            _ => {}
        }
    }
    Ok((key, text))
}

/// Reads a `Time`, in whole seconds as in JSON. Returns `None` for the zero time, an empty message.
/// A time beyond the clock's range saturates.
fn time(value: Value<'_>) -> Result<Option<Timestamp>, WireError> {
    if value.bytes().is_empty() {
        return Ok(None);
    }
    let mut seconds = 0;
    for field in fields(value.bytes(), "Time") {
        if let (1, value) = field? {
            seconds = value.number();
        }
    }
    let limit = if seconds < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    };
    Ok(Some(Timestamp::from_second(seconds).unwrap_or(limit)))
}
