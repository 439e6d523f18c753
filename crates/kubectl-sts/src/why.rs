//! The reason why a set isn't complete, with evidence and a remedy.
//!
//! The shipped controller takes one step on a snapshot ([`crate::decide`]) and returns its reason to
//! wait; [`explain`] looks for the cause in the objects that it names, with one module of [`causes`]
//! for each kind.

mod answer;
mod case;
mod causes;
pub(crate) mod explain;
mod finding;
mod lookups;
mod risks;

use jiff::Timestamp;
use kube_apimachinery::error_line::error_line;
use serde::Serialize;

use crate::Session;
use crate::objects::read;
use crate::output::{Style, Tone, printable};
use crate::server::Server;
pub(crate) use answer::Answer;
pub(crate) use finding::{Risk, SetState};

/// The answers about several sets.
#[derive(Debug, Serialize)]
pub(crate) struct Why {
    sets: Vec<Answer>,
    /// Recreations that have begun and not ended, of a search for all sets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    recreations: Vec<String>,
    /// Evidence that couldn't be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unread: Vec<String>,
    /// True if all unsettled sets were asked for, instead of names.
    #[serde(skip)]
    is_search: bool,
    #[serde(skip)]
    now: Timestamp,
}

impl Why {
    /// The answers for people: details of one set, a table of several.
    pub(crate) fn text(&self, style: Style) -> String {
        let mut text = match self.sets.as_slice() {
            [] if !self.recreations.is_empty() => String::new(),
            [] if self.is_search => "every set is complete\n".to_owned(),
            [] => "no set of this name was found\n".to_owned(),
            [only] if !self.is_search => only.details(self.now, style),
            several => answer::table_of(several, self.now),
        };
        for recreation in &self.recreations {
            text.push_str(&style.paint(Tone::Bad, &printable(recreation)));
            text.push('\n');
        }
        for unread in &self.unread {
            text.push_str(&style.paint(Tone::Warn, &format!("incomplete: {unread}")));
            text.push('\n');
        }
        text
    }

    /// Adds the recreations of a search: their sets may not exist.
    pub(crate) fn add_recreations(&mut self, found: anyhow::Result<Vec<String>>) {
        match found {
            Ok(found) => self.recreations = found,
            Err(error) => self.unread.push(error_line(error.as_ref())),
        }
    }

    /// The first set's cause, unless nothing is left to do.
    pub(crate) fn reason_unless_settled(&self) -> Option<String> {
        let answer = self.sets.first()?;
        let finding = &answer.finding;
        (finding.state != SetState::Settled).then(|| finding.text.clone())
    }
}

/// Explains these sets, or all that aren't settled. `everywhere` includes all namespaces.
pub(crate) async fn why(
    server: &Server,
    session: &Session,
    names: &[String],
    everywhere: bool,
) -> anyhow::Result<Why> {
    let (mut answers, mut unread) = (Vec::new(), Vec::new());
    let sets = if names.is_empty() {
        let namespace = (!everywhere).then_some(session.namespace.as_str());
        read::unsettled(server, namespace, &mut unread).await?
    } else {
        read::sets(server, &session.namespace, names).await?
    };
    for sets in read::by_namespace(sets) {
        let namespace = read::namespace(server, sets, session.now, &mut unread).await?;
        for snapshot in namespace.into_snapshots() {
            answers.extend(explain::explain(server, &snapshot).await);
        }
    }
    if names.is_empty() {
        answers.retain(|answer| !answer.finding.is_calm());
    }
    unread.sort();
    unread.dedup();
    Ok(Why {
        sets: answers,
        recreations: Vec::new(),
        unread,
        is_search: names.is_empty(),
        now: session.now,
    })
}
