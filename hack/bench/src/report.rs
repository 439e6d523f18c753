//! The table of figures, with their broken bounds.

use std::fmt;

/// A row of the table.
pub(crate) struct Row {
    /// Name of the measurement.
    pub(crate) what: String,
    /// The figure.
    pub(crate) value: f64,
    /// The baseline, from the same run.
    pub(crate) baseline: f64,
    /// Name of the baseline.
    pub(crate) baseline_name: &'static str,
    /// Unit of both.
    pub(crate) unit: &'static str,
    /// Upper bound of the figure or of its ratio.
    pub(crate) bound: Option<Bound>,
}

/// An upper bound.
#[derive(Clone, Copy)]
pub(crate) enum Bound {
    /// Of the figure.
    Value(f64),
    /// Of the ratio's distance from 1, in both directions.
    RatioFromOne(f64),
    /// Of the ratio to the baseline.
    RatioAtMost(f64),
}

impl Row {
    fn ratio(&self) -> f64 {
        self.value / self.baseline
    }

    fn is_broken(&self) -> bool {
        match self.bound {
            None => false,
            Some(Bound::Value(most)) => self.value > most,
            Some(Bound::RatioFromOne(most)) => (self.ratio() - 1.0).abs() > most,
            Some(Bound::RatioAtMost(most)) => self.ratio() > most,
        }
    }

    fn bound_text(&self) -> String {
        match self.bound {
            None => String::new(),
            Some(Bound::Value(most)) => format!("at most {} {}", number(most), self.unit),
            Some(Bound::RatioFromOne(most)) => format!("within {:.0} %", most * 100.0),
            Some(Bound::RatioAtMost(most)) => format!("a ratio of at most {most}"),
        }
    }
}

/// All rows of a run.
#[derive(Default)]
pub(crate) struct Report(Vec<Row>);

impl Report {
    /// Adds a row.
    pub(crate) fn add(&mut self, row: Row) {
        self.0.push(row);
    }

    /// A line for each broken bound.
    pub(crate) fn broken(&self) -> Vec<String> {
        let rows = self.0.iter().filter(|row| row.is_broken());
        rows.map(|row| {
            let (value, ratio, bound) = (number(row.value), row.ratio(), row.bound_text());
            let (what, unit) = (&row.what, row.unit);
            format!("{what}: {value} {unit}, {ratio:.3} of the baseline: must be {bound}")
        })
        .collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| measured | figure | baseline | ratio | bound |")?;
        write!(f, "|---|---:|---:|---:|---|")?;
        for row in &self.0 {
            let (value, baseline) = (number(row.value), number(row.baseline));
            let (what, unit) = (&row.what, row.unit);
            let ratio = row.ratio();
            let digits = if ratio < 0.01 { 6 } else { 3 };
            let (name, bound) = (row.baseline_name, row.bound_text());
            write!(
                f,
                "\n| {what} | {value} {unit} | {name}: {baseline} {unit} | {ratio:.digits$} | {bound} |"
            )?;
        }
        Ok(())
    }
}

/// Formats a figure with its significant digits and thousands separators.
fn number(value: f64) -> String {
    if value < 100.0 {
        return format!("{value:.2}");
    }
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(value: f64, bound: Bound) -> Row {
        Row {
            what: "sync".to_owned(),
            value,
            baseline: 1000.0,
            baseline_name: "before",
            unit: "instructions",
            bound: Some(bound),
        }
    }

    #[test]
    fn figures_have_thousands_separators() {
        assert_eq!(number(1_234_567.4), "1,234,567");
        assert_eq!(number(123.0), "123");
        assert_eq!(number(1.239), "1.24");
    }

    #[test]
    fn broken_bounds_are_reported() {
        let mut report = Report::default();
        report.add(row(1099.0, Bound::RatioFromOne(0.1)));
        report.add(row(1101.0, Bound::Value(1101.0)));
        report.add(row(2000.0, Bound::RatioAtMost(2.0)));
        assert!(report.broken().is_empty());
        report.add(row(1101.0, Bound::RatioFromOne(0.1)));
        report.add(row(899.0, Bound::RatioFromOne(0.1)));
        report.add(row(1101.0, Bound::Value(1100.0)));
        report.add(row(2001.0, Bound::RatioAtMost(2.0)));
        let broken = report.broken();
        assert_eq!(broken.len(), 4);
        assert_eq!(
            broken[0],
            "sync: 1,101 instructions, 1.101 of the baseline: must be within 10 %"
        );
    }
}
