//! A plugin's process group, which is killed as a whole.

use tokio::process::Child;

/// A child's process group. Dropping it before the child exits kills every process in it.
#[cfg(unix)]
pub(super) struct ProcessGroup(Option<rustix::process::Pid>);

#[cfg(unix)]
impl ProcessGroup {
    /// Returns the group of a child that was started as a group leader.
    pub(super) fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(rustix::process::Pid::from_raw))
    }

    /// Leaves remaining processes running. Call it as soon as the child has been waited for: then
    /// its id, which is also the group's, may be reused.
    pub(super) fn leave(&mut self) {
        self.0 = None;
    }
}

#[cfg(unix)]
impl Drop for ProcessGroup {
    fn drop(&mut self) {
        use rustix::process::{Signal, kill_process_group};
        if let Some(leader) = self.0 {
            // The group may already be gone.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

/// Stands for the child alone, which is killed with its handle: only Unix has process groups.
#[cfg(not(unix))]
pub(super) struct ProcessGroup;

#[cfg(not(unix))]
impl ProcessGroup {
    pub(super) fn of(_: &Child) -> Self {
        Self
    }

    pub(super) fn leave(&mut self) {}
}
