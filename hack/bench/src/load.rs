//! Load driver: a controller's cost on a whole API server, phase by phase.
//!
//! It creates the sets, plays the kubelet for their pods, and reads the processor time and memory of
//! the controller's process. A second controller can take turns on the same server.
//!
//! ```text
//! Args ─▶ ApiServer ─┬▶ Program (controller) ─▶ Usage ───┐
//!                    ├▶ Kubelet ─▶ Audience (progress) ──┼▶ Figures of a phase ─▶ table, JSON, SVG
//!                    └▶ Workload (sets) ─────────────────┘
//! ```

#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "figures are far below 2^52, and counts aren't negative"
)]

mod api_server;
mod args;
mod chart;
mod disturbance;
mod figures;
mod kubelet;
mod phases;
mod program;
mod progress;
mod reactions;
mod requests;
mod table;
mod workload;

use std::io::Write as _;

use anyhow::Context as _;
use clap::Parser as _;

use self::api_server::ApiServer;
use self::args::Args;
use self::figures::{Contender, Rounds};
use self::phases::Round;

/// Name of the subcommand.
pub(crate) const SUBCOMMAND: &str = "load";

/// Runs the load that the arguments describe, and prints its table.
pub(crate) fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let args = match Args::try_parse_from(arguments) {
        Ok(args) => args,
        Err(error) if !error.use_stderr() => return Ok(error.print()?),
        Err(error) => anyhow::bail!("{}", error.render().to_string().trim_end()),
    };
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(drive(&args))
}

async fn drive(args: &Args) -> anyhow::Result<()> {
    let server = ApiServer::start(args).await?;
    let mut contenders: Vec<Contender> =
        args.contenders()?.into_iter().map(Contender::new).collect();
    for round in 1..=args.rounds {
        for contender in &mut contenders {
            let title = format!(
                "round {round} of {}, {}",
                args.rounds, contender.program.name
            );
            let figures = Round::new(args, &server, title)?
                .run(&contender.program)
                .await?;
            contender.rounds.push(figures);
        }
    }
    server.stop()?;
    let rounds = Rounds { contenders };
    writeln!(std::io::stdout(), "{}", table::render(args, &rounds))?;
    if let Some(path) = &args.json {
        let text = serde_json::to_vec_pretty(&rounds.json(args))?;
        std::fs::write(path, text).with_context(|| format!("write {}", path.display()))?;
    }
    if let Some(path) = &args.svg {
        std::fs::write(path, chart::render(&rounds))
            .with_context(|| format!("write {}", path.display()))?;
    }
    Ok(())
}
