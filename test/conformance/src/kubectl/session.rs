//! The form of recorded sessions.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Manifests, and commands that are run in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Session {
    /// The files in the folder that `$DIR` stands for, by name.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// The commands.
    pub steps: Vec<Step>,
}

/// A command and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Step {
    /// The arguments, the program's name first, joined by single spaces.
    pub command: String,
    /// Whether the command waits until nothing is written any more.
    #[serde(default)]
    pub settle: bool,
    /// The exit code.
    pub exit: i32,
    /// What it printed, with masks.
    pub stdout: String,
    /// What it printed about errors, with masks.
    pub stderr: String,
    /// Variables of its environment.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// What is done while it watches; it is ended when nothing is written any more after that.
    #[serde(default)]
    pub during: Option<Vec<Step>>,
}
