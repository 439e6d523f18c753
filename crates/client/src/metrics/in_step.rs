//! The gauge of the time since each cache last received data from the server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus::Error;
use prometheus::core::{Collector, Desc};
use prometheus::proto::{Gauge, LabelPair, Metric, MetricFamily, MetricType};
use tokio::time::Instant;

/// Computed when the gauge is read, so that it grows while a cache receives nothing.
#[derive(Clone)]
pub(super) struct SinceInStep {
    description: Arc<Desc>,
    labels: [&'static str; 4],
    /// The last time each cache was in step, by its label values.
    caches: Arc<Mutex<BTreeMap<[String; 4], Instant>>>,
}

impl SinceInStep {
    pub(super) fn new(name: &str, help: &str, labels: [&'static str; 4]) -> Result<Self, Error> {
        let label_names = labels.map(str::to_owned).to_vec();
        let description = Desc::new(name.to_owned(), help.to_owned(), label_names, [].into())?;
        Ok(Self {
            description: Arc::new(description),
            labels,
            caches: Arc::default(),
        })
    }

    /// Records that a cache is in step now.
    pub(super) fn set(&self, values: &[String; 4]) {
        let mut caches = self.caches();
        match caches.get_mut(values) {
            Some(since) => *since = Instant::now(),
            None => drop(caches.insert(values.clone(), Instant::now())),
        }
    }

    fn caches(&self) -> MutexGuard<'_, BTreeMap<[String; 4], Instant>> {
        self.caches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn metric(&self, values: &[String; 4], since: Instant) -> Metric {
        let pair = |(name, value): (&str, &String)| {
            let mut pair = LabelPair::default();
            pair.set_name(name.to_owned());
            pair.set_value(value.clone());
            pair
        };
        let mut pairs: Vec<LabelPair> = self.labels.into_iter().zip(values).map(pair).collect();
        pairs.sort();
        let mut gauge = Gauge::default();
        gauge.set_value(since.elapsed().as_secs_f64());
        let mut metric = Metric::from_gauge(gauge);
        metric.set_label(pairs);
        metric
    }
}

impl Collector for SinceInStep {
    fn desc(&self) -> Vec<&Desc> {
        vec![&self.description]
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let caches = self.caches();
        let metrics = caches
            .iter()
            .map(|(values, since)| self.metric(values, *since));
        let mut family = MetricFamily::default();
        family.set_name(self.description.fq_name.clone());
        family.set_help(self.description.help.clone());
        family.set_field_type(MetricType::GAUGE);
        family.set_metric(metrics.collect());
        vec![family]
    }
}
