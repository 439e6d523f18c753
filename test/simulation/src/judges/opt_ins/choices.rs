//! The choices of a set.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use kube_apimachinery::quantity::Quantity;

use super::Case;
use crate::agent::Process;
use crate::plan::opt_ins::PREFIX;
use crate::views::{Pod, Set};

/// Name of an annotation of plans that no carrier has.
const UNKNOWN: &str = "repiar";

/// The value that opts out of a carrier.
const NONE: &str = "none";

/// The time after which an unready pod is repaired, unless the set says otherwise.
const REPAIR_AFTER: SignedDuration = SignedDuration::from_mins(5);

/// The time that a resize may take, unless the set says otherwise.
const IN_PLACE_TIMEOUT: SignedDuration = SignedDuration::from_mins(5);

/// The choices of a set.
#[derive(Clone, Debug)]
pub(in super::super) struct Choices {
    /// The repair.
    pub(in super::super) repair: Option<Repair>,
    /// True if the status has conditions.
    pub(super) conditions: bool,
    /// The progress deadline.
    pub(super) deadline: Option<SignedDuration>,
    /// True if the rollout pauses after it.
    pub(super) pauses_late: bool,
    /// The gate before removals.
    pub(super) gate: Option<Gate>,
    /// The time after which it no longer holds.
    pub(super) timeout: Option<SignedDuration>,
    /// True if no pod is replaced.
    pub(super) paused: bool,
    /// The end of the rollout.
    pub(super) rollout_to: Option<RolloutTo>,
    /// The updates of running pods.
    pub(super) in_place: Option<InPlace>,
    /// The time that a resize may take.
    pub(super) in_place_timeout: SignedDuration,
    /// Sizes of claims in bytes, by claim template.
    pub(super) sizes: BTreeMap<String, i64>,
    /// The restarts for volumes.
    resize: Resize,
    /// Annotations that can't be used: the names, and the values without a meaning.
    pub(super) defects: Vec<(String, Option<String>)>,
}

/// The repair of a blocked rollout.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Repair {
    /// True if it evicts.
    pub(super) evicts: bool,
    /// The time for which a pod may be unready.
    pub(in super::super) after: SignedDuration,
}

/// The gate before removals: a label or annotation.
#[derive(Clone, Debug)]
pub(super) enum Gate {
    /// Every pod is held.
    All,
    /// A pod is held by this key, with this value if there is one.
    Key(String, Option<String>),
}

impl Gate {
    /// Reports whether a pod is held.
    pub(super) fn holds(&self, pod: &Pod) -> bool {
        let Self::Key(key, value) = self else {
            return true;
        };
        let mut found = [&pod.labels, &pod.annotations]
            .into_iter()
            .filter_map(|it| it.get(key));
        found.any(|found| value.as_ref().is_none_or(|value| value == found))
    }
}

/// The changes that are applied to running pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InPlace {
    /// Labels and annotations.
    Metadata,
    /// These, cores and memory.
    Resources,
}

/// The restarts of pods whose volumes wait for that to grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resize {
    /// None.
    Online,
    /// One for each wait.
    WithPod,
}

/// The end of a rollout.
#[derive(Clone, Copy, Debug)]
pub(super) enum RolloutTo {
    /// So many pods are updated.
    Count(u32),
    /// Pods from this ordinal on are updated.
    Ordinal(u32),
}

/// Returns the choices that a set has under a process; none if its feature gates are off.
pub(in super::super) fn choices(case: &Case<'_>, process: Process, set: &Set) -> Option<Choices> {
    let is_on = case.plan.settings.allows_opt_ins(process.instance);
    is_on.then(|| Choices::read(set))
}

impl Choices {
    fn none() -> Self {
        Self {
            repair: None,
            conditions: false,
            deadline: None,
            pauses_late: false,
            gate: None,
            timeout: None,
            paused: false,
            rollout_to: None,
            in_place: None,
            in_place_timeout: IN_PLACE_TIMEOUT,
            sizes: BTreeMap::new(),
            resize: Resize::Online,
            defects: Vec::new(),
        }
    }

    fn read(set: &Set) -> Self {
        let mut defects = Vec::new();
        let mut it = Self::none();
        let (mut evicts, mut after) = (None, Some(REPAIR_AFTER));
        let (mut may_grow, mut unknown_template) = (true, false);
        for (key, value) in &set.annotations {
            let Some(name) = key.strip_prefix(PREFIX) else {
                continue;
            };
            let value = value.as_str();
            let read = match name {
                "progress-deadline"
                | "removal-gate"
                | "removal-gate-timeout"
                | "rollout-to"
                | "claim-size"
                    if value == NONE =>
                {
                    Some(())
                }
                "repair" => {
                    let method = match value {
                        "none" => Some(None),
                        "evict" => Some(Some(true)),
                        "delete" => Some(Some(false)),
                        _ => None,
                    };
                    method.map(|method| evicts = method)
                }
                // While it can't be read, nothing is repaired.
                "repair-after" => {
                    after = duration(value);
                    after.map(drop)
                }
                "conditions" => boolean(value).map(|is| it.conditions = is),
                "progress-deadline" => {
                    let deadline = duration(value).filter(|it| !it.is_zero());
                    deadline.map(|deadline| it.deadline = Some(deadline))
                }
                // While it can't be read, the rollout pauses.
                "on-deadline" => {
                    it.pauses_late = value != "stall";
                    ["stall", "pause"].contains(&value).then_some(())
                }
                "removal-gate" => {
                    let gate = gate(value);
                    let read = gate.is_some().then_some(());
                    it.gate = Some(gate.unwrap_or(Gate::All));
                    read
                }
                "removal-gate-timeout" => duration(value).map(|timeout| it.timeout = Some(timeout)),
                // While a limit can't be read, the rollout is paused.
                "paused" => {
                    let paused = boolean(value);
                    it.paused |= paused.unwrap_or(true);
                    paused.map(drop)
                }
                "rollout-to" => {
                    it.rollout_to = rollout_to(value);
                    it.paused |= it.rollout_to.is_none();
                    it.rollout_to.map(drop)
                }
                "in-place" => {
                    it.in_place = in_place(value);
                    it.paused |= it.in_place.is_none() && value != NONE;
                    (value == NONE || it.in_place.is_some()).then_some(())
                }
                "in-place-timeout" => {
                    let read = duration(value).filter(|it| !it.is_zero());
                    it.in_place_timeout = read.unwrap_or(SignedDuration::MAX);
                    read.map(drop)
                }
                "claim-size" => {
                    let read = it.read_sizes(set, value);
                    read.map(|fits| unknown_template = !fits)
                }
                // While it can't be read, no claim grows.
                "claim-resize" => {
                    let read = resize(value);
                    it.resize = read.unwrap_or(Resize::Online);
                    may_grow = read.is_some();
                    may_grow.then_some(())
                }
                _ => None,
            };
            let is_known = name != UNKNOWN;
            let limits = name == "paused" && value == "true"
                || ["rollout-to", "in-place"].contains(&name) && value != NONE;
            if read.is_none() {
                defects.push((name.to_owned(), is_known.then(|| value.to_owned())));
            } else if name == "claim-size" && unknown_template || set.is_on_delete() && limits {
                defects.push((name.to_owned(), None));
            }
        }
        it.defects = defects;
        if !may_grow {
            it.sizes.clear();
        }
        it.repair = evicts
            .zip(after)
            .map(|(evicts, after)| Repair { evicts, after });
        it
    }

    /// Reads sizes. Returns none if they can't be read, and false if one is for another claim template.
    fn read_sizes(&mut self, set: &Set, value: &str) -> Option<bool> {
        let read = sizes(value)?;
        let fits = read.keys().all(|name| set.claims.contains(name));
        if fits {
            self.sizes = read;
        }
        Some(fits)
    }

    /// Reports whether pods are restarted whose volumes wait for that.
    pub(in super::super) fn restarts(&self) -> bool {
        self.resize == Resize::WithPod
    }

    /// Reports whether the status has conditions about the rollout.
    pub(super) fn has_conditions(&self) -> bool {
        self.conditions || self.deadline.is_some()
    }
}

fn resize(text: &str) -> Option<Resize> {
    match text {
        "online" => Some(Resize::Online),
        "with-pod" => Some(Resize::WithPod),
        _ => None,
    }
}

fn in_place(text: &str) -> Option<InPlace> {
    match text {
        "metadata" => Some(InPlace::Metadata),
        "resources" => Some(InPlace::Resources),
        _ => None,
    }
}

/// Returns the bytes of a quantity; 0 if it is none.
pub(super) fn bytes(text: &str) -> i64 {
    let quantity: Option<Quantity> = text.parse().ok();
    quantity.map_or(0, |it| it.value())
}

/// Reads sizes of plans, such as `data0=2Gi,data1=3Gi`.
fn sizes(text: &str) -> Option<BTreeMap<String, i64>> {
    let entries = text.split(',').map(|entry| {
        let (template, size) = entry.split_once('=')?;
        let bytes = bytes(size);
        (bytes > 0).then(|| (template.to_owned(), bytes))
    });
    entries.collect()
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// Reads a number of seconds, or numbers with the units h, m and s.
fn duration(text: &str) -> Option<SignedDuration> {
    if let Ok(seconds) = text.parse::<u32>() {
        return Some(SignedDuration::from_secs(seconds.into()));
    }
    let (mut total, mut rest) = (0, text);
    while !rest.is_empty() {
        let digits = rest.find(|it: char| !it.is_ascii_digit())?;
        let number: i64 = rest[..digits].parse().ok()?;
        let unit = rest[digits..].chars().next()?;
        total += number
            * match unit {
                'h' => 3_600,
                'm' => 60,
                's' => 1,
                _ => return None,
            };
        rest = &rest[digits + 1..];
    }
    (!text.is_empty()).then(|| SignedDuration::from_secs(total))
}

fn gate(text: &str) -> Option<Gate> {
    let (key, value) = match text.split_once('=') {
        None => (text, None),
        Some((key, value)) => (key, Some(value.to_owned())),
    };
    let is_key = |it: char| it.is_ascii_alphanumeric() || "-_./".contains(it);
    let is_valid = !key.is_empty() && key.chars().all(is_key);
    is_valid.then(|| Gate::Key(key.to_owned(), value))
}

fn rollout_to(text: &str) -> Option<RolloutTo> {
    match text.strip_prefix("ordinal=") {
        Some(ordinal) => ordinal.parse().ok().map(RolloutTo::Ordinal),
        None => text.parse().ok().map(RolloutTo::Count),
    }
}
