//! What the growth of claims needs in one sync.

use jiff::Timestamp;
use statefulset_pod_control::SetPodControl;

use super::refusals::ClaimRefusals;
use crate::opt_ins::OptIns;
use crate::rollout::{Rollout, is_rolling};
use crate::values::ClaimResize;

/// What the growth of claims needs in one sync.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    /// The set's choices.
    pub(crate) opt_ins: &'a OptIns,
    /// The control of the set's pods and claims.
    pub(crate) control: &'a SetPodControl<'a>,
    /// The refused requests of this process.
    pub(crate) refusals: &'a ClaimRefusals,
    /// The set with its desired pods, and the budget.
    pub(crate) rollout: Rollout<'a>,
    /// Current time.
    pub(crate) now: Timestamp,
}

impl Context<'_> {
    /// Returns true if the controller restarts pods whose volumes wait for that.
    pub(super) fn restarts_pods(self) -> bool {
        self.opt_ins.claim_resize == ClaimResize::WithPod && is_rolling(self.rollout.set)
    }
}
