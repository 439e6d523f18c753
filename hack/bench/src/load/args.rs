//! Flags of the load driver.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::{Parser, ValueEnum};

use super::program::Command;

/// Name of the controller's program, in the folder of this one.
const CONTROLLER: &str = "statefulset-controller-manager";
/// Flags of the controller: no limit of requests that would hide its cost.
const CONTROLLER_FLAGS: &str = "--kubeconfig=$KUBECONFIG --leader-elect=false --secure-port=0 \
                                --kube-api-qps=10000 --kube-api-burst=10000";

/// Measures a controller on an API server: processor time, memory and requests of each phase.
///
/// A command is run by sh, with KUBECONFIG set to the server's kubeconfig.
#[derive(Debug, Parser)]
#[command(name = "bench load")]
pub(crate) struct Args {
    /// Kubeconfig of the API server; without it, an embedded one is started.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Process of the API server, to read its processor time.
    #[arg(long, value_name = "PID", requires = "kubeconfig")]
    pub(crate) api_server_pid: Option<u32>,

    /// Command that runs the controller; by default the one next to this program.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) controller: Option<String>,

    /// Command that runs a second controller in turn, the baseline of the ratios.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) compare: Option<String>,

    /// Number of sets.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) sets: u32,

    /// Replicas of each set.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) replicas: u32,

    /// Pod management policy of the sets.
    #[arg(long, value_name = "POLICY", default_value = "OrderedReady")]
    pub(crate) policy: Policy,

    /// Runs of each controller; the table shows medians.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,

    /// Phases to run, in this order.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "create,roll,idle,restart,scale,delete"
    )]
    pub(crate) phases: Vec<Phase>,

    /// Length of the phase idle, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub(crate) idle_seconds: u64,

    /// Keep a hot set, whose pod changes its readiness without pause, and a wedged one, whose first
    /// pod never becomes ready, alongside the others. CPU then counts until the goal of a phase.
    #[arg(long)]
    pub(crate) disturb: bool,

    /// Seconds that a phase may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub(crate) patience_seconds: u64,

    /// File for every figure of every round, as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// File for a chart of the medians.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

/// A set's policy, by its name in the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(crate) enum Policy {
    /// One pod after the other.
    OrderedReady,
    /// All pods at once.
    Parallel,
}

impl Policy {
    /// Name in the API.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OrderedReady => "OrderedReady",
            Self::Parallel => "Parallel",
        }
    }
}

/// A part of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "kebab-case")]
pub(crate) enum Phase {
    /// Create the sets, until every pod is ready.
    Create,
    /// Change the image of every set, until every pod is replaced.
    Roll,
    /// Change nothing.
    Idle,
    /// End the controller, and start it again.
    Restart,
    /// Scale every set to no replicas, until no pod is left.
    Scale,
    /// Delete every set.
    Delete,
}

impl Phase {
    /// Name of the flag's value.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Roll => "roll",
            Self::Idle => "idle",
            Self::Restart => "restart",
            Self::Scale => "scale",
            Self::Delete => "delete",
        }
    }
}

impl Args {
    /// The programs to measure: the controller, and the baseline if there is one.
    pub(crate) fn contenders(&self) -> anyhow::Result<Vec<Command>> {
        let first = match &self.controller {
            Some(command) => Command::new(command),
            None => own_controller()?,
        };
        let mut contenders = vec![first];
        contenders.extend(self.compare.as_deref().map(Command::new));
        if let [first, second] = &mut contenders[..]
            && first.name == second.name
        {
            first.name.push_str(" (1)");
            second.name.push_str(" (2)");
        }
        Ok(contenders)
    }

    /// Number of pods of all sets.
    pub(crate) fn pods(&self) -> usize {
        self.sets as usize * self.replicas as usize
    }

    /// Time that a phase may take.
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_secs(self.patience_seconds)
    }
}

fn own_controller() -> anyhow::Result<Command> {
    let own = std::env::current_exe().context("find this program")?;
    let program = own.with_file_name(CONTROLLER);
    let path = program.display();
    ensure!(
        program.is_file(),
        "{path} is missing: build it with `cargo build --release -p {CONTROLLER}`, or use --controller"
    );
    Ok(Command::new(&format!("{path} {CONTROLLER_FLAGS}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_one_name_are_numbered() {
        let args = Args::try_parse_from(["bench", "--controller=a/x -v", "--compare=b/x"]).unwrap();
        let names: Vec<_> = args.contenders().unwrap();
        let names: Vec<_> = names.iter().map(|command| command.name.as_str()).collect();
        assert_eq!(names, ["x (1)", "x (2)"]);
    }

    #[test]
    fn phases_run_in_the_order_of_the_flag() {
        let args = Args::try_parse_from(["bench", "--phases=roll,create"]).unwrap();
        assert_eq!(args.phases, [Phase::Roll, Phase::Create]);
        assert!(Args::try_parse_from(["bench", "--phases=fly"]).is_err());
        assert!(Args::try_parse_from(["bench", "--sets=0"]).is_err());
    }
}
