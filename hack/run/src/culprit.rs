//! The undecodable field of a rejected body.
//!
//! For an undecodable body an API server often reports the reason without the field: `quantities
//! must match the regular expression …`. The field is the one whose omission changes the response.

use serde_json::Value;

/// Path from an object to one of its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Member(String),
    Item(usize),
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, step) in self.0.iter().enumerate() {
            match step {
                Step::Member(name) if index == 0 => f.write_str(name)?,
                Step::Member(name) => write!(f, ".{name}")?,
                Step::Item(item) => write!(f, "[{item}]")?,
            }
        }
        Ok(())
    }
}

/// Every path to a scalar or to an empty list or object, in order.
pub(crate) fn leaves(value: &Value) -> Vec<Path> {
    let mut found = Vec::new();
    collect(value, &mut Vec::new(), &mut found);
    found
}

fn collect(value: &Value, steps: &mut Vec<Step>, found: &mut Vec<Path>) {
    let mut below = |step: Step, value: &Value| {
        steps.push(step);
        collect(value, steps, found);
        steps.pop();
    };
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, member) in members {
                below(Step::Member(name.clone()), member);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                below(Step::Item(index), item);
            }
        }
        _ => found.push(Path(steps.clone())),
    }
}

/// A copy of the object without the field or item at `path`.
pub(crate) fn without(value: &Value, path: &Path) -> Value {
    let mut copy = value.clone();
    let Some((last, steps)) = path.0.split_last() else {
        return copy;
    };
    let mut place = Some(&mut copy);
    for step in steps {
        place = place.and_then(|place| match step {
            Step::Member(name) => place.get_mut(name),
            Step::Item(index) => place.get_mut(index),
        });
    }
    match (place, last) {
        (Some(Value::Object(members)), Step::Member(name)) => drop(members.remove(name)),
        (Some(Value::Array(items)), Step::Item(index)) if *index < items.len() => {
            drop(items.remove(*index));
        }
        _ => {}
    }
    copy
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn leaves_are_found_and_can_be_omitted() {
        let value = json!({"a": {"b": [{"c": 1}, 2]}, "d": [], "e": null});
        let paths = leaves(&value);
        let names: Vec<String> = paths.iter().map(Path::to_string).collect();
        assert_eq!(names, ["a.b[0].c", "a.b[1]", "d", "e"]);
        assert_eq!(
            without(&value, &paths[0]),
            json!({"a": {"b": [{}, 2]}, "d": [], "e": null})
        );
        assert_eq!(
            without(&value, &paths[1]),
            json!({"a": {"b": [{"c": 1}]}, "d": [], "e": null})
        );
    }
}
