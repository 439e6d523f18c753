//! The `/metrics/slis` page: health check results for service level monitoring.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

/// Results of one check at one endpoint.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    last: bool,
    successes: u64,
    errors: u64,
}

/// Results by check and endpoint.
///
/// Upstream: `component-base/metrics/prometheus/slis`.
#[derive(Debug, Default)]
pub(crate) struct Slis(Mutex<BTreeMap<(String, &'static str), Seen>>);

impl Slis {
    /// Counts a result. Upstream: `ObserveHealthcheck`.
    pub(crate) fn observe(&self, name: &str, endpoint: &'static str, works: bool) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (name.to_owned(), endpoint);
        let seen = all.entry(key).or_default();
        seen.last = works;
        if works {
            seen.successes += 1;
        } else {
            seen.errors += 1;
        }
    }

    /// Deletes all results. Upstream: `ResetSLIMetrics`.
    pub(crate) fn reset(&self) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.clear();
    }

    /// Metrics in the text format.
    pub(crate) fn gather(&self) -> String {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        if all.is_empty() {
            return text;
        }
        let gauge = "kubernetes_healthcheck";
        let help = "[STABLE] This metric records the result of a single healthcheck.";
        head(&mut text, gauge, help, "gauge");
        for ((name, kind), seen) in all.iter() {
            let last = u8::from(seen.last);
            // Writing to a string can't fail.
            let _ = writeln!(text, "{gauge}{{name=\"{name}\",type=\"{kind}\"}} {last}");
        }
        let counter = "kubernetes_healthchecks_total";
        let help = "[STABLE] This metric records the results of all healthcheck.";
        head(&mut text, counter, help, "counter");
        for ((name, kind), seen) in all.iter() {
            for (status, count) in [("error", seen.errors), ("success", seen.successes)] {
                if count > 0 {
                    let _ = writeln!(
                        text,
                        "{counter}{{name=\"{name}\",status=\"{status}\",type=\"{kind}\"}} {count}"
                    );
                }
            }
        }
        text
    }
}

fn head(text: &mut String, name: &str, help: &str, kind: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_counted_by_check_endpoint_and_outcome() {
        let slis = Slis::default();
        assert_eq!(slis.gather(), "");
        slis.observe("leaderElection", "healthz", true);
        slis.observe("leaderElection", "healthz", true);
        slis.observe("leaderElection", "healthz", false);
        slis.observe("informer-sync", "readyz", true);
        assert_eq!(
            slis.gather(),
            "# HELP kubernetes_healthcheck [STABLE] This metric records the result of a single healthcheck.\n\
             # TYPE kubernetes_healthcheck gauge\n\
             kubernetes_healthcheck{name=\"informer-sync\",type=\"readyz\"} 1\n\
             kubernetes_healthcheck{name=\"leaderElection\",type=\"healthz\"} 0\n\
             # HELP kubernetes_healthchecks_total [STABLE] This metric records the results of all healthcheck.\n\
             # TYPE kubernetes_healthchecks_total counter\n\
             kubernetes_healthchecks_total{name=\"informer-sync\",status=\"success\",type=\"readyz\"} 1\n\
             kubernetes_healthchecks_total{name=\"leaderElection\",status=\"error\",type=\"healthz\"} 1\n\
             kubernetes_healthchecks_total{name=\"leaderElection\",status=\"success\",type=\"healthz\"} 2\n"
        );
        slis.reset();
        assert_eq!(slis.gather(), "");
    }
}
