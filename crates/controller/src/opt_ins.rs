//! Names of `statefulset-opt-ins` that embedders use.

pub use statefulset_opt_ins::{
    Carrier, Cause, DefaultsError, OptInDefaults, PREFIX, Situation, State, SyncRules, Wait,
};
