//! Messages about values of a wrong type in the result of a strategic merge patch, which
//! upstream reads without JSON.

use kube_apimachinery::schema::{self, Type, find_type};
use serde_json::Value;

use crate::kinds::{Kind, type_of};

/// Converts the numbers of an object to the integers of its fields, if `sent` has others: in Go whole
/// floats become integers, and those with too many bits lose the upper ones.
///
/// Upstream: `fromUnstructured`.
pub fn convert_integers(kind: &Kind, sent: &Value, object: &mut Value) {
    if has_other_number(sent)
        && let Some(of) = type_of(kind).filter(|_| kind.custom.is_none())
    {
        convert_in(of, object);
    }
}

fn has_other_number(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_i64().is_none_or(|it| i32::try_from(it).is_err()),
        Value::Array(elements) => elements.iter().any(has_other_number),
        Value::Object(members) => members.values().any(has_other_number),
        _ => false,
    }
}

fn convert_in(of: &Type, object: &mut Value) {
    let Some(members) = object.as_object_mut() else {
        return;
    };
    for (name, value) in members {
        let Some(field) = of.field(name) else {
            continue;
        };
        let values = match value {
            Value::Array(elements) => elements.as_mut_slice(),
            one => std::slice::from_mut(one),
        };
        for value in values {
            match (field.kind, field.object_type()) {
                (_, Some(of)) => convert_in(of, value),
                (schema::Kind::Int32, _) => convert(value, true),
                (schema::Kind::Int64, _) => convert(value, false),
                _ => {}
            }
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the lower bits remain, as in Go"
)]
fn convert(value: &mut Value, is_narrow: bool) {
    let float = value.as_f64().filter(|number| number.fract() == 0.0);
    if let Some(number) = value.as_i64().or(float.map(|number| number as i64)) {
        *value = if is_narrow {
            Value::from(number as i32)
        } else {
            Value::from(number)
        };
    }
}

/// Returns the message for a value that JSON decoding reports with `why`; `None` for another error.
///
/// Upstream: `fromUnstructured`.
pub(super) fn mismatch(why: &str) -> Option<String> {
    if why.starts_with("illegal base64 data") {
        return Some(format!("error decoding from json: {why}"));
    }
    let (found, into) = why
        .strip_prefix("json: cannot unmarshal ")?
        .split_once(" into Go ")?;
    let (field, of) = into.rsplit_once(" of type ")?;
    let kind = kind_of(field);
    if let Some(schema::Kind::IntOrString | schema::Kind::MicroTime | schema::Kind::Time) = kind {
        // Upstream reads these as JSON all the same.
        return Some(format!(
            "json: cannot unmarshal {found} into Go value of type {of}"
        ));
    }
    let found = match found.split_once(' ') {
        Some(("number", literal)) if literal.contains(['.', 'e', 'E']) => "float64",
        _ if found.starts_with("number") => "int64",
        _ if found == "object" => "map",
        _ if found == "array" => "slice",
        _ => found,
    };
    let is_integer = of.starts_with("int");
    let is_whole = of.starts_with("[]") || of.starts_with("map[");
    let is_text = !is_whole && matches!(kind, Some(schema::Kind::String(_)));
    Some(match (found, of) {
        ("int64", of) if is_text => format!("cannot convert {found} to {of}"),
        _ if is_text => "unrecognized type: string".to_owned(),
        (_, of) if of.starts_with("[]") => format!("cannot restore slice from {found}"),
        (_, of) if of.starts_with("map[") => format!("cannot restore map from {found}"),
        (_, of) if of.contains('.') => format!("cannot restore struct from: {found}"),
        ("int64", "string") => format!("cannot convert {found} to {of}"),
        ("float64", of) if is_integer => format!("cannot convert {found} to {of}"),
        (_, of) => format!("unrecognized type: {of}"),
    })
}

/// Returns the kind of a field (`struct field Type.path.name`).
fn kind_of(field: &str) -> Option<schema::Kind> {
    let path = field.strip_prefix("struct field ")?;
    let holder = path.split('.').next().and_then(find_type)?;
    let name = path.rsplit('.').next()?;
    holder.field(name).map(|field| field.kind)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::by_kind;

    #[test]
    fn numbers_become_the_integers_of_their_fields() {
        let kind = by_kind("apps/v1", "StatefulSet").unwrap();
        let grace = json!({"spec": {"terminationGracePeriodSeconds": 3e9}});
        let sent = json!({"spec": {
            "replicas": 2_147_483_648_i64, "minReadySeconds": 2.0, "revisionHistoryLimit": 1.5,
            "template": grace,
        }});
        let mut set = sent.clone();
        convert_integers(kind, &sent, &mut set);
        let grace = json!({"spec": {"terminationGracePeriodSeconds": 3_000_000_000_i64}});
        let spec = json!({
            "replicas": i32::MIN, "minReadySeconds": 2, "revisionHistoryLimit": 1.5, "template": grace,
        });
        assert_eq!(set["spec"], spec);
    }

    #[test]
    fn messages_name_the_types_of_go() {
        let of = |found: &str, of: &str| {
            let why =
                format!("json: cannot unmarshal {found} into Go struct field A.b of type {of}");
            mismatch(&why).unwrap()
        };
        assert_eq!(of("string", "int32"), "unrecognized type: int32");
        assert_eq!(of("number", "string"), "cannot convert int64 to string");
        assert_eq!(of("number 1.5", "int32"), "cannot convert float64 to int32");
        assert_eq!(of("string", "v1.A"), "cannot restore struct from: string");
        assert_eq!(of("object", "[]v1.A"), "cannot restore slice from map");
        assert_eq!(
            of("array", "map[string]string"),
            "cannot restore map from slice"
        );
        assert_eq!(mismatch("no kind"), None);
        let why = mismatch("illegal base64 data at input byte 3").unwrap();
        assert_eq!(
            why,
            "error decoding from json: illegal base64 data at input byte 3"
        );
        let why = "json: cannot unmarshal number into Go struct field \
                   PodCondition.status.conditions.lastTransitionTime of type string";
        assert_eq!(
            mismatch(why).unwrap(),
            "json: cannot unmarshal number into Go value of type string"
        );
    }
}
