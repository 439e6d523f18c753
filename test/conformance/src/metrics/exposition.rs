//! Parser of scrapes, by family.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, bail, ensure};

/// A metric family.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Family {
    /// Help text, verbatim.
    pub help: String,
    /// `counter`, `gauge`, `histogram` and so on.
    pub kind: String,
    /// Samples in the order of the text.
    pub samples: Vec<Sample>,
}

/// One line with a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Suffix after the family name: `_bucket`, `_sum`, `_count` or empty.
    pub suffix: String,
    /// Labels and unescaped values, in the order of the text.
    pub labels: Vec<(String, String)>,
    /// Number, verbatim.
    pub value: String,
}

impl Sample {
    /// Value of a label.
    pub fn label(&self, name: &str) -> Option<&str> {
        let mut labels = self.labels.iter();
        let (_, value) = labels.find(|(found, _)| found == name)?;
        Some(value)
    }

    /// Label names, without that of the bucket bound.
    pub fn label_names(&self) -> Vec<&str> {
        let names = self.labels.iter().map(|(name, _)| name.as_str());
        names.filter(|name| *name != BOUND).collect()
    }
}

/// Label of the bucket bound.
pub const BOUND: &str = "le";

impl Family {
    /// Label names of the series: one entry if all are equal.
    pub fn label_sets(&self) -> BTreeSet<Vec<&str>> {
        self.samples.iter().map(Sample::label_names).collect()
    }

    /// Bucket bounds of each series: one entry if all are equal.
    pub fn bounds(&self) -> BTreeSet<Vec<&str>> {
        let mut by_series: BTreeMap<Vec<&(String, String)>, Vec<&str>> = BTreeMap::new();
        for sample in self
            .samples
            .iter()
            .filter(|sample| sample.suffix == "_bucket")
        {
            let series = sample.labels.iter().filter(|(name, _)| name != BOUND);
            let bounds = by_series.entry(series.collect()).or_default();
            bounds.extend(sample.label(BOUND));
        }
        by_series.into_values().collect()
    }

    /// Values of a label.
    pub fn label_values(&self, label: &str) -> BTreeSet<&str> {
        self.samples
            .iter()
            .filter_map(|sample| sample.label(label))
            .collect()
    }
}

/// Parses a scrape in the text format 0.0.4: names with families, in the order of the text.
///
/// # Errors
///
/// A malformed line, or a sample without a preceding family.
pub fn parse(text: &str) -> anyhow::Result<Vec<(String, Family)>> {
    let mut families: Vec<(String, Family)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let place = || format!("line {}: {line:?}", index + 1);
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap_or((rest, ""));
            help.clone_into(&mut family(&mut families, name).help);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').with_context(place)?;
            kind.clone_into(&mut family(&mut families, name).kind);
        } else if !line.starts_with('#') && !line.trim().is_empty() {
            let (name, labels, value) = sample(line).with_context(place)?;
            let (owner, family) = families.last_mut().with_context(place)?;
            let suffix = name.strip_prefix(owner.as_str());
            let known = ["", "_bucket", "_sum", "_count"];
            let suffix = suffix.filter(|suffix| known.contains(suffix));
            let suffix = suffix.with_context(|| format!("{}: not of {owner}", place()))?;
            family.samples.push(Sample {
                suffix: suffix.to_owned(),
                labels,
                value,
            });
        }
    }
    Ok(families)
}

/// Returns the last family if it has this name, else adds one.
fn family<'a>(families: &'a mut Vec<(String, Family)>, name: &str) -> &'a mut Family {
    if families.last().is_none_or(|(last, _)| last != name) {
        families.push((name.to_owned(), Family::default()));
    }
    let last = families.len() - 1;
    &mut families[last].1
}

type Labels = Vec<(String, String)>;

/// Parses name, labels and value of one line.
fn sample(line: &str) -> anyhow::Result<(&str, Labels, String)> {
    let end = line.find(['{', ' ']).context("no value")?;
    let (name, mut rest) = line.split_at(end);
    ensure!(!name.is_empty(), "no name");
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (label, after) = rest.split_once("=\"").context("a label without a value")?;
            let (value, after) = quoted(after)?;
            labels.push((label.to_owned(), value));
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        rest = &rest[1..];
    }
    let mut words = rest.split_ascii_whitespace();
    let value = words.next().context("no value")?;
    Ok((name, labels, value.to_owned()))
}

/// Parses a value up to its closing quote; also returns the remaining text.
fn quoted(text: &str) -> anyhow::Result<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((index, character)) = characters.next() {
        match character {
            '"' => return Ok((value, &text[index + 1..])),
            '\\' => match characters.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, escaped)) => value.push(escaped),
                None => break,
            },
            other => value.push(other),
        }
    }
    bail!("a label's value has no end")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scrapes_parse_by_family() {
        let text = "# HELP a Some help\n# TYPE a histogram\n\
                    a_bucket{x=\"1\",le=\"0.5\"} 1\na_bucket{x=\"1\",le=\"+Inf\"} 2\n\
                    a_sum{x=\"1\"} 0.5\na_count{x=\"1\"} 2\n\
                    # TYPE b gauge\nb +Inf\n\
                    # HELP c C\n# TYPE c counter\nc{y=\"q\\\"\\\\\\n,}\",z=\"\"} 3 1700000000\n";
        let families = parse(text).unwrap();
        let names: Vec<&str> = families.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        let [(_, a), (_, b), (_, c)] = families.try_into().unwrap();
        assert_eq!(
            (a.help.as_str(), a.kind.as_str()),
            ("Some help", "histogram")
        );
        assert_eq!(a.bounds(), [vec!["0.5", "+Inf"]].into());
        assert_eq!(a.label_sets(), [vec!["x"]].into());
        assert_eq!(a.samples[2].suffix, "_sum");
        assert_eq!((b.help.as_str(), b.samples[0].value.as_str()), ("", "+Inf"));
        assert_eq!(b.label_sets(), [vec![]].into());
        assert_eq!(c.samples[0].label("y"), Some("q\"\\\n,}"));
        assert_eq!(c.samples[0].label("z"), Some(""));
        assert_eq!(c.samples[0].value, "3");
    }

    #[test]
    fn parse_rejects_malformed_scrapes() {
        for text in [
            "a 1",
            "# TYPE a\n",
            "# TYPE a counter\nb 1",
            "# TYPE a counter\na_total 1",
            "# TYPE a counter\na",
            "# TYPE a counter\na{x=\"1} 1",
            "# TYPE a counter\na{x} 1",
            "# TYPE a counter\n{x=\"1\"} 1",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
