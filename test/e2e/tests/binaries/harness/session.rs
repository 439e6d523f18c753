//! Sessions of the program behind `make run`.

use std::path::Path;
use std::process::Command;

use rustix::process::Pid;
use tempfile::TempDir;

use super::{Api, Finished, Process, Programs, Signal};

/// The running program, without a terminal.
pub(crate) struct Session {
    process: Process,
    folder: TempDir,
}

impl Session {
    /// Starts it with `--once`, additional flags, and manifests.
    pub(crate) fn start(programs: &Programs, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(&programs.run);
        command
            .arg("--control-plane")
            .arg(&programs.control_plane)
            .arg("--controller")
            .arg(&programs.controller)
            .arg("--once")
            .args(arguments)
            .env("TMPDIR", folder.path());
        Self {
            process: Process::start("run", &mut command).with_children(),
            folder,
        }
    }

    /// Pid of a process that it started, such as the `controller`. Must be called in the printed
    /// order.
    pub(crate) fn pid_of(&mut self, name: &str) -> Pid {
        let text = self.process.said(&format!("{name:<14} pid "));
        let (pid, log) = text.split_once(", log ").unwrap();
        assert!(Path::new(log).starts_with(self.folder.path()), "{log}");
        Pid::from_raw(pid.parse().unwrap()).unwrap()
    }

    /// Client with the printed kubeconfig.
    pub(crate) fn api(&mut self) -> Api {
        let kubeconfig = self.process.said("kubeconfig     ");
        assert!(Path::new(&kubeconfig).starts_with(self.folder.path()));
        Api::connect(Path::new(&kubeconfig))
    }

    /// Command that restarts the controller.
    pub(crate) fn restart_command(&mut self) -> String {
        self.process.said("restart with   ")
    }

    /// Kills the session's controller, and waits until the session reports it.
    pub(crate) fn crash_controller(&mut self, pid: Pid) {
        rustix::process::kill_process(pid, Signal::KILL).unwrap();
        let pid = pid.as_raw_nonzero();
        let noticed = self
            .process
            .said(&format!("the controller (pid {pid}) exited: "));
        assert!(noticed.starts_with("signal: 9"), "{noticed}");
    }

    /// Waits for a line with this prefix.
    pub(crate) fn said(&mut self, prefix: &str) -> String {
        self.process.said(prefix)
    }

    /// Interrupts the session.
    pub(crate) fn interrupt(&self) {
        self.process.signal(Signal::INT);
    }

    /// Waits for the end of the session.
    pub(crate) fn wait(self) -> Finished {
        let finished = self.process.wait();
        drop(self.folder);
        finished
    }
}
