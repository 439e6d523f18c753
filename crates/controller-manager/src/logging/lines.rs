//! Tracing layer that writes a line per event, with the fields of its spans.

use std::io::Write as _;

use statefulset_client::clock::{Clock, SystemClock};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::fields::Fields;
use super::line::{Format, Line};

/// Renders lines and writes each as a whole.
pub(super) struct Lines {
    format: Format,
    write: Box<dyn Fn(&str) + Send + Sync>,
}

impl Lines {
    pub(super) fn to(format: Format, write: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self {
            format,
            write: Box::new(write),
        }
    }

    pub(super) fn to_stderr(format: Format) -> Self {
        Self::to(format, |line| {
            // With stderr closed, the line is lost.
            let _ = std::io::stderr().lock().write_all(line.as_bytes());
        })
    }
}

impl<S> Layer<S> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        for span in context
            .event_scope(event)
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .iter()
            .rev()
        {
            if let Some(outer) = span.extensions().get::<Fields>() {
                fields.extend(outer.clone());
            }
        }
        let mut own = Fields::default();
        event.record(&mut own);
        fields.extend(own);
        let line = Line {
            time: SystemClock.now(),
            process: std::process::id(),
            metadata: event.metadata(),
            fields: &fields,
        };
        (self.write)(&line.render(self.format));
    }
}
