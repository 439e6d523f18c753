//! One step of the shipped controller on a snapshot, without a cluster: every request gets its response
//! inside the process, and writes are only recorded.

use anyhow::Context as _;
use jiff::Timestamp;
use statefulset_client::cache::indexer::{CachedObject, Indexer};
use statefulset_client::feature_gates::FeatureGates;
use statefulset_controller::Waiting;
use statefulset_controller::dry::{DryWrite, dry_sync};
use statefulset_controller::opt_ins::Situation;
use statefulset_controller_util::consistency::Caches;
use statefulset_controller_util::stateful_set::StatefulSet;

/// The objects of one set, each as the server sent it.
pub(crate) struct Objects<'a> {
    /// The set.
    pub(crate) set: &'a str,
    /// Its pods, and those whose names it wants.
    pub(crate) pods: Vec<&'a str>,
    /// Its claims.
    pub(crate) claims: Vec<&'a str>,
    /// Its revisions.
    pub(crate) revisions: Vec<&'a str>,
}

/// The controller's next step.
pub(crate) struct Decision {
    /// The writes that it would send, in order; status writes are left out.
    pub(crate) writes: Vec<Write>,
    /// The cause of waiting, as conditions name it.
    pub(crate) situation: Option<Situation>,
    /// The reason to wait after them.
    pub(crate) waiting: Option<Waiting>,
    /// Its error.
    pub(crate) error: Option<String>,
}

/// A write that was not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    /// `create`, `update`, `patch` or `delete`.
    pub(crate) verb: &'static str,
    /// Resource, such as `pods`.
    pub(crate) resource: &'static str,
    /// Name of the object.
    pub(crate) name: String,
}

/// Syncs the set once, with the gates of the server's version.
///
/// # Errors
///
/// An object can't be decoded, which also stops the controller's sync of the set.
pub(crate) async fn decide(
    objects: &Objects<'_>,
    now: Timestamp,
    gates: FeatureGates,
) -> anyhow::Result<Decision> {
    let caches = Caches::default();
    let set = StatefulSet::decode(objects.set).context("decode the set")?;
    let key = set.key();
    caches.sets.add(set);
    fill(&caches.pods, &objects.pods).context("decode a pod of the set")?;
    fill(&caches.claims, &objects.claims).context("decode a claim of the set")?;
    fill(&caches.revisions, &objects.revisions).context("decode a revision of the set")?;
    let sync = dry_sync(&caches, &key, now, gates).await;
    let (waiting, situation, error) = match sync.outcome {
        Ok(outcome) => (outcome.waiting, outcome.situation, None),
        Err(error) => (None, None, Some(error.to_string())),
    };
    Ok(Decision {
        writes: sync.writes.into_iter().map(Write::new).collect(),
        situation,
        waiting,
        error,
    })
}

fn fill<K: CachedObject>(cache: &Indexer<K>, texts: &[&str]) -> Result<(), serde_json::Error> {
    for text in texts {
        cache.add(K::decode(text)?);
    }
    Ok(())
}

impl Write {
    fn new(write: DryWrite) -> Self {
        Self {
            verb: write.verb.as_str(),
            resource: write.resource.resource().plural,
            name: write.name,
        }
    }
}
