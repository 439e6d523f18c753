//! The two child processes.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use anyhow::Context as _;
use tokio::process::{Child, Command};

/// Time limit for reaping a killed child.
const REAP_MAX: Duration = Duration::from_secs(5);

/// A child process whose output goes to a file.
pub(crate) struct Process {
    /// Name in messages.
    pub(crate) name: &'static str,
    /// Process id.
    pub(crate) pid: u32,
    /// File with its output.
    pub(crate) log: PathBuf,
    child: Child,
    ended: bool,
}

impl Process {
    /// Starts a program in a new process group, so that an interrupt at the terminal reaches only
    /// this program, which then stops its children in order.
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
            .with_context(|| format!("the {name} exited immediately"))?;
        Ok(Self {
            name,
            pid,
            log,
            child,
            ended: false,
        })
    }

    /// Waits until it ends; waits forever if its end was already returned.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        if !self.ended
            && let Ok(status) = self.child.wait().await
        {
            self.ended = true;
            return status;
        }
        std::future::pending().await
    }

    /// Reports its exit status and its last line of output.
    pub(crate) fn exit_report(&self, status: ExitStatus) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        let last = last.map_or_else(String::new, |line| format!("; last output: {line}"));
        format!(
            "the {} (pid {}) exited: {status}{last}",
            self.name, self.pid
        )
    }

    /// Kills and reaps it.
    pub(crate) async fn stop(&mut self) {
        // An error means that it has already exited.
        let _ = tokio::time::timeout(REAP_MAX, self.child.kill()).await;
    }
}

/// Quotes the arguments for a shell.
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
    async fn exited_child_is_reported_with_its_last_output() {
        let folder = tempfile::tempdir().expect("the folder is created");
        let arguments = ["-c", "echo first; echo last >&2; exit 3"].map(str::to_owned);
        let mut child = Process::start(
            "test child",
            Path::new("/bin/sh"),
            &arguments,
            folder.path(),
        )
        .expect("the shell starts");
        let status = child.ended().await;
        assert_eq!(status.code(), Some(3));
        assert!(child.exit_report(status).ends_with("; last output: last"));
        child.stop().await;
    }

    #[tokio::test]
    async fn stop_kills_the_child() {
        let folder = tempfile::tempdir().expect("the folder is created");
        let arguments = ["600".to_owned()];
        let mut child = Process::start(
            "test child",
            Path::new("/bin/sleep"),
            &arguments,
            folder.path(),
        )
        .expect("sleep starts");
        child.stop().await;
        assert!(!child.ended().await.success());
    }

    #[tokio::test]
    async fn error_names_a_missing_program() {
        let folder = tempfile::tempdir().expect("the folder is created");
        let error = Process::start(
            "controller",
            Path::new("/no/such/program"),
            &[],
            folder.path(),
        )
        .err()
        .expect("the program does not exist");
        assert!(
            error
                .to_string()
                .contains("start the controller, /no/such/program")
        );
    }
}
