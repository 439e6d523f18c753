//! Sets and revisions written by servers of two minor versions. The older one recorded an empty
//! creation time in the template.

use std::sync::Arc;

use serde_json::{Value, json};
use statefulset_client::cache::indexer::CachedObject as _;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_controller_util::testing::Call;
use statefulset_history::fake::FakeHistory;
use statefulset_history::{NewRevision, RevisionData};

use crate::revisions::get_stateful_set_revisions;
use crate::testing::edit_template;

/// The two versions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Server {
    V1_33,
    V1_34,
}
use Server::{V1_33, V1_34};

const UID: &str = "ec335e25-1045-4216-8634-50cfbe05f3d6";

impl Server {
    /// Returns an object's metadata, with the empty creation time if the older server wrote it.
    fn template_metadata(self, mut metadata: Value) -> Value {
        if self == V1_33 {
            metadata["creationTimestamp"] = Value::Null;
        }
        metadata
    }

    fn template(self) -> Value {
        let metadata = json!({"annotations": {"test": "value"}, "labels": {"app": "foo"}});
        json!({
            "metadata": self.template_metadata(metadata),
            "spec": {
                "containers": [{
                    "image": "test", "imagePullPolicy": "Always", "name": "test", "resources": {},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                }],
                "dnsPolicy": "ClusterFirst", "restartPolicy": "Always",
                "schedulerName": "default-scheduler", "securityContext": {},
                "terminationGracePeriodSeconds": 30,
            },
        })
    }

    /// Name, number, version, creation time and uid of the revision.
    fn revision_identity(self) -> [&'static str; 5] {
        match self {
            V1_33 => [
                "test-c77f6d978",
                "1",
                "2209",
                "2025-10-31T18:19:02Z",
                "af6e1945-ed14-4d1a-b420-813aa683a0fd",
            ],
            V1_34 => [
                "test-776999688b",
                "2",
                "16318",
                "2025-11-03T19:46:23Z",
                "47df387b-5f17-40b6-9964-4c43cf6ad5d1",
            ],
        }
    }

    /// The set as a server of upstream's version sends it: decoding dropped the empty creation time
    /// from the template.
    fn set(self) -> StatefulSet {
        let mut set = self.stored_set();
        edit_template(&mut set, |template| {
            let metadata = template["metadata"].as_object_mut();
            metadata.unwrap().remove("creationTimestamp");
        });
        set
    }

    /// The set as the server stored it.
    fn stored_set(self) -> StatefulSet {
        let claim =
            json!({"annotations": {"key": "value"}, "labels": {"key": "value"}, "name": "test"});
        let [revision, ..] = self.revision_identity();
        let version = if self == V1_33 { "2219" } else { "16319" };
        let json = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {
                "name": "test", "namespace": "default", "uid": UID, "generation": 1,
                "resourceVersion": version, "creationTimestamp": "2025-10-31T18:19:02Z",
                "labels": {"sslabel": "value"},
            },
            "spec": {
                "replicas": 1, "revisionHistoryLimit": 10, "podManagementPolicy": "OrderedReady",
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
                "selector": {"matchLabels": {"app": "foo"}}, "serviceName": "",
                "template": self.template(),
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
                "volumeClaimTemplates": [{
                    "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                    "metadata": self.template_metadata(claim),
                    "spec": {
                        "accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem",
                        "resources": {"requests": {"storage": "1Gi"}},
                    },
                    "status": {"phase": "Pending"},
                }],
            },
            "status": {
                "observedGeneration": 1, "collisionCount": 0, "replicas": 1, "currentReplicas": 1,
                "availableReplicas": 1, "updatedReplicas": 1,
                "currentRevision": revision, "updateRevision": revision,
            },
        });
        StatefulSet::decode(&json.to_string()).unwrap()
    }

    fn revision(self) -> Arc<ControllerRevision> {
        let [name, number, version, created, uid] = self.revision_identity();
        let mut template = self.template();
        template["$patch"] = "replace".into();
        let set = self.stored_set();
        let json = json!({
            "apiVersion": "apps/v1", "kind": "ControllerRevision",
            "metadata": {
                "name": name, "namespace": "default", "uid": uid, "resourceVersion": version,
                "creationTimestamp": created,
                "labels": {"app": "foo", "controller.kubernetes.io/hash": &name["test-".len()..]},
                "ownerReferences": [set.controller_reference()],
            },
            "data": {"spec": {"template": template}},
            "revision": number.parse::<i64>().unwrap(),
        });
        let revision = ControllerRevision::decode(&json.to_string()).unwrap();
        // The name contains the hash of the bytes, so these are the bytes that the server recorded.
        let renamed = NewRevision {
            data: revision.data.to_str().into(),
            ..NewRevision::new(&set, &RevisionData::new(&set.spec.template).unwrap(), 1, 0)
        };
        assert_eq!(renamed.name_for(0), name);
        Arc::new(revision)
    }
}

/// Checks `times` times that the current and the update revision are the last stored one, and that
/// no revision is created or renumbered.
async fn takes_the_last(set: impl Fn() -> StatefulSet, revisions: &[Server], times: usize) {
    let history = FakeHistory::default();
    let revisions: Vec<_> = revisions.iter().map(|server| server.revision()).collect();
    for _ in 0..times {
        // A new set has no results of earlier syncs.
        let (set, gates) = (set(), FeatureGates::default());
        let found = get_stateful_set_revisions(&history, gates, &set, &revisions);
        let found = found.await.unwrap();
        assert_eq!(found.current, *revisions.last().unwrap());
        assert_eq!(found.update, *revisions.last().unwrap());
        assert_eq!(found.collision_count, 0);
    }
    assert_eq!(history.tracker.requests(Call::CreateRevision), 0);
    assert_eq!(history.tracker.requests(Call::UpdateRevision), 0);
}

/// True if the update revision of the older server's set was created, given these revisions.
async fn creates_for_older_set(semantic: bool, revisions: &[Arc<ControllerRevision>]) -> bool {
    let (set, history) = (V1_33.set(), FakeHistory::default());
    let gates = FeatureGates::default().stateful_set_semantic_revision_comparison(semantic);
    let found = get_stateful_set_revisions(&history, gates, &set, revisions);
    let update = found.await.unwrap().update;
    let created = history.tracker.requests(Call::CreateRevision) == 1;
    assert_eq!(update.revision, if created { 2 } else { 1 });
    assert_eq!(history.tracker.requests(Call::UpdateRevision), 0);
    created
}

mod test_stateful_set_compatibility {
    use super::*;

    mod case_1_33_set_1_33_rev {
        use super::*;

        #[tokio::test]
        async fn as_upstream() {
            takes_the_last(|| V1_33.set(), &[V1_33], 1).await;
        }

        #[tokio::test]
        async fn older_revision_matches_only_semantically() {
            let revision = V1_33.revision();
            let data = RevisionData::new(&V1_33.set().spec.template).unwrap();
            assert_ne!(**data.recorded(), *revision.data.to_str());
            assert!(creates_for_older_set(false, &[Arc::clone(&revision)]).await);
            assert!(!creates_for_older_set(true, &[revision]).await);
        }

        #[tokio::test]
        async fn set_with_null_creation_time_reuses_its_revision() {
            let (set, revision) = (V1_33.stored_set(), V1_33.revision());
            let data = RevisionData::new(&set.spec.template).unwrap();
            assert_eq!(**data.recorded(), *revision.data.to_str());
            takes_the_last(|| V1_33.stored_set(), &[V1_33], 2).await;
        }
    }

    #[tokio::test]
    async fn case_1_34_set_1_34_rev() {
        takes_the_last(|| V1_34.set(), &[V1_34], 1).await;
    }

    #[tokio::test]
    async fn case_1_34_set_1_33_1_34_rev() {
        takes_the_last(|| V1_34.set(), &[V1_33, V1_34], 1).await;
    }
}

/// The same, repeated: the cached comparison must stay correct.
mod bench_stateful_set_compatibility {
    use super::*;

    #[tokio::test]
    async fn case_1_33_set_1_33_rev() {
        takes_the_last(|| V1_33.set(), &[V1_33], 50).await;
    }

    #[tokio::test]
    async fn case_1_34_set_1_34_rev() {
        takes_the_last(|| V1_34.set(), &[V1_34], 50).await;
    }

    #[tokio::test]
    async fn case_1_34_set_1_33_1_34_rev() {
        takes_the_last(|| V1_34.set(), &[V1_33, V1_34], 50).await;
    }
}
