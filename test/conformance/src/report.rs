//! Counting and printing.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;

use crate::files::lines;

/// How one case went.
#[derive(Debug, Default)]
pub struct Verdict {
    /// The case's id.
    pub id: String,
    /// What differs; nothing in a case that passes.
    pub differences: Vec<String>,
    /// The deviations whose rule changed the expectation.
    pub deviations: Vec<&'static str>,
}

impl Verdict {
    /// A case in which the product can't even read what it is given.
    pub fn broken(id: String, error: &anyhow::Error) -> Self {
        Self {
            id,
            differences: vec![format!("the case can't be run: {error:#}")],
            deviations: Vec::new(),
        }
    }
}

/// How all cases went.
#[derive(Debug, Default)]
pub struct Report {
    /// Cases that passed.
    pub passed: usize,
    /// Cases that failed.
    pub failed: Vec<Verdict>,
    /// How many passing cases each deviation altered.
    pub deviations: BTreeMap<&'static str, usize>,
    /// How many differences of each category there are, where a runner tells categories.
    pub categories: BTreeMap<&'static str, usize>,
    /// How many expectations each rule left out.
    pub left_out: BTreeMap<&'static str, usize>,
}

impl Report {
    /// Runs every case of every file.
    ///
    /// # Errors
    ///
    /// A file can't be read, holds no case, or holds something that is no case of its form.
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

    /// Puts another report's cases behind these.
    pub fn append(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed.extend(other.failed);
        for (counts, others) in [
            (&mut self.deviations, other.deviations),
            (&mut self.categories, other.categories),
            (&mut self.left_out, other.left_out),
        ] {
            for (name, count) in others {
                *counts.entry(name).or_default() += count;
            }
        }
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

    /// Prints the differences, the deviations and the counts; the exit code tells whether all
    /// cases passed.
    #[expect(clippy::print_stdout, reason = "the runner's answer")]
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

impl FromIterator<Verdict> for Report {
    fn from_iter<T: IntoIterator<Item = Verdict>>(verdicts: T) -> Self {
        let mut report = Self::default();
        for verdict in verdicts {
            report.add(verdict);
        }
        report
    }
}
