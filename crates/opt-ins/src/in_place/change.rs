//! The change from one recorded template to another, if a running pod can follow it.

use std::collections::{BTreeMap, BTreeSet};

use kube_apimachinery::json::{equal_as_doubles, parse};
use kube_apimachinery::schema::{UnknownMembers, normalize_owned, unknown_members_agree};
use serde_json::{Map, Value};
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::pod::{POD_INDEX_LABEL, POD_NAME_LABEL, REVISION_LABEL};

use super::amounts::{Amounts, CONTAINERS, LISTS, RESOURCES};
use super::mark::{IN_PLACE_LABEL, SINCE_ANNOTATION};
use super::reason::Reason;
use crate::values::InPlaceScope;

#[cfg(test)]
mod tests;

/// The Go type of a pod template.
const TEMPLATE_TYPE: &str = "PodTemplateSpec";
/// The places of the texts that a running pod can change.
const PLACES: [&str; 2] = ["labels", "annotations"];
/// Keys that the controller sets itself, whatever a template says.
const OWN_KEYS: [&str; 5] = [
    POD_NAME_LABEL,
    POD_INDEX_LABEL,
    REVISION_LABEL,
    IN_PLACE_LABEL,
    SINCE_ANNOTATION,
];

/// A container: its list and its name.
pub(crate) type ContainerName = (&'static str, Box<str>);

/// A template as a revision records it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Template(Value);

impl Template {
    /// Returns the template that a revision records whole.
    ///
    /// # Errors
    ///
    /// The revision records something else, as other tools may do.
    pub(crate) fn of(revision: &ControllerRevision) -> Result<Self, Reason> {
        Self::read(revision).ok_or_else(|| Reason::NoTemplate(revision.name.clone()))
    }

    fn read(revision: &ControllerRevision) -> Option<Self> {
        if revision.is_data_replaced {
            return None;
        }
        let mut data = parse(&revision.data.to_str()).ok()?;
        let template = data.pointer_mut("/spec/template")?;
        let directive = template.as_object_mut()?.remove("$patch")?;
        (directive == "replace").then(|| Self(template.take()))
    }

    /// Returns the amounts of each container that has any.
    fn amounts(&self) -> BTreeMap<ContainerName, Amounts> {
        let amounts = containers(&self.0).map(|(name, container)| {
            let amounts = Amounts::of(container).with_default_requests();
            (name, amounts)
        });
        amounts.filter(|it| it.1 != Amounts::default()).collect()
    }

    /// Returns the labels or annotations.
    fn texts(&self, place: &str) -> BTreeMap<&str, &str> {
        let texts = self.0.get("metadata").and_then(|it| it.get(place));
        let texts = texts.and_then(Value::as_object).into_iter().flatten();
        let texts = texts.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()));
        texts.filter(|(key, _)| !OWN_KEYS.contains(key)).collect()
    }

    /// Returns the template without what a running pod can change.
    fn fixed(&self) -> Value {
        let mut fixed = self.0.clone();
        let metadata = fixed.get_mut("metadata").and_then(Value::as_object_mut);
        if let Some(metadata) = metadata {
            metadata.retain(|member, _| !PLACES.contains(&&**member));
        }
        let spec = fixed.get_mut("spec").and_then(Value::as_object_mut);
        let lists = spec.into_iter().flatten();
        let lists = lists.filter(|(member, _)| CONTAINERS.contains(&&***member));
        for container in lists.filter_map(|it| it.1.as_array_mut()).flatten() {
            for list in LISTS {
                let amounts = container
                    .get_mut("resources")
                    .and_then(|resources| resources.get_mut(list)?.as_object_mut());
                if let Some(amounts) = amounts {
                    amounts.retain(|resource, _| !RESOURCES.contains(&&**resource));
                }
            }
        }
        fixed
    }
}

/// Returns the containers of a pod or a template.
pub(crate) fn containers(pod: &Value) -> impl Iterator<Item = (ContainerName, &Value)> {
    CONTAINERS.into_iter().flat_map(move |list| {
        let found = pod.get("spec").and_then(|spec| spec.get(list)?.as_array());
        let named = found.into_iter().flatten().filter_map(move |container| {
            let name = container.get("name")?.as_str()?;
            Some(((list, Box::from(name)), container))
        });
        named.collect::<Vec<_>>()
    })
}

/// The change of a label or an annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextChange {
    /// `labels` or `annotations`.
    pub(crate) place: &'static str,
    pub(crate) key: String,
    /// The value; `None` removes the key.
    pub(crate) value: Option<String>,
}

/// A change that a running pod can follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// The labels and annotations that differ between the templates.
    pub(crate) texts: Vec<TextChange>,
    /// The amounts that each container gets.
    pub(crate) amounts: BTreeMap<ContainerName, Amounts>,
    /// True if the amounts differ between the templates.
    pub(crate) resizes: bool,
}

impl Change {
    /// Returns the change between two templates.
    ///
    /// # Errors
    ///
    /// A running pod can't follow it, or the set doesn't ask for that.
    pub(crate) fn between(
        from: &Template,
        to: &Template,
        scope: InPlaceScope,
    ) -> Result<Self, Reason> {
        compare_fixed(from, to)?;
        let (old, new) = (from.amounts(), to.amounts());
        let names: BTreeSet<&ContainerName> = old.keys().chain(new.keys()).collect();
        let (none, mut resizes) = (Amounts::default(), false);
        for name in names {
            let [old, new] = [&old, &new].map(|it| it.get(name).unwrap_or(&none));
            if old == new {
                continue;
            }
            let container = &name.1;
            if scope < InPlaceScope::Resources {
                return Err(Reason::ResourcesNotChosen(container.clone()));
            }
            // So the way back removes no amount either, which no pod permits.
            if let Some(amount) = old.of_one(new).next() {
                return Err(Reason::AmountOfOne {
                    container: container.clone(),
                    amount: amount.join("."),
                });
            }
            if let Some(resource) = restarts(to, name, old, new) {
                return Err(Reason::Restarts {
                    container: container.clone(),
                    resource,
                });
            }
            resizes = true;
        }
        if resizes && to.0.pointer("/spec/resources").is_some_and(is_present) {
            return Err(Reason::PodResources);
        }
        let texts = PLACES.into_iter().flat_map(|place| {
            let (old, new) = (from.texts(place), to.texts(place));
            text_changes(place, &old, &new)
        });
        Ok(Self {
            texts: texts.collect(),
            amounts: new,
            resizes,
        })
    }

    /// Returns the change of a pod that returns to the template of its revision.
    pub(crate) fn back_to(template: &Template) -> Self {
        Self {
            texts: Vec::new(),
            amounts: template.amounts(),
            resizes: false,
        }
    }
}

/// Checks that two templates agree in all that a running pod can't change. A field that only a newer
/// API server knows may be absent in one of them.
fn compare_fixed(from: &Template, to: &Template) -> Result<(), Reason> {
    let [from, to] = [from.fixed(), to.fixed()];
    let known = |template: &Value| {
        let known = normalize_owned(
            TEMPLATE_TYPE,
            template.clone(),
            UnknownMembers::Drop,
            "spec.template",
        );
        known.map_err(|error| Reason::Field(error.to_string()))
    };
    let (old, new) = (known(&from)?, known(&to)?);
    if let Some(path) = first_difference(&old, &new) {
        return Err(Reason::Field(path));
    }
    if !unknown_members_agree(TEMPLATE_TYPE, &from, &to, &equal_as_doubles) {
        return Err(Reason::Field("a field of a newer API server".to_owned()));
    }
    Ok(())
}

/// Returns the path of the first difference: `spec.containers[0].image`.
fn first_difference(old: &Value, new: &Value) -> Option<String> {
    let join = |name: &str, rest: String| match &*rest {
        "" => name.to_owned(),
        rest if rest.starts_with('[') => format!("{name}{rest}"),
        rest => format!("{name}.{rest}"),
    };
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let none = Value::Null;
            let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            let of = |map: &Map<String, Value>, name: &String| map.get(name).cloned();
            names.into_iter().find_map(|name| {
                let (old, new) = (of(old, name), of(new, name));
                let [old, new] = [&old, &new].map(|it| it.as_ref().unwrap_or(&none));
                first_difference(old, new).map(|rest| join(name, rest))
            })
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            let mut pairs = old.iter().zip(new).enumerate();
            pairs.find_map(|(index, (old, new))| {
                first_difference(old, new).map(|rest| join(&format!("[{index}]"), rest))
            })
        }
        _ => (old != new).then(String::new),
    }
}

/// Returns the first resource whose change restarts the container.
fn restarts(
    template: &Template,
    name: &ContainerName,
    old: &Amounts,
    new: &Amounts,
) -> Option<&'static str> {
    let container = containers(&template.0).find(|it| it.0 == *name)?.1;
    let policies = container.get("resizePolicy").and_then(Value::as_array);
    let restarts = |resource: &str| {
        let mut policies = policies.into_iter().flatten();
        policies.any(|policy| {
            policy.get("resourceName").is_some_and(|it| it == resource)
                && policy
                    .get("restartPolicy")
                    .is_some_and(|it| it != "NotRequired")
        })
    };
    let mut differing = old.differing(new);
    differing
        .find(|[_, resource]| restarts(resource))
        .map(|[_, resource]| resource)
}

fn text_changes(
    place: &'static str,
    old: &BTreeMap<&str, &str>,
    new: &BTreeMap<&str, &str>,
) -> Vec<TextChange> {
    let change = |key: &str, value: Option<&str>| TextChange {
        place,
        key: key.to_owned(),
        value: value.map(str::to_owned),
    };
    let removed = old.keys().filter(|key| !new.contains_key(*key));
    let changed = new
        .iter()
        .filter(|(key, value)| old.get(*key) != Some(*value));
    let removed = removed.map(|key| change(key, None));
    let changed = changed.map(|(key, value)| change(key, Some(value)));
    removed.chain(changed).collect()
}

fn is_present(value: &Value) -> bool {
    !value.is_null()
}
