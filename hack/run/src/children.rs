//! The two child processes.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use anyhow::Context as _;
use tokio::process::{Child, Command};

/// How long a child may take to go after it was killed before it is left to the system.
const REAP_MAX: Duration = Duration::from_secs(5);

/// A child process whose output goes to a file.
pub(crate) struct Process {
    /// What it is called in messages.
    pub(crate) name: &'static str,
    /// Its process id.
    pub(crate) pid: u32,
    /// Where its output goes.
    pub(crate) log: PathBuf,
    child: Child,
    ended: bool,
}

impl Process {
    /// Starts a program. It gets a process group of its own, so that an interrupt at the terminal
    /// reaches this program alone, which then ends its children in order.
    ///
    /// # Errors
    /// The log cannot be written or the program cannot be started.
    pub(crate) fn start(
        name: &'static str,
        program: &Path,
        arguments: &[String],
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let log = folder.join(format!("{}.log", name.replace(' ', "-")));
        let output = File::create(&log).with_context(|| format!("write {}", log.display()))?;
        let errors = output
            .try_clone()
            .with_context(|| format!("write {}", log.display()))?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("start the {name}, {}", program.display()))?;
        let pid = child
            .id()
            .with_context(|| format!("the {name} ended at once"))?;
        Ok(Self {
            name,
            pid,
            log,
            child,
            ended: false,
        })
    }

    /// Waits until it ends; for ever, if that was reported before.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        if !self.ended
            && let Ok(status) = self.child.wait().await
        {
            self.ended = true;
            return status;
        }
        std::future::pending().await
    }

    /// Says that it ended and what it said last.
    pub(crate) fn obituary(&self, status: ExitStatus) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        let last = last.map_or_else(String::new, |line| format!("; its last words: {line}"));
        format!("the {} (pid {}) ended: {status}{last}", self.name, self.pid)
    }

    /// Kills and reaps it.
    pub(crate) async fn stop(&mut self) {
        // An error means that it is gone already.
        let _ = tokio::time::timeout(REAP_MAX, self.child.kill()).await;
    }
}

/// The arguments as a shell reads them back.
pub(crate) fn shell_command(program: &Path, arguments: &[String]) -> String {
    let program = program.display().to_string();
    std::iter::once(&program)
        .chain(arguments)
        .map(|word| quote(word))
        .collect::<Vec<_>>()
        .join(" ")
}

fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_quoted_for_a_shell() {
        let arguments = ["--kubeconfig", "/t/a b", "it's", ""].map(str::to_owned);
        assert_eq!(
            shell_command(Path::new("bin/manager"), &arguments),
            r"bin/manager --kubeconfig '/t/a b' 'it'\''s' ''"
        );
    }

    #[tokio::test]
    async fn a_child_that_ends_is_reported_with_its_last_words() {
        let folder = tempfile::tempdir().expect("there is room for a folder");
        let arguments = ["-c", "echo first; echo last >&2; exit 3"].map(str::to_owned);
        let mut child = Process::start(
            "test child",
            Path::new("/bin/sh"),
            &arguments,
            folder.path(),
        )
        .expect("a shell can be started");
        let status = child.ended().await;
        assert_eq!(status.code(), Some(3));
        assert!(child.obituary(status).ends_with("its last words: last"));
        child.stop().await;
    }

    #[tokio::test]
    async fn a_stopped_child_is_gone() {
        let folder = tempfile::tempdir().expect("there is room for a folder");
        let arguments = ["600".to_owned()];
        let mut child = Process::start(
            "test child",
            Path::new("/bin/sleep"),
            &arguments,
            folder.path(),
        )
        .expect("sleep can be started");
        child.stop().await;
        assert!(!child.ended().await.success());
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().expect("there is room for a folder");
        let error = Process::start(
            "controller",
            Path::new("/no/such/program"),
            &[],
            folder.path(),
        )
        .err()
        .expect("there is no such program");
        assert!(
            error
                .to_string()
                .contains("start the controller, /no/such/program")
        );
    }
}
