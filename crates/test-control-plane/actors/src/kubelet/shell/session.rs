//! The state of a session of the shell.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::files::{self, Files};
use super::streams::Streams;

/// The null device.
pub(super) const NULL: &str = "/dev/null";

/// Control flow after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// The next command follows; the status is that of the last one.
    Next,
    /// The script ends with the status.
    Exit,
}

/// The state of a session of the shell.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) variables: BTreeMap<String, String>,
    pub(super) files: Files,
    /// The current folder.
    pub(super) folder: String,
    pub(super) streams: Streams,
    /// Time at which the session began.
    pub(super) began: Timestamp,
    /// Exit code of the last command.
    pub(super) status: i32,
    pub(super) steps: u32,
    pub(super) nested: u32,
    /// True once a command needed a program, a file, syntax or time that the shell lacks.
    pub(super) is_uncertain: bool,
}

impl Session {
    /// Returns the current time of the session.
    pub(super) fn now(&self) -> Timestamp {
        let passed = self.streams.passed();
        self.began.saturating_add(passed).unwrap_or(self.began)
    }

    /// Returns the absolute form of a path.
    pub(super) fn absolute(&self, path: &str) -> String {
        files::absolute(&self.folder, path)
    }

    pub(super) async fn complain(&mut self, message: &str) {
        let line = format!("sh: {message}\n");
        self.streams.write_err(line.as_bytes()).await;
    }

    pub(super) async fn line(&mut self, text: &str) {
        self.streams.write(format!("{text}\n").as_bytes()).await;
    }

    /// Reads the whole input.
    pub(super) async fn input(&mut self) -> Vec<u8> {
        let mut input = Vec::new();
        loop {
            let bytes = self.streams.read().await;
            if bytes.is_empty() {
                return input;
            }
            input.extend(bytes);
        }
    }
}

/// Returns the name of a program without its folder.
pub(super) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}
