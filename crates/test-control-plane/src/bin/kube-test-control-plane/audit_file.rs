//! The audit log file.

use std::fs::{File, OpenOptions};
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use anyhow::Context;

/// The destination of the audit log. A newly created file is removed on drop unless it is
/// [kept](Self::keep).
pub(crate) struct AuditFile {
    made: Option<PathBuf>,
}

impl AuditFile {
    /// Opens a file for appending; `-` is the standard output.
    pub(crate) fn open(path: &Path) -> anyhow::Result<(Self, Box<dyn Write + Send>)> {
        if path == Path::new("-") {
            return Ok((Self { made: None }, Box::new(stdout())));
        }
        let existed = path.exists();
        let file = OpenOptions::new().append(true).create(true).open(path);
        let file: File =
            file.with_context(|| format!("opening the audit log {}", path.display()))?;
        let made = (!existed).then(|| path.to_owned());
        Ok((Self { made }, Box::new(file)))
    }

    /// Keeps the file once the program has started.
    pub(crate) fn keep(mut self) {
        self.made = None;
    }
}

impl Drop for AuditFile {
    fn drop(&mut self) {
        if let Some(path) = &self.made {
            // The reason for the failed start was already reported.
            let _ = std::fs::remove_file(path);
        }
    }
}
