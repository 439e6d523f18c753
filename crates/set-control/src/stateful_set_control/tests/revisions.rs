//! History after a sync, and adoption.

use statefulset_client::feature_gates::KubeVersion;

use super::*;

/// Stores a revision with other data than the set's.
fn load(world: &World, name: &str, number: i64) {
    let data = format!(
        r#"{{"spec":{{"template":{{"$patch":"replace","metadata":{{"name":"{name}"}},"spec":{{"containers":null}}}}}}}}"#
    );
    let revision = builders::revision(&world.set, name, number, &data);
    world.put_revision(&revision);
}

/// A world with the revisions a…e: `b` is current, and a pod has `d`.
fn with_history(limit: i32) -> World {
    let set = web()
        .replicas(1)
        .with("spec.revisionHistoryLimit", limit)
        .with("status.currentRevision", "b");
    let world = world(&set);
    for (number, name) in (1..).zip(["a", "b", "c", "d", "e"]) {
        load(&world, name, number);
    }
    world.put_pod(&pod(&set, 0).revision("d").unready());
    world
}

#[tokio::test]
async fn oldest_unused_revisions_past_the_limit_are_deleted() {
    for (limit, expected) in [
        (0, vec!["b", "d"]),
        (1, vec!["b", "d", "e"]),
        (2, vec!["b", "c", "d", "e"]),
        (3, vec!["a", "b", "c", "d", "e"]),
        (-1, vec!["a", "b", "c", "d", "e"]),
    ] {
        let mut world = with_history(limit);
        let update = revision_name(&web());
        world.step().await;
        let mut expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
        expected.push(update);
        assert_eq!(world.revision_names(), expected, "{limit}");
    }
}

#[tokio::test]
async fn failed_sync_truncates_the_history_too() {
    let mut world = with_history(0);
    world.fail(Call::CreateRevision, 0);
    let outcome = world.sync().await;
    assert_eq!(outcome.error.unwrap().to_string(), INJECTED);
    assert_eq!(
        world.revision_names(),
        ["d"],
        "the current revision is unknown after the failure"
    );
}

#[tokio::test]
async fn failed_revision_deletion_fails_the_sync() {
    let mut world = with_history(0);
    world.fail(Call::DeleteRevision, 1);
    let outcome = world.sync().await;
    assert_eq!(outcome.error.unwrap().to_string(), INJECTED);
    assert!(outcome.status.is_some());
    assert_eq!(world.revision_names()[..4], ["b", "c", "d", "e"]);
}

#[tokio::test]
async fn sync_and_history_failures_are_both_returned() {
    let mut world = with_history(0);
    let forbidden = || ApiError::api(403, "Forbidden", "no");
    world.fail_with(Call::DeleteRevision, 0, forbidden);
    world.fail(Call::CreateRevision, 0);
    let outcome = world.sync().await;
    assert_eq!(outcome.error.unwrap().to_string(), "[injected failure, no]");
}

#[tokio::test]
async fn batch_and_history_failures_form_one_list() {
    let set = web().parallel().claim_template("data");
    let set = set.with("spec.revisionHistoryLimit", 0);
    let mut world = world(&set);
    load(&world, "a", 1);
    for ordinal in [1, 2] {
        let claim = builders::claim(&set.build(), "data", ordinal).terminating();
        world.put_claim(&claim);
    }
    world.fail(Call::DeleteRevision, 0);
    assert_eq!(
        world.sync_error().await,
        "[pvc data-web-1 is being deleted, pvc data-web-2 is being deleted, injected failure]"
    );
}

#[tokio::test]
async fn new_revision_is_not_truncated() {
    let set = web().with("spec.revisionHistoryLimit", 0);
    let mut world = world(&set);
    world.step().await;
    assert_eq!(world.revision_names(), [revision_name(&set)]);
}

#[tokio::test]
async fn gate_reuses_a_semantically_equal_revision() {
    for gate in [true, false] {
        let gates = FeatureGates::default().stateful_set_semantic_revision_comparison(gate);
        let mut world = with_gates(&web(), gates);
        let recorded = RevisionData::new(&world.set.spec.template).unwrap();
        let mut recorded: Value = serde_json::from_str(recorded.recorded()).unwrap();
        recorded["spec"]["template"]["metadata"]["creationTimestamp"] = Value::Null;
        let older = builders::revision(&world.set, "older", 1, &recorded.to_string());
        world.put_revision(&older);
        world.step().await;
        let taken = &*world.set.status.update_revision == "older";
        assert_eq!(
            (taken, world.revision_names().len()),
            (gate, if gate { 1 } else { 2 })
        );
    }
}

/// Data that a version records for the set.
fn recorded_by(version: KubeVersion, set: &StatefulSet) -> String {
    let data = RevisionData::at(&set.spec.template, FeatureGates::at(version));
    data.unwrap().recorded().to_string()
}

#[tokio::test]
async fn new_revision_has_the_emulated_versions_form() {
    for minor in 33..=36 {
        let version = KubeVersion::v1(minor);
        let mut world = with_gates(&web(), FeatureGates::at(version));
        world.step().await;
        let revisions = world.revisions();
        assert_eq!(revisions.len(), 1);
        assert_eq!(
            revisions[0].data.to_str(),
            recorded_by(version, &world.set),
            "{version}"
        );
        assert_eq!(
            revisions[0].data.to_str().contains("null"),
            minor == 33,
            "{version}"
        );
    }
}

#[tokio::test]
async fn emulated_versions_reuse_each_others_revisions() {
    for recorded in 33..=36 {
        for emulated in 33..=36 {
            let gates = FeatureGates::at(KubeVersion::v1(emulated));
            let mut world = with_gates(&web(), gates);
            let data = recorded_by(KubeVersion::v1(recorded), &world.set);
            let theirs = builders::revision(&world.set, "theirs", 1, &data);
            world.put_revision(&theirs);
            world.step().await;
            let case = format!("recorded by 1.{recorded}, now 1.{emulated}");
            assert_eq!(world.revision_names(), ["theirs"], "{case}");
            assert_eq!(&*world.set.status.update_revision, "theirs", "{case}");
        }
    }
}

#[tokio::test]
async fn list_returns_revisions_by_selector_and_owner() {
    let world = world(&web());
    load(&world, "own", 1);
    let orphan = builders::revision(&world.set, "orphan", 1, "{}").orphan();
    let other = builders::revision(&world.set, "other", 1, "{}").label("app", "db");
    for revision in [orphan, other] {
        world.put_revision(&revision);
    }
    assert_eq!(world.revision_names(), ["orphan", "own"]);
}

#[tokio::test]
async fn adoption_stops_at_the_first_failure() {
    let world = world(&web());
    let (set, stored) = (&world.set, &world.history.revisions);
    let revision = |name: &str| builders::revision(set, name, 1, "{}");
    let orphan = |name: &str| world.put_revision(&revision(name).orphan());
    let [c, b, a] = ["c", "b", "a"].map(orphan);
    let mut revisions = [c, b, a, Arc::new(revision("owned").build())];
    stored.delete("ns", "b").unwrap();
    let adopted = world.control.adopt_orphan_revisions(set, &mut revisions);
    assert!(matches!(adopted.await, Err(Error::History(error)) if error.is_not_found()));
    let names = revisions.iter().map(|revision| &*revision.name);
    assert!(names.eq(["a", "b", "c", "owned"]));
    let controlled = |name: &str| {
        let revision = stored.cache().get("ns", name).unwrap();
        revision.controller.is_some()
    };
    assert_eq!(["a", "c"].map(controlled), [true, false]);
    assert_eq!(Some(&revisions[0]), stored.cache().get("ns", "a").as_ref());
}
