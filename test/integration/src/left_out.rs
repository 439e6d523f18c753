//! Tests that need the embedded control plane are left out where the environment chooses another
//! API server, and say so.

use std::io::Write as _;

use kube_test_control_plane::cluster::Backend;

/// Ends the calling test where the environment chooses a real API server, with a line that says
/// what of the embedded one it needs.
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

/// Whether the environment chooses a real API server; tells on standard error that the test is left
/// out then. `here` is the path of a function in the test.
///
/// # Panics
///
/// The environment chooses nothing that can be used.
pub fn is_left_out(here: &str, why: &str) -> bool {
    let backend = Backend::from_env().unwrap_or_else(|error| panic!("{error}"));
    if backend.is_embedded() {
        return false;
    }
    // Tests that pass show nothing that they print, but for this. Without a stderr nobody reads.
    let _ = writeln!(std::io::stderr(), "{}", line(here, why));
    true
}

/// Such as `left out: crash::adoption_survives: counts requests`.
fn line(here: &str, why: &str) -> String {
    let path = here.strip_suffix("::here").unwrap_or(here);
    let test = path.strip_suffix("::{{closure}}").unwrap_or(path);
    format!("left out: {test}: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_left_out_test_is_named_with_the_reason() {
        fn here() {}
        let here = std::any::type_name_of_val(&here);
        assert_eq!(
            line(here, "counts requests"),
            "left out: integration::left_out::tests::a_left_out_test_is_named_with_the_reason: \
             counts requests"
        );
    }
}
