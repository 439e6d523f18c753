//! A child process whose log is kept after a failure.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::error::{BinaryError, ClusterError};

/// The interval between checks for the exit of a process.
const POLL: Duration = Duration::from_millis(20);
/// The time that a dropped process gets to exit. Its data is discarded anyway.
const DROP_PATIENCE: Duration = Duration::from_secs(3);

/// A running program. Dropping it asks the program to exit, then kills it.
#[derive(Debug)]
pub(super) struct Process {
    program: &'static str,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program that logs to a file.
    pub(super) fn start(
        program: &'static str,
        path: &Path,
        arguments: &[String],
        log: PathBuf,
    ) -> Result<Self, ClusterError> {
        let shown = log.display();
        let failed = |action: String| move |source| ClusterError::Prepare { action, source };
        let file = File::create(&log).map_err(failed(format!("creating the log {shown}")))?;
        let other = file.try_clone();
        let other = other.map_err(failed(format!("opening the log {shown}")))?;
        let child = Command::new(path)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(other)
            .spawn()
            .map_err(|err| ClusterError::Binary {
                path: path.to_owned(),
                source: BinaryError::System(err),
            })?;
        Ok(Self {
            program,
            child,
            log,
        })
    }

    /// Returns its name.
    pub(super) fn program(&self) -> &'static str {
        self.program
    }

    /// Returns the path of its log.
    pub(super) fn log(&self) -> &Path {
        &self.log
    }

    /// Returns its output so far.
    pub(super) fn output(&self) -> String {
        let bytes = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Returns the exit status if the process has exited.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        // It is our child, so querying its status can't fail.
        self.child.try_wait().ok().flatten()
    }

    /// Asks the process to exit, and kills it after the timeout.
    ///
    /// # Errors
    ///
    /// The process had to be killed.
    pub(super) async fn stop(mut self, timeout: Duration) -> Result<(), ClusterError> {
        self.ask_to_end();
        let deadline = Instant::now() + timeout;
        while self.ended().is_none() {
            if Instant::now() >= deadline {
                self.kill();
                return Err(ClusterError::Killed {
                    program: self.program,
                    timeout,
                    log: self.log.clone(),
                });
            }
            sleep(POLL).await;
        }
        Ok(())
    }

    #[cfg(unix)]
    fn ask_to_end(&self) {
        // It may have exited already.
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }

    /// Kills the process: this platform has no SIGTERM.
    #[cfg(not(unix))]
    fn ask_to_end(&mut self) {
        let _ = self.child.kill();
    }

    fn kill(&mut self) {
        // It may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ended().is_some() {
            return;
        }
        self.ask_to_end();
        let mut waited = Duration::ZERO;
        while self.ended().is_none() && waited < DROP_PATIENCE {
            std::thread::sleep(POLL);
            waited += POLL;
        }
        self.kill();
    }
}
