//! Edits of the members of a JSON object.

use serde_json::{Map, Value};

/// Returns the object in an object's member, created if absent. A value that isn't an object is
/// replaced by one.
pub fn object_member<'a>(value: &'a mut Value, member: &str) -> &'a mut Value {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let member = &mut value[member];
    if !member.is_object() {
        *member = Value::Object(Map::new());
    }
    member
}

/// Edits the list in an object's member. An absent list is empty, and an empty one is removed, as
/// Go's encoder omits it. A value that isn't an object stays as it is.
pub fn edit_list(object: &mut Value, member: &str, edit: impl FnOnce(&mut Vec<Value>)) {
    let Value::Object(members) = object else {
        return;
    };
    let mut list = match members.remove(member) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    };
    edit(&mut list);
    if !list.is_empty() {
        members.insert(member.to_owned(), Value::Array(list));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_that_are_no_objects_become_objects() {
        for mut value in [json!(null), json!(1), json!({}), json!({"a": []})] {
            object_member(&mut value, "a")["b"] = json!(1);
            assert_eq!(value, json!({"a": {"b": 1}}));
        }
    }

    #[test]
    fn empty_lists_are_removed() {
        for mut object in [json!({}), json!({"a": 1}), json!({"a": [1, 2]})] {
            edit_list(&mut object, "a", |list| list.push(json!(3)));
            assert_eq!(object["a"].as_array().unwrap().last(), Some(&json!(3)));
            edit_list(&mut object, "a", Vec::clear);
            assert_eq!(object, json!({}));
        }
        let mut number = json!(1);
        edit_list(&mut number, "a", |list| list.push(json!(3)));
        assert_eq!(number, 1);
    }
}
