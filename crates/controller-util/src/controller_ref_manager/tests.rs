//! Tests of claiming, adopting and releasing pods.

use statefulset_client::fake::FakeClientset;

use super::*;
use crate::pod_control::fake::FakePodControl;
use crate::testing::builders::{self, DELETED_AT, owner_reference};

const ADOPTION: &str = r#"{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"StatefulSet","name":"web","uid":"web-uid","controller":true,"blockOwnerDeletion":true}],"uid":"web-0-uid"}}"#;
const RELEASE: &str =
    r#"{"metadata":{"uid":"web-0-uid","ownerReferences":[{"$patch":"delete","uid":"web-uid"}]}}"#;

/// Names in these tests: `web-<digit>` is a member, `web-00` malformed.
fn membership(pod: &Pod) -> Membership {
    match pod.name.strip_prefix("web-") {
        Some("00") => Membership::Malformed,
        Some(_) => Membership::Member,
        None => Membership::Stranger,
    }
}

fn web() -> builders::Builder<StatefulSet> {
    builders::set("web")
}

fn pod(ordinal: &str) -> builders::Builder<Pod> {
    builders::pod(&web().build(), ordinal)
}

fn api_error(code: u16, reason: &'static str) -> ApiError {
    ApiError::api(code, reason, format!("boom {reason}"))
}

/// A reader that returns `live` and expects `times` reads.
fn reader(live: &StatefulSet, times: usize) -> MockSetReader {
    let mut reader = MockSetReader::new();
    let live = live.clone();
    let expectation = reader.expect_read_stateful_set();
    expectation.times(times).returning(move |key| {
        assert_eq!(key.to_string(), "ns/web");
        Ok(live.clone())
    });
    reader
}

struct Claimed {
    result: Result<Vec<String>, String>,
    patches: Vec<String>,
}

async fn claim(
    set: &StatefulSet,
    pods: Vec<Pod>,
    control: &FakePodControl,
    reader: &MockSetReader,
) -> Claimed {
    let selector = set.spec.selector.compiled().unwrap();
    let manager = PodControllerRefManager::new(set, selector, &membership, control, reader);
    let result = manager
        .claim_pods(pods.into_iter().map(Arc::new).collect())
        .await;
    let names = |pods: Vec<Arc<Pod>>| pods.iter().map(|pod| pod.name.to_string()).collect();
    Claimed {
        result: result.map(names).map_err(|error| error.to_string()),
        patches: control
            .take_patches()
            .into_iter()
            .map(|(pod, patch)| format!("{pod} {patch}"))
            .collect(),
    }
}

/// Outcome for one candidate.
#[derive(Debug, PartialEq)]
enum Fate {
    Claimed,
    LeftAlone,
    Adopted,
    Released,
}

async fn fate(set: &StatefulSet, pod: Pod) -> Fate {
    let reads = usize::from(pod.controller.is_none());
    let mut reader = MockSetReader::new();
    let live = set.clone();
    reader
        .expect_read_stateful_set()
        .times(0..=reads)
        .returning(move |_| Ok(live.clone()));
    let key = pod.key();
    let claimed = claim(set, vec![pod], &FakePodControl::default(), &reader).await;
    let is_claimed = !claimed.result.unwrap().is_empty();
    let adoption = format!("{key} {ADOPTION}");
    let release = format!("{key} {RELEASE}");
    match (is_claimed, claimed.patches.as_slice()) {
        (true, []) => Fate::Claimed,
        (false, []) => Fate::LeftAlone,
        (true, [patch]) if *patch == adoption => Fate::Adopted,
        (false, [patch]) if *patch == release => Fate::Released,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn owned_pods_are_claimed_released_or_ignored() {
    let foreign = owner_reference(("apps/v1", "StatefulSet"), "web", "other", Some(true));
    let stranger = |pod: builders::Builder<Pod>| pod.with("metadata.name", "db-0");
    let deleting = web().terminating().build();
    let set = web().build();
    for (set, pod, expected) in [
        (&set, pod("0"), Fate::Claimed),
        (&set, pod("0").terminating(), Fate::Claimed),
        (&deleting, pod("0"), Fate::Claimed),
        (&set, pod("0").label("app", "db"), Fate::Released),
        (
            &set,
            pod("0").terminating().label("app", "db"),
            Fate::Released,
        ),
        (&set, stranger(pod("0")), Fate::Released),
        (&deleting, pod("0").label("app", "db"), Fate::LeftAlone),
        (&deleting, stranger(pod("0")), Fate::LeftAlone),
        (&set, pod("0").orphan().owner(foreign), Fate::LeftAlone),
        (&set, pod("00"), Fate::LeftAlone),
        (&set, pod("00").label("app", "db"), Fate::LeftAlone),
    ] {
        let text = pod.text();
        assert_eq!(fate(set, pod.build()).await, expected, "{text}");
    }
}

#[tokio::test]
async fn orphans_are_adopted_or_ignored() {
    let deleting = web().terminating().build();
    let set = web().build();
    let owner = owner_reference(("v1", "ConfigMap"), "c", "c", Some(false));
    let orphan = |ordinal: &str| pod(ordinal).orphan();
    for (set, pod, expected) in [
        (&set, orphan("0"), Fate::Adopted),
        (&set, orphan("0").owner(owner), Fate::Adopted),
        (&deleting, orphan("0"), Fate::LeftAlone),
        (&set, orphan("0").label("app", "db"), Fate::LeftAlone),
        (&set, orphan("0").without_label("app"), Fate::LeftAlone),
        (
            &set,
            orphan("0").with("metadata.name", "db-0"),
            Fate::LeftAlone,
        ),
        (&set, orphan("0").terminating(), Fate::LeftAlone),
        (
            &set,
            orphan("0").with("metadata.namespace", "other"),
            Fate::LeftAlone,
        ),
        (&set, orphan("00"), Fate::LeftAlone),
    ] {
        let text = pod.text();
        assert_eq!(fate(set, pod.build()).await, expected, "{text}");
    }
}

#[tokio::test]
async fn live_set_is_read_once_and_only_for_adoptions() {
    let set = web().build();
    let control = FakePodControl::default();
    let orphans = ["0", "1", "2"].map(|ordinal| pod(ordinal).orphan().build());
    let claimed = claim(&set, orphans.into(), &control, &reader(&set, 1)).await;
    assert_eq!(claimed.result.unwrap(), ["web-0", "web-1", "web-2"]);
    assert_eq!(claimed.patches.len(), 3);

    let owned = vec![pod("0").build(), pod("1").label("app", "db").build()];
    let claimed = claim(&set, owned, &control, &reader(&set, 0)).await;
    assert_eq!(claimed.result.unwrap(), ["web-0"]);
}

#[tokio::test]
async fn adopted_pod_is_returned_unpatched() {
    let set = web().build();
    let selector = Selector::everything();
    let (control, reader) = (FakePodControl::default(), reader(&set, 1));
    let manager = PodControllerRefManager::new(&set, &selector, &membership, &control, &reader);
    let orphan = Arc::new(pod("0").orphan().build());
    let claimed = manager.claim_pods(vec![Arc::clone(&orphan)]).await.unwrap();
    assert!(Arc::ptr_eq(&claimed[0], &orphan));
}

#[tokio::test]
async fn rejected_adoption_names_each_orphan() {
    let set = web().build();
    for (live, reason) in [
        (
            web().uid("new").build(),
            "can't recheck DeletionTimestamp: original StatefulSet ns/web is gone: got uid new, wanted web-uid",
        ),
        (
            web().terminating().build(),
            "ns/web has just been deleted at 2026-03-01 11:00:00 +0000 UTC",
        ),
    ] {
        assert_eq!(DELETED_AT, "2026-03-01T11:00:00Z");
        let control = FakePodControl::default();
        let pods = vec![
            pod("0").orphan().build(),
            pod("1").build(),
            pod("2").label("app", "db").build(),
            pod("3").orphan().build(),
        ];
        let claimed = claim(&set, pods, &control, &reader(&live, 1)).await;
        assert_eq!(
            claimed.result.unwrap_err(),
            format!(
                "[can't adopt Pod ns/web-0 (web-0-uid): {reason}, can't adopt Pod ns/web-3 (web-3-uid): {reason}]"
            )
        );
        assert_eq!(claimed.patches.len(), 1, "the release was tried");
        assert!(claimed.patches[0].starts_with("ns/web-2 "));
    }
}

#[tokio::test]
async fn deleted_live_set_fails_the_adoption() {
    let set = web().build();
    let mut reader = MockSetReader::new();
    let missing = || ApiError::api(404, "NotFound", r#"statefulsets.apps "web" not found"#);
    reader
        .expect_read_stateful_set()
        .times(1)
        .returning(move |_| Err(missing()));
    let orphan = vec![pod("0").orphan().build()];
    let claimed = claim(&set, orphan, &FakePodControl::default(), &reader).await;
    assert_eq!(
        claimed.result.unwrap_err(),
        r#"can't adopt Pod ns/web-0 (web-0-uid): can't recheck DeletionTimestamp: statefulsets.apps "web" not found"#
    );
    assert!(claimed.patches.is_empty());
}

#[tokio::test]
async fn patches_ignore_not_found_and_invalid_releases() {
    let set = web().build();
    let orphan = pod("0").orphan().build();
    let stray = pod("0").label("app", "db").build();
    let not_found: fn() -> ApiError = || api_error(404, "NotFound");
    let invalid: fn() -> ApiError = || api_error(422, "Invalid");
    let conflict: fn() -> ApiError = || api_error(409, "Conflict");
    for (pod, failure, expected) in [
        (&orphan, not_found, Ok(vec![])),
        (&orphan, invalid, Err("boom Invalid".to_owned())),
        (&orphan, conflict, Err("boom Conflict".to_owned())),
        (&stray, not_found, Ok(vec![])),
        (&stray, invalid, Ok(vec![])),
        (&stray, conflict, Err("boom Conflict".to_owned())),
    ] {
        let control = FakePodControl::default();
        control.fail_with(failure);
        let reads = usize::from(pod.controller.is_none());
        let claimed = claim(&set, vec![pod.clone()], &control, &reader(&set, reads)).await;
        assert_eq!(claimed.result, expected);
        assert_eq!(claimed.patches.len(), 1);
    }
}

#[tokio::test]
async fn every_candidate_is_tried_and_equal_errors_merge() {
    let set = web().build();
    let control = FakePodControl::default();
    control.fail_with(|| api_error(500, "InternalError"));
    let pods = vec![
        pod("0").orphan().build(),
        pod("1").label("app", "db").build(),
        pod("2").build(),
    ];
    let claimed = claim(&set, pods, &control, &reader(&set, 1)).await;
    assert_eq!(claimed.result.unwrap_err(), "boom InternalError");
    assert_eq!(claimed.patches.len(), 2);
}

#[tokio::test]
async fn real_reader_bypasses_the_cache() {
    let api = FakeClientset::new();
    api.load(&STATEFUL_SETS, web().generation(7).text());
    let key = ObjectKey::new("ns", "web");
    let live = api.rest_client().read_stateful_set(&key).await.unwrap();
    assert_eq!(live.metadata.generation, 7);

    api.load(&STATEFUL_SETS, web().with("spec.replicas", "three").text());
    let error = api.rest_client().read_stateful_set(&key).await.unwrap_err();
    assert!(
        error.to_string().starts_with("read StatefulSet ns/web: "),
        "{error}"
    );
}
