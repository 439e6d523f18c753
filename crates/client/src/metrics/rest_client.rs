//! The `rest_client_*` metric families.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use prometheus::{
    Error, Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry,
};

use super::register;
use crate::rest::metrics::ClientMetrics;

/// Buckets of durations, in seconds.
const SECONDS: [f64; 12] = [
    0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0,
];
/// Buckets of sizes, in bytes.
const BYTES: [f64; 11] = [
    64.0,
    256.0,
    512.0,
    1024.0,
    4096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
];
/// Buckets of certificate ages, from ten minutes to four years, in seconds.
const AGE: [f64; 11] = [
    600.0,
    1_800.0,
    3_600.0,
    14_400.0,
    86_400.0,
    604_800.0,
    2_592_000.0,
    7_776_000.0,
    15_552_000.0,
    31_104_000.0,
    124_416_000.0,
];
/// Label value of a request without a response.
const NO_ANSWER: &str = "<error>";

/// The metric families of requests to API servers.
///
/// Some describe features that only Go's client has, and have constant values. Clients share no
/// connections, so no transport is cached. Certificates from exec plugins are not measured.
///
/// Upstream: `component-base/metrics/prometheus/restclient`.
#[derive(Clone)]
pub struct RestClientFamilies {
    requests: IntCounterVec,
    retries: IntCounterVec,
    duration: HistogramVec,
    rate_limiter: HistogramVec,
    request_size: HistogramVec,
    response_size: HistogramVec,
    transports: IntCounterVec,
}

impl RestClientFamilies {
    /// Adds the families to a registry.
    ///
    /// # Errors
    ///
    /// Fails if the registry already has one of them.
    pub fn register(registry: &Registry) -> Result<Self, Error> {
        register_constants(registry)?;
        let counter = |name: &str, help: &str, labels: &[&str]| {
            register(registry, IntCounterVec::new(Opts::new(name, help), labels))
        };
        let histogram = |name: &str, help: &str, buckets: &[f64]| {
            let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
            register(registry, HistogramVec::new(options, &["verb", "host"]))
        };
        Ok(Self {
            requests: counter(
                "rest_client_requests_total",
                "[ALPHA] Number of HTTP requests, partitioned by status code, method, and host.",
                &["code", "method", "host"],
            )?,
            retries: counter(
                "rest_client_request_retries_total",
                "[ALPHA] Number of request retries, partitioned by status code, verb, and host.",
                &["code", "verb", "host"],
            )?,
            duration: histogram(
                "rest_client_request_duration_seconds",
                "[ALPHA] Request latency in seconds. Broken down by verb, and host.",
                &SECONDS,
            )?,
            rate_limiter: histogram(
                "rest_client_rate_limiter_duration_seconds",
                "[ALPHA] Client side rate limiter latency in seconds. Broken down by verb, and \
                 host.",
                &SECONDS,
            )?,
            request_size: histogram(
                "rest_client_request_size_bytes",
                "[ALPHA] Request size in bytes. Broken down by verb and host.",
                &BYTES,
            )?,
            response_size: histogram(
                "rest_client_response_size_bytes",
                "[ALPHA] Response size in bytes. Broken down by verb and host.",
                &BYTES,
            )?,
            transports: counter(
                "rest_client_transport_create_calls_total",
                "[ALPHA] Number of calls to get a new transport, partitioned by the result of the \
                 operation hit: obtained from the cache, miss: created and added to the cache, \
                 miss-gc: recreated and added back to the cache after being garbage collected, \
                 uncacheable: created and not cached",
                &["result"],
            )?,
        })
    }

    /// Returns the metrics for a new client of this host. `host` is the host of the server's URL,
    /// with the port if the URL has one.
    pub fn client(&self, host: &str) -> Arc<dyn ClientMetrics> {
        self.transports.with_label_values(&["uncacheable"]).inc();
        Arc::new(OfHost {
            families: self.clone(),
            host: host.into(),
        })
    }
}

/// Registers the families with constant values. The registry keeps them.
fn register_constants(registry: &Registry) -> Result<(), Error> {
    let ttl = Gauge::new(
        "rest_client_exec_plugin_ttl_seconds",
        "[ALPHA] Gauge of the shortest TTL (time-to-live) of the client certificate(s) managed by \
         the auth exec plugin. The value is in seconds until certificate expiry (negative if \
         already expired). If auth exec plugins are unused or manage no TLS certificates, the \
         value will be +INF.",
    );
    register(registry, ttl)?.set(f64::INFINITY);
    let age = HistogramOpts::new(
        "rest_client_exec_plugin_certificate_rotation_age",
        "[ALPHA] Histogram of the number of seconds the last auth exec plugin client certificate \
         lived before being rotated. If auth exec plugin client certificates are unused, \
         histogram will contain no data.",
    );
    register(registry, Histogram::with_opts(age.buckets(AGE.to_vec())))?;
    let entries = Gauge::new(
        "rest_client_transport_cache_entries",
        "[ALPHA] Number of transport entries in the internal cache.",
    );
    register(registry, entries)?;
    let collected = IntCounter::new(
        "rest_client_transport_cert_rotation_gc_calls_total",
        "[ALPHA] Number of times a cert rotation goroutine cancel func is called via GC cleanup \
         of the associated transport",
    );
    register(registry, collected)?;
    Ok(())
}

/// The metrics of requests to one host.
struct OfHost {
    families: RestClientFamilies,
    host: Box<str>,
}

impl OfHost {
    fn count(&self, counter: &IntCounterVec, method: &Method, code: Option<u16>) {
        let code = code.and_then(|code| StatusCode::from_u16(code).ok());
        let code = code.as_ref().map_or(NO_ANSWER, StatusCode::as_str);
        let labels = [code, method.as_str(), &self.host];
        counter.with_label_values(&labels).inc();
    }

    fn observe(&self, histogram: &HistogramVec, method: &Method, value: f64) {
        let labels = [method.as_str(), &self.host];
        histogram.with_label_values(&labels).observe(value);
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "sizes of bodies are far below 2^53 bytes"
    )]
    fn observe_size(&self, histogram: &HistogramVec, method: &Method, bytes: u64) {
        self.observe(histogram, method, bytes as f64);
    }
}

impl ClientMetrics for OfHost {
    fn requested(&self, method: &Method, code: Option<u16>) {
        self.count(&self.families.requests, method, code);
    }

    fn sent(&self, method: &Method, bytes: u64) {
        self.observe_size(&self.families.request_size, method, bytes);
    }

    fn rate_limited(&self, method: &Method, wait: Duration) {
        self.observe(&self.families.rate_limiter, method, wait.as_secs_f64());
    }

    fn retried(&self, method: &Method, code: Option<u16>) {
        self.count(&self.families.retries, method, code);
    }

    fn finished(&self, method: &Method, elapsed: Duration, received: Option<u64>) {
        self.observe(&self.families.duration, method, elapsed.as_secs_f64());
        if let Some(bytes) = received {
            self.observe_size(&self.families.response_size, method, bytes);
        }
    }
}
