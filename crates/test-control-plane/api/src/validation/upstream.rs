//! Upstream's tests of the update strategy, since 1.37.
//!
//! Upstream: `pkg/registry/apps/statefulset/strategy_test.go`.

use serde_json::{Value, json};

use super::place::Place;
use super::stateful_set::stateful_set_strategy;
use crate::settings::FeatureGates;

/// Returns the paths of the errors about a strategy type that replaces another.
fn errors(old: Option<&str>, new: &str, gate: bool) -> Vec<String> {
    let set = |kind: &str| json!({"spec": {"updateStrategy": {"type": kind}}});
    let (old, new): (Option<Value>, Value) = (old.map(set), set(new));
    let gates = FeatureGates {
        stateful_set_recreate_strategy: gate,
        ..FeatureGates::default()
    };
    let mut errors = Vec::new();
    let root = Place::root(&new, old.as_ref(), gates);
    stateful_set_strategy(&root.member("spec.updateStrategy"), &mut errors);
    errors.into_iter().map(|error| error.field).collect()
}

#[test]
fn test_stateful_set_strategy_recreate_strategy_validate() {
    assert_eq!(errors(None, "Recreate", true), [""; 0]);
    assert_eq!(errors(None, "Recreate", false), ["spec.updateStrategy"]);
    for other in ["RollingUpdate", "OnDelete"] {
        assert_eq!(errors(None, other, false), [""; 0]);
    }
}

#[test]
fn test_stateful_set_strategy_recreate_strategy_validate_update() {
    for (old, new, is_allowed_without_gate) in [
        ("RollingUpdate", "Recreate", false),
        ("OnDelete", "Recreate", false),
        ("Recreate", "Recreate", true),
        ("Recreate", "RollingUpdate", true),
        ("Recreate", "OnDelete", true),
    ] {
        assert_eq!(errors(Some(old), new, true), [""; 0], "{old} {new}");
        let expected: &[&str] = if is_allowed_without_gate {
            &[]
        } else {
            &["spec.updateStrategy"]
        };
        assert_eq!(errors(Some(old), new, false), expected, "{old} {new}");
    }
}

#[test]
fn every_row_has_a_test() {
    tidy::upstream::parity::assert_rows("REG");
}
