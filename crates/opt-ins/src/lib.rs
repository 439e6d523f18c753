//! The opt-ins of a set: its choices beyond upstream, by annotations, and the decisions that follow.
//!
//! [`chosen`] reads a set's choices. The other modules decide, each about one of them, without I/O;
//! [`Opted`] is the part of a sync that acts on these decisions, [`removal_gate`] reads and marks pods,
//! and [`claim_growth`] reads and writes claims. Without the gates of [`Carrier::is_enabled`] a set has no choices, and its syncs equal
//! upstream's.

// No server input may cause a panic here.
#![cfg_attr(
    not(test),
    warn(
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::string_slice,
        clippy::unreachable
    )
)]

mod carrier;
mod cause;
mod chosen;
pub mod claim_growth;
pub mod conditions;
mod defaults;
mod defect;
mod due;
pub mod in_place;
mod in_place_update;
mod opt_ins;
mod opted;
pub mod removal_gate;
pub mod repair;
mod rollout;
pub mod rollout_limit;
mod situation;
mod sync_rules;
mod values;
mod wait;

pub use carrier::{Carrier, PREFIX};
pub use cause::{Cause, CauseState};
pub use chosen::chosen;
pub use claim_growth::{AwaitedClaim, ClaimRefusals, ClaimState, Growth};
pub use defaults::{DefaultsError, OptInDefaults};
pub use defect::Defect;
pub use in_place::mark::{IN_PLACE_LABEL, SINCE_ANNOTATION, is_marked};
pub use in_place_update::{Begun, Flight, InPlaceUpdate};
pub use opt_ins::OptIns;
pub use opted::{Blocked, Opted, Removable};
pub use rollout::Rollout;
pub use situation::{Awaited, Situation, Synced};
pub use sync_rules::SyncRules;
pub use values::{ClaimResize, DeadlineReaction, GateKey, InPlaceScope, RepairMethod, RolloutTo};
pub use wait::Wait;
