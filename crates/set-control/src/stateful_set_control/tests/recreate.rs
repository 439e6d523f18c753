//! The update strategy `Recreate`: deletion of the old pods, conditions, and the disabled gate.

use statefulset_client::feature_gates::KubeVersion;

use super::*;

const NEW: &str = "registry.example/app:2";
const NEWEST: &str = "registry.example/app:3";
const IN_PROGRESS: [&str; 3] = ["True", "RecreateInProgress", "Deleting old revision pods"];
const WAITING: [&str; 3] = [
    "True",
    "RecreateInProgress",
    "Waiting for new-revision pods to be created",
];
const DONE: [&str; 3] = [
    "False",
    "RecreateCompleted",
    "All pods recreated successfully",
];

/// The gates of an emulated version, with these settings.
fn gates(settings: &str, minor: u32) -> FeatureGates {
    FeatureGates::parse(settings, KubeVersion::v1(minor)).unwrap()
}

fn recreating(set: &Builder<StatefulSet>) -> World {
    with_gates(set, gates("StatefulSetRecreateStrategy=true", 37))
}

fn web() -> Builder<StatefulSet> {
    super::web().recreate()
}

/// A world whose set got another image after its pods had become ready.
async fn changed(set: &Builder<StatefulSet>) -> World {
    let mut world = recreating(set);
    world.settle().await;
    world.apply(&set.clone().image(NEW).generation(2));
    world
}

fn old_pod(name: &str) -> Option<Waiting> {
    Some(Waiting::OldPodRemoval(name.into()))
}

fn created(name: &str) -> Option<Waiting> {
    Some(Waiting::PodCreated(name.into()))
}

fn new_revision(image: &str) -> String {
    revision_name(&web().image(image))
}

impl World {
    /// Returns status, reason and message of the only condition.
    fn progress(&self) -> Option<[String; 3]> {
        let conditions = self.conditions();
        let condition = conditions.first()?;
        assert_eq!(conditions.len(), 1);
        assert_eq!(condition["type"], "Progressing");
        let text = |member: &str| condition[member].as_str().unwrap().to_owned();
        Some(["status", "reason", "message"].map(text))
    }

    fn conditions(&self) -> Vec<Value> {
        let status = serde_json::to_value(&*self.set.status).unwrap();
        status["conditions"].as_array().cloned().unwrap_or_default()
    }

    /// Returns the revisions of the existing pods.
    fn pod_revisions(&self) -> Vec<String> {
        self.pod_names()
            .iter()
            .map(|pod| self.pod_revision(pod))
            .collect()
    }
}

#[tokio::test]
async fn old_pods_are_deleted_before_any_is_created() {
    let mut world = changed(&web()).await;
    assert_eq!(world.progress(), Some(DONE.map(str::to_owned)));
    assert_eq!(world.step().await, old_pod("web-0"));
    assert_eq!(world.pod_names(), [""; 0]);
    assert_eq!(world.counts(), Counts::all(3).updated(0));
    let events = world.events();
    let deleted = |ordinal| {
        format!("Normal SuccessfulDelete Delete Pod web-{ordinal} in StatefulSet web successful")
    };
    assert_eq!(events, [deleted(0), deleted(2), deleted(1)]);
    assert_eq!(world.progress(), Some(IN_PROGRESS.map(str::to_owned)));

    for name in ["web-0", "web-1", "web-2"] {
        assert_eq!(world.step().await, created(name));
        assert_eq!(world.progress(), Some(WAITING.map(str::to_owned)));
        world.run(name);
    }
    assert_eq!(world.step().await, None);
    assert_eq!(world.progress(), Some(DONE.map(str::to_owned)));
    assert_eq!(
        world.pod_revisions(),
        [new_revision(NEW), new_revision(NEW), new_revision(NEW)]
    );
    let status = &world.set.status;
    assert_eq!(*status.current_revision, *new_revision(NEW));
    assert_eq!(world.counts(), Counts::all(3));
    // A further sync writes nothing.
    let writes = world.requests(Call::UpdateStatus);
    assert_eq!(world.step().await, None);
    assert_eq!(world.requests(Call::UpdateStatus), writes);
}

#[tokio::test]
async fn parallel_set_creates_all_pods_in_one_sync() {
    let mut world = changed(&web().parallel()).await;
    assert_eq!(world.step().await, old_pod("web-0"));
    assert_eq!(world.pod_names(), [""; 0]);
    world.step().await;
    assert_eq!(world.pod_names(), ["web-0", "web-1", "web-2"]);
    assert_eq!(world.progress(), Some(WAITING.map(str::to_owned)));
}

#[tokio::test]
async fn held_pod_delays_every_creation() {
    for set in [web(), web().parallel()] {
        let mut world = changed(&set).await;
        world.step().await;
        // A finalizer holds the pod.
        world.put_pod(&pod(&set, 1).terminating());
        world.now += jiff::SignedDuration::from_mins(1);
        let before = world.conditions();
        for _ in 0..3 {
            assert_eq!(world.step().await, old_pod("web-1"));
            assert_eq!(world.pod_names(), ["web-1"]);
            assert_eq!(world.conditions(), before);
        }
        world.remove_pod("web-1");
        world.step().await;
        assert_ne!(world.pod_names(), [""; 0]);
        let after = world.conditions();
        assert_eq!(after[0]["message"], WAITING[2]);
        assert_eq!(
            after[0]["lastTransitionTime"],
            before[0]["lastTransitionTime"]
        );
    }
}

#[tokio::test]
async fn failed_deletion_stops_after_its_batch() {
    let set = web().replicas(7);
    let mut world = changed(&set).await;
    let done = world.requests(Call::DeletePod);
    world.fail(Call::DeletePod, done + 1);
    let outcome = world.sync().await;
    assert_eq!(outcome.error.unwrap().to_string(), INJECTED);
    // Of the second batch, pod 2 fails and pod 1 is deleted.
    assert_eq!(
        world.pod_names(),
        ["web-2", "web-3", "web-4", "web-5", "web-6"]
    );
    // The condition is that of the sync before.
    assert_eq!(world.progress(), Some(DONE.map(str::to_owned)));
    assert_eq!(world.step().await, old_pod("web-2"));
    assert_eq!(world.pod_names(), [""; 0]);
}

#[tokio::test]
async fn missing_pod_is_no_failure() {
    let mut world = changed(&web()).await;
    let done = world.requests(Call::DeletePod);
    let gone = || ApiError::api(404, "NotFound", "gone");
    world.fail_with(Call::DeletePod, done, gone);
    assert_eq!(world.step().await, old_pod("web-0"));
    assert_eq!(world.progress(), Some(IN_PROGRESS.map(str::to_owned)));
}

#[tokio::test]
async fn condemned_pod_of_update_revision_is_kept_by_recreate() {
    let set = web().image(NEW).generation(2);
    let mut world = recreating(&set.clone().replicas(1));
    for (ordinal, image) in [(0, "registry.example/app:1"), (1, NEW), (2, NEWEST)] {
        let revision = new_revision(image);
        world.put_pod(&builders::pod(&set.build(), ordinal).revision(&revision));
    }
    assert_eq!(world.step().await, old_pod("web-0"));
    assert_eq!(world.pod_names(), ["web-1"]);
    assert_eq!(world.step().await, created("web-0"));
    world.run("web-0");
    let scaled = Waiting::ScaledDown("web-1".into());
    assert_eq!(world.step().await, Some(scaled));
    assert_eq!(world.pod_names(), ["web-0"]);
}

#[tokio::test]
async fn broken_old_pods_are_deleted_without_repair() {
    let set = web().replicas(4).claim_template("data");
    let mut world = recreating(&set.clone().image(NEW).generation(2));
    world.put_pod(&pod(&set, 0).phase("Failed"));
    world.put_pod(&pod(&set, 1).phase("Succeeded"));
    world.put_pod(&pod(&set, 2).pending());
    // An adopted orphan without a revision.
    world.put_pod(&builders::pod(&set.build(), 3));
    assert_eq!(world.step().await, old_pod("web-0"));
    assert_eq!(world.pod_names(), [""; 0]);
    assert_eq!(world.requests(Call::DeletePod), 4);
    assert_eq!(world.requests(Call::CreateClaim), 0);
}

#[tokio::test]
async fn deletions_leave_kept_claims() {
    let set = web().claim_template("data").retention("Delete", "Retain");
    let mut world = changed(&set).await;
    for ordinal in [0, 1] {
        let (name, uid) = (format!("web-{ordinal}"), format!("web-{ordinal}-uid"));
        world.put_pod(&pod(&set, ordinal));
        let owner = builders::owner_reference(("v1", "Pod"), &name, &uid, Some(true));
        let claim = builders::claim(&set.build(), "data", ordinal).owner(owner);
        world.put_claim(&claim);
    }
    // This pod terminates already, so that its claim would go with it.
    world.put_pod(&pod(&set, 1).terminating());
    assert_eq!(world.step().await, old_pod("web-0"));
    assert_eq!(world.pod_names(), ["web-1"]);
    for claim in ["data-web-0", "data-web-1"] {
        let claim = world.claim(claim).unwrap();
        assert!(
            claim["metadata"].get("ownerReferences").is_none(),
            "{claim}"
        );
    }
}

#[tokio::test]
async fn condemned_pod_with_claims_needs_the_live_set() {
    let set = web().claim_template("data").retention("Delete", "Retain");
    let mut world = changed(&set).await;
    world.apply(&set.clone().image(NEW).generation(3).replicas(2));
    world.fail(Call::ReadSet, 0);
    let error = world.sync_error().await;
    assert!(
        error.starts_with("will not delete pod web-2 and its claims: "),
        "{error}"
    );
    assert_eq!(world.pod_names(), ["web-2"]);
}

#[tokio::test]
async fn template_change_midway_replaces_half_created_pods() {
    for set in [web(), web().parallel()] {
        let mut world = changed(&set).await;
        world.step().await;
        world.step().await;
        assert!(!world.pods().is_empty());
        world.run_all();
        world.apply(&set.clone().image(NEWEST).generation(3));
        assert_eq!(world.step().await, old_pod("web-0"));
        assert_eq!(world.pod_names(), [""; 0]);
        world.settle().await;
        assert!(
            world
                .pod_revisions()
                .iter()
                .all(|it| *it == new_revision(NEWEST))
        );
    }
}

#[tokio::test]
async fn rollback_keeps_terminating_pods_out_of_the_deletions() {
    for (set, others) in [
        (web(), vec!["web-0"]),
        (web().parallel(), vec!["web-0", "web-1", "web-2"]),
    ] {
        let mut world = changed(&set).await;
        world.step().await;
        world.put_pod(&pod(&set, 0).terminating());
        world.apply(&set.clone().generation(3));
        world.step().await;
        // An ordered set waits for the pod before it creates the others.
        assert_eq!(world.pod_names(), others);
        assert_eq!(world.pod_revisions()[0], revision_name(&web()));
    }
}

#[tokio::test]
async fn set_without_pods_completes_at_once() {
    let mut world = changed(&web().replicas(0)).await;
    assert_eq!(world.step().await, None);
    assert_eq!(world.progress(), Some(DONE.map(str::to_owned)));
    assert_eq!(*world.set.status.current_revision, *new_revision(NEW));
}

#[tokio::test]
async fn disabled_gate_rejects_the_set() {
    let message = "statefulset ns/web uses Recreate strategy but feature gate \
                   StatefulSetRecreateStrategy is disabled";
    for set in [web(), web().terminating()] {
        let set = set.with("spec.revisionHistoryLimit", 0);
        let mut world = with_gates(&set, gates("", 37));
        let data = RevisionData::new(&set.clone().image(NEW).build().spec.template).unwrap();
        let old = builders::revision(&set.build(), "web-old", 1, data.recorded());
        world.put_revision(&old);
        let outcome = world.sync().await;
        assert_eq!(outcome.error.unwrap().to_string(), message);
        assert_eq!((outcome.status, outcome.waiting), (None, None));
        let event = format!("Warning UnknownStrategy {message}");
        assert_eq!(world.events(), [event]);
        assert_eq!(world.requests(Call::UpdateStatus), 0);
        assert!(world.pod_names().is_empty());
        let names = world.revision_names();
        assert_eq!(names, [revision_name(&set)], "the history is truncated");
    }
}

#[tokio::test]
async fn earlier_versions_treat_recreate_like_an_unknown_type() {
    let unknown = super::web().with("spec.updateStrategy", json!({"type": "Later"}));
    let mut traces = Vec::new();
    for set in [web(), unknown] {
        let mut world = with_gates(&set, gates("", 36));
        world.settle().await;
        world.apply(&set.clone().image(NEW).generation(2));
        let mut trace = Vec::new();
        for _ in 0..6 {
            trace.push((world.step().await, world.counts(), world.conditions()));
            world.run_all();
        }
        assert_eq!(world.pod_names().len(), 3);
        traces.push(trace);
    }
    assert_eq!(traces[0], traces[1]);
}

#[tokio::test]
async fn conditions_of_others_survive_every_strategy() {
    let theirs = json!({"type": "Theirs", "status": "True", "x": 1});
    for set in [web(), super::web(), super::web().on_delete()] {
        let set = set.with("status.conditions", json!([theirs]));
        for (settings, minor) in [("StatefulSetRecreateStrategy=true", 37), ("", 36)] {
            let mut world = with_gates(&set, gates(settings, minor));
            world.settle().await;
            assert_eq!(world.counts(), Counts::all(3));
            assert_eq!(world.conditions()[0], theirs);
        }
    }
}

#[tokio::test]
async fn earlier_version_removes_the_progress_of_recreate() {
    let mut world = changed(&web()).await;
    world.settle().await;
    let rolling = super::web().image(NEW).generation(3);
    world.apply(&rolling);
    assert_eq!(world.step().await, None);
    assert_eq!(world.progress(), Some(DONE.map(str::to_owned)));

    let theirs = json!({"type": "Theirs", "status": "True"});
    let mut conditions = world.conditions();
    conditions.push(theirs.clone());
    let status = serde_json::to_value(&*world.set.status).unwrap();
    let stored = rolling
        .with("status", status)
        .with("status.conditions", conditions);
    let mut earlier = with_gates(&stored, gates("", 36));
    for ordinal in 0..3 {
        let revision = new_revision(NEW);
        earlier.put_pod(&builders::pod(&stored.build(), ordinal).revision(&revision));
    }
    earlier.step().await;
    assert_eq!(earlier.conditions(), [theirs]);
    let writes = earlier.requests(Call::UpdateStatus);
    earlier.step().await;
    assert_eq!(earlier.requests(Call::UpdateStatus), writes);
}
