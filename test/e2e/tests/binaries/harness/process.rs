//! A child process that never outlives its test.

use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use rustix::process::Pid;
pub(crate) use rustix::process::Signal;

/// How long anything may take before a test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// How long a process may take to end its own children when its test is over.
const ORDERLY_END_MAX: Duration = Duration::from_secs(10);

/// How a process ended, and all that it said.
#[derive(Debug)]
pub(crate) struct Finished {
    /// None if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<String>,
    pub(crate) stderr: Vec<String>,
}

/// A running process. When dropped it is ended and reaped; what it said is printed if the test
/// fails.
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

    /// At the end it is asked first, for it has children that only it can end.
    pub(crate) fn with_children(mut self) -> Self {
        self.has_children = true;
        self
    }

    /// Waits for a line of standard output that begins so, and returns what follows.
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

    /// Waits for a line of its log that holds this, and returns it.
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

    /// The next line of standard output, unless it takes longer. It is not kept.
    pub(crate) fn next_line(&mut self, patience: Duration) -> Option<String> {
        self.stdout.incoming.recv_timeout(patience).ok()
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Ends it as a crash does, and waits until it is gone.
    pub(crate) fn crash(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> Finished {
        for lines in [&mut self.stdout, &mut self.stderr] {
            // The streams end with the process.
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
        // It may have ended already.
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

#[expect(
    clippy::print_stderr,
    reason = "it is for whoever looks for the reason of a failure"
)]
fn show(process: &str, line: &str) {
    eprintln!("{process}: {line}");
}

/// What a process writes to a stream, read as it comes so that the process never waits for it.
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
