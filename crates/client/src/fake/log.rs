//! Captures a test's log lines.

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Metadata, Subscriber};

/// Captures this thread's log lines, down to a level, until it is dropped. Lines have the form
/// `INFO message field=value …`; spans are ignored.
pub struct CapturedLog {
    lines: Arc<Mutex<Vec<String>>>,
    _guard: DefaultGuard,
}

impl CapturedLog {
    /// Captures lines of this level and more severe ones.
    pub fn at(level: Level) -> Self {
        let lines = Arc::default();
        let collector = Collector {
            level,
            lines: Arc::clone(&lines),
        };
        Self {
            lines,
            _guard: tracing::subscriber::set_default(collector),
        }
    }

    /// Returns the lines so far.
    pub fn lines(&self) -> Vec<String> {
        let lines = self.lines.lock();
        lines.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the lines since the last call.
    pub fn take(&self) -> Vec<String> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *lines)
    }
}

struct Collector {
    level: Level,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
            && *metadata.level() <= self.level
            && metadata.target().starts_with("statefulset")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let level = event.metadata().level();
        let text = format!("{level} {}{}", line.message, line.fields);
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push(text);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string doesn't fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}
