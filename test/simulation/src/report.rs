//! Reports over many runs.

use std::collections::BTreeMap;
use std::io;
use std::time::Instant;

use simulation::outcome::Outcome;

/// The sums over many runs.
pub(crate) struct Report {
    began: Instant,
    jobs: usize,
    runs: usize,
    failed: usize,
    seconds: f64,
    requests: usize,
    writes: usize,
    syncs: usize,
    doomed: usize,
    outrun: usize,
    overlaps: usize,
    rules: BTreeMap<String, usize>,
    situations: BTreeMap<String, usize>,
    settled: Vec<f64>,
}

impl Report {
    /// Creates an empty report of runs, `jobs` at a time.
    pub(crate) fn new(jobs: usize) -> Self {
        Self {
            began: now(),
            jobs,
            runs: 0,
            failed: 0,
            seconds: 0.0,
            requests: 0,
            writes: 0,
            syncs: 0,
            doomed: 0,
            outrun: 0,
            overlaps: 0,
            rules: BTreeMap::new(),
            situations: BTreeMap::new(),
            settled: Vec::new(),
        }
    }

    /// Adds a run.
    pub(crate) fn add(&mut self, outcome: &Outcome) {
        self.runs += 1;
        self.failed += usize::from(!outcome.violations.is_empty());
        self.seconds += outcome.seconds;
        self.requests += outcome.requests;
        self.writes += outcome.writes;
        self.syncs += outcome.syncs;
        self.doomed += outcome.doomed;
        self.outrun += outcome.outrun;
        self.overlaps += outcome.overlaps;
        self.settled.extend(outcome.settled_after);
        for rule in &outcome.rules {
            *self.rules.entry(rule.clone()).or_default() += 1;
        }
        for situation in &outcome.situations {
            *self.situations.entry(situation.clone()).or_default() += 1;
        }
    }

    /// One line about the runs so far.
    pub(crate) fn progress(&self) -> String {
        let wall = self.began.elapsed().as_secs_f64();
        let (runs, failed) = (self.runs, self.failed);
        let (per_second, rate) = (usize_to_f64(runs) / wall, self.seconds / wall);
        format!(
            "{runs} runs in {wall:.0} s, {failed} failed, {per_second:.1} runs a second, \
             {rate:.0} simulated seconds a second"
        )
    }

    /// Reports whether no run broke a rule.
    pub(crate) fn passed(&self) -> bool {
        self.failed == 0
    }

    /// Prints the report, with the counts of the required situations if requested. Returns those that
    /// no run reached.
    pub(crate) fn print(
        &self,
        required: &[&'static str],
        with_situations: bool,
        out: &mut impl io::Write,
    ) -> Result<Vec<&'static str>, String> {
        let written = self.print_lines(required, with_situations, out);
        written.map_err(|error| format!("cannot print: {error}"))?;
        let all = required.iter().copied();
        Ok(all
            .filter(|it| !self.situations.contains_key(*it))
            .collect())
    }

    fn print_lines(
        &self,
        required: &[&str],
        with_situations: bool,
        out: &mut impl io::Write,
    ) -> io::Result<()> {
        for situation in required.iter().filter(|_| with_situations) {
            let times = self.situations.get(*situation).copied().unwrap_or_default();
            writeln!(out, "{times:>6}  {situation}")?;
        }
        let wall = self.began.elapsed().as_secs_f64();
        let Self {
            runs,
            failed,
            seconds,
            requests,
            writes,
            syncs,
            doomed,
            outrun,
            jobs,
            ..
        } = self;
        let per_job = seconds / wall / usize_to_f64(*jobs);
        writeln!(
            out,
            "{runs} runs, {failed} failed, {:.1} simulated days in {wall:.0} s \
             ({:.1} runs a second; {per_job:.0} simulated seconds a second on each of {jobs} \
             processors)",
            seconds / 86_400.0,
            usize_to_f64(*runs) / wall
        )?;
        writeln!(
            out,
            "{requests} requests, {syncs} syncs, {writes} writes; {doomed} writes that could delete \
             a claim; a user's change came before {outrun} of them"
        )?;
        if self.overlaps > 0 {
            let overlaps = self.overlaps;
            writeln!(
                out,
                "{overlaps} writes of the wrong controller stored before every API server applied \
                 the fence"
            )?;
        }
        let mut settled = self.settled.clone();
        settled.sort_by(f64::total_cmp);
        let quantile = |percent: usize| {
            let last = settled.len().saturating_sub(1);
            settled
                .get(last * percent / 100)
                .copied()
                .unwrap_or_default()
        };
        writeln!(
            out,
            "settled after the last fault: p50 {:.0} s, p99 {:.0} s, max {:.0} s",
            quantile(50),
            quantile(99),
            quantile(100)
        )?;
        let reached = required
            .iter()
            .filter(|it| self.situations.contains_key(**it));
        writeln!(
            out,
            "{} of {} situations reached",
            reached.count(),
            required.len()
        )?;
        for (rule, times) in &self.rules {
            writeln!(out, "rule {rule} broken in {times} runs")?;
        }
        Ok(())
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "numbers of runs and processors are small"
)]
fn usize_to_f64(number: usize) -> f64 {
    number as f64
}

/// Returns the real time: runs have a simulated one, their batch has not.
#[expect(clippy::disallowed_methods, reason = "the speed of a batch is real")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
