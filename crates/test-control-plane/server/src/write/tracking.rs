//! Field managers of stored objects, updated on each write.

use std::borrow::Cow;

use kube_test_control_plane_api::kinds::{Kind, Trait};
use kube_test_control_plane_api::managed_fields::{self, Writer};
use kube_test_control_plane_api::members::set_or_remove;
use kube_test_control_plane_api::object::{Draft, raw_members};
use kube_test_control_plane_api::options::WriteOptions;
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use kube_test_control_plane_api::views;
use kube_test_control_plane_store::clock::Clock;
use serde_json::{Map, Value, json};

use crate::route::ResourceRequest;
use crate::state::now_text;

/// Makes the client the manager of its changes. `new` is the requested object in the stored
/// form, before the server restores protected fields.
///
/// # Errors
///
/// Raw text holds a number outside the range of a double, on which upstream panics: the
/// connection is closed.
pub(crate) fn track(
    clock: &dyn Clock,
    request: &ResourceRequest,
    options: &WriteOptions,
    old: Option<&Draft>,
    new: &mut Draft,
) -> ApiResult<()> {
    let Some(manager) = &options.field_manager else {
        return Ok(());
    };
    if raw_members::has_huge_numbers(&request.kind, new) {
        return Err(ApiError::connection_closed());
    }
    let is_wrong = |draft: &Draft| raw_members::has_wrong_fields(&request.kind, draft);
    if is_wrong(new) || old.is_some_and(is_wrong) {
        // Upstream can't compare the objects and drops their managers.
        new.metadata_mut().remove("managedFields");
        return Ok(());
    }
    let writer = Writer {
        kind: &request.kind,
        subresource: request.target.subresource(),
        manager,
        now: &now_text(clock),
    };
    let live = old.map(|old| tracked_value(&request.kind, old));
    let managed =
        managed_fields::track(&writer, live.as_deref(), &tracked_value(&request.kind, new));
    set_or_remove(new.metadata_mut(), "managedFields", Some(managed));
    Ok(())
}

/// Returns a complete object in the form that `kind` serves; a custom resource has it already.
pub(crate) fn served_value<'a>(kind: &Kind, draft: &'a Draft) -> Cow<'a, Value> {
    let is_served = !kind.has(Trait::View) || kind.custom.is_some();
    if is_served && draft.data.is_none() {
        return Cow::Borrowed(&draft.value);
    }
    let mut value = draft.to_value();
    views::to_served(kind, &mut value);
    Cow::Owned(value)
}

/// Like [`served_value`], but with raw data as a single value, as its manager sees it.
fn tracked_value<'a>(kind: &Kind, draft: &'a Draft) -> Cow<'a, Value> {
    let Some(data) = &draft.data else {
        return served_value(kind, draft);
    };
    let mut value = draft.value.clone();
    value["data"] = json!(data);
    Cow::Owned(value)
}

/// Replaces an empty list of managers, which resets them, by one that survives decoding.
pub(crate) fn keep_reset(draft: &mut Draft) {
    let metadata = draft.value.get_mut("metadata");
    if let Some(managed) = metadata.and_then(|metadata| metadata.get_mut(MANAGERS))
        && managed.as_array().is_some_and(Vec::is_empty)
    {
        *managed = json!([{}]);
    }
}

/// Restores the managers' times if nothing else changed, so that the write is a no-op.
pub(crate) fn keep_times(old: &Draft, new: &mut Draft) {
    let (Some(before), Some(after)) = (managers(old), managers(new)) else {
        return;
    };
    if differ_in_times(before, after) && differ_in_managers_alone(old, new) {
        let before = Some(before.clone());
        set_or_remove(new.metadata_mut(), MANAGERS, before);
    }
}

const MANAGERS: &str = "managedFields";

fn managers(draft: &Draft) -> Option<&Value> {
    draft.value.get("metadata")?.get(MANAGERS)
}

fn differ_in_times(before: &Value, after: &Value) -> bool {
    let (Value::Array(before_all), Value::Array(after_all)) = (before, after) else {
        return false;
    };
    before != after
        && before_all.len() == after_all.len()
        && before_all
            .iter()
            .zip(after_all)
            .all(|(before, after)| same_but(before, after, "time", |_, _| true))
}

fn differ_in_managers_alone(old: &Draft, new: &Draft) -> bool {
    let same_metadata = |old: &Value, new: &Value| same_but(old, new, MANAGERS, |_, _| true);
    old.data == new.data && same_but(&old.value, &new.value, "metadata", same_metadata)
}

/// Reports whether two objects are equal, where `is_same` compares one of their fields.
fn same_but(
    one: &Value,
    other: &Value,
    member: &str,
    is_same: impl Fn(&Value, &Value) -> bool,
) -> bool {
    let (Some(one), Some(other)) = (one.as_object(), other.as_object()) else {
        return one == other;
    };
    let rest = |map: &Map<String, Value>| map.len() - usize::from(map.contains_key(member));
    let null = &Value::Null;
    rest(one) == rest(other)
        && is_same(
            one.get(member).unwrap_or(null),
            other.get(member).unwrap_or(null),
        )
        && one
            .iter()
            .filter(|(name, _)| *name != member)
            .all(|(name, value)| other.get(name) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(time: &str, data: &str) -> Draft {
        let entry = json!({"manager": "m", "time": time, "fieldsV1": {"f:data": {}}});
        let value = json!({"metadata": {"managedFields": [entry]}, "data": {"a": data}});
        Draft { value, data: None }
    }

    #[test]
    fn times_are_restored_if_nothing_else_changed() {
        let old = draft("2026-01-01T00:00:00Z", "1");
        let mut new = draft("2026-01-01T00:00:09Z", "1");
        keep_times(&old, &mut new);
        assert_eq!(new, old);
        let mut new = draft("2026-01-01T00:00:09Z", "2");
        keep_times(&old, &mut new);
        assert_eq!(new, draft("2026-01-01T00:00:09Z", "2"));
    }

    #[test]
    fn empty_list_becomes_an_empty_entry() {
        let mut new = draft("", "1");
        keep_reset(&mut new);
        assert_eq!(new, draft("", "1"));
        new.value["metadata"]["managedFields"] = json!([]);
        keep_reset(&mut new);
        assert_eq!(new.value["metadata"]["managedFields"], json!([{}]));
    }
}
