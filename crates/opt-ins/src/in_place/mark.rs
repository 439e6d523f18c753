//! The mark of a pod in flight.

use kube_apimachinery::json::object_member;
use serde_json::Value;
use statefulset_controller_util::live::Live;
use statefulset_controller_util::pod::Pod;

use jiff::Timestamp;

/// Label of a pod in flight: the name of the revision whose resources it gets.
pub const IN_PLACE_LABEL: &str = "statefulset-controller-manager/in-place-update";

/// Annotation of a pod in flight: the time of its mark, in seconds since 1970.
pub const SINCE_ANNOTATION: &str = "statefulset-controller-manager/in-place-since";

/// Returns true if the pod is in flight.
pub fn is_marked(pod: &Pod) -> bool {
    pod.labels.get(IN_PLACE_LABEL).is_some()
}

/// The mark of a pod in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark<'a> {
    /// Name of the revision whose resources the pod gets.
    pub(crate) revision: &'a str,
    /// Time of the mark; `None` if it can't be read.
    pub(crate) since: Option<Timestamp>,
}

impl<'a> Mark<'a> {
    /// Reads the mark of a pod.
    pub(crate) fn of(pod: &'a Live<Pod>) -> Option<Self> {
        let revision = pod.object.labels.get(IN_PLACE_LABEL)?;
        let since = pod.json.pointer("/metadata/annotations");
        let since = since.and_then(|it| it.get(SINCE_ANNOTATION)?.as_str()?.parse().ok());
        let since = since.and_then(|seconds| Timestamp::from_second(seconds).ok());
        Some(Self { revision, since })
    }
}

/// Marks a pod.
pub(crate) fn set(pod: &mut Value, revision: &str, now: Timestamp) {
    let seconds = now.as_second().to_string();
    set_text(pod, "labels", IN_PLACE_LABEL, Some(revision));
    set_text(pod, "annotations", SINCE_ANNOTATION, Some(&seconds));
}

/// Removes the mark of a pod.
pub(crate) fn remove(pod: &mut Value) {
    set_text(pod, "labels", IN_PLACE_LABEL, None);
    set_text(pod, "annotations", SINCE_ANNOTATION, None);
}

/// Sets or removes a label or an annotation.
pub(crate) fn set_text(pod: &mut Value, place: &str, key: &str, value: Option<&str>) {
    let metadata = object_member(pod, "metadata");
    let Some(value) = value else {
        let texts = metadata.get_mut(place).and_then(Value::as_object_mut);
        texts.map(|texts| texts.remove(key));
        return;
    };
    let texts = object_member(metadata, place);
    if let Some(texts) = texts.as_object_mut() {
        texts.insert(key.to_owned(), Value::from(value));
    }
}
