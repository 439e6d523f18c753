//! Comparison of the calls that webhooks received with the recorded ones.

use serde_json::{Value, json};

use crate::diff::{Rule, diff_by};

/// Recorded user of reviews about the administrator's requests.
const ADMINISTRATOR: &str = "<admin>";

/// Part of a path that shows what is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Mutating,
    Validating,
    Conversion,
}

/// Returns the differences between the calls of a step, in the order of their arrival, and the
/// recorded ones.
///
/// A call that is like an earlier one but for its uid is recorded once. Validating webhooks are called
/// side by side, in no order. Recorded conversions count as a set, and if there are none, nothing is
/// known about them.
pub(super) fn compare(rule: &dyn Rule, expected: &[Value], actual: Vec<Value>) -> Vec<String> {
    let of = |part: Part| -> Vec<&Value> {
        let calls = expected.iter();
        calls.filter(|call| part_of(call) == part).collect()
    };
    let mut mutating = Vec::new();
    let mut validating = Vec::new();
    let mut conversions = Vec::new();
    for call in actual {
        match part_of(&call) {
            Part::Mutating => mutating.push(call),
            Part::Validating => validating.push(call),
            Part::Conversion => conversions.push(call),
        }
    }
    validating.sort_by_cached_key(|call| (text(&call["path"]), text(name_of(call))));
    let mut lines = in_order(rule, &of(Part::Mutating), &mutating);
    lines.extend(in_order(rule, &of(Part::Validating), &validating));
    lines.extend(any_of(rule, &of(Part::Conversion), &conversions));
    lines
}

/// Replaces the user of a review by the recorded name for the administrator.
pub(super) fn hide_administrator(call: &mut Value) {
    if let Some(user) = call.pointer_mut("/body/request/userInfo") {
        *user = json!(ADMINISTRATOR);
    }
}

fn part_of(call: &Value) -> Part {
    match call["path"].as_str().unwrap_or_default() {
        path if path.starts_with("/m/") => Part::Mutating,
        path if path.starts_with("/c/") => Part::Conversion,
        _ => Part::Validating,
    }
}

fn name_of(call: &Value) -> &Value {
    &call["body"]["request"]["name"]
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Compares calls one by one, except for repeated ones.
fn in_order(rule: &dyn Rule, expected: &[&Value], actual: &[Value]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut matched = 0;
    for call in actual {
        let is = |expected: &&Value| diff_by(rule, expected, call).is_empty();
        let Some(next) = expected.get(matched) else {
            if !expected.iter().any(is) {
                lines.push(format!("an unexpected call: {call}"));
            }
            continue;
        };
        let differences = diff_by(rule, next, call);
        if !differences.is_empty() && expected[..matched].iter().any(is) {
            continue;
        }
        let place = |line: String| format!("call {}: {line}", matched + 1);
        lines.extend(differences.into_iter().map(place));
        matched += 1;
    }
    let missing = expected[matched..].iter();
    lines.extend(missing.map(|call| format!("a missing call: {call}")));
    lines
}

/// Checks that each call is recorded.
fn any_of(rule: &dyn Rule, expected: &[&Value], actual: &[Value]) -> Vec<String> {
    if expected.is_empty() {
        return Vec::new();
    }
    let is_unknown = |call: &&Value| {
        let is = |expected: &&Value| diff_by(rule, expected, call).is_empty();
        !expected.iter().any(is)
    };
    let unknown = actual.iter().filter(is_unknown);
    unknown
        .map(|call| format!("a conversion that was not recorded: {call}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Exact;

    impl Rule for Exact {
        fn equal(&self, _: &str, expected: &Value, actual: &Value) -> bool {
            expected == actual
        }

        fn ignores(&self, member: &str) -> bool {
            member == "uid"
        }
    }

    fn call(path: &str, name: &str, uid: &str) -> Value {
        json!({"path": path, "body": {"request": {"name": name, "uid": uid}}})
    }

    #[test]
    fn repeated_calls_count_once() {
        let expected = [call("/m/a", "x", ""), call("/v/a", "x", "")];
        let actual = vec![
            call("/m/a", "x", "1"),
            call("/m/a", "x", "2"),
            call("/v/a", "x", "3"),
            call("/v/a", "x", "4"),
        ];
        assert_eq!(compare(&Exact, &expected, actual), [""; 0]);
    }

    #[test]
    fn validating_calls_have_no_order() {
        let expected = [call("/v/a", "x", ""), call("/v/b", "x", "")];
        let actual = vec![call("/v/b", "x", "1"), call("/v/a", "x", "2")];
        assert_eq!(compare(&Exact, &expected, actual), [""; 0]);
    }

    #[test]
    fn missing_additional_and_other_calls_are_differences() {
        let expected = [call("/m/a", "x", ""), call("/m/b", "x", "")];
        let one = compare(&Exact, &expected, vec![call("/m/a", "x", "1")]);
        assert_eq!(one.len(), 1, "{one:?}");
        let other = compare(
            &Exact,
            &expected,
            vec![call("/m/b", "x", "1"), call("/m/b", "y", "2")],
        );
        assert_eq!(other.len(), 2, "{other:?}");
        let more = compare(&Exact, &[], vec![call("/v/a", "x", "1")]);
        assert_eq!(more.len(), 1, "{more:?}");
    }

    #[test]
    fn conversions_must_be_recorded_if_any_is() {
        let expected = [call("/c/a", "x", ""), call("/c/a", "y", "")];
        let known = vec![call("/c/a", "y", "1")];
        assert_eq!(compare(&Exact, &expected, known.clone()), [""; 0]);
        assert_eq!(compare(&Exact, &[], known), [""; 0]);
        let unknown = compare(&Exact, &expected, vec![call("/c/a", "z", "1")]);
        assert_eq!(unknown.len(), 1, "{unknown:?}");
    }
}
