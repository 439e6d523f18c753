//! Replay of a case's requests against the embedded API server.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::case::{Case, Recorded, Step};
use super::stage::{Answer, Stage};
use super::{members, program};
use crate::report::{Report, Verdict};

/// Categories of differences, for counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// The server panicked.
    Panic,
    /// Status of a response.
    Status,
    /// Reason of a response.
    Reason,
    /// Status of a stored object's GET.
    StoredStatus,
    /// `managedFields` of a stored object.
    StoredManagedFields,
    /// Another value of a stored object.
    StoredValue,
    /// Order of a stored object's fields.
    StoredOrder,
}

impl Category {
    /// Name in a report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Panic => "panic",
            Self::Status => "status",
            Self::Reason => "reason",
            Self::StoredStatus => "stored status",
            Self::StoredManagedFields => "stored managedFields",
            Self::StoredValue => "stored value",
            Self::StoredOrder => "stored order of members",
        }
    }
}

/// Result of a case.
#[derive(Debug, Default)]
pub struct Outcome {
    differences: Vec<(Category, String)>,
    left_out: BTreeMap<&'static str, usize>,
}

/// Rule name for stored objects whose record has only a digest.
pub const DIGEST_ONLY: &str = "a stored object of more than 200,000 bytes";

impl Outcome {
    fn differ(&mut self, category: Category, what: String) {
        self.differences.push((category, what));
    }

    fn leave_out(&mut self, rule: &'static str) {
        *self.left_out.entry(rule).or_default() += 1;
    }

    /// Converts the result to a report of one case.
    pub(super) fn into_report(self, case: &Case) -> Report {
        let mut counts = BTreeMap::new();
        for (category, _) in &self.differences {
            *counts.entry(category.name().to_owned()).or_default() += 1;
        }
        let lines = self.differences.into_iter();
        let lines = lines.map(|(category, what)| format!("{}: {what}", category.name()));
        let mut report = Report::from_iter([Verdict {
            id: format!("{} ({})", case.id, case.about),
            differences: lines.collect(),
            deviations: Vec::new(),
        }]);
        report.categories = counts;
        report.left_out = self.left_out;
        report
    }
}

/// Replays the steps, then reads the stored objects.
///
/// # Errors
///
/// The control plane can't be started, or the record is invalid.
pub async fn run(case: &Case) -> anyhow::Result<Outcome> {
    let stage = Stage::start(case).await?;
    let mut outcome = Outcome::default();
    let mut made = Vec::new();
    for (index, step) in case.steps.iter().enumerate() {
        let request = match step {
            Step::ControllerRuns(run) => {
                let seconds = Duration::try_from_secs_f64(run.seconds)?;
                program::run(&stage, seconds).await?;
                continue;
            }
            Step::Request(request) => request,
        };
        let place = format!("step {}, {} {}", index + 1, request.method, request.path);
        let answer = match stage.send(request).await {
            Ok(answer) => answer,
            Err(error) => {
                outcome.differ(Category::Panic, format!("{place}: {error:#}"));
                continue;
            }
        };
        let text = || {
            let shown = &answer.body[..answer.body.len().min(300)];
            String::from_utf8_lossy(shown).into_owned()
        };
        if answer.status != request.status {
            let (wanted, is) = (request.status, answer.status);
            let what = format!("{place}: expected {wanted}, is {is}: {}", text());
            outcome.differ(Category::Status, what);
        } else if answer.reason != request.reason {
            let (wanted, is) = (&request.reason, &answer.reason);
            let what = format!("{place}: expected {wanted:?}, is {is:?}: {}", text());
            outcome.differ(Category::Reason, what);
        }
        if answer.status == 201 {
            made.push(answer.body);
        }
    }
    for recorded in case.recorded() {
        compare_stored(&stage, recorded, &made, &mut outcome).await?;
    }
    stage.end().await;
    Ok(outcome)
}

async fn compare_stored(
    stage: &Stage,
    recorded: &Recorded,
    made: &[bytes::Bytes],
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    let path = own_path(recorded, made).unwrap_or_else(|| recorded.path.clone());
    let answer = match stage.get(&path).await {
        Ok(answer) => answer,
        Err(error) => {
            outcome.differ(Category::Panic, format!("GET {path}: {error:#}"));
            Answer::default()
        }
    };
    if answer.status != recorded.status {
        let (wanted, is) = (recorded.status, answer.status);
        let what = format!("GET {path}: expected {wanted}, is {is}");
        outcome.differ(Category::StoredStatus, what);
        return Ok(());
    }
    let Some(body) = &recorded.body else {
        outcome.leave_out(DIGEST_ONLY);
        return Ok(());
    };
    let is_generated = path != recorded.path;
    let found = members::compare(body, &answer.body)?;
    for what in found.values {
        if is_generated && what.starts_with(".metadata.name:") {
            continue;
        }
        let category = if what.starts_with(".metadata.managedFields") {
            Category::StoredManagedFields
        } else {
            Category::StoredValue
        };
        outcome.differ(category, format!("{path}: {what}"));
    }
    if !found.orders.is_empty() {
        let what = format!("{path}: of {}", found.orders.join(", "));
        outcome.differ(Category::StoredOrder, what);
    }
    Ok(())
}

/// Path of an object with a generated name, which differs from the recorded one.
fn own_path(recorded: &Recorded, made: &[bytes::Bytes]) -> Option<String> {
    let prefix = |body: &[u8]| {
        let object: Value = serde_json::from_slice(body).ok()?;
        let prefix = object.pointer("/metadata/generateName")?.as_str()?;
        let name = object.pointer("/metadata/name")?.as_str()?;
        Some((prefix.to_owned(), name.to_owned()))
    };
    let (wanted, _) = prefix(recorded.body.as_ref()?)?;
    let names = made.iter().filter_map(|body| prefix(body));
    let (_, name) = names.filter(|(found, _)| *found == wanted).last()?;
    let (collection, _) = recorded.path.rsplit_once('/')?;
    Some(format!("{collection}/{name}"))
}
