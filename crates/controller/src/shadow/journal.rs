//! The results of a shadow: counts, and the differences with their objects.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use kube_apimachinery::json::parse;
use kube_apimachinery::object_key::ObjectKey;
use serde_json::{Value, json};

use crate::metrics::{NoopShadowMetrics, ShadowMetrics, Verdict};

/// Differences that are kept; later ones are only counted.
const KEPT_MAX: usize = 100;
/// Bytes of the objects of one difference; larger differences are kept without their objects.
const OBJECTS_BYTES_MAX: usize = 256 << 10;

/// The results of a shadow. Clones share them.
#[derive(Clone)]
pub struct Journal {
    content: Arc<Mutex<Content>>,
    metrics: Arc<dyn ShadowMetrics>,
}

#[derive(Default)]
struct Content {
    since: Option<Timestamp>,
    sets: usize,
    counts: [u64; 5],
    differences: Vec<Difference>,
}

/// A decision that differs.
pub(super) struct Difference {
    pub(super) at: Timestamp,
    pub(super) set: ObjectKey,
    /// The write of the other controller, or the one that it left out.
    pub(super) write: String,
    /// True if the other controller left the write out.
    pub(super) is_missing: bool,
    /// The shadow's writes on the same objects.
    pub(super) decided: Vec<String>,
    /// The shadow's reason to wait, or its error.
    pub(super) waiting: Option<String>,
    /// The objects of the decision, as JSON.
    pub(super) objects: Vec<String>,
}

impl Default for Journal {
    fn default() -> Self {
        Self::new(Arc::new(NoopShadowMetrics))
    }
}

impl Journal {
    /// Creates an empty journal that reports to these metrics.
    pub fn new(metrics: Arc<dyn ShadowMetrics>) -> Self {
        Self {
            content: Arc::default(),
            metrics,
        }
    }

    /// Number of writes with this verdict.
    pub fn count(&self, verdict: Verdict) -> u64 {
        let counts = self.content().counts;
        counts.get(verdict as usize).copied().unwrap_or_default()
    }

    pub(super) fn begin(&self, now: Timestamp) {
        self.content().since = Some(now);
    }

    pub(super) fn watches(&self, sets: usize) {
        self.content().sets = sets;
    }

    pub(super) fn judge(&self, verdict: Verdict) {
        if let Some(count) = self.content().counts.get_mut(verdict as usize) {
            *count += 1;
        }
        self.metrics.judged(verdict);
    }

    pub(super) fn differ(&self, difference: Difference) {
        let Difference {
            set,
            write,
            decided,
            waiting,
            is_missing,
            ..
        } = &difference;
        tracing::warn!(
            %set,
            %write,
            is_missing,
            decided = decided.join(", "),
            waiting,
            "the other controller decided differently"
        );
        self.judge(Verdict::Different);
        let mut content = self.content();
        if content.differences.len() < KEPT_MAX {
            let size: usize = difference.objects.iter().map(String::len).sum();
            let objects = if size > OBJECTS_BYTES_MAX {
                Vec::new()
            } else {
                difference.objects
            };
            content.differences.push(Difference {
                objects,
                ..difference
            });
        }
    }

    /// The report as JSON. The objects of the differences hold whole templates, which may contain
    /// secrets.
    pub fn report(&self, now: Timestamp, with_objects: bool) -> String {
        let content = self.content();
        let counts = Verdict::ALL.into_iter().zip(content.counts);
        let counts = counts.map(|(verdict, count)| (verdict.as_str().to_owned(), json!(count)));
        let differences = content.differences.iter();
        let differences = differences.map(|it| it.value(with_objects));
        let report = json!({
            "kind": "ShadowReport",
            "since": content.since.map(|since| since.to_string()),
            "now": now.to_string(),
            "sets": content.sets,
            "decisions": Value::Object(counts.collect()),
            "differences": differences.collect::<Vec<Value>>(),
        });
        report.to_string()
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Difference {
    fn value(&self, with_objects: bool) -> Value {
        let mut value = json!({
            "at": self.at.to_string(),
            "namespace": self.set.namespace(),
            "set": self.set.name(),
            "write": self.write,
            "isMissing": self.is_missing,
            "decided": self.decided,
            "waiting": self.waiting,
        });
        if with_objects && let Some(members) = value.as_object_mut() {
            let objects = self.objects.iter();
            let objects = objects.filter_map(|text| parse(text).ok());
            members.insert("objects".to_owned(), objects.collect());
        }
        value
    }
}
