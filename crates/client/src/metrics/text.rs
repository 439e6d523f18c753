//! The text format 0.0.4, byte for byte as Go's exporters write it.
//!
//! Scrapers accept any number format, but dashboards and scripts compare label values such as
//! `le="1e-08"`.

use prometheus::proto::{Histogram, LabelPair, Metric, MetricFamily, MetricType};

/// The content type that Go's exporters send with the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";

/// Encodes the families gathered from a registry.
///
/// Upstream: `expfmt.MetricFamilyToText`.
pub fn encode(families: &[MetricFamily]) -> String {
    let mut out = String::new();
    for family in families {
        encode_family(&mut out, family);
    }
    out
}

fn encode_family(out: &mut String, family: &MetricFamily) {
    let name = family.name();
    let (kind, value): (_, fn(&Metric) -> f64) = match family.get_field_type() {
        MetricType::COUNTER => ("counter", |metric| metric.get_counter().get_value()),
        MetricType::GAUGE => ("gauge", |metric| metric.get_gauge().get_value()),
        MetricType::HISTOGRAM => ("histogram", |_| f64::NAN),
        // The library creates neither.
        MetricType::SUMMARY | MetricType::UNTYPED => return,
    };
    push_all(
        out,
        &["# HELP ", name, " ", &escape(family.help(), false), "\n"],
    );
    push_all(out, &["# TYPE ", name, " ", kind, "\n"]);
    for metric in family.get_metric() {
        if family.get_field_type() == MetricType::HISTOGRAM {
            encode_histogram(out, name, metric.get_label(), metric.get_histogram());
        } else {
            sample(out, name, "", metric.get_label(), None, value(metric));
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "the format has only floats; counts are far below 2^53"
)]
fn encode_histogram(out: &mut String, name: &str, labels: &[LabelPair], histogram: &Histogram) {
    let count = histogram.get_sample_count();
    let buckets = histogram.get_bucket().iter();
    let mut buckets: Vec<_> = buckets
        .map(|bucket| (bucket.upper_bound(), bucket.cumulative_count()))
        .collect();
    if buckets.last().is_none_or(|(bound, _)| bound.is_finite()) {
        buckets.push((f64::INFINITY, count));
    }
    for (bound, cumulative) in buckets {
        sample(out, name, "_bucket", labels, Some(bound), cumulative as f64);
    }
    sample(out, name, "_sum", labels, None, histogram.get_sample_sum());
    sample(out, name, "_count", labels, None, count as f64);
}

/// Writes one line; `bound` is a bucket's upper bound.
fn sample(
    out: &mut String,
    name: &str,
    suffix: &str,
    labels: &[LabelPair],
    bound: Option<f64>,
    value: f64,
) {
    push_all(out, &[name, suffix]);
    let mut before = "{";
    for label in labels {
        push_all(
            out,
            &[
                before,
                label.name(),
                "=\"",
                &escape(label.value(), true),
                "\"",
            ],
        );
        before = ",";
    }
    if let Some(bound) = bound {
        push_all(out, &[before, "le=\"", &go_float(bound), "\""]);
        before = ",";
    }
    let after = if before == "," { "} " } else { " " };
    push_all(out, &[after, &go_float(value), "\n"]);
}

fn push_all(out: &mut String, parts: &[&str]) {
    for part in parts {
        out.push_str(part);
    }
}

/// Escapes a help text, or a label's value with its quotes.
fn escape(text: &str, quotes: bool) -> String {
    let escaped = text.replace('\\', r"\\").replace('\n', r"\n");
    if quotes {
        escaped.replace('"', "\\\"")
    } else {
        escaped
    }
}

/// Formats a number like Go: the shortest digits that parse to the same value, with an exponent
/// from a million up and below a ten-thousandth.
///
/// Upstream: `strconv.AppendFloat` with format `g` and precision -1.
pub fn go_float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => value.to_string(),
    }
}
