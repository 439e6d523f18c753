//! The values of carriers.

use std::fmt;
use std::time::Duration;

use kube_apimachinery::go_duration;
use kube_apimachinery::quantity::Quantity;
use kube_apimachinery::selector::validate_label_key;
use statefulset_pod_control::ClaimSizes;

/// The way in which a pod that blocks a rollout is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairMethod {
    /// Through the eviction API, within the pod's disruption budgets.
    Evict,
    /// By a deletion, which no budget stops.
    Delete,
}

/// The reaction to a progress deadline that has passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeadlineReaction {
    /// The conditions show it; the rollout goes on.
    #[default]
    Stall,
    /// No more pods are replaced until the spec changes.
    Pause,
}

/// The changes of a template that are applied to running pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InPlaceScope {
    /// Labels and annotations.
    Metadata,
    /// These, and the cores and memory of containers.
    Resources,
}

/// The label or annotation of a pod that keeps it from being removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateKey {
    /// One with this key.
    Key {
        /// Key of the label or annotation.
        key: String,
        /// Value that holds; any if `None`.
        value: Option<String>,
    },
    /// The carrier can't be read: every pod is kept.
    Unreadable,
}

impl GateKey {
    /// Returns true if labels or annotations hold; `get` looks a key up in them.
    pub(crate) fn holds<'a>(&self, get: impl Fn(&str) -> Option<&'a str>) -> bool {
        match self {
            Self::Unreadable => true,
            Self::Key { key, value } => {
                get(key).is_some_and(|found| value.as_ref().is_none_or(|value| value == found))
            }
        }
    }
}

/// Formats as the carrier's value.
impl fmt::Display for GateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key { key, value: None } => f.write_str(key),
            Self::Key {
                key,
                value: Some(value),
            } => write!(f, "{key}={value}"),
            Self::Unreadable => f.write_str("(unreadable)"),
        }
    }
}

/// The end of a rollout before its last pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RolloutTo {
    /// This number of pods is updated.
    Count(i32),
    /// Pods from this ordinal on are updated.
    Ordinal(i32),
}

/// Formats as the carrier's value.
impl fmt::Display for RolloutTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Ordinal(ordinal) => write!(f, "ordinal={ordinal}"),
        }
    }
}

/// The restart of pods whose volumes need one to grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClaimResize {
    /// No pod is restarted.
    #[default]
    Online,
    /// A pod is restarted once its volume waits for that.
    WithPod,
}

/// The reason that a value can't be used.
pub(crate) type Problem = &'static str;

pub(crate) fn boolean(text: &str) -> Result<bool, Problem> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("expected true or false"),
    }
}

/// Reads a duration such as `10m`, or a number of seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, Problem> {
    let seconds = text.parse::<u32>().ok();
    let seconds = seconds.map(|seconds| Duration::from_secs(seconds.into()));
    let duration = seconds.or_else(|| go_duration::parse(text));
    duration.ok_or("expected a duration such as 10m, or a number of seconds")
}

/// Reads a duration that isn't zero.
pub(crate) fn positive_duration(text: &str) -> Result<Duration, Problem> {
    match duration(text)? {
        Duration::ZERO => Err("expected more than 0 seconds"),
        duration => Ok(duration),
    }
}

/// Reads a value, or `none`, with which a set opts out of a default.
pub(crate) fn unless_none<T>(
    text: &str,
    read: impl Fn(&str) -> Result<T, Problem>,
) -> Result<Option<T>, Problem> {
    match text {
        "none" => Ok(None),
        text => read(text).map(Some),
    }
}

/// Reads the method of a repair.
pub(crate) fn repair_method(text: &str) -> Result<RepairMethod, Problem> {
    match text {
        "evict" => Ok(RepairMethod::Evict),
        "delete" => Ok(RepairMethod::Delete),
        _ => Err("expected none, evict or delete"),
    }
}

/// Reads the changes that are applied to running pods.
pub(crate) fn in_place_scope(text: &str) -> Result<InPlaceScope, Problem> {
    match text {
        "metadata" => Ok(InPlaceScope::Metadata),
        "resources" => Ok(InPlaceScope::Resources),
        _ => Err("expected none, metadata or resources"),
    }
}

pub(crate) fn deadline_reaction(text: &str) -> Result<DeadlineReaction, Problem> {
    match text {
        "stall" => Ok(DeadlineReaction::Stall),
        "pause" => Ok(DeadlineReaction::Pause),
        _ => Err("expected stall or pause"),
    }
}

pub(crate) fn gate_key(text: &str) -> Result<GateKey, Problem> {
    let (key, value) = match text.split_once('=') {
        None => (text, None),
        Some((key, value)) => (key, Some(value.to_owned())),
    };
    if validate_label_key(key).is_err() {
        return Err("expected the key of a label or annotation, or KEY=VALUE");
    }
    let key = key.to_owned();
    Ok(GateKey::Key { key, value })
}

/// Reads sizes of claims, such as `data=20Gi,wal=5Gi`.
pub(crate) fn claim_sizes(text: &str) -> Result<ClaimSizes, Problem> {
    const EXPECTED: &str = "expected sizes of claim templates such as data=20Gi,wal=5Gi";
    let mut sizes = Vec::new();
    for entry in text.split(',').map(str::trim) {
        let (template, size) = entry.split_once('=').ok_or(EXPECTED)?;
        let size = storage_size(size).ok_or(EXPECTED)?;
        if template.is_empty() {
            return Err(EXPECTED);
        }
        if sizes
            .iter()
            .any(|(named, _): &(Box<str>, _)| **named == *template)
        {
            return Err("expected one size for each claim template");
        }
        sizes.push((template.into(), size));
    }
    Ok(sizes.into_iter().collect())
}

/// Reads a positive number of whole bytes.
fn storage_size(text: &str) -> Option<Quantity> {
    let size: Quantity = text.parse().ok()?;
    let bytes = size.value();
    // Parts of bytes are rounded up, and numbers past the largest saturate.
    let is_whole = bytes
        .to_string()
        .parse()
        .is_ok_and(|whole: Quantity| whole == size);
    (bytes > 0 && is_whole).then_some(size)
}

pub(crate) fn claim_resize(text: &str) -> Result<ClaimResize, Problem> {
    match text {
        "online" => Ok(ClaimResize::Online),
        "with-pod" => Ok(ClaimResize::WithPod),
        _ => Err("expected online or with-pod"),
    }
}

pub(crate) fn rollout_to(text: &str) -> Result<RolloutTo, Problem> {
    let number = |text: &str| text.parse().ok().filter(|number: &i32| *number >= 0);
    let rollout_to = match text.strip_prefix("ordinal=") {
        Some(ordinal) => number(ordinal).map(RolloutTo::Ordinal),
        None => number(text).map(RolloutTo::Count),
    };
    rollout_to.ok_or("expected a number of pods, or ordinal=N")
}
