//! Takeover test: the shipped controller, with only the default role, writes nothing
//! to settled sets of upstream until a user scales them or changes their templates.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use conformance::settled::shapes::Shape;
use futures::future::join_all;
use integration::poll::Patience;
use integration::recorded::Recorded;
use integration::space::{Patch, Space};
use integration::stateful_sets::{name, uid};
use serde_json::{Value, json};
use statefulset_client::resource::{
    CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS,
};

use crate::harness::{
    Api, History, Kind, PATIENCE, Plane, Signal, controller_arguments, programs, set,
};

const USER: &str = "system:serviceaccount:kube-system:statefulset-controller";

/// Creates a set in the default namespace and waits until the controller has observed it.
fn until_seen(api: &Api, history: &mut History, name: &str) {
    api.create(Kind::Set, &set(name, 0));
    let seen = |history: &History| {
        let mut sets = history.now(Kind::Set);
        sets.any(|(other, set)| other == name && set["status"]["observedGeneration"] == 1)
    };
    history.until(&format!("{name} to be seen"), seen);
}

/// Writes in the audit log, with their namespaces.
fn writes(audit: &Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(audit).unwrap();
    // The last line may be incomplete.
    let (complete, _) = text.rsplit_once('\n').unwrap_or_default();
    let events = complete
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let by_controller = events.filter(|event| event["user"]["username"] == USER);
    let write = |event: Value| {
        assert_ne!(event["responseStatus"]["code"], 403, "{event}");
        let verb = event["verb"].as_str().unwrap().to_owned();
        let object = &event["objectRef"];
        let text = |member: &str| object[member].as_str().unwrap_or_default().to_owned();
        let (resource, subresource) = (text("resource"), text("subresource"));
        let what = format!("{verb} {resource} {subresource} {}", text("name"));
        let is_read = ["get", "list", "watch"].contains(&verb.as_str());
        (!is_read).then(|| (text("namespace"), what))
    };
    by_controller.filter_map(write).collect()
}

/// Adds a replica, and waits for its pod and claims. Returns no pod name.
async fn scale_up(space: &Space, set: &Value) -> Option<String> {
    let replicas = set["spec"]["replicas"].as_u64().unwrap();
    let start = set["spec"]["ordinals"]["start"].as_u64().unwrap_or(0);
    let pod = format!("{}-{}", name(set), start + replicas);
    let templates = set["spec"]["volumeClaimTemplates"].as_array();
    let claims = templates.into_iter().flatten();
    let claims: Vec<String> = claims.map(|it| format!("{}-{pod}", name(it))).collect();
    for claim in &claims {
        collect(space, claim).await;
    }
    let patch = json!({"spec": {"replicas": replicas + 1}});
    space
        .patch(&STATEFUL_SETS, name(set), "", Patch::Merge, &patch)
        .await;
    let created = async || space.find(&PODS, &pod, "").await;
    let what = format!("{pod} of {}", space.name());
    let created = Patience(PATIENCE).until(&what, created).await;
    let revision = &created["metadata"]["labels"]["controller-revision-hash"];
    assert_eq!(revision, &set["status"]["updateRevision"], "{what}");
    for claim in &claims {
        space.get(&PERSISTENT_VOLUME_CLAIMS, claim).await;
    }
    None
}

/// Removes a claim's finalizers after it was deleted with its pod; other controllers would have
/// done so since the recording.
async fn collect(space: &Space, claim: &str) {
    let found = space.find(&PERSISTENT_VOLUME_CLAIMS, claim, "").await;
    if found.is_some_and(|claim| claim["metadata"]["deletionTimestamp"].is_string()) {
        let patch = json!({"metadata": {"finalizers": null}});
        space
            .patch(&PERSISTENT_VOLUME_CLAIMS, claim, "", Patch::Merge, &patch)
            .await;
    }
}

/// Changes the template, and waits for the new revision and, except with `OnDelete`, for the
/// deletion of the highest pod. Returns its name.
async fn roll(space: &Space, set: &Value) -> Option<String> {
    let pods = space.list(&PODS, "").await;
    let patch = json!({"spec": {"template": {"metadata": {"annotations": {"rolled": "again"}}}}});
    space
        .patch(&STATEFUL_SETS, name(set), "", Patch::Merge, &patch)
        .await;
    let seen = async || {
        let now = space.get(&STATEFUL_SETS, name(set)).await;
        let revision = now["status"]["updateRevision"].as_str()?.to_owned();
        (revision != set["status"]["updateRevision"]).then_some(revision)
    };
    let what = format!("a new revision in {}", space.name());
    let revision = Patience(PATIENCE).until(&what, seen).await;
    space.get(&CONTROLLER_REVISIONS, &revision).await;
    if set["spec"]["updateStrategy"]["type"] == "OnDelete" {
        return None;
    }
    let highest = pods.last().unwrap();
    let deleted = async || {
        let found = space.find(&PODS, name(highest), "").await;
        let lives = found.is_some_and(|pod| {
            uid(&pod) == uid(highest) && pod["metadata"]["deletionTimestamp"].is_null()
        });
        (!lives).then_some(())
    };
    let what = format!("{} of {} to be deleted", name(highest), space.name());
    Patience(PATIENCE).until(&what, deleted).await;
    Some(name(highest).to_owned())
}

/// Changes a set that was taken over. Returns the namespace and the deleted pod, if any.
async fn put_to_work(space: Space, id: String) -> (String, Option<String>) {
    let sets = space.list(&STATEFUL_SETS, "").await;
    let [set] = sets.as_slice() else {
        panic!("{} sets in {}", sets.len(), space.name());
    };
    let lost = if id.ends_with("/rolled") {
        roll(&space, set).await
    } else {
        scale_up(&space, set).await
    };
    (space.name().to_owned(), lost)
}

#[test]
fn settled_sets_stay_unchanged_until_the_user_acts() {
    let folder = tempfile::tempdir().unwrap();
    let audit = folder.path().join("audit");
    let flags = ["--actors=", "--audit-log-path", audit.to_str().unwrap()];
    let plane = Plane::start_with(&programs(), &flags);
    let mut taken_over = BTreeMap::new();
    for (number, shape) in Shape::ALL.into_iter().enumerate() {
        for cluster in Recorded::all(shape) {
            let namespace = format!("{}-{number}", cluster.namespace());
            let object = json!({"metadata": {"name": namespace}});
            plane.api.post("/api/v1/namespaces", &object);
            plane.api.with_client(async |client| {
                cluster.load(&Space::new(client, &namespace)).await;
            });
            taken_over.insert(namespace, cluster.id);
        }
    }
    assert_eq!(taken_over.len(), 18 * Shape::ALL.len());

    let mut arguments = controller_arguments(plane.controller_kubeconfig()).to_vec();
    arguments.extend(["--kube-api-qps=500", "--kube-api-burst=1000"].map(str::to_owned));
    let controller = plane.controller_with(&arguments);
    let mut history = History::begin(&plane.api);
    // Once the first set is observed, all caches are full; later work queues behind all other sets.
    until_seen(&plane.api, &mut history, "first");
    until_seen(&plane.api, &mut history, "second");
    // Writes are logged after their response.
    let logged = async || {
        let is_own = |(namespace, _): &(String, String)| namespace == "default";
        let (own, others): (Vec<_>, Vec<_>) = writes(&audit).into_iter().partition(is_own);
        (own.len() >= 4).then_some(others)
    };
    let what = "a revision and a status of each set that came later";
    let others = plane
        .api
        .with_client(async |_| Patience(PATIENCE).until(what, logged).await);
    assert_eq!(others, []);

    let lost = plane.api.with_client(async |client| {
        let work = taken_over.into_iter().map(|(namespace, id)| {
            let space = Space::new(client.clone(), &namespace);
            put_to_work(space, id)
        });
        join_all(work).await
    });
    controller.signal(Signal::TERM);
    assert_eq!(controller.wait().code, Some(0));
    let deletions = writes(&audit).into_iter().filter_map(|(namespace, what)| {
        Some((namespace, what.strip_prefix("delete pods  ")?.to_owned()))
    });
    let deletions: BTreeSet<(String, String)> = deletions.collect();
    let lost = lost
        .into_iter()
        .filter_map(|(namespace, pod)| Some((namespace, pod?)));
    assert_eq!(deletions, lost.collect());
}
