//! Strategic merge patches: merge patches that merge lists by key and understand directives.
//!
//! Upstream: `strategicpatch.StrategicMergePatch`.

mod directives;
mod order;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use self::directives::{
    DELETE_FROM, PATCH, RETAIN_KEYS, SET_ORDER, is_directive, patch_of, without_directives,
};
use self::order::{Identity, Positions, normalize};
use crate::json::to_go_format;
use crate::schema::{Field, Kind, PatchStrategy, Shape, Type, TypeName};

/// Reason why a patch can't be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StrategicMergeError {
    /// The patch has an unknown directive.
    #[error("unknown patch type found: {0}")]
    UnknownDirective(String),
    /// A patch has other fields than those that `$retainKeys` names, or the directive is no list.
    #[error("invalid patch format of retainKeys")]
    RetainKeys,
    /// An entry of a list that is merged by key lacks the key.
    #[error("{0}")]
    NoMergeKey(String),
    /// The entries of the list and of the patch have several types.
    #[error("list element types are not identical: {0}")]
    MixedList(String),
}

type Merged<T> = Result<T, StrategicMergeError>;

/// Applies a strategic patch to an object of this type in the [schema](crate::schema), in that of
/// v1.36.2 if only a name is given. Lists unknown to the schema are replaced. A value that isn't an object counts as an empty one.
///
/// # Errors
///
/// An unknown or wrong directive, an entry without its merge key, or a list of several types.
pub fn apply<'t>(
    of: impl Into<TypeName<'t>>,
    old: &Value,
    patch: &Value,
) -> Result<Value, StrategicMergeError> {
    let empty = Map::new();
    let old = old.as_object().unwrap_or(&empty);
    let patch = patch.as_object().unwrap_or(&empty);
    Ok(Value::Object(merge_map(
        Known::object(of.into()),
        old,
        patch,
    )?))
}

type Object = Map<String, Value>;

/// The schema's knowledge of an object that is being merged.
#[derive(Clone, Copy)]
enum Known {
    /// An object of this type.
    Object(&'static Type),
    /// A map to objects of this type.
    Map(TypeName<'static>),
    /// An unknown object.
    Nothing,
}

impl Known {
    fn object(of: TypeName<'_>) -> Self {
        of.find().map_or(Self::Nothing, Self::Object)
    }

    fn field(self, name: &str) -> Option<&'static Field> {
        match self {
            Self::Object(found) => found.field(name),
            Self::Map(_) | Self::Nothing => None,
        }
    }

    fn strategy(self, name: &str) -> PatchStrategy {
        match self.field(name) {
            Some(field) => field.patch_strategy(),
            None => PatchStrategy::Replace,
        }
    }

    /// Knowledge of the object in a field, or of the objects in its list.
    fn member(self, name: &str) -> Self {
        match (self, self.field(name)) {
            (Self::Map(of), _) => Self::object(of),
            (_, Some(field)) => match (field.shape, field.kind) {
                (Shape::Map, Kind::Struct(inner)) => Self::Map(inner),
                (_, Kind::Struct(inner)) => Self::object(inner),
                _ => Self::Nothing,
            },
            _ => Self::Nothing,
        }
    }

    /// Returns true if a patch replaces the object in a field as a whole.
    fn replaces_object(self, name: &str) -> bool {
        self.field(name).is_some_and(|field| {
            matches!(field.kind, Kind::Struct(_))
                && field.patch_strategy() == PatchStrategy::Replace
        })
    }
}

fn merge_map(known: Known, old: &Object, patch: &Object) -> Merged<Object> {
    match patch
        .get(PATCH)
        .map(|directive| (directive, directive.as_str()))
    {
        // Everything below is taken as it is, with nulls and directives.
        Some((_, Some("replace"))) => {
            let mut whole = patch.clone();
            whole.remove(PATCH);
            return Ok(whole);
        }
        Some((_, Some("delete"))) => return Ok(Map::new()),
        Some((_, Some(other))) => {
            return Err(StrategicMergeError::UnknownDirective(other.to_owned()));
        }
        Some((other, None)) => {
            return Err(StrategicMergeError::UnknownDirective(other.to_string()));
        }
        None => {}
    }
    let mut merged = old.clone();
    if let Some(kept) = patch.get(RETAIN_KEYS) {
        let kept = retained(kept, patch)?;
        merged.retain(|key, _| kept.contains(key.as_str()));
    }
    for (key, value) in patch {
        if let Some(name) = key.strip_prefix(DELETE_FROM) {
            delete_values(&mut merged, name, value)?;
        }
    }
    for (key, value) in patch {
        if is_directive(key) {
            continue;
        }
        let order = patch
            .get(&format!("{SET_ORDER}{key}"))
            .and_then(Value::as_array);
        merge_member(known, &mut merged, key, value, order)?;
    }
    for (key, order) in patch {
        let Some((name, order)) = key.strip_prefix(SET_ORDER).zip(order.as_array()) else {
            continue;
        };
        if !patch.contains_key(name)
            && let Some(Value::Array(list)) = merged.get(name)
        {
            let identity = identity(known.strategy(name));
            let sorted = normalize(identity, list.clone(), order, list);
            merged.insert(name.to_owned(), Value::Array(sorted));
        }
    }
    Ok(merged)
}

/// Returns the fields that stay. They must name all that the patch sets.
///
/// Upstream: `applyRetainKeysDirective`.
fn retained<'p>(kept: &'p Value, patch: &Object) -> Merged<BTreeSet<&'p str>> {
    let kept = kept.as_array().ok_or(StrategicMergeError::RetainKeys)?;
    let kept: BTreeSet<&str> = kept.iter().filter_map(Value::as_str).collect();
    let mut set = patch
        .iter()
        .filter(|(key, value)| !is_directive(key) && !value.is_null());
    if set.all(|(key, _)| kept.contains(key.as_str())) {
        Ok(kept)
    } else {
        Err(StrategicMergeError::RetainKeys)
    }
}

fn identity(strategy: PatchStrategy) -> Identity {
    match strategy {
        PatchStrategy::MergeBy(key) => Identity(Some(key)),
        PatchStrategy::Replace | PatchStrategy::Merge => Identity(None),
    }
}

fn delete_values(merged: &mut Object, name: &str, values: &Value) -> Merged<()> {
    let values = values.as_array().map(Vec::as_slice).unwrap_or_default();
    if let Some(Value::Array(list)) = merged.get_mut(name) {
        check_types(list, values)?;
        let values = Positions::of(Identity(None), values);
        list.retain(|item| values.first(item).is_none());
    }
    Ok(())
}

fn merge_member(
    known: Known,
    merged: &mut Object,
    key: &str,
    value: &Value,
    order: Option<&Vec<Value>>,
) -> Merged<()> {
    if value.is_null() {
        merged.remove(key);
        return Ok(());
    }
    let new = match (merged.get(key), value) {
        (Some(Value::Object(old)), Value::Object(patch)) if !known.replaces_object(key) => {
            Value::Object(merge_map(known.member(key), old, patch)?)
        }
        (Some(Value::Array(old)), Value::Array(patch)) => {
            Value::Array(merge_list(known, key, old, patch, order)?)
        }
        // Without a list to merge into, elements with equal keys are all kept.
        (None, Value::Array(patch))
            if known.strategy(key) != PatchStrategy::Replace && order.is_some() =>
        {
            Value::Array(merge_list(known, key, &[], patch, order)?)
        }
        (Some(Value::Object(_)), Value::Object(_)) => value.clone(),
        _ => {
            let Some(new) = without_directives(value) else {
                merged.remove(key);
                return Ok(());
            };
            new
        }
    };
    merged.insert(key.to_owned(), new);
    Ok(())
}

fn merge_list(
    known: Known,
    name: &str,
    old: &[Value],
    patch: &[Value],
    order: Option<&Vec<Value>>,
) -> Merged<Vec<Value>> {
    let strategy = known.strategy(name);
    let elements = known.member(name);
    let identity = identity(strategy);
    let mut merged: Vec<Option<Value>> = old.iter().cloned().map(Some).collect();
    let mut positions = Positions::of(identity, old);
    let mut added: Vec<Value> = Vec::new();
    if strategy != PatchStrategy::Replace {
        check_types(old, patch)?;
    }
    match strategy {
        PatchStrategy::Replace => return Ok(patch.to_vec()),
        PatchStrategy::Merge => {
            added.extend_from_slice(patch);
            for item in patch {
                if positions.first(item).is_none() {
                    positions.add(item, merged.len());
                    merged.push(Some(item.clone()));
                }
            }
        }
        PatchStrategy::MergeBy(key) => {
            if patch.iter().any(|item| patch_of(item) == Some("replace")) {
                merged.clear();
                positions = Positions::of(identity, []);
            }
            for item in patch {
                let directive = patch_of(item);
                if directive == Some("replace") {
                    continue;
                }
                if item.get(key).is_none() {
                    return Err(no_merge_key(item, key));
                }
                if directive == Some("delete") {
                    for position in positions.remove(item) {
                        if let Some(slot) = merged.get_mut(position) {
                            *slot = None;
                        }
                    }
                    continue;
                }
                added.push(item.clone());
                let found = positions.first(item);
                if let Some(slot) = found.and_then(|position| merged.get_mut(position)?.as_mut()) {
                    merge_item(elements, slot, item)?;
                } else {
                    positions.add(item, merged.len());
                    merged.push(Some(item.clone()));
                }
            }
        }
    }
    let merged = merged.into_iter().flatten().collect();
    Ok(normalize(identity, merged, order.unwrap_or(&added), old))
}

fn merge_item(known: Known, slot: &mut Value, item: &Value) -> Merged<()> {
    *slot = match item {
        Value::Object(patch) => {
            let old = slot.as_object().cloned().unwrap_or_default();
            Value::Object(merge_map(known, &old, patch)?)
        }
        _ => item.clone(),
    };
    Ok(())
}

/// Checks that all entries have one type.
///
/// Upstream: `sliceElementType`.
fn check_types(old: &[Value], patch: &[Value]) -> Merged<()> {
    let mut types = old.iter().chain(patch).map(std::mem::discriminant);
    let first = types.next();
    if types.all(|of| Some(of) == first) {
        return Ok(());
    }
    let both = Value::from(vec![Value::from(old), Value::from(patch)]);
    Err(StrategicMergeError::MixedList(to_go_format(&both)))
}

fn no_merge_key(item: &Value, key: &str) -> StrategicMergeError {
    let item = to_go_format(item);
    StrategicMergeError::NoMergeKey(format!(
        "map: {item} does not contain declared merge key: {key}"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn wrong_patches_are_refused() {
        let old = json!({"containers": [{"name": "c"}], "hostname": "a"});
        for (patch, why) in [
            (
                json!({"$retainKeys": ["hostname"], "subdomain": "b"}),
                "invalid patch format of retainKeys",
            ),
            (
                json!({"$retainKeys": "hostname"}),
                "invalid patch format of retainKeys",
            ),
            (
                json!({"containers": ["x"]}),
                "list element types are not identical: [[map[name:c]] [x]]",
            ),
            (
                json!({"containers": [{"image": "i"}]}),
                "map: map[image:i] does not contain declared merge key: name",
            ),
        ] {
            let error = apply("PodSpec", &old, &patch).unwrap_err();
            assert_eq!(error.to_string(), why);
        }
        let kept = json!({"$retainKeys": ["hostname"], "hostname": "b", "subdomain": null});
        let merged = apply("PodSpec", &old, &kept).unwrap();
        assert_eq!(merged, json!({"hostname": "b"}));
    }

    #[test]
    fn objects_merge_unless_their_type_is_replaced() {
        for (type_name, old, patch, merged) in [
            (
                "PodSpec",
                json!({"securityContext": {"runAsUser": 1}, "hostname": "a"}),
                json!({"securityContext": {"fsGroup": 2}, "hostname": null}),
                json!({"securityContext": {"runAsUser": 1, "fsGroup": 2}}),
            ),
            (
                "PodDisruptionBudgetSpec",
                json!({"selector": {"matchLabels": {"a": "b"}}, "minAvailable": 1}),
                json!({"selector": {"matchExpressions": []}}),
                json!({"selector": {"matchExpressions": []}, "minAvailable": 1}),
            ),
            (
                "PodSpec",
                json!({"nodeSelector": {"a": "1", "b": "2"}}),
                json!({"nodeSelector": {"b": "3"}}),
                json!({"nodeSelector": {"a": "1", "b": "3"}}),
            ),
        ] {
            assert_eq!(apply(type_name, &old, &patch).unwrap(), merged);
        }
    }
}
