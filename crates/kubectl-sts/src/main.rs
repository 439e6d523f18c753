//! The program `kubectl-sts`, run as `kubectl sts`.
//!
//! # Exit codes
//!
//! 0 after an answer; 1 after an error, with one line `error: …` on stderr; 2 if a plan is
//! dangerous, the cluster is not ready to switch or to upgrade, a shadow report shows differences,
//! or a wait finds its set stuck; 3 at the time limit of a wait.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser as _;
use kube_apimachinery::error_line::error_line;
use kubectl_sts::cli::{Cli, Color, Command, Output};
use kubectl_sts::output::{Style, fold, printable};
use kubectl_sts::{Reply, Session, connect};
use statefulset_client::clock::{Clock as _, SystemClock};

/// Time between two reads of a watched set.
const WATCH_INTERVAL: Duration = Duration::from_secs(2);
/// Clears a terminal.
const CLEAR: &str = "\u{1b}[2J\u{1b}[H";

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(usage) => {
            // With the stream closed, the text is lost.
            let _ = usage.print();
            // clap exits with 2, which means findings here.
            let is_answer = usage.exit_code() == 0;
            return if is_answer {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            };
        }
    };
    match start(&cli) {
        Ok(code) => code,
        Err(error) => {
            // With stderr closed, the error is lost.
            let _ = writeln!(std::io::stderr(), "error: {}", error_line(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

fn start(cli: &Cli) -> anyhow::Result<ExitCode> {
    match &cli.command {
        Command::Completion { shell } => {
            print(&kubectl_sts::cli::completion(*shell))?;
            return Ok(ExitCode::SUCCESS);
        }
        Command::Man { folder } => {
            kubectl_sts::cli::man(folder)?;
            return Ok(ExitCode::SUCCESS);
        }
        _ => {}
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    let style = match cli.color {
        Color::Always => Style::Colored,
        Color::Auto if is_color_wanted() => Style::Colored,
        Color::Auto | Color::Never => Style::Plain,
    };
    let reply = runtime.block_on(answer(cli, style))?;
    Ok(ExitCode::from(reply.verdict.exit_code()))
}

/// Prints the answer. For `watch`, prints it after every change until the set is settled.
async fn answer(cli: &Cli, style: Style) -> anyhow::Result<Reply> {
    let (client, namespace) = connect::connect(cli).await?;
    let is_watch = matches!(cli.command, Command::Watch { once: false, .. });
    let is_screen = is_watch && cli.output == Output::Text && std::io::stdout().is_terminal();
    let width = terminal_width().filter(|_| cli.output == Output::Text);
    let mut shown = String::new();
    loop {
        let session = Session {
            client: client.clone(),
            namespace: namespace.clone(),
            now: SystemClock.now(),
            style,
        };
        // The lines of a wait; with stdout closed, the final answer reports the error.
        let mut report = |line: &str| {
            if cli.output == Output::Text {
                let _ = print(line);
            }
        };
        let reply = kubectl_sts::follow(cli, &session, &mut report).await?;
        if reply.text != shown {
            let clear = if is_screen { CLEAR } else { "" };
            let text = width.map(|width| fold(&reply.text, width));
            print(&format!("{clear}{}", text.as_ref().unwrap_or(&reply.text)))?;
            shown.clone_from(&reply.text);
            for note in &reply.notes {
                // With stderr closed, the note is lost.
                let _ = writeln!(std::io::stderr(), "{}", printable(note));
            }
        }
        if !is_watch || reply.is_settled {
            return Ok(reply);
        }
        tokio::time::sleep(WATCH_INTERVAL).await;
    }
}

/// The columns of the terminal that stdout is.
fn terminal_width() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(std::io::stdout())?;
    Some(usize::from(width.0))
}

/// Reports whether stdout shows colours, by <https://no-color.org>.
fn is_color_wanted() -> bool {
    let is_refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    std::io::stdout().is_terminal() && !is_refused
}

/// Prints an answer. A reader that closes the pipe early, such as `head`, is not an error.
fn print(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("write to stdout"),
    }
}
