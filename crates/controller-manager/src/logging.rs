//! What is logged, and how.

use std::io::IsTerminal as _;

use anyhow::anyhow;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt as _;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// An object each, for machines.
    Json,
}

/// How much is logged, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Logging {
    /// The level of klog: the higher, the more.
    pub(crate) verbosity: i32,
    /// How lines look.
    pub(crate) format: Format,
}

/// Changes how much is logged while the program runs: takes the new level of klog.
pub(crate) type SetVerbosity = Box<dyn Fn(i32) -> Result<(), String> + Send + Sync>;

/// Starts to log to stderr; how much may be changed later.
///
/// # Errors
///
/// Somebody else logs already.
pub(crate) fn start(logging: Logging) -> anyhow::Result<SetVerbosity> {
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = match logging.format {
        Format::Text => lines.with_ansi(std::io::stderr().is_terminal()).boxed(),
        Format::Json => lines
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .boxed(),
    };
    let (first, handle) = reload::Layer::new(filter(logging.verbosity));
    tracing_subscriber::registry()
        .with(lines.with_filter(first))
        .try_init()
        .map_err(|err| anyhow!("{err}"))?;
    Ok(Box::new(move |verbosity| {
        handle
            .reload(filter(verbosity))
            .map_err(|err| err.to_string())
    }))
}

/// All of our own lines up to the level asked for, and the warnings of others.
fn filter(verbosity: i32) -> Targets {
    Targets::new()
        .with_default(LevelFilter::WARN)
        // The prefix of every crate of this project.
        .with_target("statefulset", level(verbosity))
        // What these say of requests that fail is said again, better, by whoever sent them.
        .with_target("kube_client", LevelFilter::ERROR)
        .with_target("kube_client::client::builder", LevelFilter::OFF)
        .with_target("rustls_platform_verifier", LevelFilter::OFF)
        // But nobody else knows of certificates that can't be reloaded.
        .with_target("kube_client::client::tls", LevelFilter::WARN)
}

/// klog's levels in tracing's.
fn level(verbosity: i32) -> LevelFilter {
    match verbosity {
        ..=3 => LevelFilter::INFO,
        4 => LevelFilter::DEBUG,
        5.. => LevelFilter::TRACE,
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn verbosity_is_that_of_klog() {
        for (verbosity, highest) in [
            (-1, Level::INFO),
            (0, Level::INFO),
            (2, Level::INFO),
            (4, Level::DEBUG),
            (5, Level::TRACE),
            (10, Level::TRACE),
        ] {
            assert_eq!(level(verbosity), highest, "{verbosity}");
        }
    }

    #[test]
    fn only_our_own_lines_get_more() {
        let filter = filter(5);
        assert!(filter.would_enable("statefulset_controller::sync", &Level::TRACE));
        assert!(filter.would_enable("statefulset_controller_manager", &Level::TRACE));
        assert!(filter.would_enable("hyper", &Level::WARN));
        assert!(!filter.would_enable("hyper", &Level::INFO));
        assert!(!filter.would_enable("kube_client::client", &Level::WARN));
        assert!(!filter.would_enable("kube_client::client::builder", &Level::ERROR));
        assert!(filter.would_enable("kube_client::client::tls", &Level::WARN));
    }
}
