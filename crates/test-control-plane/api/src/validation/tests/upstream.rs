//! Upstream's tests of the update strategy, since 1.37.
//!
//! Upstream: `pkg/registry/apps/statefulset/strategy_test.go`.

use serde_json::{Value, json};

use crate::settings::{EmulatedVersion, ServerGates};
use crate::validation::engine::Place;
use crate::validation::stateful_set::stateful_set_strategy;
use crate::validation::tables;

/// Returns the paths of the errors about a strategy type that replaces another.
fn errors(old: Option<&str>, new: &str, gate: bool) -> Vec<String> {
    let set = |kind: &str| json!({"spec": {"updateStrategy": {"type": kind}}});
    let (old, new): (Option<Value>, Value) = (old.map(set), set(new));
    let gates = ServerGates {
        stateful_set_recreate_strategy: Some(gate),
        ..ServerGates::at(EmulatedVersion::V1_37)
    };
    let mut errors = Vec::new();
    let context = tables::context(gates);
    let root = Place::root(&context, &new, old.as_ref(), "");
    stateful_set_strategy(&root.member("spec.updateStrategy"), &mut errors);
    errors.into_iter().map(|error| error.field).collect()
}

/// Defines upstream's cases: the strategy before and after, the gate, and the acceptance.
macro_rules! cases {
    ($($name:ident: $old:expr => $new:literal, $gate:literal, $is_accepted:literal;)*) => {$(
        #[test]
        fn $name() {
            let expected: &[&str] = if $is_accepted { &[] } else { &["spec.updateStrategy"] };
            assert_eq!(super::errors($old, $new, $gate), expected);
        }
    )*};
}

mod test_stateful_set_strategy_recreate_strategy_validate {
    cases! {
        validate_create_with_recreate_strategy_when_feature_gate_is_enabled:
            None => "Recreate", true, true;
        validate_create_with_recreate_strategy_when_feature_gate_is_disabled:
            None => "Recreate", false, false;
    }
}

mod test_stateful_set_strategy_recreate_strategy_validate_update {
    cases! {
        rolling_to_recreate_recreate_fg_on_allowed:
            Some("RollingUpdate") => "Recreate", true, true;
        rolling_to_recreate_recreate_fg_off_forbidden:
            Some("RollingUpdate") => "Recreate", false, false;
        on_delete_to_recreate_recreate_fg_on_allowed:
            Some("OnDelete") => "Recreate", true, true;
        on_delete_to_recreate_recreate_fg_off_forbidden:
            Some("OnDelete") => "Recreate", false, false;
        recreate_to_recreate_recreate_fg_off_allowed:
            Some("Recreate") => "Recreate", false, true;
        recreate_to_recreate_recreate_fg_on_allowed:
            Some("Recreate") => "Recreate", true, true;
        recreate_to_rolling_update_recreate_fg_on_allowed:
            Some("Recreate") => "RollingUpdate", true, true;
        recreate_to_rolling_update_recreate_fg_off_allowed:
            Some("Recreate") => "RollingUpdate", false, true;
        recreate_to_on_delete_recreate_fg_on_allowed:
            Some("Recreate") => "OnDelete", true, true;
        recreate_to_on_delete_recreate_fg_off_allowed:
            Some("Recreate") => "OnDelete", false, true;
    }
}

#[test]
fn every_row_has_a_test() {
    tidy::upstream::parity::assert_rows("REG");
}
