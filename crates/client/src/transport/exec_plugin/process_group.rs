//! The process group of a plugin, which is killed as a whole.

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

/// A child's process group; dropped before the child has ended, it kills every process in it.
pub(super) struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    /// The group of a child that was started as the leader of one.
    pub(super) fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(Pid::from_raw))
    }

    /// Leaves alone what is still running. To be called as soon as the child was waited for: then
    /// its id, which is the group's, may become that of another process.
    pub(super) fn leave(&mut self) {
        self.0 = None;
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // A group that is gone needs no killing.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}
