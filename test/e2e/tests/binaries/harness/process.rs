//! A child process that never outlives its test.

use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use rustix::process::Pid;
pub(crate) use rustix::process::Signal;

/// Time limit for any wait.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Time limit for a process to end its own children after its test.
const ORDERLY_END_MAX: Duration = Duration::from_secs(10);

/// Exit code and output of a process.
#[derive(Debug)]
pub(crate) struct Finished {
    /// `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<String>,
    pub(crate) stderr: Vec<String>,
}

/// A running process, killed and reaped on drop. Its output is printed if the test fails.
pub(crate) struct Process {
    name: String,
    child: Child,
    has_children: bool,
    stdout: Lines,
    stderr: Lines,
}

impl Process {
    /// Starts a program.
    pub(crate) fn start(name: &str, command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start the {name}: {error}"));
        Self {
            name: name.to_owned(),
            stdout: Lines::of(child.stdout.take().unwrap()),
            stderr: Lines::of(child.stderr.take().unwrap()),
            child,
            has_children: false,
        }
    }

    /// Asks the process to end before it is killed on drop, because only it can end its children.
    pub(crate) fn with_children(mut self) -> Self {
        self.has_children = true;
        self
    }

    /// Waits for a line of standard output with this prefix, and returns the rest.
    pub(crate) fn said(&mut self, prefix: &str) -> String {
        loop {
            let Ok(line) = self.stdout.next(PATIENCE) else {
                panic!("the {} has not said {prefix:?}", self.name);
            };
            if let Some(rest) = line.strip_prefix(prefix) {
                return rest.to_owned();
            }
        }
    }

    /// Waits for a log line that contains this text, and returns it.
    pub(crate) fn logged(&mut self, text: &str) -> String {
        loop {
            let Ok(line) = self.stderr.next(PATIENCE) else {
                panic!("the {} has not logged {text:?}", self.name);
            };
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Next line of standard output; `None` on timeout. The line is not kept.
    pub(crate) fn next_line(&mut self, patience: Duration) -> Option<String> {
        self.stdout.incoming.recv_timeout(patience).ok()
    }

    /// User of the process, from the kernel.
    pub(crate) fn user(&self) -> u32 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        let user = line.unwrap().split_whitespace().next();
        user.unwrap().parse().unwrap()
    }

    /// Returns true if the process has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Kills the process, and waits for its end.
    pub(crate) fn crash(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for the end of the process.
    pub(crate) fn wait(mut self) -> Finished {
        for lines in [&mut self.stdout, &mut self.stderr] {
            // The streams close with the process.
            while match lines.next(PATIENCE) {
                Ok(_) => true,
                Err(RecvTimeoutError::Disconnected) => false,
                Err(RecvTimeoutError::Timeout) => panic!("the {} does not end", self.name),
            } {}
        }
        let code = self.child.wait().unwrap().code();
        let (stdout, stderr) = (self.stdout.take(), self.stderr.take());
        Finished {
            code,
            stdout,
            stderr,
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.has_children && matches!(self.child.try_wait(), Ok(None)) {
            let _ = rustix::process::kill_process(Pid::from_child(&self.child), Signal::TERM);
            while self.stdout.next(ORDERLY_END_MAX).is_ok() {}
        }
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            for lines in [&mut self.stdout, &mut self.stderr] {
                while lines.next(ORDERLY_END_MAX).is_ok() {}
                for line in lines.take() {
                    show(&self.name, &line);
                }
            }
        }
    }
}

#[expect(clippy::print_stderr, reason = "the output helps to debug a failure")]
fn show(process: &str, line: &str) {
    eprintln!("{process}: {line}");
}

/// Output stream of a process, read continuously so that the process never blocks on it.
struct Lines {
    incoming: Receiver<String>,
    seen: Vec<String>,
}

impl Lines {
    fn of(stream: impl Read + Send + 'static) -> Self {
        let (sender, incoming) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self {
            incoming,
            seen: Vec::new(),
        }
    }

    fn next(&mut self, patience: Duration) -> Result<String, RecvTimeoutError> {
        let line = self.incoming.recv_timeout(patience)?;
        self.seen.push(line.clone());
        Ok(line)
    }

    fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.seen)
    }
}
