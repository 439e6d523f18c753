//! The file that the audit log goes to.

use std::fs::{File, OpenOptions};
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Where the audit log goes. A file that is made here is removed again unless it is
/// [kept](Self::keep).
pub(crate) struct AuditFile {
    made: Option<PathBuf>,
}

impl AuditFile {
    /// Opens a file to write behind what is there; `-` is the standard output.
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

    /// The program has started: the file stays.
    pub(crate) fn keep(mut self) {
        self.made = None;
    }
}

impl Drop for AuditFile {
    fn drop(&mut self) {
        if let Some(path) = &self.made {
            // Why the program doesn't start is told already.
            let _ = std::fs::remove_file(path);
        }
    }
}
