//! Fields of a set by their paths, such as `spec.volumeClaimTemplates[data].spec.storageClassName`.

use anyhow::{Context as _, anyhow, bail};
use serde_json::{Map, Value};

/// Sets a field: `FIELD=VALUE`, with a YAML value. A path is relative to the spec unless it begins
/// with `metadata` or `spec`.
///
/// # Errors
///
/// The text is no such assignment, or the path leads through a value without fields, or to a list
/// without the named element.
pub(super) fn assign(set: &mut Value, assignment: &str) -> anyhow::Result<()> {
    let action = || format!("--set {assignment}");
    let (path, value) = split(assignment)
        .ok_or_else(|| anyhow!("expected FIELD=VALUE"))
        .with_context(action)?;
    let value: Value = serde_saphyr::from_str(value)
        .context("parse the value")
        .with_context(action)?;
    let mut steps = steps(path).with_context(action)?;
    let is_top = |step: &str| step == "spec" || step == "metadata";
    if !steps.first().is_some_and(|step| is_top(step)) {
        steps.insert(0, "spec");
    }
    let field = steps.iter().try_fold(set, |at, step| enter(at, step));
    *field.with_context(action)? = value;
    Ok(())
}

/// Splits at the first `=` outside of brackets.
fn split(assignment: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    for (at, c) in assignment.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            '=' if depth == 0 => {
                let (path, value) = assignment.split_at_checked(at)?;
                return Some((path, value.strip_prefix('=')?));
            }
            _ => {}
        }
    }
    None
}

/// The steps of a path: names between dots, and names or numbers in brackets.
fn steps(path: &str) -> anyhow::Result<Vec<&str>> {
    let (mut found, mut rest) = (Vec::new(), path);
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let (step, after) = inner
                .split_once(']')
                .with_context(|| format!("{path} lacks a closing bracket"))?;
            found.push(step);
            rest = after.strip_prefix('.').unwrap_or(after);
            continue;
        }
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (step, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        found.push(step);
        rest = after.strip_prefix('.').unwrap_or(after);
    }
    if found.is_empty() || found.iter().any(|step| step.is_empty()) {
        bail!("{path:?} is no path of fields");
    }
    Ok(found)
}

/// Enters a field, which is created if the object lacks it, or an existing element of a list.
fn enter<'a>(at: &'a mut Value, step: &str) -> anyhow::Result<&'a mut Value> {
    if at.is_null() {
        *at = Value::Object(Map::new());
    }
    match at {
        Value::Object(fields) => Ok(fields.entry(step).or_insert(Value::Null)),
        Value::Array(elements) => {
            let name = |element: &Value| {
                let names = ["/name", "/metadata/name"].into_iter();
                let mut names = names.filter_map(|it| element.pointer(it)?.as_str());
                names.next().map(str::to_owned)
            };
            let names: Vec<String> = elements.iter().filter_map(name).collect();
            let named = elements
                .iter()
                .position(|it| name(it).as_deref() == Some(step));
            let number = step.parse().ok();
            let found = named.or(number).and_then(|index| elements.get_mut(index));
            found.ok_or_else(|| {
                anyhow!(
                    "the list has no element {step}; it has {}",
                    names.join(", ")
                )
            })
        }
        _ => bail!("{step} is a field of a value that has none"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn assigned(assignment: &str) -> Result<Value, String> {
        let mut set = json!({"metadata": {"name": "web"}, "spec": {
            "serviceName": "web",
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {}}],
            "template": {"spec": {"containers": [{"name": "app", "image": "app:1"}]}},
        }});
        let done = assign(&mut set, assignment);
        done.map(|()| set).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn paths_lead_to_fields_and_named_elements() {
        let size = "/spec/volumeClaimTemplates/0/spec/resources/requests/storage";
        for (assignment, pointer, value) in [
            ("serviceName=db", "/spec/serviceName", json!("db")),
            ("spec.serviceName=", "/spec/serviceName", Value::Null),
            ("replicas=5", "/spec/replicas", json!(5)),
            (
                "volumeClaimTemplates[data].spec.resources.requests.storage=2Gi",
                size,
                json!("2Gi"),
            ),
            (
                "volumeClaimTemplates[0].spec.resources.requests.storage=2Gi",
                size,
                json!("2Gi"),
            ),
            (
                "metadata.labels[example.com/a=b]=c",
                "/metadata/labels/example.com~1a=b",
                json!("c"),
            ),
            (
                "template.spec.containers[app].args=[a, b]",
                "/spec/template/spec/containers/0/args",
                json!(["a", "b"]),
            ),
        ] {
            let set = assigned(assignment).expect(assignment);
            assert_eq!(set.pointer(pointer), Some(&value), "{assignment}");
        }
    }

    #[test]
    fn wrong_paths_are_named() {
        for (assignment, error) in [
            ("serviceName", "--set serviceName: expected FIELD=VALUE"),
            ("=x", "--set =x: \"\" is no path of fields"),
            ("a..b=x", "--set a..b=x: \"a..b\" is no path of fields"),
            ("a[b=x]", "--set a[b=x]: expected FIELD=VALUE"),
            (
                "serviceName.a=x",
                "--set serviceName.a=x: a is a field of a value that has none",
            ),
            (
                "volumeClaimTemplates[logs].spec=x",
                "--set volumeClaimTemplates[logs].spec=x: the list has no element logs; it has data",
            ),
        ] {
            assert_eq!(assigned(assignment).unwrap_err(), error);
        }
    }
}
