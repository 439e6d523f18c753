//! Answers to questions about StatefulSets, for the kubectl plugin `kubectl-sts`.
//!
//! A question reads objects from the API server ([`server`]), decodes the few members that it needs
//! ([`model`]) and renders an answer ([`output`]). Nothing is ever written.

// No server or user input may cause a panic here.
#![cfg_attr(
    not(test),
    warn(
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::string_slice,
        clippy::unreachable
    )
)]

pub mod cli;
pub mod connect;
mod decide;
mod diff;
mod history;
pub mod model;
pub mod output;
mod plan;
mod revisions;
pub mod server;
mod timeline;
mod watch;
mod why;

use jiff::Timestamp;
use kube::Client;

use crate::cli::{Cli, Command};
use crate::output::{Style, render};
use crate::server::Server;

/// Everything that an answer depends on beside the question.
pub struct Session {
    /// The cluster.
    pub client: Client,
    /// The namespace of the question.
    pub namespace: String,
    /// The current time.
    pub now: Timestamp,
    /// The style of texts.
    pub style: Style,
}

/// An answer.
pub struct Reply {
    /// The text, with a line break at the end.
    pub text: String,
    /// Whether a planned change would delete data or take down every pod at once.
    pub is_dangerous: bool,
    /// Whether a watched set is settled.
    pub is_settled: bool,
}

/// Answers a question.
///
/// # Errors
///
/// The cluster can't be reached, a right is missing, or an object doesn't exist.
pub async fn run(cli: &Cli, session: &Session) -> anyhow::Result<Reply> {
    let server = Server::new(session.client.clone());
    let (mut is_dangerous, mut is_settled) = (false, false);
    let text = match &cli.command {
        Command::History { name } => {
            let found = revisions::read(&server, &session.namespace, name).await?;
            let history = history::History::new(&found);
            render(cli.output, &history, |history| history.text(session))
        }
        Command::Diff { name, from, to } => {
            let found = revisions::read(&server, &session.namespace, name).await?;
            let diff = diff::Diff::new(&found, from.as_deref(), to.as_deref())?;
            render(cli.output, &diff, |diff| diff.text(session.style))
        }
        Command::Why {
            names,
            all_namespaces,
        } => {
            let why = why::why(&server, session, names, *all_namespaces).await?;
            render(cli.output, &why, |why| why.text(session.style))
        }
        Command::Plan(arguments) => {
            let plan = plan::plan(&server, session, arguments).await?;
            is_dangerous = plan.is_dangerous();
            render(cli.output, &plan, |plan| plan.text(session.style))
        }
        Command::Timeline { name, svg } => {
            let timeline = timeline::timeline(&server, session, name).await?;
            if *svg {
                Ok(timeline.picture())
            } else {
                render(cli.output, &timeline, |timeline| {
                    timeline.text(session.style)
                })
            }
        }
        Command::Watch { name, .. } => {
            let status = watch::status(&server, session, name).await?;
            is_settled = status.is_settled();
            render(cli.output, &status, |status| status.text(session.style))
        }
        Command::Completion { shell } => Ok(cli::completion(*shell)),
    }?;
    Ok(Reply {
        text,
        is_dangerous,
        is_settled,
    })
}
