//! A plugin's process group, which is killed as a whole.

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

/// A child's process group. Dropping it before the child exits kills every process in it.
pub(super) struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    /// Returns the group of a child that was started as a group leader.
    pub(super) fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(Pid::from_raw))
    }

    /// Leaves remaining processes running. Call it as soon as the child has been waited for: then
    /// its id, which is also the group's, may be reused.
    pub(super) fn leave(&mut self) {
        self.0 = None;
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // The group may already be gone.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}
