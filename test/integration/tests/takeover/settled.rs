//! Takeover of sets at rest: the controller writes nothing, but follows later changes.

use std::time::Duration;

use conformance::settled::shapes::Shape;
use integration::World;
use integration::poll::Patience;
use integration::recorded::Recorded;
use integration::space::{Patch, Space};
use kube_test_control_plane::faults::RequestMatcher;
use serde_json::{Value, json};
use statefulset_client::resource::{CONTROLLER_REVISIONS, STATEFUL_SETS};
use statefulset_client::rest::RestClient;

/// Longer than the controller's retries after many failures, and than any other delay.
const LONG: Duration = Duration::from_secs(3600);
const PATIENCE: Patience = Patience(Duration::from_secs(60));
/// A field unknown to the types of this version.
const UNKNOWN: &str = "madeUpIn2030";

/// Lets the controller take these clusters over; checks that it writes nothing, and that it follows
/// the user's next change.
async fn assert_leaves_alone(mut world: World, clusters: &[Recorded]) {
    let mut loaded: Vec<(&Recorded, Space)> = Vec::new();
    for cluster in clusters {
        let space = world.namespace(&cluster.namespace()).await;
        cluster.load(&space).await;
        loaded.push((cluster, space));
    }
    assert_eq!(loaded.len(), 18);
    let audit = world.plane().server().audit();
    let before = audit.mark();
    world.start_controller(RestClient::new(world.controller_client()));
    tokio::time::sleep(LONG).await;
    let audit = world.plane().server().audit();
    let everybody = RequestMatcher::any().include_actors();
    let written = audit.expect_no_writes(before, &everybody);
    written.unwrap_or_else(|finding| panic!("{finding}"));
    for (cluster, space) in &loaded {
        assert_follows_change(cluster, space).await;
    }
}

/// Checks that a template change creates one more revision.
async fn assert_follows_change(cluster: &Recorded, space: &Space) {
    let set = cluster.set();
    let name = set["metadata"]["name"].as_str().unwrap();
    let step = json!({"spec": {"template": {"metadata": {"annotations": {"step": "next"}}}}});
    space
        .patch(&STATEFUL_SETS, name, "", Patch::Merge, &step)
        .await;
    let before = cluster.list("controllerrevisions").len();
    let followed = async || {
        let set = space.get(&STATEFUL_SETS, name).await;
        let revisions = space.list(&CONTROLLER_REVISIONS, "").await;
        let update = &set["status"]["updateRevision"];
        let is_new = *update != cluster.set()["status"]["updateRevision"];
        (is_new && revisions.len() == before + 1).then_some(())
    };
    PATIENCE.until(&cluster.id, followed).await;
}

#[tokio::test(start_paused = true)]
async fn sets_of_the_same_version_stay_unchanged() {
    integration::embedded_only!("counts requests");
    assert_leaves_alone(World::api_server().await, &Recorded::all(Shape::AsRecorded)).await;
}

#[tokio::test(start_paused = true)]
async fn sets_of_v1_33_stay_unchanged() {
    integration::embedded_only!("counts requests");
    assert_leaves_alone(World::api_server().await, &Recorded::all(Shape::V1_33)).await;
}

#[tokio::test(start_paused = true)]
async fn sets_changed_after_upgrade_from_v1_33_stay_unchanged() {
    integration::embedded_only!("counts requests");
    let clusters = Recorded::all(Shape::V1_33ThenNewer);
    assert_leaves_alone(World::api_server().await, &clusters).await;
}

#[tokio::test(start_paused = true)]
async fn sets_rerecorded_by_v1_34_stay_unchanged() {
    integration::embedded_only!("counts requests");
    let clusters = Recorded::all(Shape::V1_33ThenV1_34);
    assert_leaves_alone(World::api_server().await, &clusters).await;
}

#[tokio::test(start_paused = true)]
async fn sets_with_fewer_server_defaults_stay_unchanged() {
    integration::embedded_only!("counts requests");
    let clusters = Recorded::all(Shape::FewerDefaults);
    assert_leaves_alone(World::api_server().await, &clusters).await;
}

/// Adds a new field, as a newer server's defaulting would, to templates and pods, but not to
/// recorded revisions.
fn with_a_new_default(cluster: &mut Recorded) {
    let fill = |spec: &mut Value| {
        spec[UNKNOWN] = json!({"mode": "Auto"});
        spec["containers"][0][UNKNOWN] = json!(true);
    };
    for set in cluster.list_mut("statefulsets") {
        fill(&mut set["spec"]["template"]["spec"]);
        set["spec"][UNKNOWN] = json!("Default");
    }
    for pod in cluster.list_mut("pods") {
        fill(&mut pod["spec"]);
    }
    for claim in cluster.list_mut("persistentvolumeclaims") {
        claim["spec"][UNKNOWN] = json!("Default");
    }
}

#[tokio::test(start_paused = true)]
async fn newer_server_defaults_create_no_revision() {
    integration::embedded_only!("counts requests");
    for shape in [Shape::AsRecorded, Shape::V1_33] {
        let mut clusters = Recorded::all(shape);
        for cluster in &mut clusters {
            with_a_new_default(cluster);
        }
        assert_leaves_alone(World::newer_api_server().await, &clusters).await;
    }
}
