//! File format of recorded sessions.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Manifests, and commands in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Session {
    /// Files in the folder `$DIR`, by name.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// The commands.
    pub steps: Vec<Step>,
}

/// A command and its result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Step {
    /// Arguments including the program name, joined by single spaces.
    pub command: String,
    /// True to wait until writes have stopped before the command.
    #[serde(default)]
    pub settle: bool,
    /// Exit code.
    pub exit: i32,
    /// Standard output, with masks.
    pub stdout: String,
    /// Standard error, with masks.
    pub stderr: String,
    /// Environment variables.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Steps during a watching command, which is stopped once writes have stopped afterwards.
    #[serde(default)]
    pub during: Option<Vec<Step>>,
}
