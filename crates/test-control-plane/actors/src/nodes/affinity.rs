//! Node selectors and node affinity of pods and volumes.

use serde_json::{Map, Value};

use kube_test_control_plane_api::members::{list, text};

/// Reports whether a node matches one of the terms of a node selector.
pub(crate) fn matches_terms(selector: &Value, labels: &Map<String, Value>, name: &str) -> bool {
    list(selector, "nodeSelectorTerms").any(|term| {
        let is_empty = list(term, "matchExpressions").next().is_none()
            && list(term, "matchFields").next().is_none();
        let label = |key: &str| labels.get(key).and_then(Value::as_str);
        !is_empty
            && list(term, "matchExpressions").all(|r| matches(r, label(text(r, "key"))))
            && list(term, "matchFields").all(|r| matches(r, Some(name)))
    })
}

fn matches(requirement: &Value, found: Option<&str>) -> bool {
    let values = || list(requirement, "values").filter_map(Value::as_str);
    let compared = || {
        let wanted: i64 = values().next()?.parse().ok()?;
        Some(found?.parse::<i64>().ok()?.cmp(&wanted))
    };
    match text(requirement, "operator") {
        "In" => found.is_some_and(|found| values().any(|value| value == found)),
        "NotIn" => found.is_none_or(|found| values().all(|value| value != found)),
        "Exists" => found.is_some(),
        "DoesNotExist" => found.is_none(),
        "Gt" => compared().is_some_and(std::cmp::Ordering::is_gt),
        "Lt" => compared().is_some_and(std::cmp::Ordering::is_lt),
        _ => false,
    }
}

/// Reports whether a node matches a pod's node selector and required node affinity.
pub(crate) fn wants_node(pod: &Value, labels: &Map<String, Value>, name: &str) -> bool {
    let selector = pod.pointer("/spec/nodeSelector").and_then(Value::as_object);
    let mut wanted = selector.into_iter().flatten();
    let terms = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution";
    wanted.all(|(key, value)| labels.get(key) == Some(value))
        && pod
            .pointer(terms)
            .is_none_or(|terms| terms.is_null() || matches_terms(terms, labels, name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn terms_are_ored_and_requirements_are_anded() {
        let labels = json!({"zone": "a", "size": "5"});
        let labels = labels.as_object().unwrap();
        for (expression, fits) in [
            (
                json!({"key": "zone", "operator": "In", "values": ["a", "b"]}),
                true,
            ),
            (
                json!({"key": "zone", "operator": "NotIn", "values": ["a"]}),
                false,
            ),
            (
                json!({"key": "other", "operator": "NotIn", "values": ["a"]}),
                true,
            ),
            (json!({"key": "zone", "operator": "Exists"}), true),
            (json!({"key": "zone", "operator": "DoesNotExist"}), false),
            (
                json!({"key": "size", "operator": "Gt", "values": ["4"]}),
                true,
            ),
            (
                json!({"key": "size", "operator": "Lt", "values": ["5"]}),
                false,
            ),
        ] {
            let term = json!({"matchExpressions": [expression]});
            let selector = json!({"nodeSelectorTerms": [term]});
            assert_eq!(matches_terms(&selector, labels, "n"), fits, "{expression}");
            let never = json!({"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]});
            let either = json!({"nodeSelectorTerms": [never, term]});
            assert_eq!(matches_terms(&either, labels, "n"), fits, "{expression}");
        }
        let named = |name: &str| {
            json!({"nodeSelectorTerms": [{"matchFields": [
                {"key": "metadata.name", "operator": "In", "values": [name]},
            ]}]})
        };
        assert!(matches_terms(&named("n"), labels, "n"));
        assert!(!matches_terms(&named("m"), labels, "n"));
        assert!(!matches_terms(
            &json!({"nodeSelectorTerms": [{}]}),
            labels,
            "n"
        ));
    }

    #[test]
    fn node_selector_and_affinity_match_labels() {
        let labels = json!({"zone": "a"});
        let labels = labels.as_object().unwrap();
        let pod = |zone: &str| json!({"spec": {"nodeSelector": {"zone": zone}}});
        assert!(wants_node(&pod("a"), labels, "n"));
        assert!(!wants_node(&pod("b"), labels, "n"));
        assert!(wants_node(&json!({}), labels, "n"));
    }
}
