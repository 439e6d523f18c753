//! Names of `statefulset-opt-ins` that embedders use.

pub use statefulset_opt_ins::claim_growth::ClaimState;
pub use statefulset_opt_ins::conditions::{
    CLAIMS_RESIZED, OPT_INS_VALID, is_own as is_own_condition,
};
pub use statefulset_opt_ins::removal_gate::REQUESTED_LABEL;
pub use statefulset_opt_ins::{
    Carrier, Cause, CauseState, DefaultsError, IN_PLACE_LABEL, OptInDefaults, PREFIX, Situation,
    SyncRules, Wait,
};
