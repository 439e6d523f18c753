//! A session of the program behind `make run`.

use std::path::Path;
use std::process::Command;

use rustix::process::Pid;
use tempfile::TempDir;

use super::{Api, Finished, Process, Programs, Signal};

/// The program while it runs, away from a terminal.
pub(crate) struct Session {
    process: Process,
    folder: TempDir,
}

impl Session {
    /// Starts it with `--once`, further flags, and manifests.
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

    /// A process that it started, such as the `controller`. To be asked in the printed order.
    pub(crate) fn pid_of(&mut self, name: &str) -> Pid {
        let text = self.process.said(&format!("{name:<14} pid "));
        let (pid, log) = text.split_once(", log ").unwrap();
        assert!(Path::new(log).starts_with(self.folder.path()), "{log}");
        Pid::from_raw(pid.parse().unwrap()).unwrap()
    }

    /// A client with the kubeconfig that it names.
    pub(crate) fn api(&mut self) -> Api {
        let kubeconfig = self.process.said("kubeconfig     ");
        assert!(Path::new(&kubeconfig).starts_with(self.folder.path()));
        Api::connect(Path::new(&kubeconfig))
    }

    /// The command that starts the controller again.
    pub(crate) fn restart_command(&mut self) -> String {
        self.process.said("restart with   ")
    }

    /// Kills the controller that it started, and waits until it has noticed.
    pub(crate) fn crash_controller(&mut self, pid: Pid) {
        rustix::process::kill_process(pid, Signal::KILL).unwrap();
        let pid = pid.as_raw_nonzero();
        let noticed = self
            .process
            .said(&format!("the controller (pid {pid}) ended: "));
        assert!(noticed.starts_with("signal: 9"), "{noticed}");
    }

    /// Waits for a line that begins so.
    pub(crate) fn said(&mut self, prefix: &str) -> String {
        self.process.said(prefix)
    }

    /// Asks it to end.
    pub(crate) fn interrupt(&self) {
        self.process.signal(Signal::INT);
    }

    /// Waits for its end.
    pub(crate) fn wait(self) -> Finished {
        let finished = self.process.wait();
        drop(self.folder);
        finished
    }
}
