//! Defaults and pruning of custom resources.
//!
//! Upstream: `defaulting`, `pruning` and `objectmeta` of `k8s.io/apiextensions-apiserver`.

use serde_json::{Map, Value};

use super::schema::{AdditionalProperties, Schema};

/// Fields of an object with metadata, which no schema has to specify.
const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Sets the defaults of absent fields, and of nulls that aren't allowed, from the top down.
///
/// Upstream: `Default` with `PruneNonNullableDefaults`
pub(crate) fn set_defaults(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, schema) in &schema.properties {
                if let Some(default) = &schema.default
                    && !members.contains_key(name)
                {
                    members.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in members {
                if let Some(schema) = schema.member(name) {
                    set_default(schema, value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for item in items {
                    set_default(schema, item);
                }
            }
        }
        _ => {}
    }
}

/// Replaces a null that isn't allowed by the default, and sets the defaults in a value.
fn set_default(schema: &Schema, value: &mut Value) {
    if let Some(default) = &schema.default
        && value.is_null()
        && !schema.nullable
    {
        value.clone_from(default);
    }
    set_defaults(schema, value);
}

/// Removes nulls that are neither allowed nor replaced by a default.
///
/// Upstream: `PruneNonNullableNullsWithoutDefaults`
pub(crate) fn drop_nulls(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, value| {
                let Some(schema) = schema.member(name) else {
                    return true;
                };
                if value.is_null() {
                    return schema.nullable || schema.default.is_some();
                }
                drop_nulls(schema, value);
                true
            });
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for item in items {
                    drop_nulls(schema, item);
                }
            }
        }
        _ => {}
    }
}

/// Removes the fields that the schema doesn't specify and returns their paths. A value that `has_meta`
/// keeps its type and metadata.
pub(crate) fn prune(schema: &Schema, value: &mut Value, has_meta: bool) -> Vec<String> {
    let mut pruned = Vec::new();
    Pruning {
        pruned: &mut pruned,
    }
    .value(
        Some(schema),
        value,
        "",
        Kept {
            meta: has_meta,
            unknown: false,
        },
    );
    pruned.sort();
    pruned
}

/// The fields of a value that stay although its schema doesn't specify them.
#[derive(Clone, Copy, Default)]
struct Kept {
    /// Type and metadata.
    meta: bool,
    /// All: the value is an item of a list that preserves them.
    unknown: bool,
}

struct Pruning<'a> {
    pruned: &'a mut Vec<String>,
}

impl Pruning<'_> {
    /// Prunes a value. Without a schema, nothing below it is specified.
    fn value(&mut self, schema: Option<&Schema>, value: &mut Value, path: &str, kept: Kept) {
        match value {
            Value::Object(members) => self.members(schema, members, path, kept),
            Value::Array(items) => {
                let inner = schema.and_then(|schema| schema.items.as_deref());
                let kept = Kept {
                    meta: inner.is_some_and(|schema| schema.embedded),
                    unknown: kept.unknown || schema.is_some_and(|schema| schema.preserve),
                };
                if kept.unknown && inner.is_none() {
                    return;
                }
                for (index, item) in items.iter_mut().enumerate() {
                    self.value(inner, item, &format!("{path}[{index}]"), kept);
                }
            }
            _ => {}
        }
    }

    fn members(
        &mut self,
        schema: Option<&Schema>,
        members: &mut Map<String, Value>,
        path: &str,
        kept: Kept,
    ) {
        let preserves = kept.unknown || schema.is_some_and(|schema| schema.preserve);
        let keeps_names = schema.is_some_and(|schema| {
            matches!(
                schema.additional,
                AdditionalProperties::Any | AdditionalProperties::Forbidden
            )
        });
        members.retain(|name, value| {
            if kept.meta && META.contains(&name.as_str()) {
                return true;
            }
            let at = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}.{name}")
            };
            match schema.and_then(|schema| schema.member(name)) {
                Some(inner) => {
                    let meta = inner.embedded;
                    let unknown = false;
                    self.value(Some(inner), value, &at, Kept { meta, unknown });
                    true
                }
                None if keeps_names => {
                    self.value(None, value, &at, Kept::default());
                    true
                }
                None if preserves => true,
                None => {
                    self.pruned.push(at);
                    false
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        Schema::read(&json!({"type": "object", "properties": {
            "o": {"type": "object", "properties": {"d": {"type": "string", "default": "x"}}},
            "p": {"type": "object", "default": {}, "properties": {
                "q": {"type": "integer", "default": 3},
            }},
            "keep": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"known": {"type": "object"}}},
            "names": {"type": "object", "additionalProperties": true},
            "null": {"type": "string", "nullable": true},
            "text": {"type": "string"},
        }}))
    }

    #[test]
    fn defaults_need_their_parents() {
        let mut value = json!({});
        set_defaults(&schema(), &mut value);
        assert_eq!(value, json!({"p": {"q": 3}}));
        let mut value = json!({"o": {}, "p": {"q": null}});
        set_defaults(&schema(), &mut value);
        assert_eq!(value, json!({"o": {"d": "x"}, "p": {"q": 3}}));
    }

    #[test]
    fn defaults_replace_nulls_of_items_and_of_unnamed_members() {
        let of_text = json!({"type": "string", "default": "x"});
        let schema = Schema::read(&json!({"type": "object", "properties": {
            "items": {"type": "array", "items": of_text},
            "names": {"type": "object", "additionalProperties": of_text},
            "nulls": {"type": "array", "items": {
                "type": "string", "nullable": true, "default": "x",
            }},
            "none": {"type": "string", "nullable": true, "default": null},
        }}));
        let mut value = json!({
            "items": ["a", null], "names": {"a": null, "b": "y"}, "nulls": [null],
        });
        set_defaults(&schema, &mut value);
        let wanted = json!({
            "items": ["a", "x"], "names": {"a": "x", "b": "y"}, "nulls": [null],
        });
        assert_eq!(value, wanted);
    }

    #[test]
    fn pruning_begins_again_below_specified_members() {
        let mut value = json!({
            "metadata": {"any": 1}, "x": 1, "o": {"y": {}},
            "keep": {"a": {"b": 1}, "known": {"c": 1}},
            "names": {"a": {"b": 1}},
        });
        let pruned = prune(&schema(), &mut value, true);
        let wanted = json!({
            "metadata": {"any": 1}, "o": {}, "keep": {"a": {"b": 1}, "known": {}},
            "names": {"a": {}},
        });
        assert_eq!(value, wanted);
        assert_eq!(pruned, ["keep.known.c", "names.a.b", "o.y", "x"]);
    }

    #[test]
    fn lists_preserve_the_members_of_their_items() {
        let schema = Schema::read(&json!({"type": "object", "properties": {
            "list": {"type": "array", "x-kubernetes-preserve-unknown-fields": true, "items": {
                "type": "object", "properties": {"known": {"type": "object"}},
            }},
            "both": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "additionalProperties": true},
            "closed": {"type": "object", "additionalProperties": false},
        }}));
        let mut value = json!({
            "list": [{"a": {"b": 1}, "known": {"c": 1}}],
            "both": {"a": {"b": 1}}, "closed": {"a": {"b": 1}},
        });
        let pruned = prune(&schema, &mut value, true);
        let wanted = json!({
            "list": [{"a": {"b": 1}, "known": {}}], "both": {"a": {}}, "closed": {"a": {}},
        });
        assert_eq!(value, wanted);
        assert_eq!(pruned, ["both.a.b", "closed.a.b", "list[0].known.c"]);
    }

    #[test]
    fn nulls_stay_only_where_they_are_allowed() {
        let mut value = json!({"null": null, "text": null, "o": {"d": null}});
        drop_nulls(&schema(), &mut value);
        assert_eq!(value, json!({"null": null, "o": {"d": null}}));
    }
}
