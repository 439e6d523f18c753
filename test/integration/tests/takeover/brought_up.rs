//! Tests that sets which this controller creates and changes like upstream have the same
//! names, labels, revisions and claims, at rest and in the middle of a rollout. Upstream can
//! thus take them back without changes.

use std::time::Duration;

use conformance::settled::shapes::Shape;
use integration::World;
use integration::poll::Patience;
use integration::recorded::{Recorded, creatable};
use integration::space::Space;
use integration::stateful_sets::name;
use kube_test_control_plane::actors::{ActorsConfig, KubeletConfig, PodBehaviour};
use serde_json::{Value, json};
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::resource::{
    CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, Resource, STATEFUL_SETS,
};

const PATIENCE: Patience = Patience(Duration::from_secs(3600));

/// Compared resources, by the names of the recorded lists.
const COMPARED: [(&str, Resource); 3] = [
    ("controllerrevisions", CONTROLLER_REVISIONS),
    ("pods", PODS),
    ("persistentvolumeclaims", PERSISTENT_VOLUME_CLAIMS),
];

/// Strips an object of server-specific fields: server-assigned metadata, uids, and the pod's node.
/// The order of a pod's volumes is ignored: upstream orders claim volumes at random.
fn comparable(object: &Value) -> Value {
    let mut object = creatable(object);
    for member in ["apiVersion", "kind"] {
        object.as_object_mut().unwrap().remove(member);
    }
    let owners = object["metadata"].get_mut("ownerReferences");
    for owner in owners.and_then(Value::as_array_mut).into_iter().flatten() {
        owner["uid"] = "masked".into();
    }
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("nodeName");
        if let Some(volumes) = spec.get_mut("volumes").and_then(Value::as_array_mut) {
            volumes.sort_by(|a, b| a["name"].as_str().cmp(&b["name"].as_str()));
        }
    }
    object
}

/// Comparable objects of a list, sorted by name.
fn by_name(objects: &[Value]) -> Vec<Value> {
    let mut objects: Vec<Value> = objects.iter().map(comparable).collect();
    objects.sort_by(|a, b| name(a).cmp(name(b)));
    objects
}

/// The status without the generation, which counts the set's changes.
fn status(set: &Value) -> Value {
    let mut status = set["status"].clone();
    status["observedGeneration"] = json!(null);
    status
}

/// Waits until the set's status equals upstream's, and compares everything else.
async fn assert_becomes(space: &Space, recorded: &Recorded) {
    let wanted = status(recorded.set());
    let set = name(recorded.set());
    let mut last = Value::Null;
    let settled = async || {
        let set = space.get(&STATEFUL_SETS, set).await;
        last = status(&set);
        let seen = set["status"]["observedGeneration"] == set["metadata"]["generation"];
        (seen && last == wanted).then_some(())
    };
    PATIENCE
        .until(&format!("{} has {wanted}", recorded.id), settled)
        .await;
    for (list, resource) in COMPARED {
        let ours = by_name(&space.list(&resource, "").await);
        let theirs = by_name(recorded.list(list));
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(ours, theirs, "{}", recorded.id);
        }
        assert_eq!(ours.len(), theirs.len(), "{}: {list}", recorded.id);
    }
}

/// Creates the set of the first cluster and changes it into those of the others in turn.
async fn assert_goes_through(clusters: &[Recorded]) {
    // The recorded clusters have no secrets and config maps.
    let kubelet = KubeletConfig::new(PodBehaviour::default()).ignores_missing_references(true);
    let actors = ActorsConfig::default()
        .kubelet(kubelet)
        .scheduler(ActorsConfig::all().scheduler);
    let world = World::with_nodes(actors, FeatureGates::default()).await;
    let space = world.namespace(&clusters[0].namespace()).await;
    for (step, cluster) in clusters.iter().enumerate() {
        let wanted = creatable(cluster.set());
        if step == 0 {
            space.create(&STATEFUL_SETS, &wanted).await;
        } else {
            space
                .change(&STATEFUL_SETS, name(&wanted), "", |set| {
                    set["spec"] = wanted["spec"].clone();
                    set["metadata"]["annotations"] = wanted["metadata"]["annotations"].clone();
                })
                .await;
        }
        assert_becomes(&space, cluster).await;
    }
}

#[tokio::test(start_paused = true)]
async fn created_and_changed_sets_match_the_reference() {
    integration::embedded_only!("needs many clusters in paused time");
    let clusters = Recorded::all(Shape::AsRecorded);
    for app in clusters.chunks(3) {
        let ids: Vec<&str> = app
            .iter()
            .map(|cluster| cluster.id.split('/').nth(1).unwrap())
            .collect();
        assert_eq!(ids, ["created", "rolled", "scaled-and-partitioned"]);
        assert_goes_through(app).await;
    }
}
