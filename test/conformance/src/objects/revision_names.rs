//! Names of the revisions of sets that the embedded API server defaults and prunes.

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::value::RawValue;
use statefulset_client::cache::indexer::CachedObject as _;
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_history::{RevisionData, controller_revision_name, hash_controller_revision};

use super::stage::Stage;
use crate::report::Verdict;

/// Collision count of a set without collisions.
const COLLISION_COUNT: i32 = 0;

#[derive(Deserialize)]
struct Case<'a> {
    id: String,
    /// The set as sent.
    #[serde(borrow)]
    set: &'a RawValue,
    /// Name of the revision that upstream's controller made.
    revision: String,
}

/// Runs one case.
///
/// # Errors
///
/// The line is not a case of this format.
pub(super) async fn run(stage: &Stage, line: &str) -> anyhow::Result<Verdict> {
    let case: Case<'_> = serde_json::from_str(line).context("not a case of revision names")?;
    Ok(match revision_name(stage, case.set).await {
        Ok(name) if name == case.revision => Verdict {
            id: case.id,
            ..Verdict::default()
        },
        Ok(name) => Verdict {
            id: case.id,
            differences: vec![format!("expected {}, is {name}", case.revision)],
            ..Verdict::default()
        },
        Err(error) => Verdict::broken(case.id, &error),
    })
}

/// Name of the revision that the controller makes for a set, as the server stores it.
async fn revision_name(stage: &Stage, set: &RawValue) -> anyhow::Result<String> {
    let stored = stage.create_set(set).await?;
    let set = StatefulSet::decode(&stored)?;
    let data = RevisionData::new(&set.spec.template)?;
    let hash = hash_controller_revision(data.recorded(), Some(COLLISION_COUNT));
    Ok(controller_revision_name(set.name(), &hash))
}
