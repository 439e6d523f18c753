//! Metrics flags.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{bail, ensure};
use clap::ArgAction;

use super::values::{self, Strings};

/// The previous minor version, whose hidden metrics may be shown.
const PREVIOUS_VERSION: &str = "1.35";

/// Parsed `--allow-metric-labels`: metric and label with their allowed values.
pub(crate) type LabelAllowList = Vec<(String, String)>;

/// Upstream: `metrics.Options`.
#[derive(Debug, Clone, PartialEq, clap::Args)]
#[command(next_help_heading = "Metrics flags")]
pub(crate) struct MetricsFlags {
    /// Allowed values of a label, all others become "unexpected": metric,label=value,value; may be
    /// repeated
    #[arg(long, value_name = "stringToString", action = ArgAction::Append, value_parser = label_allow_list)]
    pub(crate) allow_metric_labels: Vec<LabelAllowList>,

    /// Metrics to hide, by their full names
    #[arg(long, value_name = "strings", default_value = "", value_parser = values::strings)]
    pub(crate) disabled_metrics: Strings,

    /// The previous minor version, whose metrics are shown even if this version hides them. No
    /// effect: this version hides none
    #[arg(long, value_name = "string", default_value = "")]
    pub(crate) show_hidden_metrics_for_version: String,
}

impl MetricsFlags {
    /// Validates the names.
    ///
    /// # Errors
    ///
    /// The first violated rule, in the words of upstream.
    ///
    /// Upstream: `metrics.Options.Validate`.
    pub(crate) fn validate(&self) -> anyhow::Result<()> {
        let version = self.show_hidden_metrics_for_version.as_str();
        ensure!(
            version.is_empty() || version == PREVIOUS_VERSION,
            "--show-hidden-metrics-for-version must be omitted or have the value \
             '{PREVIOUS_VERSION}'. Only the previous minor version is allowed"
        );
        for (key, _) in self.allow_metric_labels.iter().flatten() {
            let named = key
                .split_once(',')
                .is_some_and(|(metric, label)| is_name(metric, true) && is_name(label, false));
            if !named {
                bail!(
                    "--allow-metric-labels must have a list of kv pair with format \
                     `metricName,labelName=labelValue, labelValue,...`"
                );
            }
        }
        Ok(())
    }

    /// Allowed label values, by metric and label.
    pub(crate) fn allowed_values(&self) -> BTreeMap<(&str, &str), BTreeSet<&str>> {
        let pairs = self.allow_metric_labels.iter().flatten();
        pairs
            .filter_map(|(key, list)| Some((key.split_once(',')?, values::split(list).collect())))
            .collect()
    }
}

/// Returns true if a text is a valid name of a metric or of a label.
fn is_name(text: &str, with_colons: bool) -> bool {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_' || (with_colons && c == ':');
    text.starts_with(letter) && text.chars().all(|c| letter(c) || c.is_ascii_digit())
}

/// Parses key-value pairs, both of which may contain commas: a single pair as it is, several as
/// comma-separated values in double quotes.
///
/// Upstream: `stringToStringValue.Set`.
fn label_allow_list(text: &str) -> Result<LabelAllowList, String> {
    let fields = match text.matches('=').count() {
        0 => return Err(format!("{text} must be formatted as key=value")),
        1 => vec![text.trim_matches('"').to_owned()],
        _ => quoted_fields(text),
    };
    fields
        .into_iter()
        .map(|pair| match pair.split_once('=') {
            Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
            None => Err(format!("{pair} must be formatted as key=value")),
        })
        .collect()
}

/// Splits at commas outside of double quotes, and removes the quotes.
fn quoted_fields(text: &str) -> Vec<String> {
    let mut fields = Vec::new();
    let mut field = String::new();
    let mut quoted = false;
    for character in text.chars() {
        match character {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(std::mem::take(&mut field)),
            _ => field.push(character),
        }
    }
    fields.push(field);
    fields
}
