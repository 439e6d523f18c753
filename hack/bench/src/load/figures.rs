//! Figures of phases and their medians.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use super::args::{Args, Phase};
use super::program::Command;
use super::reactions::percentile;
use super::requests::Counts;

/// Bytes of a megabyte.
const MEGABYTE: f64 = 1e6;

/// Figures of one phase of one round.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    /// The phase.
    pub(crate) phase: Phase,
    /// Time until its goal was reached.
    pub(crate) time: Duration,
    /// The controller's processor time until it rested.
    pub(crate) cpu: Duration,
    /// The controller's resident memory at the end, in bytes.
    pub(crate) resident: u64,
    /// The controller's largest resident memory, in bytes.
    pub(crate) peak: u64,
    /// The API server's processor time, with the driver's requests.
    pub(crate) server_cpu: Option<Duration>,
    /// The controller's requests.
    pub(crate) requests: Counts,
    /// Times from a pod's event to the pod that follows, sorted.
    pub(crate) reactions: Vec<Duration>,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phase = self.phase.name();
        let (time, cpu) = (self.time.as_secs_f64(), self.cpu.as_secs_f64());
        let peak = self.peak as f64 / MEGABYTE;
        let requests: u64 = self.requests.values().sum();
        write!(
            f,
            "{phase}: {time:.2} s, CPU {cpu:.2} s, peak {peak:.1} MB, {requests} requests"
        )
    }
}

/// A measured program with its rounds.
pub(crate) struct Contender {
    /// The program.
    pub(crate) program: Command,
    /// Its phases, for each round.
    pub(crate) rounds: Vec<Vec<Figures>>,
}

impl Contender {
    /// A program before its first round.
    pub(crate) fn new(program: Command) -> Self {
        Self {
            program,
            rounds: Vec::new(),
        }
    }

    /// Median over the rounds of a figure of the phase at a place of the list.
    pub(crate) fn median(&self, place: usize, measure: &Measure) -> Option<f64> {
        let phases = self.rounds.iter().filter_map(|phases| phases.get(place));
        let mut values: Vec<f64> = phases.filter_map(|figures| measure.of(figures)).collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        match values.len() {
            0 => None,
            length if length.is_multiple_of(2) => {
                Some(f64::midpoint(values[middle - 1], values[middle]))
            }
            _ => Some(values[middle]),
        }
    }
}

/// A figure with a name.
pub(crate) enum Measure {
    /// Seconds until the goal.
    Time,
    /// Seconds of the controller's processor time.
    Cpu,
    /// The same in milliseconds for each of these pods.
    CpuPerPod(usize),
    /// Largest resident memory, in MB.
    Peak,
    /// Resident memory at the end, in MB.
    Resident,
    /// Seconds of the API server's processor time.
    ServerCpu,
    /// This percentile of the reaction times, in milliseconds.
    Reaction(usize),
    /// Number of these requests.
    Requests(String),
}

impl Measure {
    /// Value in the figures; `None` if it isn't known.
    pub(crate) fn of(&self, figures: &Figures) -> Option<f64> {
        Some(match self {
            Self::Time => figures.time.as_secs_f64(),
            Self::Cpu => figures.cpu.as_secs_f64(),
            Self::CpuPerPod(pods) => figures.cpu.as_secs_f64() * 1e3 / *pods as f64,
            Self::Peak => figures.peak as f64 / MEGABYTE,
            Self::Resident => figures.resident as f64 / MEGABYTE,
            Self::ServerCpu => figures.server_cpu?.as_secs_f64(),
            Self::Reaction(percent) => {
                percentile(&figures.reactions, *percent)?.as_secs_f64() * 1e3
            }
            Self::Requests(call) => figures.requests.get(call).copied().unwrap_or_default() as f64,
        })
    }

    /// Name for a table.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Time => "time (s)".to_owned(),
            Self::Cpu => "CPU (s)".to_owned(),
            Self::CpuPerPod(_) => "CPU per pod (ms)".to_owned(),
            Self::Peak => "peak memory (MB)".to_owned(),
            Self::Resident => "memory at the end (MB)".to_owned(),
            Self::ServerCpu => "API server's CPU (s)".to_owned(),
            Self::Reaction(percent) => format!("reaction p{percent} (ms)"),
            Self::Requests(call) => format!("requests: {call}"),
        }
    }
}

/// All figures of a run.
pub(crate) struct Rounds {
    /// The controller, then the baseline if there is one.
    pub(crate) contenders: Vec<Contender>,
}

impl Rounds {
    /// The phases, in the order in which they ran.
    pub(crate) fn phases(&self) -> Vec<Phase> {
        let first = self
            .contenders
            .iter()
            .filter_map(|contender| contender.rounds.first());
        first
            .take(1)
            .flat_map(|phases| phases.iter().map(|figures| figures.phase))
            .collect()
    }

    /// Requests that any program sent in a phase.
    pub(crate) fn calls(&self, place: usize) -> BTreeSet<String> {
        let rounds = self
            .contenders
            .iter()
            .flat_map(|contender| &contender.rounds);
        rounds
            .filter_map(|phases| phases.get(place))
            .flat_map(|figures| figures.requests.keys().cloned())
            .collect()
    }

    /// Every figure of every round.
    pub(crate) fn json(&self, args: &Args) -> Value {
        let phase = |figures: &Figures| {
            let reaction = |percent| percentile(&figures.reactions, percent);
            let reactions = [50, 99].map(|percent| Some(reaction(percent)?.as_secs_f64()));
            json!({
                "phase": figures.phase.name(),
                "seconds": figures.time.as_secs_f64(),
                "cpuSeconds": figures.cpu.as_secs_f64(),
                "residentBytes": figures.resident,
                "peakBytes": figures.peak,
                "apiServerCpuSeconds": figures.server_cpu.map(|cpu| cpu.as_secs_f64()),
                "requests": figures.requests,
                "reactionSeconds": reactions,
            })
        };
        let round = |phases: &Vec<Figures>| phases.iter().map(phase).collect::<Vec<_>>();
        let contender = |contender: &Contender| {
            json!({
                "name": contender.program.name,
                "rounds": contender.rounds.iter().map(round).collect::<Vec<_>>(),
            })
        };
        json!({
            "sets": args.sets,
            "replicas": args.replicas,
            "podManagementPolicy": args.policy.name(),
            "controllers": self.contenders.iter().map(contender).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A run of a controller and a baseline with one phase, three rounds each.
    pub(crate) fn rounds() -> Rounds {
        let figures = |seconds: u64| Figures {
            phase: Phase::Create,
            time: Duration::from_secs(seconds),
            cpu: Duration::from_secs(2 * seconds),
            resident: 1_000_000,
            peak: 2_000_000 * seconds,
            server_cpu: None,
            requests: [("create pods".to_owned(), seconds)].into(),
            reactions: Vec::new(),
        };
        let contender = |name: &str, seconds: [u64; 3]| Contender {
            program: Command::new(name),
            rounds: seconds.map(|seconds| vec![figures(seconds)]).into(),
        };
        Rounds {
            contenders: vec![contender("ours", [9, 1, 2]), contender("theirs", [8, 8, 1])],
        }
    }

    #[test]
    fn medians_are_of_the_rounds() {
        let mut rounds = rounds();
        assert_eq!(rounds.contenders[0].median(0, &Measure::Time), Some(2.0));
        assert_eq!(
            rounds.contenders[0].median(0, &Measure::CpuPerPod(8)),
            Some(500.0)
        );
        assert_eq!(rounds.contenders[0].median(0, &Measure::ServerCpu), None);
        assert_eq!(rounds.contenders[0].median(1, &Measure::Time), None);
        rounds.contenders[0].rounds.pop();
        assert_eq!(rounds.contenders[0].median(0, &Measure::Time), Some(5.0));
    }
}
