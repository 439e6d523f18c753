//! Raw JSON text in the fields of an object.

use kube_apimachinery::schema::Kind as ValueKind;
use serde_json::Value;

use super::Draft;
use crate::go::json::held::has_huge_number;
use crate::go::json::read::Expect;
use crate::kinds::{Kind, type_of};

/// Returns true if raw text in the object, except its own field sets, has a number that overflows a
/// double. Upstream keeps the number, but can't track the owners of the object's fields then.
pub fn has_huge_numbers(kind: &Kind, draft: &Draft) -> bool {
    let is_huge = |value: &Value| value.as_str().is_some_and(has_huge_number);
    draft.data.as_deref().is_some_and(has_huge_number) || any_raw(kind, draft, &is_huge)
}

/// Returns true if a `fieldsV1` in the object, except its own, isn't a JSON object.
pub fn has_wrong_fields(kind: &Kind, draft: &Draft) -> bool {
    any_raw(kind, draft, &|value| match value {
        Value::Object(_) | Value::Null => false,
        Value::String(text) => !text.starts_with('{'),
        _ => true,
    })
}

/// Returns true if `test` accepts a raw value in the object, except its own metadata.
fn any_raw(kind: &Kind, draft: &Draft, test: &dyn Fn(&Value) -> bool) -> bool {
    let Some(of) = type_of(kind) else {
        return false;
    };
    let members = draft.value.as_object().into_iter().flatten();
    let mut members = members.filter(|(name, _)| *name != "metadata");
    members.any(|(name, value)| any_raw_in(Expect::Object(of).step(name), value, test))
}

fn any_raw_in(expect: Expect, value: &Value, test: &dyn Fn(&Value) -> bool) -> bool {
    match (expect, value) {
        (Expect::One(ValueKind::Raw), value) => test(value),
        (Expect::Object(_) | Expect::Map(ValueKind::Struct(_)), Value::Object(members)) => {
            let mut members = members.iter();
            members.any(|(name, value)| any_raw_in(expect.step(name), value, test))
        }
        (Expect::List(kind @ ValueKind::Struct(_)), Value::Array(elements)) => {
            let expect = Expect::of(kind);
            elements
                .iter()
                .any(|element| any_raw_in(expect, element, test))
        }
        _ => false,
    }
}
