//! A measured process: the controller or the API server.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep};

/// Time without any work after which a process counts as at rest.
const REST: Duration = Duration::from_secs(1);
/// Time that a program has to end after SIGTERM.
const END: Duration = Duration::from_secs(60);
/// Interval between two readings of a process.
const LOOK: Duration = Duration::from_millis(20);

/// A command line and the name of its program.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    /// File name of the program.
    pub(crate) name: String,
    line: String,
}

impl Command {
    /// A command for sh.
    pub(crate) fn new(line: &str) -> Self {
        let program = line.split_whitespace().next().unwrap_or(line);
        let name = program.rsplit('/').next().unwrap_or(program).to_owned();
        Self {
            name,
            line: line.to_owned(),
        }
    }

    /// Starts the program; its output goes to a file, whose end an error shows.
    pub(crate) fn start(&self, kubeconfig: &Path) -> anyhow::Result<Program> {
        let output = tempfile::NamedTempFile::new().context("create a file for output")?;
        let child = std::process::Command::new("sh")
            .arg("-c")
            // Without a shell between, the process identifier is the program's.
            .arg(format!("exec {}", self.line))
            .env("KUBECONFIG", kubeconfig)
            .stdin(Stdio::null())
            .stdout(output.reopen()?)
            .stderr(output.reopen()?)
            .spawn()
            .with_context(|| format!("start {}", self.name))?;
        Ok(Program {
            name: self.name.clone(),
            child,
            output,
        })
    }
}

/// A running program, which is killed on drop.
pub(crate) struct Program {
    name: String,
    child: Child,
    output: tempfile::NamedTempFile,
}

impl Program {
    /// Its process.
    pub(crate) fn process(&self) -> Process {
        Process(self.child.id())
    }

    /// Fails with the end of its output if it has ended.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        let Some(status) = self.child.try_wait()? else {
            return Ok(());
        };
        let output = std::fs::read(self.output.path()).unwrap_or_default();
        let output = String::from_utf8_lossy(&output);
        let last = output.lines().last().unwrap_or("nothing");
        anyhow::bail!("{} ended with {status}; its last line: {last}", self.name)
    }

    /// Asks it to end with SIGTERM, and waits.
    pub(crate) async fn end(mut self) -> anyhow::Result<()> {
        self.check()?;
        kill_process(Pid::from_child(&self.child), Signal::TERM)
            .with_context(|| format!("send SIGTERM to {}", self.name))?;
        let begun = Instant::now();
        while self.child.try_wait()?.is_none() {
            let waited = begun.elapsed();
            ensure!(waited < END, "{} runs {END:?} after SIGTERM", self.name);
            sleep(LOOK).await;
        }
        Ok(())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Both fail for a program that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process identifier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process(pub(crate) u32);

/// Figures of a process at one time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// Processor time of all threads since its start, in user and kernel mode.
    pub(crate) cpu: Duration,
    /// Resident memory, in bytes.
    pub(crate) resident: u64,
    /// Largest resident memory since the last [forgotten peak](Process::forget_peak), in bytes.
    pub(crate) peak: u64,
}

impl Process {
    /// Reads its figures.
    pub(crate) fn usage(self) -> anyhow::Result<Usage> {
        let process = procfs::process::Process::new(self.0.try_into()?)
            .with_context(|| format!("find process {}", self.0))?;
        let stat = process.stat()?;
        let status = process.status()?;
        let ticks = stat.utime.saturating_add(stat.stime);
        let bytes = |kibibytes: Option<u64>| kibibytes.unwrap_or_default().saturating_mul(1024);
        Ok(Usage {
            cpu: Duration::from_secs_f64(ticks as f64 / procfs::ticks_per_second() as f64),
            resident: bytes(status.vmrss),
            peak: bytes(status.vmhwm),
        })
    }

    /// Lets the peak begin at the present memory.
    pub(crate) fn forget_peak(self) -> anyhow::Result<()> {
        let path = format!("/proc/{}/clear_refs", self.0);
        std::fs::write(&path, "5").with_context(|| format!("write {path}"))
    }

    /// Waits until it does nothing for a second, and returns the time of its last work.
    pub(crate) async fn rest(self, patience: Duration) -> anyhow::Result<Instant> {
        let begun = Instant::now();
        let mut worked = (begun, self.usage()?.cpu);
        loop {
            sleep(LOOK).await;
            let now = Instant::now();
            let cpu = self.usage()?.cpu;
            // One tick a second is the clock of a runtime that waits.
            if cpu.saturating_sub(worked.1) > Duration::from_millis(10) {
                worked = (now, cpu);
            } else if now - worked.0 >= REST {
                return Ok(worked.0);
            }
            ensure!(
                now - begun < patience,
                "a process still works after {patience:?}"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_a_command_is_its_program() {
        assert_eq!(
            Command::new("/usr/bin/controller --flag=a/b").name,
            "controller"
        );
        assert_eq!(Command::new("controller").name, "controller");
    }

    #[test]
    fn own_process_has_figures() {
        let usage = Process(std::process::id()).usage().unwrap();
        assert!(usage.resident > 0 && usage.peak >= usage.resident);
    }

    #[tokio::test]
    async fn end_of_a_program_shows_its_last_line() {
        let mut program = Command::new("sh -c 'echo no server >&2; exit 3'")
            .start(Path::new("/dev/null"))
            .unwrap();
        program.child.wait().unwrap();
        let error = program.check().unwrap_err().to_string();
        assert!(error.ends_with("its last line: no server"), "{error}");
        assert!(error.contains("exit status: 3"), "{error}");
    }
}
