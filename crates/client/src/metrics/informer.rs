//! The `informer_*` metric families.

use std::sync::Arc;
use std::time::Duration;

use prometheus::{
    Error, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntGauge, IntGaugeVec, Opts, Registry,
};

use super::in_step::SinceInStep;
use super::register;
use crate::cache::informer::{InformerMetrics, InformerMetricsProvider};
use crate::resource::Resource;

/// Buckets of an event's processing time, in seconds.
const SECONDS: [f64; 12] = [
    0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];
const LABELS: [&str; 4] = ["name", "group", "version", "resource"];
/// Number of trailing digits of a version in the gauge; a float represents them exactly.
const VERSION_DIGITS: usize = 15;

/// The informers' metric families.
///
/// Upstream: `component-base/metrics/prometheus/clientgo/fifo`.
#[derive(Clone)]
pub struct InformerFamilies {
    queued: GaugeVec,
    latency: HistogramVec,
    version: IntGaugeVec,
    set_aside: IntGaugeVec,
    since_in_step: SinceInStep,
    /// Value of the label `name`.
    name: Box<str>,
}

impl InformerFamilies {
    /// Adds the families to a registry. `name` is the program's name.
    ///
    /// # Errors
    ///
    /// Fails if the registry already has one of them.
    pub fn register(registry: &Registry, name: &str) -> Result<Self, Error> {
        let queued = Opts::new(
            "informer_queued_items",
            "[ALPHA] Number of items currently queued in the FIFO.",
        );
        let latency = HistogramOpts::new(
            "informer_processing_latency_seconds",
            "[ALPHA] Time taken to process events after popping from the queue.",
        );
        let version = Opts::new(
            "informer_store_resource_version",
            "[ALPHA] The 15 least significant digits of the resource version of the store.",
        );
        let set_aside = Opts::new(
            "informer_objects_set_aside",
            "Number of objects whose present state cannot be decoded.",
        );
        let since_in_step = SinceInStep::new(
            "informer_seconds_since_in_step",
            "Seconds since the cache last heard from the API server. Servers send a bookmark about every minute.",
            LABELS,
        );
        let latency = HistogramVec::new(latency.buckets(SECONDS.to_vec()), &LABELS);
        Ok(Self {
            queued: register(registry, GaugeVec::new(queued, &LABELS))?,
            latency: register(registry, latency)?,
            version: register(registry, IntGaugeVec::new(version, &LABELS))?,
            set_aside: register(registry, IntGaugeVec::new(set_aside, &LABELS))?,
            since_in_step: register(registry, since_in_step)?,
            name: name.into(),
        })
    }
}

impl InformerMetricsProvider for InformerFamilies {
    fn informer(&self, resource: &Resource) -> Arc<dyn InformerMetrics> {
        let labels = [
            &self.name,
            resource.group,
            resource.version,
            resource.plural,
        ];
        // Events go from the connection directly into the cache, so the queue is always empty.
        self.queued.with_label_values(&labels).set(0.0);
        let set_aside = self.set_aside.with_label_values(&labels);
        set_aside.set(0);
        // Until a cache is first filled, its gauge counts from here.
        let in_step_labels = labels.map(str::to_owned);
        self.since_in_step.set(&in_step_labels);
        Arc::new(OfInformer {
            set_aside,
            since_in_step: self.since_in_step.clone(),
            in_step_labels,
            latency: self.latency.with_label_values(&labels),
            version: self.version.with_label_values(&labels),
        })
    }
}

/// The series of one informer.
struct OfInformer {
    latency: Histogram,
    version: IntGauge,
    set_aside: IntGauge,
    since_in_step: SinceInStep,
    in_step_labels: [String; 4],
}

impl InformerMetrics for OfInformer {
    fn processed(&self, elapsed: Duration) {
        self.latency.observe(elapsed.as_secs_f64());
    }

    fn in_step(&self) {
        self.since_in_step.set(&self.in_step_labels);
    }

    fn set_aside(&self, objects: usize) {
        self.set_aside
            .set(i64::try_from(objects).unwrap_or(i64::MAX));
    }

    fn store_version(&self, version: &str) {
        let begin = version.len().saturating_sub(VERSION_DIGITS);
        // Versions that aren't numbers are omitted.
        if let Some(Ok(version)) = version.get(begin..).map(str::parse) {
            self.version.set(version);
        }
    }
}
