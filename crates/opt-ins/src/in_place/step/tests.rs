//! Tests of the next write of a pod.

use std::time::Duration;

use statefulset_controller_util::testing::builders;

use super::super::mark::{IN_PLACE_LABEL, SINCE_ANNOTATION};
use super::*;
use crate::in_place::change::Template;

const NOW: i64 = 1_772_366_400;

fn recorded(cpu: &str, tier: &str) -> Template {
    let data = json!({"spec": {"template": {
        "$patch": "replace",
        "metadata": {"labels": {"app": "web", "tier": tier}},
        "spec": {
            "initContainers": [{"name": "prepare", "resources": {"requests": {"cpu": cpu}}}],
            "containers": [{"name": "db", "resources": {"requests": {"cpu": cpu}}}],
        },
    }}});
    let set = builders::set("web").build();
    let revision = builders::revision(&set, "web-1", 1, &data.to_string());
    Template::of(&revision.build()).unwrap()
}

/// The change from one core and tier `a` to two and `b`.
fn change() -> Change {
    Change::between(
        &recorded("1", "a"),
        &recorded("2", "b"),
        InPlaceScope::Resources,
    )
    .unwrap()
}

/// A running pod whose containers have these cores in their spec and in their status.
fn pod(desired: &str, actual: &str) -> Value {
    json!({
        "metadata": {
            "name": "web-0", "generation": 2,
            "labels": {"tier": "a", "own": "1", "controller-revision-hash": "web-1"},
        },
        "spec": {
            "initContainers": [{"name": "prepare", "resources": {"requests": {"cpu": desired}}}],
            "containers": [
                {"name": "db", "resources": {"requests": {"cpu": desired}}},
                {"name": "injected"},
            ],
        },
        "status": {
            "observedGeneration": 2,
            "containerStatuses": [{"name": "db", "resources": {"requests": {"cpu": actual}}}],
        },
    })
}

/// The pod, marked this many seconds ago.
fn marked(mut pod: Value, seconds: i64) -> Value {
    pod["metadata"]["labels"][IN_PLACE_LABEL] = "web-2".into();
    let since = (NOW - seconds).to_string();
    pod["metadata"]["annotations"][SINCE_ANNOTATION] = since.into();
    pod
}

fn with_condition(mut pod: Value, kind: &str, reason: &str, seen: i64) -> Value {
    pod["status"]["conditions"] = json!([{
        "type": kind, "status": "True", "reason": reason, "message": "why",
        "observedGeneration": seen,
    }]);
    pod
}

fn live(pod: &Value) -> Live<Pod> {
    Live::decode(&pod.to_string()).unwrap()
}

fn next_of(pod: &Value, change: &Change, scope: InPlaceScope) -> Result<Step, String> {
    let update = PodUpdate {
        change,
        revision: "web-2",
        in_place: InPlace {
            scope,
            timeout: Duration::from_secs(60),
        },
        now: Timestamp::from_second(NOW).unwrap(),
    };
    update.next(&live(pod)).map_err(|reason| reason.to_string())
}

fn next(pod: &Value) -> Result<Step, String> {
    next_of(pod, &change(), InPlaceScope::Resources)
}

fn resize() -> Step {
    let cores = |name: &str| json!([{"name": name, "resources": {"requests": {"cpu": "2"}}}]);
    Step::Resize(json!({"containers": cores("db"), "initContainers": cores("prepare")}))
}

fn until(seconds: i64) -> Step {
    Step::Wait(Timestamp::from_second(NOW + seconds).unwrap())
}

#[test]
fn pod_is_marked_resized_awaited_and_finished() {
    assert_eq!(next(&pod("1", "1")), Ok(Step::Mark));
    assert_eq!(next(&marked(pod("1", "1"), 0)), Ok(resize()));
    assert_eq!(next(&marked(pod("2", "1"), 10)), Ok(until(50)));
    assert_eq!(next(&marked(pod("2", "2"), 10)), Ok(Step::Finish));
    assert_eq!(
        next(&marked(pod("2000m", "2"), 99)),
        Ok(Step::Finish),
        "by value"
    );
}

#[test]
fn change_of_metadata_needs_no_mark() {
    let metadata = Change::between(
        &recorded("1", "a"),
        &recorded("1", "b"),
        InPlaceScope::Metadata,
    );
    let metadata = metadata.unwrap();
    let next = |pod: &Value| next_of(pod, &metadata, InPlaceScope::Metadata);
    assert_eq!(next(&pod("1", "1")), Ok(Step::Finish));
    // Its cores are the choice of someone else.
    assert_eq!(next(&pod("7", "1")), Ok(Step::Finish));
    // A pod in flight to other resources must return first.
    let error = next(&marked(pod("2", "2"), 0)).unwrap_err();
    assert!(error.ends_with("the set asks for metadata only"), "{error}");
}

#[test]
fn corrected_template_begins_the_time_anew() {
    let mut other = marked(pod("3", "3"), 50);
    other["metadata"]["labels"][IN_PLACE_LABEL] = "web-other".into();
    assert_eq!(next(&other), Ok(Step::Mark));
    let mut unreadable = marked(pod("1", "1"), 0);
    unreadable["metadata"]["annotations"][SINCE_ANNOTATION] = "soon".into();
    assert_eq!(next(&unreadable), Ok(Step::Mark));
}

#[test]
fn resize_without_success_is_given_up() {
    let pending = |reason: &str, seen: i64, age: i64| {
        next(&marked(
            with_condition(pod("2", "1"), "PodResizePending", reason, seen),
            age,
        ))
    };
    assert_eq!(
        pending("Infeasible", 2, 0).unwrap_err(),
        "the resize is infeasible: why"
    );
    assert_eq!(
        pending("Infeasible", 1, 0),
        Ok(until(60)),
        "of the resize before"
    );
    assert_eq!(pending("Deferred", 2, 59), Ok(until(1)));
    assert_eq!(
        pending("Deferred", 2, 60).unwrap_err(),
        "the resize has been deferred for 60 seconds: why"
    );
    let progress = |age: i64| {
        next(&marked(
            with_condition(pod("2", "2"), "PodResizeInProgress", "", 2),
            age,
        ))
    };
    assert_eq!(progress(0), Ok(until(60)));
    assert_eq!(
        progress(61).unwrap_err(),
        "the resize has been in progress for 61 seconds: why"
    );
}

#[test]
fn status_of_an_earlier_generation_shows_nothing() {
    let mut pod = marked(pod("2", "2"), 0);
    pod["status"]["observedGeneration"] = 1.into();
    assert_eq!(next(&pod), Ok(until(60)));
    pod["status"]
        .as_object_mut()
        .unwrap()
        .remove("observedGeneration");
    assert_eq!(
        next(&pod),
        Ok(Step::Finish),
        "earlier versions don't tell it"
    );
}

#[test]
fn status_must_show_every_running_container() {
    let mut sidecar = marked(pod("2", "2"), 0);
    sidecar["spec"]["initContainers"][0]["restartPolicy"] = "Always".into();
    assert_eq!(next(&sidecar), Ok(until(60)));
    sidecar["status"]["initContainerStatuses"] =
        json!([{"name": "prepare", "resources": {"requests": {"cpu": "2"}}}]);
    assert_eq!(next(&sidecar), Ok(Step::Finish));
}

#[test]
fn quality_of_service_stays() {
    let fixed = |cpu: &str| {
        let amounts = json!({"cpu": cpu, "memory": "1Gi"});
        json!({"requests": amounts, "limits": amounts})
    };
    let mut pod = pod("1", "1");
    pod["spec"]["initContainers"] = json!([]);
    pod["spec"]["containers"] = json!([{"name": "db", "resources": fixed("1")}]);
    let mut change = change();
    let amounts = Amounts::of(&json!({"resources": {"requests": {"cpu": "2"}}}));
    change.amounts = BTreeMap::from([(("containers", "db".into()), amounts)]);
    let error = next_of(&pod, &change, InPlaceScope::Resources).unwrap_err();
    assert_eq!(
        error,
        "its QoS class would change from Guaranteed to Burstable"
    );
    let amounts = Amounts::of(&json!({"resources": fixed("2")}));
    change.amounts = BTreeMap::from([(("containers", "db".into()), amounts)]);
    assert_eq!(
        next_of(&pod, &change, InPlaceScope::Resources),
        Ok(Step::Mark)
    );
    // Another container may have made it burstable.
    let containers = pod["spec"]["containers"].as_array_mut().unwrap();
    containers.push(json!({"name": "injected"}));
    let amounts = Amounts::of(&json!({"resources": {"requests": {"cpu": "0.5"}}}));
    change.amounts = BTreeMap::from([(("containers", "db".into()), amounts)]);
    assert_eq!(
        next_of(&pod, &change, InPlaceScope::Resources),
        Ok(Step::Mark)
    );
}

#[test]
fn pod_must_have_the_containers_of_the_template() {
    let mut other = pod("1", "1");
    other["spec"]["containers"] = json!([{"name": "renamed"}]);
    assert_eq!(next(&other).unwrap_err(), "the pod has no container db");
    let mut whole = pod("1", "1");
    whole["spec"]["resources"] = json!({"requests": {"cpu": "4"}});
    assert_eq!(next(&whole).unwrap_err(), Reason::PodResources.to_string());
}

#[test]
fn reduced_pod_of_a_dry_sync_is_in_flight() {
    let mut reduced = marked(pod("1", "1"), 0);
    reduced["spec"] = json!({});
    assert_eq!(next(&reduced), Ok(Step::Wait(Timestamp::MAX)));
}

#[test]
fn finished_pod_keeps_what_is_its_own() {
    let change = change();
    let update = PodUpdate {
        change: &change,
        revision: "web-2",
        in_place: InPlace {
            scope: InPlaceScope::Resources,
            timeout: Duration::ZERO,
        },
        now: Timestamp::UNIX_EPOCH,
    };
    let mut pod = marked(pod("2", "2"), 0);
    pod["metadata"]["annotations"]["own"] = "2".into();
    update.finish(&mut pod);
    assert_eq!(
        pod["metadata"]["labels"],
        json!({"tier": "b", "own": "1", "controller-revision-hash": "web-2"})
    );
    assert_eq!(pod["metadata"]["annotations"], json!({"own": "2"}));
}
