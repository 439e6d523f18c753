//! Waits for a state of a set.
//!
//! A wait checks the set again and again, as `why` explains it, and ends early if the set is stuck:
//! at once for a cause that only a person resolves, after a while for one that another program or
//! time may resolve, such as a registry that doesn't respond.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube_apimachinery::error_line::error_line;
use serde::Serialize;
use tokio::time::{Instant, sleep, timeout};

use crate::Session;
use crate::cli::Goal;
use crate::model::Set;
use crate::objects::read;
use crate::output::{Style, Tone, age, printable};
use crate::server::{STATEFUL_SETS, Server};
use crate::session::Verdict;
use crate::why::{Answer, SetState, explain};

/// Time between two checks of the set.
const INTERVAL: Duration = Duration::from_secs(2);
/// Time that a check may take even if less is left.
const LOOK_TIME: Duration = Duration::from_secs(10);
/// Causes that another program, or time, may resolve.
const PASSING: [&str; 20] = [
    "no-controller",
    "image-pull",
    "crash-loop",
    "restart-loop",
    "config-missing",
    "no-room",
    "nodes-cordoned",
    "nodes-not-ready",
    "node-lost",
    "claim-unbound",
    "claim-finalizer",
    "pod-finalizer",
    "pod-hangs",
    "scheduling-gate",
    "name-terminating",
    "quota",
    "service-account-missing",
    "webhook",
    "write-refused",
    "sync-error",
];
/// Time for which such a cause must last.
const PASSING_TIME: SignedDuration = SignedDuration::from_secs(60);
/// The cause of a set that is being deleted, which never becomes complete.
const DELETED: &str = "set-deleted";

/// A state to wait for.
pub(crate) struct Question<'a> {
    /// The set.
    pub(crate) name: &'a str,
    pub(crate) goal: Goal,
    /// The time limit.
    pub(crate) timeout: Duration,
}

impl<'a> Question<'a> {
    /// Asks for a goal of a set.
    pub(crate) const fn new(name: &'a str, goal: Goal, timeout: Duration) -> Self {
        Self {
            name,
            goal,
            timeout,
        }
    }
}

/// The end of a wait.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Wait {
    #[serde(rename = "for")]
    goal: &'static str,
    end: End,
    /// Seconds of waiting.
    seconds: u64,
    #[serde(flatten)]
    answer: Answer,
    #[serde(skip)]
    now: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum End {
    Done,
    Stuck,
    Late,
}

/// One check of the set.
struct Look {
    answer: Answer,
    is_complete: bool,
    is_available: bool,
    now: Timestamp,
}

/// A cause for which the set is stuck, and the time since which the wait has seen it.
#[derive(Default)]
struct Stall {
    cause: &'static str,
    since: Option<Timestamp>,
}

/// Waits for a state of a set. `report` gets a line after each change.
///
/// # Errors
///
/// The set doesn't exist, is deleted in the meantime, or can't be read at first. Later errors count
/// as outages, until the time limit.
pub(crate) async fn wait(
    server: &Server,
    session: &Session,
    question: &Question<'_>,
    report: &mut dyn FnMut(&str),
) -> anyhow::Result<Wait> {
    let begin = Instant::now();
    let first = look(server, session, question.name, session.now);
    let mut last = within(question.timeout, first).await?;
    let (mut stall, mut reported) = (Stall::default(), String::new());
    loop {
        let elapsed = begin.elapsed();
        let is_late = elapsed >= question.timeout;
        let is_stuck = stall.lasts(&last, is_late);
        let is_done = match question.goal {
            Goal::Complete => last.is_complete,
            Goal::Available => last.is_available,
            Goal::Stalled => is_stuck,
        };
        let end = match (is_done, is_stuck, is_late) {
            (true, ..) => Some(End::Done),
            (false, true, _) => Some(End::Stuck),
            (false, false, true) => Some(End::Late),
            (false, false, false) => None,
        };
        if let Some(end) = end {
            return Ok(Wait {
                goal: question.goal.as_str(),
                end,
                seconds: elapsed.as_secs(),
                answer: last.answer,
                now: last.now,
            });
        }
        let line = last.line();
        if line != reported {
            report(&line);
            reported = line;
        }
        sleep(INTERVAL.min(question.timeout.saturating_sub(elapsed))).await;
        let waited = SignedDuration::try_from(begin.elapsed()).unwrap_or(SignedDuration::MAX);
        let now = session.now.saturating_add(waited).unwrap_or(session.now);
        let next = look(server, session, question.name, now);
        let left = question.timeout.saturating_sub(begin.elapsed());
        match within(left, next).await {
            Ok(next) => last = next,
            Err(error) if is_gone(server, session, question.name).await => return Err(error),
            Err(error) => server.note_unread(&error_line(error.as_ref())),
        }
    }
}

/// Limits the time of a check.
async fn within(
    left: Duration,
    look: impl Future<Output = anyhow::Result<Look>>,
) -> anyhow::Result<Look> {
    let limit = left.max(LOOK_TIME);
    match timeout(limit, look).await {
        Ok(look) => look,
        Err(_) => anyhow::bail!(
            "check the set: the API server did not respond within {} s",
            limit.as_secs()
        ),
    }
}

/// Checks the set.
async fn look(
    server: &Server,
    session: &Session,
    name: &str,
    now: Timestamp,
) -> anyhow::Result<Look> {
    let names = [name.to_owned()];
    let sets = read::sets(server, &session.namespace, &names).await?;
    let mut unread = Vec::new();
    let namespace = read::namespace(server, sets, now, &mut unread).await?;
    for text in &unread {
        server.note_unread(text);
    }
    let snapshot = namespace.into_snapshot();
    let answer = explain::explain(server, &snapshot).await;
    let set = snapshot.set.as_ref().map(|set| &set.object);
    let found = set.zip(answer);
    let (set, answer) = found.ok_or_else(|| anyhow::anyhow!("StatefulSet {name} has no answer"))?;
    let is_available = is_available(set);
    Ok(Look {
        is_complete: is_available
            && set.status.updated_replicas == set.replicas()
            && answer.finding.state == SetState::Settled,
        is_available,
        answer,
        now,
    })
}

/// Reports whether all desired pods are available, and no other exists.
fn is_available(set: &Set) -> bool {
    let (status, metadata) = (&set.status, &set.metadata);
    metadata.deletion_timestamp.is_none()
        && status.observed_generation >= metadata.generation
        && status.replicas == set.replicas()
        && status.available_replicas == set.replicas()
}

/// Reports whether the set no longer exists.
async fn is_gone(server: &Server, session: &Session, name: &str) -> bool {
    let set = server.get(&STATEFUL_SETS, Some(&session.namespace), name);
    matches!(timeout(LOOK_TIME, set).await, Ok(Ok(None)))
}

impl Look {
    /// The state in one line.
    fn line(&self) -> String {
        let finding = &self.answer.finding;
        let line = format!("{}; {}", self.answer.title(), finding.text);
        printable(&line) + "\n"
    }
}

impl Stall {
    /// Reports whether the set is stuck for a cause that waiting doesn't resolve. At the time limit
    /// one check suffices.
    fn lasts(&mut self, look: &Look, is_late: bool) -> bool {
        let finding = &look.answer.finding;
        if finding.state != SetState::Stuck && finding.cause != DELETED {
            *self = Self::default();
            return false;
        }
        let is_new = self.cause != finding.cause;
        if is_new {
            *self = Self {
                cause: finding.cause,
                since: finding.since.or(Some(look.now)),
            };
        }
        if PASSING.contains(&finding.cause) {
            let since = self.since.unwrap_or(look.now);
            return look.now.duration_since(since) >= PASSING_TIME;
        }
        // A second check distinguishes a stuck set from one between two steps.
        is_late || !is_new
    }
}

impl Wait {
    /// The result for scripts.
    pub(crate) fn verdict(&self) -> Verdict {
        match self.end {
            End::Done => Verdict::Clear,
            End::Stuck => Verdict::Findings,
            End::Late => Verdict::Late,
        }
    }

    /// The end for people.
    pub(crate) fn text(&self, style: Style) -> String {
        let (goal, seconds) = (self.goal, self.seconds);
        let begin = self.now.saturating_sub(SignedDuration::from_secs(
            i64::try_from(seconds).unwrap_or(i64::MAX),
        ));
        let took = age(begin.ok(), self.now);
        let details = self.answer.details(self.now, style);
        let (tone, end) = match self.end {
            End::Done => (Tone::Good, format!("{goal} after {took}")),
            End::Stuck => {
                let cause = self.answer.finding.cause;
                let end = format!("not {goal} after {took}: waiting does not resolve {cause}");
                (Tone::Bad, end)
            }
            End::Late => (
                Tone::Warn,
                format!("not {goal} after {took}, the time limit"),
            ),
        };
        details + &style.paint(tone, &end) + "\n"
    }
}
