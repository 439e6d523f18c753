//! The `workqueue_*` metric families.

use std::sync::Arc;
use std::time::Duration;

use prometheus::{
    Error, Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec,
    IntGauge, IntGaugeVec, Opts, Registry, exponential_buckets,
};

use super::register;
use crate::workqueue::{QueueMetrics, Unfinished};

/// Buckets of waiting and processing times, in seconds: the first bucket and the number of buckets,
/// each ten times the previous one. Upstream also multiplies them, and the label shows the rounding
/// error: `9.999999999999999e-06`.
const SECONDS: (f64, usize) = (1e-8, 10);
/// Update interval of the gauges of unfinished work.
///
/// Upstream: `defaultUnfinishedWorkUpdatePeriod`.
const REFRESH_PERIOD: Duration = Duration::from_millis(500);

/// The work queues' metric families.
///
/// Upstream: `component-base/metrics/prometheus/workqueue`.
#[derive(Clone)]
pub struct WorkqueueFamilies {
    depth: IntGaugeVec,
    adds: IntCounterVec,
    queue_duration: HistogramVec,
    work_duration: HistogramVec,
    unfinished: GaugeVec,
    longest: GaugeVec,
    retries: IntCounterVec,
}

impl WorkqueueFamilies {
    /// Adds the families to a registry.
    ///
    /// # Errors
    ///
    /// Fails if the registry already has one of them.
    pub fn register(registry: &Registry) -> Result<Self, Error> {
        let labels = &["name"];
        let buckets = exponential_buckets(SECONDS.0, 10.0, SECONDS.1)?;
        let counter = |name: &str, help: &str| {
            register(registry, IntCounterVec::new(Opts::new(name, help), labels))
        };
        let gauge = |name: &str, help: &str| {
            register(registry, GaugeVec::new(Opts::new(name, help), labels))
        };
        let histogram = |name: &str, help: &str| {
            let options = HistogramOpts::new(name, help).buckets(buckets.clone());
            register(registry, HistogramVec::new(options, labels))
        };
        let depth = Opts::new("workqueue_depth", "[BETA] Current depth of workqueue");
        Ok(Self {
            depth: register(registry, IntGaugeVec::new(depth, labels))?,
            adds: counter(
                "workqueue_adds_total",
                "[BETA] Total number of adds handled by workqueue",
            )?,
            queue_duration: histogram(
                "workqueue_queue_duration_seconds",
                "[BETA] How long in seconds an item stays in workqueue before being requested.",
            )?,
            work_duration: histogram(
                "workqueue_work_duration_seconds",
                "[BETA] How long in seconds processing an item from workqueue takes.",
            )?,
            unfinished: gauge(
                "workqueue_unfinished_work_seconds",
                "[BETA] How many seconds of work has done that is in progress and hasn't been \
                 observed by work_duration. Large values indicate stuck threads. One can deduce \
                 the number of stuck threads by observing the rate at which this increases.",
            )?,
            longest: gauge(
                "workqueue_longest_running_processor_seconds",
                "[BETA] How many seconds has the longest running processor for workqueue been \
                 running.",
            )?,
            retries: counter(
                "workqueue_retries_total",
                "[BETA] Total number of retries handled by workqueue",
            )?,
        })
    }

    /// Returns the metrics of the queue with this name. Its series start at 0.
    pub fn queue(&self, name: &str) -> Arc<dyn QueueMetrics> {
        let labels = &[name];
        Arc::new(OfQueue {
            depth: self.depth.with_label_values(labels),
            adds: self.adds.with_label_values(labels),
            queue_duration: self.queue_duration.with_label_values(labels),
            work_duration: self.work_duration.with_label_values(labels),
            unfinished: self.unfinished.with_label_values(labels),
            longest: self.longest.with_label_values(labels),
            retries: self.retries.with_label_values(labels),
        })
    }
}

/// The series of one queue.
struct OfQueue {
    depth: IntGauge,
    adds: IntCounter,
    queue_duration: Histogram,
    work_duration: Histogram,
    unfinished: Gauge,
    longest: Gauge,
    retries: IntCounter,
}

impl QueueMetrics for OfQueue {
    fn added(&self) {
        self.depth.inc();
        self.adds.inc();
    }

    fn got(&self, waited: Duration) {
        self.depth.dec();
        self.queue_duration.observe(waited.as_secs_f64());
    }

    fn done(&self, worked: Duration) {
        self.work_duration.observe(worked.as_secs_f64());
    }

    fn retried(&self) {
        self.retries.inc();
    }

    fn refresh_period(&self) -> Option<Duration> {
        Some(REFRESH_PERIOD)
    }

    fn unfinished(&self, unfinished: Unfinished) {
        self.unfinished.set(unfinished.total.as_secs_f64());
        self.longest.set(unfinished.longest.as_secs_f64());
    }
}
