//! Defaults of stateful sets.

use serde_json::Map;
use serde_json::Value;

use super::claim::set_claim_object_defaults;
use super::member::child;
use super::member::child_or_new;
use super::member::elements;
use super::member::is_zero;
use super::member::set_if_absent;
use super::member::set_if_zero;
use super::member::text;
use super::pod::set_template_object_defaults;

/// Sets the defaults of a StatefulSet with its pod and claim templates; claim templates also get
/// kind and version, as in the server's responses. `max_unavailable_gate` is the state of the
/// feature gate `MaxUnavailableStatefulSet`.
///
/// Upstream: `SetObjectDefaults_StatefulSet`.
pub fn set_stateful_set_defaults(set: &mut Value, max_unavailable_gate: bool) {
    let Some(spec) = set
        .as_object_mut()
        .and_then(|set| child_or_new(set, "spec"))
    else {
        return;
    };
    set_if_zero(spec, "podManagementPolicy", "OrderedReady");
    if let Some(strategy) = child_or_new(spec, "updateStrategy") {
        if is_zero(strategy, "type") {
            strategy.insert(String::from("type"), Value::from("RollingUpdate"));
            set_if_absent(strategy, "rollingUpdate", Map::new());
        }
        let is_rolling = text(strategy, "type") == "RollingUpdate";
        if let Some(rolling) = child(strategy, "rollingUpdate").filter(|_| is_rolling) {
            set_if_absent(rolling, "partition", 0);
            if max_unavailable_gate {
                set_if_absent(rolling, "maxUnavailable", 1);
            }
        }
    }
    if let Some(policy) = child_or_new(spec, "persistentVolumeClaimRetentionPolicy") {
        set_if_zero(policy, "whenDeleted", "Retain");
        set_if_zero(policy, "whenScaled", "Retain");
    }
    set_if_absent(spec, "replicas", 1);
    set_if_absent(spec, "revisionHistoryLimit", 10);
    if let Some(template) = child_or_new(spec, "template") {
        set_template_object_defaults(template);
    }
    for claim in elements(spec, "volumeClaimTemplates") {
        // The server's conversion overwrites all texts.
        for (name, text) in [("apiVersion", "v1"), ("kind", "PersistentVolumeClaim")] {
            if claim
                .get(name)
                .is_none_or(|old| old.is_null() || old.is_string())
            {
                claim.insert(name.to_owned(), Value::from(text));
            }
        }
        set_claim_object_defaults(claim);
    }
}
