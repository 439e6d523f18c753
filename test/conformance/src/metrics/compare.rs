//! Comparison of two scrapes in their form. Values are ignored: they are from different runs.

use std::collections::BTreeMap;

use super::exposition::Family;
use crate::report::Verdict;

/// Prefixes of families that must match upstream; other families are program-specific.
const PREFIXES: [&str; 4] = [
    "leader_election_",
    "rest_client_",
    "statefulset_controller_",
    "workqueue_",
];

/// Families specific to Go's client: its connection cache, and its way of running exec plugins.
const GO_ONLY: [&str; 3] = [
    "rest_client_exec_plugin_call_total",
    "rest_client_transport_ca_reload_total",
    "rest_client_transport_cache_gc_calls_total",
];

/// Families without series until a rare event. A reference without them may not have had the event.
const RARE: [&str; 3] = [
    "leader_election_slowpath_total",
    "rest_client_request_retries_total",
    "statefulset_controller_stale_sync_skips_total",
];

/// Labels whose values are the same in every run.
const STATIC_LABELS: [(&str, &str); 2] = [("leader_election_", "name"), ("workqueue_", "name")];

fn is_compared(name: &str) -> bool {
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Compares each family; returns a verdict per family of upstream, and per own family that
/// upstream lacks.
pub(super) fn compare(reference: &[(String, Family)], own: &[(String, Family)]) -> Vec<Verdict> {
    let own_by_name: BTreeMap<&str, &Family> = by_name(own);
    let reference_by_name = by_name(reference);
    let mut verdicts: Vec<Verdict> = reference
        .iter()
        .filter(|(name, _)| is_compared(name) && !GO_ONLY.contains(&name.as_str()))
        .map(|(name, expected)| Verdict {
            id: name.clone(),
            differences: match own_by_name.get(name.as_str()) {
                Some(found) => differences(name, expected, found),
                None => vec!["is missing".to_owned()],
            },
            deviations: Vec::new(),
        })
        .collect();
    let more = own.iter().filter(|(name, _)| {
        is_compared(name)
            && !reference_by_name.contains_key(name.as_str())
            && !RARE.contains(&name.as_str())
    });
    verdicts.extend(more.map(|(name, _)| Verdict {
        id: name.clone(),
        differences: vec!["missing in the reference".to_owned()],
        deviations: Vec::new(),
    }));
    verdicts.push(order(own));
    verdicts
}

fn by_name(families: &[(String, Family)]) -> BTreeMap<&str, &Family> {
    families
        .iter()
        .map(|(name, family)| (name.as_str(), family))
        .collect()
}

fn differences(name: &str, expected: &Family, found: &Family) -> Vec<String> {
    let mut differences = Vec::new();
    let mut check = |what: &str, expected: String, found: String| {
        if expected != found {
            differences.push(format!("{what}: expected {expected}, is {found}"));
        }
    };
    check(
        "help",
        format!("{:?}", expected.help),
        format!("{:?}", found.help),
    );
    check("type", expected.kind.clone(), found.kind.clone());
    let labels = |family: &Family| format!("{:?}", family.label_sets());
    check("labels", labels(expected), labels(found));
    let bounds = |family: &Family| format!("{:?}", family.bounds());
    check("buckets", bounds(expected), bounds(found));
    for (prefix, label) in STATIC_LABELS {
        if name.starts_with(prefix) {
            let values = |family: &Family| format!("{:?}", family.label_values(label));
            check(label, values(expected), values(found));
        }
    }
    differences
}

/// Go's exporters sort families by name, and series by label values.
fn order(own: &[(String, Family)]) -> Verdict {
    let mut differences = Vec::new();
    if !own.is_sorted_by(|(a, _), (b, _)| a < b) {
        differences.push("the families aren't sorted by name".to_owned());
    }
    for (name, family) in own {
        let series = family.samples.iter().filter(|sample| {
            // One line per series of a histogram.
            matches!(sample.suffix.as_str(), "" | "_count")
        });
        let values: Vec<Vec<&str>> = series
            .map(|sample| {
                sample
                    .labels
                    .iter()
                    .map(|(_, value)| value.as_str())
                    .collect()
            })
            .collect();
        if !values.is_sorted_by(|a, b| a < b) {
            differences.push(format!("the series of {name} aren't sorted"));
        }
        let sorted = |sample: &super::exposition::Sample| sample.label_names().is_sorted();
        if !family.samples.iter().all(sorted) {
            differences.push(format!("the labels of {name} aren't sorted"));
        }
    }
    Verdict {
        id: "order".to_owned(),
        differences,
        deviations: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::exposition::parse;
    use super::*;

    const UPSTREAM: &str = "\
# HELP go_threads G
# TYPE go_threads gauge
go_threads 1
# HELP rest_client_exec_plugin_call_total E
# TYPE rest_client_exec_plugin_call_total counter
rest_client_exec_plugin_call_total{code=\"0\"} 1
# HELP rest_client_request_size_bytes R
# TYPE rest_client_request_size_bytes histogram
rest_client_request_size_bytes_bucket{host=\"h\",verb=\"GET\",le=\"1\"} 1
rest_client_request_size_bytes_bucket{host=\"h\",verb=\"GET\",le=\"+Inf\"} 1
rest_client_request_size_bytes_sum{host=\"h\",verb=\"GET\"} 1
rest_client_request_size_bytes_count{host=\"h\",verb=\"GET\"} 1
# HELP workqueue_depth W
# TYPE workqueue_depth gauge
workqueue_depth{name=\"statefulset\"} 0
";

    /// Differences if the program exposes this instead.
    fn found(own: &str) -> Vec<String> {
        let verdicts = compare(&parse(UPSTREAM).unwrap(), &parse(own).unwrap());
        let summary = |verdict: Verdict| {
            let id = verdict.id;
            let lines = verdict.differences.into_iter();
            let lines = lines.map(|line| format!("{id}: {line}"));
            lines.collect::<Vec<_>>()
        };
        verdicts.into_iter().flat_map(summary).collect()
    }

    #[test]
    fn values_and_go_families_are_ignored() {
        assert_eq!(found(UPSTREAM), [""; 0]);
        let (_, own) = UPSTREAM.split_once("# HELP rest_client_request").unwrap();
        let own = format!("# HELP rest_client_request{own}");
        let own = own.replace("\"h\"", "\"i\"").replace("GET", "PUT");
        assert_eq!(found(&own.replace("} 1", "} 7")), [""; 0]);
    }

    #[test]
    fn each_difference_in_form_is_reported() {
        for (from, to, expected) in [
            (
                "depth W",
                "depth V",
                "workqueue_depth: help: expected \"W\", is \"V\"",
            ),
            (
                "depth gauge",
                "depth counter",
                "workqueue_depth: type: expected gauge, is counter",
            ),
            (
                "name=\"statefulset\"",
                "name=\"sets\"",
                "workqueue_depth: name: expected {\"statefulset\"}, is {\"sets\"}",
            ),
            (
                "le=\"1\"",
                "le=\"2\"",
                "rest_client_request_size_bytes: buckets: expected {[\"1\", \"+Inf\"]}, is \
                 {[\"2\", \"+Inf\"]}",
            ),
            (
                "host=\"h\",",
                "",
                "rest_client_request_size_bytes: labels: expected {[\"host\", \"verb\"]}, is \
                 {[\"verb\"]}",
            ),
        ] {
            assert_eq!(found(&UPSTREAM.replace(from, to)), [expected]);
        }
        assert_eq!(
            found(&UPSTREAM.replace("workqueue_depth", "workqueue_width")),
            [
                "workqueue_depth: is missing",
                "workqueue_width: missing in the reference",
            ]
        );
    }

    #[test]
    fn unsorted_families_and_series_are_reported() {
        let two = "# TYPE a gauge\na{x=\"2\"} 1\na{x=\"1\"} 1\n";
        let found = found(&format!("{UPSTREAM}{two}"));
        assert_eq!(
            found,
            [
                "order: the families aren't sorted by name",
                "order: the series of a aren't sorted",
            ]
        );
    }
}
