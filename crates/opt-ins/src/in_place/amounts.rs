//! Cores and memory of containers.

use std::collections::BTreeMap;
use std::fmt;

use kube_apimachinery::quantity::Quantity;
use serde_json::{Map, Value, json};

/// The resources that a running pod can change.
pub(crate) const RESOURCES: [&str; 2] = ["cpu", "memory"];
/// The lists of amounts.
pub(crate) const LISTS: [&str; 2] = ["requests", "limits"];

/// A list and a resource, such as `limits` and `cpu`.
pub(crate) type AmountName = [&'static str; 2];

/// The lists of containers whose resources can change.
pub(crate) const CONTAINERS: [&str; 2] = ["containers", "initContainers"];

/// Requests and limits of one container, for cores and memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amounts(BTreeMap<AmountName, Quantity>);

impl Amounts {
    /// Reads the amounts of a container, or of its status. Ignores what isn't a quantity.
    pub(crate) fn of(container: &Value) -> Self {
        let mut amounts = BTreeMap::new();
        for name in names() {
            let text = amount(container, name).and_then(Value::as_str);
            amounts.extend(text.and_then(|text| Some((name, text.parse().ok()?))));
        }
        Self(amounts)
    }

    /// Returns the amounts that a pod gets from a template: a missing request is the limit.
    pub(crate) fn with_default_requests(mut self) -> Self {
        for resource in RESOURCES {
            if let Some(limit) = self.0.get(&["limits", resource]).cloned() {
                self.0.entry(["requests", resource]).or_insert(limit);
            }
        }
        self
    }

    /// Returns the names of the amounts that only one of the two has.
    pub(crate) fn of_one<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = AmountName> + 'a {
        let is_in_one = |name: &AmountName| self.0.contains_key(name) != other.0.contains_key(name);
        names().filter(is_in_one)
    }

    /// Returns the names of the amounts of `desired` that differ here.
    pub(crate) fn differing<'a>(
        &'a self,
        desired: &'a Self,
    ) -> impl Iterator<Item = AmountName> + 'a {
        let wanted = desired.0.iter();
        let other = wanted.filter(|(name, amount)| self.0.get(*name) != Some(*amount));
        other.map(|(name, _)| *name)
    }

    /// Returns the amounts with those of `desired` instead of its own.
    pub(crate) fn changed_to(mut self, desired: &Self) -> Self {
        self.0.extend(desired.0.clone());
        self
    }

    /// Returns the `resources` of a container with only these amounts.
    pub(crate) fn resources(&self, names: &[AmountName]) -> Value {
        let mut resources = Map::new();
        for name in names {
            let [list, resource] = *name;
            let Some(amount) = self.0.get(name) else {
                continue;
            };
            let list = resources.entry(list).or_insert_with(|| json!({}));
            if let Some(list) = list.as_object_mut() {
                list.insert(resource.to_owned(), Value::from(amount.to_string()));
            }
        }
        resources.into()
    }

    fn positive(&self, name: AmountName) -> Option<&Quantity> {
        self.0
            .get(&name)
            .filter(|amount| **amount > Quantity::default())
    }
}

/// The names of all amounts.
fn names() -> impl Iterator<Item = AmountName> {
    LISTS
        .into_iter()
        .flat_map(|list| RESOURCES.map(|resource| [list, resource]))
}

fn amount(container: &Value, [list, resource]: AmountName) -> Option<&Value> {
    container.get("resources")?.get(list)?.get(resource)
}

/// The class of a pod for its node when resources run short. It can't change while the pod runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QosClass {
    /// Each container has limits of cores and memory, which are its requests.
    Guaranteed,
    /// A container has a request or a limit.
    Burstable,
    /// None has.
    BestEffort,
}

impl fmt::Display for QosClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl QosClass {
    /// Returns the class of a pod whose containers have these amounts.
    pub(crate) fn of<'a>(containers: impl Iterator<Item = &'a Amounts> + Clone) -> Self {
        let has_none = |it: &Amounts| names().all(|name| it.positive(name).is_none());
        let is_fixed = |it: &Amounts| {
            RESOURCES.into_iter().all(|resource| {
                let limit = it.positive(["limits", resource]);
                limit.is_some() && limit == it.positive(["requests", resource])
            })
        };
        let mut all = containers.clone();
        if all.all(has_none) {
            Self::BestEffort
        } else if containers.into_iter().all(is_fixed) {
            Self::Guaranteed
        } else {
            Self::Burstable
        }
    }
}
