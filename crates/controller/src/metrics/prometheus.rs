//! The controller's metrics in the caller's [`prometheus::Registry`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube_apimachinery::object_key::ObjectKey;
use prometheus::core::{Collector, Desc};
use prometheus::proto::{Gauge, LabelPair, Metric, MetricFamily, MetricType};
use prometheus::{Error, IntCounter, IntCounterVec, IntGaugeVec, Opts, Registry};
use statefulset_client::metrics::register;
use statefulset_controller_util::consistency::TrackedResource;
use statefulset_controller_util::stateful_set::PodManagementPolicy;

use super::{FenceMetrics, ServedNamespaces, SetMetrics, ShadowMetrics, Unavailability, Verdict};

#[cfg(test)]
mod tests;

const MAX_UNAVAILABLE: (&str, &str) = (
    "statefulset_controller_statefulset_max_unavailable",
    "[ALPHA] Maximum number of unavailable pods allowed during StatefulSet rolling updates",
);
const UNAVAILABLE_REPLICAS: (&str, &str) = (
    "statefulset_controller_statefulset_unavailable_replicas",
    "[ALPHA] Current number of unavailable pods in StatefulSet",
);
/// Labels of both families, sorted by name.
const SET_LABELS: [&str; 3] = [
    "pod_management_policy",
    "statefulset_name",
    "statefulset_namespace",
];

/// Choice and labels of the exported metrics.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The program's name, for the label `name` of `informer_*`.
    pub program: String,
    /// Exports `statefulset_controller_stale_sync_skips_total`. Kubernetes 1.36 counts
    /// these syncs without exporting them; 1.37 exports them.
    pub stale_sync_skips: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            program: "kube-controller-manager".to_owned(),
            stale_sync_skips: false,
        }
    }
}

impl Options {
    /// Sets the program's name.
    #[must_use]
    pub fn program(mut self, name: impl Into<String>) -> Self {
        self.program = name.into();
        self
    }

    /// Exports `statefulset_controller_stale_sync_skips_total`.
    #[must_use]
    pub fn stale_sync_skips(mut self, exports: bool) -> Self {
        self.stale_sync_skips = exports;
        self
    }
}

/// The family of a [shadow](crate::shadow).
#[derive(Clone)]
pub struct ShadowFamilies {
    decisions: IntCounterVec,
}

impl ShadowFamilies {
    /// Adds the family to a registry, with a series for each verdict.
    ///
    /// # Errors
    ///
    /// The registry already has the family.
    pub fn register(registry: &Registry) -> Result<Self, Error> {
        let options = Opts::new(
            "statefulset_shadow_decisions_total",
            "Number of writes of the leading controller that the shadow compared with its decisions, by verdict.",
        );
        let decisions = register(registry, IntCounterVec::new(options, &["verdict"]))?;
        for verdict in Verdict::ALL {
            decisions.with_label_values(&[verdict.as_str()]);
        }
        Ok(Self { decisions })
    }
}

impl ShadowMetrics for ShadowFamilies {
    fn judged(&self, verdict: Verdict) {
        self.decisions.with_label_values(&[verdict.as_str()]).inc();
    }
}

/// The families of the fence.
#[derive(Clone)]
pub struct FenceFamilies {
    namespaces: IntGaugeVec,
    falls: IntCounterVec,
    denied_probes: IntCounter,
}

impl FenceFamilies {
    /// Adds the families to a registry.
    ///
    /// # Errors
    ///
    /// The registry already has one of the families.
    pub fn register(registry: &Registry) -> Result<Self, Error> {
        let options = Opts::new(
            "statefulset_fence_namespaces",
            "Number of namespaces with the label of --namespace-selector, by state: served, or waiting for a proof of the fence.",
        );
        let namespaces = register(registry, IntGaugeVec::new(options, &["state"]))?;
        let options = Opts::new(
            "statefulset_fence_falls_total",
            "Number of times that a namespace was no longer served, by reason; left is an orderly end.",
        );
        let falls = register(registry, IntCounterVec::new(options, &["reason"]))?;
        let denied_probes = IntCounter::new(
            "statefulset_fence_denied_probes_total",
            "Number of dry runs that were denied, as the fence must do. rest_client_requests_total counts them as 403, too.",
        );
        let families = Self {
            namespaces,
            falls,
            denied_probes: register(registry, denied_probes)?,
        };
        families.namespaces(ServedNamespaces::default());
        Ok(families)
    }
}

impl FenceMetrics for FenceFamilies {
    fn namespaces(&self, namespaces: ServedNamespaces) {
        let ServedNamespaces { served, waiting } = namespaces;
        for (state, count) in [("served", served), ("waiting", waiting)] {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            self.namespaces.with_label_values(&[state]).set(count);
        }
    }

    fn fell(&self, reason: &'static str) {
        self.falls.with_label_values(&[reason]).inc();
    }

    fn probe_denied(&self) {
        self.denied_probes.inc();
    }
}

/// The families `statefulset_*`.
///
/// Unlike upstream's, a set's series are removed with the set.
#[derive(Clone)]
pub struct SetFamilies {
    gauges: Gauges,
    stale_sync_skips: IntCounterVec,
    sync_panics: IntCounter,
}

impl SetFamilies {
    /// Adds the families to a registry; the counter of skipped syncs only if
    /// `show_stale_sync_skips`.
    ///
    /// # Errors
    ///
    /// The registry already has one of the families.
    pub fn register(registry: &Registry, show_stale_sync_skips: bool) -> Result<Self, Error> {
        let gauges = register(registry, Gauges::new())?;
        let options = Opts::new(
            "statefulset_controller_stale_sync_skips_total",
            "[ALPHA] Total number of StatefulSet syncs skipped due to a stale watch cache.",
        );
        let stale_sync_skips = IntCounterVec::new(options, &["group", "resource"]);
        let sync_panics = IntCounter::new(
            "statefulset_sync_panics_total",
            "Number of StatefulSet syncs that panicked. Each is a bug.",
        );
        Ok(Self {
            sync_panics: register(registry, sync_panics)?,
            gauges,
            stale_sync_skips: if show_stale_sync_skips {
                register(registry, stale_sync_skips)?
            } else {
                stale_sync_skips?
            },
        })
    }
}

impl SetMetrics for SetFamilies {
    fn counted(
        &self,
        set: &ObjectKey,
        policy: PodManagementPolicy,
        unavailability: Unavailability,
    ) {
        let mut sets = self.gauges.sets();
        if let Some(known) = sets.get_mut(set)
            && known.policy == policy
        {
            known.max = unavailability.max;
            known.current = unavailability.current.or(known.current);
            return;
        }
        // A set with another policy is a recreated set.
        let fresh = Series {
            policy,
            max: unavailability.max,
            current: unavailability.current,
        };
        sets.insert(set.clone(), fresh);
    }

    fn gone(&self, set: &ObjectKey) {
        self.gauges.sets().remove(set);
    }

    fn sync_panicked(&self) {
        self.sync_panics.inc();
    }

    fn stale_sync_skipped(&self, resource: TrackedResource) {
        let name = resource.to_string();
        let (resource, group) = name.split_once('.').unwrap_or((&name, ""));
        let labels = [group, resource];
        self.stale_sync_skips.with_label_values(&labels).inc();
    }
}

/// The two gauges of each set. A gauge vector would identify labels by a hash of their joined text,
/// which is equal for the sets `a/bc` and `ab/c`, and keep every label's name for each set.
#[derive(Clone)]
struct Gauges {
    descriptions: Arc<[Desc; 2]>,
    sets: Arc<Mutex<BTreeMap<ObjectKey, Series>>>,
}

struct Series {
    policy: PodManagementPolicy,
    max: usize,
    /// `None` until a sync has counted it.
    current: Option<usize>,
}

impl Gauges {
    fn new() -> Result<Self, Error> {
        let describe = |(name, help): (&str, &str)| {
            let labels = SET_LABELS.map(str::to_owned).to_vec();
            Desc::new(name.to_owned(), help.to_owned(), labels, [].into())
        };
        let descriptions = [describe(MAX_UNAVAILABLE)?, describe(UNAVAILABLE_REPLICAS)?];
        Ok(Self {
            descriptions: Arc::new(descriptions),
            sets: Arc::default(),
        })
    }

    fn sets(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Series>> {
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn family(
        &self,
        (name, help): (&str, &str),
        value: impl Fn(&Series) -> Option<usize>,
    ) -> MetricFamily {
        let sets = self.sets();
        let metrics = sets
            .iter()
            .filter_map(|(set, series)| Some(metric(set, series.policy, value(series)?)));
        let mut family = MetricFamily::default();
        family.set_name(name.to_owned());
        family.set_help(help.to_owned());
        family.set_field_type(MetricType::GAUGE);
        family.set_metric(metrics.collect());
        family
    }
}

impl Collector for Gauges {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        vec![
            self.family(MAX_UNAVAILABLE, |series| Some(series.max)),
            self.family(UNAVAILABLE_REPLICAS, |series| series.current),
        ]
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of pods are far below 2^53"
)]
fn metric(set: &ObjectKey, policy: PodManagementPolicy, value: usize) -> Metric {
    let policy = match policy {
        PodManagementPolicy::OrderedReady => "OrderedReady",
        PodManagementPolicy::Parallel => "Parallel",
    };
    let values = [policy, set.name(), set.namespace()];
    let pairs = SET_LABELS.into_iter().zip(values).map(|(name, value)| {
        let mut pair = LabelPair::default();
        pair.set_name(name.to_owned());
        pair.set_value(value.to_owned());
        pair
    });
    let mut gauge = Gauge::default();
    gauge.set_value(value as f64);
    let mut metric = Metric::from_gauge(gauge);
    metric.set_label(pairs.collect());
    metric
}
