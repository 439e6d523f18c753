//! A program that runs for as long as it is needed, and whose log is kept if anything goes wrong.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::error::ClusterError;

/// How often it is looked whether a process has ended.
const POLL: Duration = Duration::from_millis(20);
/// How long a process that is dropped may take to end. Its data is thrown away in any case.
const DROP_PATIENCE: Duration = Duration::from_secs(3);

/// A running program. When dropped it is asked to end, then killed.
#[derive(Debug)]
pub(super) struct Process {
    program: &'static str,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program that writes its log to a file.
    pub(super) fn start(
        program: &'static str,
        path: &Path,
        arguments: &[String],
        log: PathBuf,
    ) -> Result<Self, ClusterError> {
        let shown = log.display();
        let failed = |action: String| move |reason| ClusterError::Prepare { action, reason };
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
                reason: err.to_string(),
            })?;
        Ok(Self {
            program,
            child,
            log,
        })
    }

    /// Its name.
    pub(super) fn program(&self) -> &'static str {
        self.program
    }

    /// Its log.
    pub(super) fn log(&self) -> &Path {
        &self.log
    }

    /// What it has written so far.
    pub(super) fn said(&self) -> String {
        let bytes = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// How it has ended, if it has.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        // It is our own child, which can always be asked about.
        self.child.try_wait().ok().flatten()
    }

    /// Asks it to end, and kills it after this time.
    ///
    /// # Errors
    ///
    /// It had to be killed.
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
        // It may have ended already.
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }

    /// There is no gentle way.
    #[cfg(not(unix))]
    fn ask_to_end(&mut self) {
        let _ = self.child.kill();
    }

    fn kill(&mut self) {
        // It may have ended already.
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
