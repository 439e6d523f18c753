//! Counts and printed results.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;

use crate::files::lines;

/// Result of one case.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Id of the case.
    pub id: String,
    /// Differences; empty for a passed case.
    pub differences: Vec<String>,
    /// Deviations whose rule changed the expectation.
    pub deviations: Vec<&'static str>,
}

impl Verdict {
    /// A case whose input the product can't read.
    pub fn broken(id: String, error: &anyhow::Error) -> Self {
        Self {
            id,
            differences: vec![format!("the case can't be run: {error:#}")],
            deviations: Vec::new(),
        }
    }
}

/// Results of all cases.
#[derive(Debug, Default)]
pub struct Report {
    /// Number of passed cases.
    pub passed: usize,
    /// Failed cases.
    pub failed: Vec<Verdict>,
    /// Number of passed cases that each deviation altered.
    pub deviations: BTreeMap<&'static str, usize>,
    /// Number of differences per category, for runners with categories.
    pub categories: BTreeMap<String, usize>,
    /// Number of expectations that each rule left out.
    pub left_out: BTreeMap<&'static str, usize>,
}

impl Report {
    /// Runs all cases of all files.
    ///
    /// # Errors
    ///
    /// A file can't be read, has no case, or contains something else.
    pub fn of(
        files: &[PathBuf],
        run: impl Fn(&str) -> anyhow::Result<Verdict>,
    ) -> anyhow::Result<Self> {
        let mut report = Self::default();
        for file in files {
            for (index, line) in lines(file)?.iter().enumerate() {
                let place = || format!("{}, line {}", file.display(), index + 1);
                report.add(run(line).with_context(place)?);
            }
        }
        Ok(report)
    }

    /// Appends another report's cases.
    pub fn append(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed.extend(other.failed);
        add_counts(&mut self.deviations, other.deviations);
        add_counts(&mut self.categories, other.categories);
        add_counts(&mut self.left_out, other.left_out);
    }

    fn add(&mut self, verdict: Verdict) {
        if !verdict.differences.is_empty() {
            self.failed.push(verdict);
            return;
        }
        self.passed += 1;
        for name in verdict.deviations {
            *self.deviations.entry(name).or_default() += 1;
        }
    }

    /// Prints the differences, the deviations and the counts; the exit code shows whether all cases
    /// passed.
    #[expect(clippy::print_stdout, reason = "the runner's output")]
    pub fn print(&self) -> ExitCode {
        for verdict in &self.failed {
            println!("FAILED {}", verdict.id);
            for line in &verdict.differences {
                println!("  {line}");
            }
        }
        for (name, count) in &self.deviations {
            println!("deviation {name}: {count}");
        }
        for (name, count) in &self.categories {
            println!("differs in {name}: {count}");
        }
        for (name, count) in &self.left_out {
            println!("left out, {name}: {count}");
        }
        println!("{} passed, {} failed", self.passed, self.failed.len());
        if self.failed.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(1)
        }
    }
}

fn add_counts<K: Ord>(counts: &mut BTreeMap<K, usize>, others: BTreeMap<K, usize>) {
    for (name, count) in others {
        *counts.entry(name).or_default() += count;
    }
}

impl FromIterator<Verdict> for Report {
    fn from_iter<T: IntoIterator<Item = Verdict>>(verdicts: T) -> Self {
        let mut report = Self::default();
        for verdict in verdicts {
            report.add(verdict);
        }
        report
    }
}
