//! Runner of the program, with its output and exit code.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Time limit for anything in these tests.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Result of a run.
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The running program, killed on drop.
pub(crate) struct Program {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

/// Runs the program to its end.
pub(crate) fn run(arguments: &[&str]) -> Finished {
    start(arguments, None).wait()
}

/// Starts the program, outside of any cluster, in a folder. It opens its own port only if the
/// arguments request one, because tests run in parallel.
pub(crate) fn start(arguments: &[&str], folder: Option<&Path>) -> Program {
    start_with(arguments, folder, &[])
}

/// The same with environment variables.
pub(crate) fn start_with(
    arguments: &[&str],
    folder: Option<&Path>,
    variables: &[(&str, &str)],
) -> Program {
    let mut command = Command::new(env!("CARGO_BIN_EXE_statefulset-controller-manager"));
    command
        .args(arguments)
        .env_remove("KUBERNETES_SERVICE_HOST")
        .envs(variables.iter().copied());
    if !arguments.iter().any(|it| it.starts_with("--secure-port")) {
        command.arg("--secure-port=0");
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(folder) = folder {
        command.current_dir(folder);
    }
    let mut child = command.spawn().unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in stderr.lines() {
            if sender.send(line.unwrap()).is_err() {
                break;
            }
        }
    });
    Program {
        child,
        lines,
        seen: Vec::new(),
    }
}

impl Program {
    /// Waits for a line of stderr that contains the text.
    pub(crate) fn wait_for_line(&mut self, text: &str) {
        loop {
            let Ok(line) = self.lines.recv_timeout(PATIENCE) else {
                panic!("no line with {text:?}; there were {:#?}", self.seen);
            };
            let found = line.contains(text);
            self.seen.push(line);
            if found {
                return;
            }
        }
    }

    /// Sends a signal, such as `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill")
            .args(["-s", name, &pid])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    /// Waits for the exit.
    pub(crate) fn wait(mut self) -> Finished {
        // Stderr closes with the process.
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => self.seen.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    panic!("it doesn't end; there were {:#?}", self.seen)
                }
            }
        }
        let mut stdout = String::new();
        self.child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut stdout)
            .unwrap();
        let code = self.child.wait().unwrap().code();
        let stderr = self
            .seen
            .iter()
            .flat_map(|line| [line.as_str(), "\n"])
            .collect();
        Finished {
            code,
            stdout,
            stderr,
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
