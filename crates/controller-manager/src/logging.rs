//! Logging setup: verbosity, filters and format.

use anyhow::anyhow;
use statefulset_client::recorder::EVENT_LOG_TARGET;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt as _;

pub(crate) use line::Format;
use lines::Lines;

mod fields;
mod line;
mod lines;

/// Verbosity and format of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Logging {
    /// klog verbosity; higher logs more.
    pub(crate) verbosity: i32,
    /// Line format.
    pub(crate) format: Format,
}

/// Changes the verbosity at run time; takes the new klog level.
pub(crate) type SetVerbosity = Box<dyn Fn(i32) -> Result<(), String> + Send + Sync>;

/// Starts logging to stderr. The returned function changes the verbosity.
///
/// # Errors
///
/// A logger is already installed.
pub(crate) fn start(logging: Logging) -> anyhow::Result<SetVerbosity> {
    let lines = Lines::to_stderr(logging.format);
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

/// Own lines up to the requested level, and warnings of dependencies.
fn filter(verbosity: i32) -> Targets {
    Targets::new()
        .with_default(LevelFilter::WARN)
        // The prefix of every crate of this project.
        .with_target("statefulset", level(verbosity))
        // Recorded events.
        .with_target(EVENT_LOG_TARGET, event_log(verbosity))
        // Callers log failed requests with better context.
        .with_target("kube_client", LevelFilter::ERROR)
        .with_target("kube_client::client::builder", LevelFilter::OFF)
        .with_target("rustls_platform_verifier", LevelFilter::OFF)
        // Nothing else reports certificates that fail to reload.
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

/// Events are logged from verbosity 2.
fn event_log(verbosity: i32) -> LevelFilter {
    if verbosity < 2 {
        LevelFilter::WARN
    } else {
        level(verbosity)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing::Level;

    use super::*;

    #[test]
    fn verbosity_matches_klog() {
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

    /// Log lines of a few events.
    fn rendered(format: Format) -> Vec<String> {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&lines);
        let layer = Lines::to(format, move |line| {
            written.lock().unwrap().push(line.to_owned());
        });
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(subscriber, || {
            let worker = tracing::info_span!("worker", worker = 3, pod = "outer");
            let sync = tracing::info_span!(parent: &worker, "sync", stateful_set = %"ns/web");
            let _sync = sync.enter();
            tracing::info!(pod = "web-\"0\"", replicas = 2, ready = false, "two\nlines");
            tracing::error!(after = 1.5, error = %"it broke", "failed");
        });
        std::mem::take(&mut *lines.lock().unwrap())
    }

    #[test]
    fn text_lines_match_klog() {
        let lines = rendered(Format::Text);
        for (line, severity, rest) in [
            (
                &lines[0],
                'I',
                r#"] "two\nlines" worker=3 stateful_set="ns/web" pod="web-\"0\"" replicas=2 ready=false"#,
            ),
            (
                &lines[1],
                'E',
                r#"] "failed" worker=3 pod="outer" stateful_set="ns/web" err="it broke" after=1.5"#,
            ),
        ] {
            let (head, tail) = line.split_at(line.find(']').unwrap());
            assert_eq!(tail, format!("{rest}\n"));
            let pattern: String = head
                .chars()
                .map(|c| if c.is_ascii_digit() { '0' } else { c })
                .collect();
            let words: Vec<_> = pattern.split_whitespace().collect();
            assert_eq!(words[..2], [&format!("{severity}0000"), "00:00:00.000000"]);
            assert!(words[3].starts_with("logging.rs:0"), "{head}");
            assert_eq!(head.find(" logging.rs"), Some(29), "{head}");
        }
    }

    #[test]
    fn json_lines_match_component_base() {
        let lines = rendered(Format::Json);
        let mut parsed: Vec<serde_json::Value> = lines
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        for (line, text) in parsed.iter_mut().zip(&lines) {
            assert!(
                text.starts_with(r#"{"ts":1"#) && text.ends_with("}\n"),
                "{text}"
            );
            let object = line.as_object_mut().unwrap();
            let milliseconds = object.remove("ts").unwrap().as_f64().unwrap();
            assert!(milliseconds > 1.7e12, "{milliseconds}");
            let caller = object.remove("caller").unwrap();
            let caller = caller.as_str().unwrap();
            assert!(
                caller.starts_with("controller-manager/logging.rs:"),
                "{caller}"
            );
        }
        assert_eq!(
            parsed,
            [
                serde_json::json!({
                    "msg": "two\nlines", "v": 0, "worker": 3, "stateful_set": "ns/web",
                    "pod": "web-\"0\"", "replicas": 2, "ready": false,
                }),
                serde_json::json!({
                    "msg": "failed", "worker": 3, "pod": "outer", "stateful_set": "ns/web",
                    "err": "it broke", "after": 1.5,
                }),
            ]
        );
    }

    #[test]
    fn events_are_logged_from_verbosity_two() {
        assert!(!filter(0).would_enable(EVENT_LOG_TARGET, &Level::INFO));
        assert!(filter(2).would_enable(EVENT_LOG_TARGET, &Level::INFO));
        assert!(filter(0).would_enable("statefulset_client::recorder", &Level::INFO));
    }

    #[test]
    fn verbosity_raises_only_own_crates() {
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
