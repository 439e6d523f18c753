//! The command line.

use std::{path::PathBuf, time::Duration};

use clap::Parser;

/// Starts a test control plane and the StatefulSet controller, applies manifests, and shows the
/// pods.
#[derive(Debug, Parser)]
#[command(name = "run")]
pub(crate) struct Options {
    /// The kube-test-control-plane binary.
    #[arg(long, value_name = "PATH")]
    pub(crate) control_plane: PathBuf,

    /// The statefulset-controller-manager binary.
    #[arg(long, value_name = "PATH")]
    pub(crate) controller: PathBuf,

    /// Exit as soon as every set is complete; the default without a terminal.
    #[arg(long)]
    pub(crate) once: bool,

    /// Time limit for that, as 90s, 5m or 1h.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = parse_duration)]
    pub(crate) timeout: Duration,

    /// Delay until a pod starts, and again until it is ready [default: 500ms at a terminal, to make
    /// the steps visible; 0 elsewhere].
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) pod_delay: Option<Duration>,

    /// The manifests to apply, in this order.
    #[arg(value_name = "MANIFEST", required = true)]
    pub(crate) manifests: Vec<PathBuf>,
}

/// Parses `500ms`, `90s`, `5m`, `1h`, or a number of seconds.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let unit_at = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let millis_each = match unit {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err("expected a number and ms, s, m or h, such as 90s or 5m".to_owned()),
    };
    number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(millis_each))
        .map(Duration::from_millis)
        .ok_or_else(|| "expected a number, such as 90s or 5m".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(parse_duration("1h"), Ok(Duration::from_secs(3600)));
        assert_eq!(parse_duration("7"), Ok(Duration::from_secs(7)));
        for wrong in ["", "5d", "-1s", "m", "99999999999999999999h"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn timeout_defaults_to_five_minutes() {
        let options = Options::try_parse_from([
            "run",
            "--control-plane",
            "a",
            "--controller",
            "b",
            "web.yaml",
        ])
        .expect("the command line is complete");
        assert_eq!(options.timeout, Duration::from_secs(300));
        assert!(!options.once);
    }
}
