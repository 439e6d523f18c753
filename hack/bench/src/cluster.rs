//! Clusters of any size, built from a recorded one.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use flate2::read::MultiGzDecoder;
use jiff::{SignedDuration, Timestamp};
use kube_apimachinery::object_key::ObjectKey;
use kube_apimachinery::owner_reference::OwnerReference;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use statefulset_client::backoff::NoJitter;
use statefulset_client::cache::indexer::{CachedObject, Indexer};
use statefulset_client::clock::FakeClock;
use statefulset_client::fake::FakeClientset;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::recorder::FakeRecorder;
use statefulset_controller::{SetSyncer, SyncerParts};
use statefulset_controller_util::claim::Claim;
use statefulset_controller_util::consistency::Caches;
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::pod::{
    ClaimVolume, POD_INDEX_LABEL, POD_NAME_LABEL, Pod, REVISION_LABEL,
};
use statefulset_controller_util::stateful_set::{PodTemplate, StatefulSet};
use statefulset_history::RevisionData;

/// Settled clusters of upstream; the first one is used.
const SETTLED: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../test/vectors/settled.jsonl.gz"
);
/// Time of the sync after the last change.
const LATER: SignedDuration = SignedDuration::from_hours(1);
/// Pods of each other set.
pub(crate) const PODS_PER_SET: usize = 5;

#[derive(Deserialize)]
struct SettledCluster {
    statefulsets: List,
    controllerrevisions: List,
    pods: List,
    persistentvolumeclaims: List,
}

#[derive(Deserialize)]
struct List {
    items: Vec<Box<RawValue>>,
}

/// One object of each kind, as sent by an API server.
pub(crate) struct Recorded {
    set: Box<RawValue>,
    revision: Box<RawValue>,
    pod: Value,
    claim: Box<RawValue>,
}

/// Names and uid of a set.
#[derive(Clone)]
pub(crate) struct SetName {
    pub(crate) name: String,
    pub(crate) uid: String,
}

impl SetName {
    /// The name of one of many sets.
    pub(crate) fn numbered(number: usize) -> Self {
        Self {
            name: format!("postgresql-{number}"),
            uid: uid(1_000_000 + number),
        }
    }

    fn reference(&self) -> OwnerReference {
        OwnerReference::new_controller("apps/v1", "StatefulSet", &self.name, &self.uid)
    }
}

/// Returns a uid in the usual form.
fn uid(number: usize) -> String {
    format!("{number:08x}-5680-4f20-8fec-{number:012x}")
}

impl Recorded {
    /// Reads the first recorded cluster.
    pub(crate) fn read() -> anyhow::Result<Self> {
        let file = File::open(SETTLED).with_context(|| format!("open {SETTLED}"))?;
        let mut line = String::new();
        let read = BufReader::new(MultiGzDecoder::new(file)).read_line(&mut line);
        read.with_context(|| format!("read {SETTLED}"))?;
        let cluster: SettledCluster =
            serde_json::from_str(&line).with_context(|| format!("decode {SETTLED}"))?;
        let first = |list: List| {
            let item = list.items.into_iter().next();
            item.with_context(|| format!("the first cluster of {SETTLED} lacks an object"))
        };
        Ok(Self {
            set: first(cluster.statefulsets)?,
            revision: first(cluster.controllerrevisions)?,
            pod: serde_json::from_str(first(cluster.pods)?.get())?,
            claim: first(cluster.persistentvolumeclaims)?,
        })
    }

    /// Changes the template of the set and of its revision.
    ///
    /// # Errors
    ///
    /// The set has no valid template.
    pub(crate) fn with_template(mut self, change: impl Fn(&mut Value)) -> anyhow::Result<Self> {
        let mut set: Value = serde_json::from_str(self.set.get())?;
        let template = &mut set["spec"]["template"];
        change(template);
        let data = RevisionData::new(&PodTemplate::from_value(template))?;
        let mut revision: Value = serde_json::from_str(self.revision.get())?;
        revision["data"] = serde_json::from_str(data.recorded())?;
        self.set = to_raw_value(&set)?;
        self.revision = to_raw_value(&revision)?;
        Ok(self)
    }

    /// The recorded revision with another number, and under another name unless it is empty.
    pub(crate) fn revision_of(
        &self,
        name: &str,
        number: i64,
    ) -> anyhow::Result<ControllerRevision> {
        let mut revision: Value = serde_json::from_str(self.revision.get())?;
        revision["revision"] = json!(number);
        if !name.is_empty() {
            revision["metadata"]["name"] = json!(name);
            revision["metadata"]["uid"] = json!(format!("{name}-uid"));
        }
        Ok(ControllerRevision::decode(&revision.to_string())?)
    }

    /// The recorded set with this number of pods, all existing.
    pub(crate) fn set_of(&self, pods: usize) -> anyhow::Result<StatefulSet> {
        let mut set: Value = serde_json::from_str(self.set.get())?;
        set["spec"]["replicas"] = json!(pods);
        for counter in [
            "replicas",
            "readyReplicas",
            "availableReplicas",
            "currentReplicas",
            "updatedReplicas",
        ] {
            set["status"][counter] = json!(pods);
        }
        Ok(StatefulSet::decode(&set.to_string())?)
    }

    /// Returns the recorded pod's JSON with the names, uid, version and owner of another set.
    pub(crate) fn pod_json(&self, set: &SetName, ordinal: usize, serial: usize) -> String {
        let name = format!("{}-{ordinal}", set.name);
        let mut pod = self.pod.clone();
        let metadata = &mut pod["metadata"];
        metadata["name"] = json!(name);
        metadata["uid"] = json!(uid(serial));
        metadata["resourceVersion"] = json!((100_000 + serial).to_string());
        metadata["labels"][POD_NAME_LABEL] = json!(name);
        metadata["labels"][POD_INDEX_LABEL] = json!(ordinal.to_string());
        let revision = metadata["labels"][REVISION_LABEL]
            .as_str()
            .unwrap_or_default();
        metadata["labels"][REVISION_LABEL] = json!(revision_name(revision, set));
        metadata["ownerReferences"] = json!([set.reference()]);
        pod["spec"]["hostname"] = json!(name);
        for volume in pod["spec"]["volumes"].as_array_mut().into_iter().flatten() {
            if volume.get("persistentVolumeClaim").is_some() {
                let claim = format!("{}-{name}", volume["name"].as_str().unwrap_or_default());
                volume["persistentVolumeClaim"]["claimName"] = json!(claim);
            }
        }
        pod.to_string()
    }

    /// Returns the JSON of a numbered pod, with [`PODS_PER_SET`] pods per set.
    pub(crate) fn numbered_pod_json(&self, number: usize) -> String {
        let set = SetName::numbered(number / PODS_PER_SET);
        self.pod_json(&set, number % PODS_PER_SET, number)
    }
}

/// A settled set among others in its namespace, and a syncer.
pub(crate) struct SyncedSet {
    pub(crate) syncer: SetSyncer,
    pub(crate) key: ObjectKey,
    pub(crate) set: StatefulSet,
    pub(crate) pods: Arc<Indexer<Pod>>,
    pub(crate) revisions: Arc<Indexer<ControllerRevision>>,
    pub(crate) api: FakeClientset,
    pub(crate) pod: ObjectKey,
}

impl SyncedSet {
    /// A set with `own` pods among `others` pods named after other sets, every second of them
    /// without a controller; each pod has its claim and each set its revision. Needs a running
    /// tokio runtime.
    pub(crate) fn new(own: usize, others: usize) -> anyhow::Result<Self> {
        Self::of(&Recorded::read()?, own, others)
    }

    /// The same of other objects.
    pub(crate) fn of(recorded: &Recorded, own: usize, others: usize) -> anyhow::Result<Self> {
        let set = recorded.set_of(own)?;
        let revision = ControllerRevision::decode(recorded.revision.get())?;
        let claim = Claim::decode(recorded.claim.get())?;
        let own_name = SetName {
            name: set.name().to_owned(),
            uid: set.uid().to_owned(),
        };
        let api = FakeClientset::new();
        let mut pods = Vec::with_capacity(own + others);
        for ordinal in 0..own {
            let json = recorded.pod_json(&own_name, ordinal, 10_000_000 + ordinal);
            pods.push(Pod::decode(&json)?);
            api.load(&statefulset_client::resource::PODS, json);
        }
        let first = pods.first().context("the set needs a pod")?.clone();
        let mut sets = vec![set.clone()];
        let mut revisions = vec![revision.clone()];
        for number in 0..others.div_ceil(PODS_PER_SET) {
            let other = SetName::numbered(number);
            sets.push(renamed_set(&set, &other));
            revisions.push(renamed_revision(&revision, &other));
        }
        pods.extend((0..others).map(|number| {
            let mut pod = renamed_pod(&first, number);
            if number % 2 == 1 {
                // Every second one has no controller, and its set could adopt it.
                pod.controller = None;
            }
            pod
        }));
        let claims = pods.iter().map(|pod| claim_of(&claim, pod)).collect();

        let caches = Caches {
            pods: filled(pods),
            claims: filled(claims),
            sets: filled(sets),
            revisions: filled(revisions),
        };
        let pods = Arc::clone(&caches.pods);
        let revisions = Arc::clone(&caches.revisions);
        let key = set.key();
        let moment = first
            .readiness
            .last_transition_time
            .unwrap_or(Timestamp::UNIX_EPOCH)
            + LATER;
        let parts = SyncerParts::new(
            caches,
            &api.rest_client(),
            Arc::new(FakeRecorder::new()),
            Arc::new(FakeClock::new(moment)),
            Arc::new(NoJitter),
            FeatureGates::default(),
        );
        let (syncer, pod) = (SetSyncer::new(parts), first.key());
        Ok(Self {
            syncer,
            key,
            set,
            pods,
            revisions,
            api,
            pod,
        })
    }

    /// Syncs the set once and checks that it is settled: the sync made no request.
    pub(crate) async fn check(&self) -> anyhow::Result<()> {
        let synced = self.syncer.sync(&self.key).await?;
        ensure!(
            synced.waiting.is_none(),
            "the set is not settled: {:?}",
            synced.waiting
        );
        ensure!(synced.status.is_some(), "the set was not synced");
        ensure!(
            self.api.actions().is_empty(),
            "the sync of a settled set has written"
        );
        Ok(())
    }
}

pub(crate) fn filled<K: CachedObject>(objects: Vec<K>) -> Arc<Indexer<K>> {
    let indexer = Indexer::new();
    indexer.replace(objects.into_iter().map(Arc::new).collect(), "100000");
    Arc::new(indexer)
}

pub(crate) fn renamed_set(set: &StatefulSet, name: &SetName) -> StatefulSet {
    let mut set = set.clone();
    let metadata = Arc::make_mut(&mut set.metadata);
    metadata.name = name.name.as_str().into();
    metadata.uid = name.uid.as_str().into();
    set
}

fn renamed_revision(revision: &ControllerRevision, owner: &SetName) -> ControllerRevision {
    let mut revision = revision.clone();
    revision.name = revision_name(&revision.name, owner).into();
    revision.uid = format!("{}-uid", revision.name).into();
    revision.controller = Some(owner.reference());
    revision
}

/// Name of a revision with the same data in another set.
fn revision_name(name: &str, owner: &SetName) -> String {
    let hash = name.rsplit('-').next().unwrap_or_default();
    format!("{}-{hash}", owner.name)
}

/// Similar to decoding [`Recorded::numbered_pod_json`], but fast enough for an emulated machine.
pub(crate) fn renamed_pod(pod: &Pod, number: usize) -> Pod {
    let owner = SetName::numbered(number / PODS_PER_SET);
    let name = format!("{}-{}", owner.name, number % PODS_PER_SET);
    let revision = revision_name(pod.revision(), &owner);
    let labels = pod.labels.iter().map(|(key, value)| match key {
        POD_NAME_LABEL => (key, name.as_str()),
        REVISION_LABEL => (key, revision.as_str()),
        _ => (key, value),
    });
    let volumes = pod.claim_volumes.iter().map(|volume| ClaimVolume {
        name: volume.name.clone(),
        claim_name: format!("{}-{name}", volume.name).into(),
    });
    Pod {
        labels: labels.collect(),
        claim_volumes: volumes.collect(),
        uid: uid(number).into(),
        controller: Some(Arc::new(owner.reference())),
        name: name.into(),
        ..pod.clone()
    }
}

fn claim_of(claim: &Claim, pod: &Pod) -> Claim {
    let mut claim = claim.clone();
    if let Some(volume) = pod.claim_volumes.first() {
        claim.name.clone_from(&volume.claim_name);
    }
    claim
}
