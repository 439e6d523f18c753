//! The table of medians.

use std::fmt::Write as _;

use super::args::{Args, Phase};
use super::figures::{Measure, Rounds};

/// Renders medians in Markdown: a row for each figure of each phase, a column for each program, and
/// the ratio of the first to the second.
pub(crate) fn render(args: &Args, rounds: &Rounds) -> String {
    let names = rounds
        .contenders
        .iter()
        .map(|contender| contender.program.name.as_str());
    let names: Vec<_> = names.collect();
    let is_compared = names.len() > 1;
    let (sets, policy, replicas) = (args.sets, args.policy.name(), args.replicas);
    let mut text = format!(
        "{sets} {policy} sets of {replicas} pods, medians of {}\n\n",
        args.rounds
    );
    let ratio = if is_compared { " ratio |" } else { "" };
    let _ = writeln!(text, "| phase | figure | {} |{ratio}", names.join(" | "));
    text.push_str("|---|---|");
    text.push_str(&"---:|".repeat(names.len() + usize::from(is_compared)));
    for (place, phase) in rounds.phases().into_iter().enumerate() {
        for measure in measures(args, rounds, place, phase) {
            let medians = rounds
                .contenders
                .iter()
                .map(|contender| contender.median(place, &measure));
            let medians: Vec<Option<f64>> = medians.collect();
            if medians.iter().all(Option::is_none) {
                continue;
            }
            let _ = write!(text, "\n| {} | {} |", phase.name(), measure.name());
            for median in &medians {
                let _ = write!(text, " {} |", median.map(number).unwrap_or_default());
            }
            if let [Some(first), Some(second)] = medians[..] {
                let ratio = if second > 0.0 {
                    format!("{:.2}", first / second)
                } else {
                    String::new()
                };
                let _ = write!(text, " {ratio} |");
            }
        }
    }
    text
}

fn measures(args: &Args, rounds: &Rounds, place: usize, phase: Phase) -> Vec<Measure> {
    let mut measures = vec![Measure::Time, Measure::Cpu];
    if matches!(phase, Phase::Create | Phase::Roll | Phase::Scale) {
        measures.push(Measure::CpuPerPod(args.pods()));
    }
    measures.extend([50, 99].map(Measure::Reaction));
    measures.extend([Measure::Peak, Measure::Resident, Measure::ServerCpu]);
    measures.extend(rounds.calls(place).into_iter().map(Measure::Requests));
    measures
}

fn number(value: f64) -> String {
    if value >= 1000.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::super::figures::tests::rounds;
    use super::*;

    #[test]
    fn rows_have_ratios_of_medians() {
        let args = Args::try_parse_from(["bench", "--sets=4", "--replicas=2"]).unwrap();
        let text = render(&args, &rounds());
        let expected = "4 OrderedReady sets of 2 pods, medians of 3\n\n\
            | phase | figure | ours | theirs | ratio |\n\
            |---|---|---:|---:|---:|\n\
            | create | time (s) | 2.00 | 8.00 | 0.25 |\n\
            | create | CPU (s) | 4.00 | 16.00 | 0.25 |\n\
            | create | CPU per pod (ms) | 500.00 | 2000 | 0.25 |\n\
            | create | peak memory (MB) | 4.00 | 16.00 | 0.25 |\n\
            | create | memory at the end (MB) | 1.00 | 1.00 | 1.00 |\n\
            | create | requests: create pods | 2.00 | 8.00 | 0.25 |";
        assert_eq!(text, expected);
    }

    #[test]
    fn one_program_has_no_ratio() {
        let args = Args::try_parse_from(["bench"]).unwrap();
        let mut rounds = rounds();
        rounds.contenders.pop();
        let text = render(&args, &rounds);
        assert!(text.contains("\n| create | time (s) | 2.00 |\n"), "{text}");
    }
}
