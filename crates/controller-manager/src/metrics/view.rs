//! Filters of the metrics page: `--disabled-metrics` and `--allow-metric-labels`.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use prometheus::proto::{LabelPair, Metric, MetricFamily, MetricType};

use crate::flags::metrics::MetricsFlags;

/// Label value that replaces values outside the allow list.
const UNEXPECTED: &str = "unexpected";

/// Hidden families, and allow lists of label values.
///
/// Upstream: `metrics.Options`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// Names of hidden families.
    pub(crate) disabled: BTreeSet<String>,
    /// Allowed label values, by family and label.
    pub(crate) allowed: BTreeMap<(String, String), BTreeSet<String>>,
}

impl From<&MetricsFlags> for View {
    fn from(flags: &MetricsFlags) -> Self {
        let allowed = flags.allowed_values().into_iter();
        let owned = |values: BTreeSet<&str>| values.into_iter().map(str::to_owned).collect();
        Self {
            disabled: flags.disabled_metrics.iter().cloned().collect(),
            allowed: allowed
                .map(|((family, label), values)| {
                    ((family.to_owned(), label.to_owned()), owned(values))
                })
                .collect(),
        }
    }
}

impl View {
    /// Applies the flags to gathered families.
    pub(super) fn apply(&self, mut families: Vec<MetricFamily>) -> Vec<MetricFamily> {
        families.retain(|family| !self.disabled.contains(family.name()));
        for family in &mut families {
            self.limit_labels(family);
        }
        families
    }

    fn limit_labels(&self, family: &mut MetricFamily) {
        let name = family.name().to_owned();
        let (from, to) = ((name.clone(), String::new()), (name + "\0", String::new()));
        let limits: Vec<_> = self.allowed.range(from..to).collect();
        if limits.is_empty() {
            return;
        }
        let kind = family.get_field_type();
        let mut merged: BTreeMap<Vec<String>, Metric> = BTreeMap::new();
        for mut metric in family.take_metric() {
            for label in metric.mut_label() {
                let limit = limits.iter().find(|((_, name), _)| name == label.name());
                if limit.is_some_and(|(_, values)| !values.contains(label.value())) {
                    label.set_value(UNEXPECTED.to_owned());
                }
            }
            let values = metric.get_label().iter().map(LabelPair::value);
            let values = values.map(str::to_owned).collect();
            match merged.entry(values) {
                Entry::Vacant(entry) => drop(entry.insert(metric)),
                Entry::Occupied(mut entry) => add(entry.get_mut(), &metric, kind),
            }
        }
        family.set_metric(merged.into_values().collect());
    }
}

/// Merges a series into another with the same labels. Of gauges the last value wins, as with
/// repeated sets.
fn add(sum: &mut Metric, metric: &Metric, kind: MetricType) {
    match kind {
        MetricType::COUNTER => {
            let mut counter = sum.get_counter().clone();
            counter.set_value(counter.get_value() + metric.get_counter().get_value());
            sum.set_counter(counter);
        }
        MetricType::HISTOGRAM => {
            let (mut total, more) = (sum.get_histogram().clone(), metric.get_histogram());
            total.set_sample_count(total.get_sample_count() + more.get_sample_count());
            total.set_sample_sum(total.get_sample_sum() + more.get_sample_sum());
            let mut buckets = total.get_bucket().to_vec();
            for (bucket, more) in buckets.iter_mut().zip(more.get_bucket()) {
                bucket.set_cumulative_count(bucket.cumulative_count() + more.cumulative_count());
            }
            total.set_bucket(buckets);
            sum.set_histogram(total);
        }
        _ => *sum = metric.clone(),
    }
}

#[cfg(test)]
mod tests {
    use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry};
    use statefulset_client::metrics::prometheus::text;

    use super::*;

    /// A registry with a counter, a gauge and a histogram by host and code.
    fn registry() -> Registry {
        let registry = Registry::new();
        let labels = &["host", "code"];
        let counter = IntCounterVec::new(Opts::new("c", "C"), labels).unwrap();
        let gauge = IntGaugeVec::new(Opts::new("g", "G"), labels).unwrap();
        let options = HistogramOpts::new("h", "H").buckets(vec![1.0, 2.0]);
        let histogram = HistogramVec::new(options, labels).unwrap();
        registry.register(Box::new(counter.clone())).unwrap();
        registry.register(Box::new(gauge.clone())).unwrap();
        registry.register(Box::new(histogram.clone())).unwrap();
        for (host, value) in [("a", 1), ("b", 2), ("d", 4)] {
            let labels = &[host, "200"];
            counter.with_label_values(labels).inc_by(value);
            gauge
                .with_label_values(labels)
                .set(i64::try_from(value).unwrap());
            histogram
                .with_label_values(labels)
                .observe(f64::from(u32::try_from(value).unwrap()));
        }
        registry
    }

    fn shown(view: &View) -> Vec<String> {
        let text = text::encode(&view.apply(registry().gather()));
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        samples
            .map(|line| line.replace(r#"code="200","#, ""))
            .collect()
    }

    fn allowed(family: &str, label: &str, values: &[&str]) -> View {
        let key = (family.to_owned(), label.to_owned());
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        View {
            allowed: [(key, values)].into(),
            ..View::default()
        }
    }

    #[test]
    fn view_follows_the_flags() {
        let flags = MetricsFlags {
            allow_metric_labels: vec![vec![("c,host".to_owned(), "a,b".to_owned())]],
            disabled_metrics: vec!["g".to_owned()],
            show_hidden_metrics_for_version: String::new(),
        };
        let expected = View {
            disabled: ["g".to_owned()].into(),
            ..allowed("c", "host", &["a", "b"])
        };
        assert_eq!(View::from(&flags), expected);
    }

    #[test]
    fn disabled_family_is_omitted() {
        let view = View {
            disabled: ["c", "h"].map(str::to_owned).into(),
            ..View::default()
        };
        assert_eq!(
            shown(&view),
            [r#"g{host="a"} 1"#, r#"g{host="b"} 2"#, r#"g{host="d"} 4"#]
        );
        assert_eq!(shown(&View::default()).len(), 3 + 3 + 3 * 5);
    }

    #[test]
    fn disallowed_label_values_are_merged() {
        let counters = shown(&allowed("c", "host", &["b"]));
        assert_eq!(
            counters[..2],
            [r#"c{host="b"} 2"#, r#"c{host="unexpected"} 5"#]
        );
        let gauges = shown(&allowed("g", "host", &["b"]));
        assert_eq!(
            gauges[3..5],
            [r#"g{host="b"} 2"#, r#"g{host="unexpected"} 4"#]
        );
        let histograms = shown(&allowed("h", "host", &[]));
        let expected = [
            r#"h_bucket{host="unexpected",le="1"} 1"#,
            r#"h_bucket{host="unexpected",le="2"} 2"#,
            r#"h_bucket{host="unexpected",le="+Inf"} 3"#,
            r#"h_sum{host="unexpected"} 7"#,
            r#"h_count{host="unexpected"} 3"#,
        ];
        assert_eq!(histograms[6..], expected);
    }
}
