//! Health: named checks, and the responses for kubelets and people.
//!
//! | endpoint | meaning | checks |
//! |---|---|---|
//! | `/healthz` | as kube-controller-manager's | those of the program |
//! | `/livez` | failing means that a restart would help | the same |
//! | `/readyz` | the process leads with filled caches, or stands by | the same, and those of readiness |

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use http::StatusCode;
use kube_apimachinery::int_or_string::go_quote;

use super::answer::{self, Answer};
use super::slis::Slis;

/// Checks one part of the program.
///
/// Upstream: `healthz.HealthChecker`.
pub(crate) trait HealthCheck: Send + Sync {
    /// Name in responses and in exclusions.
    fn name(&self) -> &str;

    /// Runs the check, without waiting.
    ///
    /// # Errors
    ///
    /// The failure; for the log only, because the endpoint is public.
    fn check(&self) -> Result<(), String>;
}

/// One of the three health endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Endpoint {
    /// As upstream.
    Healthz,
    /// For liveness probes.
    Livez,
    /// For readiness probes.
    Readyz,
}

impl Endpoint {
    /// Name in responses: the path without its slash.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Healthz => "healthz",
            Self::Livez => "livez",
            Self::Readyz => "readyz",
        }
    }
}

/// The checks of the program. Checks can be added at run time.
///
/// Upstream: `MutableHealthzHandler`.
#[derive(Default)]
pub(crate) struct Health {
    checks: RwLock<Vec<Arc<dyn HealthCheck>>>,
    readiness: RwLock<Vec<Arc<dyn HealthCheck>>>,
    slis: Slis,
    /// Failures at the last request of each endpoint, so that only changes are logged.
    failing: Mutex<BTreeMap<Endpoint, Vec<String>>>,
}

impl Health {
    /// Adds a check to all endpoints.
    ///
    /// Upstream: `AddHealthChecker`.
    pub(crate) fn add(&self, check: Arc<dyn HealthCheck>) {
        let mut checks = self.checks.write().unwrap_or_else(PoisonError::into_inner);
        checks.push(check);
    }

    /// Adds a check to `/readyz` alone.
    pub(crate) fn add_readiness(&self, check: Arc<dyn HealthCheck>) {
        let mut checks = self
            .readiness
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        checks.push(check);
    }

    /// Counts and last results of the checks.
    pub(crate) fn slis(&self) -> &Slis {
        &self.slis
    }

    fn checks(&self, endpoint: Endpoint) -> Vec<Arc<dyn HealthCheck>> {
        let read = |list: &RwLock<Vec<Arc<dyn HealthCheck>>>| {
            list.read().unwrap_or_else(PoisonError::into_inner).clone()
        };
        let mut checks = read(&self.checks);
        if endpoint == Endpoint::Readyz {
            checks.extend(read(&self.readiness));
        }
        checks
    }

    /// Runs the checks, except those excluded in the query.
    ///
    /// Upstream: `handleRootHealth`.
    pub(crate) fn answer(&self, endpoint: Endpoint, query: &str) -> Answer {
        let mut verbose = false;
        let mut excluded = BTreeSet::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match name.as_ref() {
                "verbose" => verbose = true,
                "exclude" => drop(excluded.insert(value.into_owned())),
                _ => {}
            }
        }
        let mut lines = String::new();
        let mut failed = Vec::new();
        for check in self.checks(endpoint) {
            let name = check.name();
            if excluded.remove(name) {
                line(&mut lines, format_args!("[+]{name} excluded: ok"));
                continue;
            }
            let result = check.check();
            self.slis.observe(name, endpoint.name(), result.is_ok());
            match result {
                Ok(()) => line(&mut lines, format_args!("[+]{name} ok")),
                // The endpoint is public, so the reason is for the log only.
                Err(reason) => {
                    line(
                        &mut lines,
                        format_args!("[-]{name} failed: reason withheld"),
                    );
                    failed.push((name.to_owned(), reason));
                }
            }
        }
        if !excluded.is_empty() {
            let unknown: Vec<String> = excluded.iter().map(|name| go_quote(name)).collect();
            line(
                &mut lines,
                format_args!(
                    "warn: some health checks cannot be excluded: no matches for {}",
                    unknown.join(", ")
                ),
            );
        }
        self.report(endpoint, &failed);
        let name = endpoint.name();
        if !failed.is_empty() {
            let message = format!("{lines}{name} check failed");
            return answer::error(StatusCode::INTERNAL_SERVER_ERROR, &message);
        }
        if verbose {
            return answer::text(format!("{lines}{name} check passed\n"));
        }
        answer::text("ok")
    }

    /// Logs a change of the failing checks.
    fn report(&self, endpoint: Endpoint, failed: &[(String, String)]) {
        let names: Vec<String> = failed.iter().map(|(name, _)| name.clone()).collect();
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = failing.insert(endpoint, names.clone()).unwrap_or_default();
        if before == names {
            return;
        }
        let endpoint = endpoint.name();
        if failed.is_empty() {
            tracing::info!(endpoint, "all health checks pass again");
            return;
        }
        let reasons: Vec<String> = failed
            .iter()
            .map(|(name, reason)| format!("{name}: {reason}"))
            .collect();
        tracing::info!(endpoint, failed = %reasons.join("; "), "health checks fail");
    }
}

fn line(lines: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string can't fail.
    let _ = writeln!(lines, "{text}");
}

#[cfg(test)]
mod tests;
