//! Progress of a load.

use std::io::Write as _;

/// Prints a line of progress on the standard error.
pub(super) fn progress(title: &str, text: &str) {
    // A closed standard error leaves no way to report this.
    let _ = writeln!(std::io::stderr(), "{title}: {text}");
}
