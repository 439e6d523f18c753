//! Differences of the built-in controller's behaviour between two releases, for one set.

use kube_apimachinery::int_or_string::IntOrString;
use statefulset_client::feature_gates::FeatureGates;

use crate::model::Set;

/// Pods that a rolling update replaces at once without `maxUnavailable`.
const ONE: i32 = 1;

/// The differences for a set, in words.
pub(super) fn of(set: &Set, from: FeatureGates, to: FeatureGates) -> Vec<String> {
    let rules = [
        max_unavailable(set, from, to),
        parallel_budget(set, from, to),
        on_delete(set, from, to),
        conditions(set, from, to),
        scale_down(set, from, to),
        recreate(set, from, to),
        workload_ref(set, from, to),
    ];
    rules.into_iter().flatten().collect()
}

/// The stored `maxUnavailable`, rounded as the controller does.
fn limit(set: &Set) -> i32 {
    let stored = set.max_unavailable().cloned();
    let stored = stored.and_then(|it| serde_json::from_value::<IntOrString>(it).ok());
    let scaled = stored.and_then(|it| it.scaled_value(set.replicas(), false).ok());
    scaled.unwrap_or(ONE).max(ONE)
}

fn is_rolling(set: &Set) -> bool {
    !set.is_on_delete() && !set.is_recreate()
}

fn max_unavailable(set: &Set, from: FeatureGates, to: FeatureGates) -> Option<String> {
    let limit = limit(set);
    if !is_rolling(set) || limit == ONE {
        return None;
    }
    match (
        from.max_unavailable_stateful_set,
        to.max_unavailable_stateful_set,
    ) {
        (false, true) => Some(format!(
            "maxUnavailable takes effect: updates replace up to {limit} pods at a time"
        )),
        (true, false) => Some(format!(
            "maxUnavailable has no effect any longer: updates replace one pod at a time, not {limit}"
        )),
        _ => None,
    }
}

/// Under `Parallel` the budget changes updates also with the default of one pod.
fn parallel_budget(set: &Set, from: FeatureGates, to: FeatureGates) -> Option<String> {
    if !is_rolling(set) || set.is_ordered() || !to.max_unavailable_stateful_set {
        return None;
    }
    let outside = to.replaces_unavailable_pods_outside_budget();
    let is_same = from.max_unavailable_stateful_set
        && outside == from.replaces_unavailable_pods_outside_budget();
    if is_same {
        return None;
    }
    let broken = if outside {
        "broken pods of an old revision are replaced all at once"
    } else {
        "broken pods of an old revision use up the budget"
    };
    Some(format!(
        "updates of this Parallel set stop at any unavailable pod, also below the partition; {broken}"
    ))
}

fn on_delete(set: &Set, from: FeatureGates, to: FeatureGates) -> Option<String> {
    let changes = to.completes_every_strategy() && !from.completes_every_strategy();
    (set.is_on_delete() && changes).then(|| {
        "updates under OnDelete complete: currentRevision follows, and earlier revisions may be \
         deleted"
            .to_owned()
    })
}

fn conditions(set: &Set, from: FeatureGates, to: FeatureGates) -> Option<String> {
    // The release that completes every strategy also carries conditions over.
    let changes = to.completes_every_strategy() && !from.completes_every_strategy();
    (!set.status.conditions.is_empty() && changes).then(|| {
        "status writes keep the conditions of other writers, instead of removing them".to_owned()
    })
}

fn scale_down(set: &Set, from: FeatureGates, to: FeatureGates) -> Option<String> {
    let changes = to.preview_parallel_scale_down_first && !from.preview_parallel_scale_down_first;
    (!set.is_ordered() && changes).then(|| {
        "scaling deletes surplus pods before it creates missing ones (kubernetes/kubernetes#141057)"
            .to_owned()
    })
}

fn recreate(set: &Set, from: FeatureGates, to: FeatureGates) -> Option<String> {
    let takes_effect = from.rejects_recreate() && to.stateful_set_recreate_strategy;
    (set.is_recreate() && takes_effect).then(|| {
        "the strategy Recreate takes effect by default, as planned for v1.38 \
         (kubernetes/enhancements#6360): the set is no longer frozen"
            .to_owned()
    })
}

/// A field of 1.35 alone.
fn workload_ref(set: &Set, from: FeatureGates, to: FeatureGates) -> Option<String> {
    let minor = |gates: FeatureGates| gates.emulation_version.minor;
    let is_dropped = minor(from) <= 35 && minor(to) > 35;
    (set.spec.has_workload_ref() && is_dropped).then(|| {
        "the template loses workloadRef, which only v1.35 knows; schedulingGroup replaces it"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::release::Release;

    fn found(spec: &Value, from: &str, to: &str) -> Vec<String> {
        let set: Set = serde_json::from_value(json!({"spec": spec})).unwrap();
        let gates = |text| Release::parse(text).unwrap().gates();
        of(&set, gates(from), gates(to))
    }

    #[test]
    fn stored_max_unavailable_takes_effect() {
        let spec = |limit: Value| {
            json!({"replicas": 10, "podManagementPolicy": "OrderedReady",
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": limit}}})
        };
        let three = ["maxUnavailable takes effect: updates replace up to 3 pods at a time"];
        assert_eq!(found(&spec(json!(3)), "1.36", "1.37"), three);
        assert_eq!(found(&spec(json!("39%")), "1.36", "1.37"), three);
        assert_eq!(found(&spec(json!(3)), "1.34", "1.35.2"), three);
        let back = "maxUnavailable has no effect any longer: updates replace one pod at a time, \
                    not 3";
        assert_eq!(found(&spec(json!(3)), "1.35.3", "1.36"), [back]);
        for (limit, from, to) in [
            (json!(1), "1.36", "1.37"),
            (json!("10%"), "1.36", "1.37"),
            (json!(3), "1.35", "1.36"),
            (Value::Null, "1.36", "1.37"),
        ] {
            assert_eq!(found(&spec(limit), from, to), [""; 0]);
        }
    }

    #[test]
    fn policies_and_strategies_have_rules() {
        let parallel = json!({"podManagementPolicy": "Parallel"});
        assert!(found(&parallel, "1.36", "1.37")[0].contains("all at once"));
        assert!(found(&parallel, "1.34", "1.35.1")[0].contains("use up the budget"));
        assert!(found(&parallel, "1.37", "1.38")[0].contains("#141057"));
        assert_eq!(found(&parallel, "1.35", "1.36"), [""; 0]);
        let recreate = json!({"updateStrategy": {"type": "Recreate"}});
        assert!(found(&recreate, "1.37", "1.38")[0].contains("no longer frozen"));
        assert_eq!(found(&recreate, "1.36", "1.37"), [""; 0]);
        let on_delete = json!({"updateStrategy": {"type": "OnDelete"}});
        assert!(found(&on_delete, "1.36", "1.37")[0].contains("currentRevision follows"));
        assert_eq!(found(&on_delete, "1.33", "1.36"), [""; 0]);
        let template = json!({"template": {"spec": {"workloadRef": {"name": "a"}}}});
        assert!(found(&template, "1.35", "1.36")[0].contains("workloadRef"));
    }
}
