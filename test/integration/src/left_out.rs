//! Skipping of tests that need the embedded control plane, if the environment selects another API
//! server.

use std::io::Write as _;

use kube_test_control_plane::cluster::Backend;

/// Returns from the calling test if the environment selects a real API server, and logs the feature
/// of the embedded one that the test needs.
///
/// ```
/// # async fn it_counts() {
/// integration::embedded_only!("counts requests");
/// # }
/// ```
#[macro_export]
macro_rules! embedded_only {
    ($why:literal) => {{
        fn here() {}
        if $crate::left_out::is_left_out(std::any::type_name_of_val(&here), $why) {
            return;
        }
    }};
}

/// Returns true if the environment selects a real API server; if so, logs to stderr that the test
/// is skipped. `here` is the path of a function in the test.
///
/// # Panics
///
/// Panics if the environment's selection is invalid.
pub fn is_left_out(here: &str, why: &str) -> bool {
    let backend = Backend::from_env().unwrap_or_else(|error| panic!("{error}"));
    if backend.is_embedded() {
        return false;
    }
    // The test harness hides what passing tests print, but not direct writes to stderr. With stderr
    // closed, the line is lost.
    let _ = writeln!(std::io::stderr(), "{}", line(here, why));
    true
}

/// Formats a line such as `left out: crash::adoption_survives: counts requests`.
fn line(here: &str, why: &str) -> String {
    let path = here.strip_suffix("::here").unwrap_or(here);
    let test = path.strip_suffix("::{{closure}}").unwrap_or(path);
    format!("left out: {test}: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn skipped_test_is_logged_with_the_reason() {
        fn here() {}
        let here = std::any::type_name_of_val(&here);
        assert_eq!(
            line(here, "counts requests"),
            "left out: integration::left_out::tests::skipped_test_is_logged_with_the_reason: \
             counts requests"
        );
    }
}
