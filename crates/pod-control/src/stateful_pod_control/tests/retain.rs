//! Owners of claims: events, writes, and the check of the live set before a condemned pod becomes
//! an owner.

use super::*;

const CONFLICTING: &str = "Warning ConflictingController PersistentVolumeClaim data-web-5 has a conflicting OwnerReference that acts as a manging controller, the retention policy is ignored for this claim";

/// The condemned pod with ordinal 5.
fn condemned(set: &StatefulSet) -> PodSlot {
    existing(&builders::pod(set, 5))
}

async fn apply(world: &ApiWorld, set: &StatefulSet) -> Result<(), Error> {
    let pod = condemned(set);
    let control = world.control.for_sync(set);
    control.update_pod_claim_for_retention_policy(&pod).await
}

fn matches(world: &ApiWorld, set: &StatefulSet) -> bool {
    let pod = condemned(set);
    let control = &world.control;
    control
        .for_sync(set)
        .claims_match_retention_policy(&pod)
        .unwrap()
}

fn two_claims() -> Builder<StatefulSet> {
    web().claim_template("logs").retention("Delete", "Delete")
}

#[tokio::test]
async fn condemned_pod_owns_each_claim_after_a_live_read() {
    let (world, set) = (ApiWorld::new(), two_claims());
    world.put_set(&set.build());
    let set = set.build();
    for template in ["data", "logs"] {
        let claim = builders::claim(&set, template, 5).owner(set_owner());
        world.put_claim(&claim.with("spec.future", "<"));
    }
    assert!(!matches(&world, &set));
    apply(&world, &set).await.unwrap();
    let expected = [
        "get persistentvolumeclaims data-web-5",
        "get statefulsets web",
        "update persistentvolumeclaims data-web-5",
        "get persistentvolumeclaims logs-web-5",
        "get statefulsets web",
        "update persistentvolumeclaims logs-web-5",
    ];
    assert_eq!(world.requests(), expected);
    let written = world.api.actions()[2].json();
    assert_eq!(owners(&written), ["web-5"]);
    assert_eq!(
        written["metadata"]["ownerReferences"][0]["uid"],
        "web-5-uid"
    );
    assert_eq!(written["metadata"]["resourceVersion"], "3");
    assert_eq!(written["spec"]["future"], "<");
    assert!(world.recorder.is_empty());
}

#[tokio::test]
async fn changed_set_adds_no_claim_owner() {
    for (live, reason) in [
        (
            Some(two_claims().generation(2)),
            "StatefulSet ns/web changed: generation 2 instead of 1",
        ),
        (
            Some(two_claims().uid("new")),
            "StatefulSet ns/web was recreated: uid new instead of web-uid",
        ),
        (
            Some(two_claims().terminating()),
            "StatefulSet ns/web is being deleted",
        ),
        (
            None,
            r#"can't read StatefulSet ns/web: statefulsets.apps "web" not found"#,
        ),
    ] {
        let (world, set) = (ApiWorld::new(), two_claims().build());
        if let Some(live) = live {
            world.put_set(&live.build());
        }
        for template in ["data", "logs"] {
            world.put_claim(&builders::claim(&set, template, 5));
        }
        let (pod, control) = (condemned(&set), world.control.for_sync(&set));
        for _ in 0..2 {
            let applied = control.update_pod_claim_for_retention_policy(&pod);
            let error = applied.await.unwrap_err();
            assert_eq!(
                error.to_string(),
                format!(
                    "will not add an owner that would cause the deletion of claim data-web-5: \
                     {reason}"
                )
            );
            assert!(!error.is_conflict());
        }
        let get_claim = "get persistentvolumeclaims data-web-5";
        assert_eq!(
            world.requests(),
            [get_claim, "get statefulsets web", get_claim],
            "the sync reads the set once and writes nothing"
        );
    }
}

#[tokio::test]
async fn claim_missing_in_the_api_is_an_error() {
    let (world, set) = (ApiWorld::new(), two_claims().build());
    for template in ["data", "logs"] {
        world.put_claim(&builders::claim(&set, template, 5));
    }
    world
        .api
        .unload(&PERSISTENT_VOLUME_CLAIMS, "ns", "data-web-5");
    let error = apply(&world, &set).await.unwrap_err();
    let Error::Claim { action, source } = &error else {
        panic!("{error}");
    };
    assert!(action.contains(" data-web-5 "), "{action}");
    assert!(source.is_not_found(), "{source}");
    let get_claim = "get persistentvolumeclaims data-web-5";
    assert_eq!(
        world.requests(),
        [get_claim],
        "the other claim is not tried"
    );
}

/// Result of a failed live read of the set.
type FailedRead = fn() -> Result<String, ApiError>;

/// All results of a live read other than the set.
const FAILED_READS: [(&str, FailedRead); 10] = [
    ("internal error", || failed(500, "InternalError")),
    ("server timeout", || failed(500, "ServerTimeout")),
    ("gateway timeout", || failed(504, "Timeout")),
    ("unavailable", || failed(503, "ServiceUnavailable")),
    ("forbidden", || failed(403, "Forbidden")),
    ("unauthorized", || failed(401, "Unauthorized")),
    ("too many requests", || failed(429, "TooManyRequests")),
    ("not found", || failed(404, "NotFound")),
    ("no set", || Ok("{}".to_owned())),
    ("transport", || {
        let source = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        Err(ApiError::Transport {
            action: "GET set".to_owned(),
            source: source.into(),
        })
    }),
];

fn failed(code: u16, reason: &str) -> Result<String, ApiError> {
    Err(ApiError::api(code, reason, "boom"))
}

/// Requests that change an object.
fn writes(world: &ApiWorld) -> Vec<String> {
    let mut requests = world.requests();
    requests.retain(|request| !request.starts_with("get "));
    requests
}

#[tokio::test(start_paused = true)]
async fn a_failed_live_read_adds_no_owner() {
    for (name, read) in FAILED_READS {
        for policy in [
            ("Delete", "Delete"),
            ("Delete", "Retain"),
            ("Retain", "Delete"),
        ] {
            let world = ApiWorld::new();
            let builder = web().retention(policy.0, policy.1);
            world.put_set(&builder.build());
            world
                .api
                .react(ApiVerb::Get, "statefulsets", move |_| Some(read()));
            let set = builder.build();
            world.put_claim(&builders::claim(&set, "data", 5));
            let error = apply(&world, &set).await.unwrap_err();
            assert!(
                matches!(error, Error::DeletesClaims { .. }),
                "{name}: {error}"
            );
            assert_eq!(writes(&world), [""; 0], "{name} {policy:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_live_read_deletes_no_condemned_pod() {
    for (name, read) in FAILED_READS {
        let world = ApiWorld::new();
        let builder = web().retention("Delete", "Retain");
        world.put_set(&builder.build());
        world
            .api
            .react(ApiVerb::Get, "statefulsets", move |_| Some(read()));
        let set = builder.build();
        let pod = builders::pod(&set, 5);
        world.put_pod(&pod);
        let pod = Arc::new(pod.build());
        let deleted = world
            .control
            .for_sync(&set)
            .delete_condemned_pod(&pod)
            .await;
        let error = deleted.unwrap_err();
        assert!(
            matches!(error, Error::DeletesClaims { .. }),
            "{name}: {error}"
        );
        assert_eq!(writes(&world), [""; 0], "{name}");
        assert!(world.recorder.is_empty(), "{name}");
    }
}

#[tokio::test]
async fn condemned_pods_deletion_begins_with_a_live_read() {
    let (set, claim) = (
        "get statefulsets web",
        "get persistentvolumeclaims data-web-5",
    );
    for (when_scaled, read) in [("Delete", set), ("Retain", claim), ("Later", claim)] {
        let world = ApiWorld::new();
        let builder = web().retention(when_scaled, "Delete");
        world.put_set(&builder.build());
        let set = builder.build();
        let pod = builders::pod(&set, 5);
        world.put_pod(&pod);
        let pod = Arc::new(pod.build());
        let deleted = world
            .control
            .for_sync(&set)
            .delete_condemned_pod(&pod)
            .await;
        deleted.unwrap();
        assert_eq!(
            world.requests(),
            [read, "delete pods web-5"],
            "{when_scaled}"
        );
    }
}

#[tokio::test]
async fn set_change_between_two_claims_keeps_the_second() {
    let world = ApiWorld::new();
    let looks = std::sync::atomic::AtomicI64::new(0);
    world.api.react(ApiVerb::Get, "statefulsets", move |_| {
        let generation = 1 + looks.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Some(Ok(two_claims().generation(generation).text()))
    });
    let set = two_claims().build();
    for template in ["data", "logs"] {
        world.put_claim(&builders::claim(&set, template, 5));
    }
    apply(&world, &set).await.unwrap_err();
    assert_eq!(writes(&world), ["update persistentvolumeclaims data-web-5"]);
}

#[tokio::test]
async fn owner_removal_needs_no_live_read() {
    let world = ApiWorld::new();
    let set = web().retention("Retain", "Retain").build();
    let pod = owner_reference(("v1", "Pod"), "web-5", "web-5-uid", Some(true));
    world.put_claim(&builders::claim(&set, "data", 5).owner(pod));
    apply(&world, &set).await.unwrap();
    assert_eq!(
        world.requests(),
        [
            "get persistentvolumeclaims data-web-5",
            "update persistentvolumeclaims data-web-5"
        ]
    );
    assert!(owners(&world.api.actions()[1].json()).is_empty());
}

#[tokio::test]
async fn set_becomes_an_owner_after_a_live_read() {
    let world = ApiWorld::new();
    let builder = web().retention("Retain", "Delete");
    world.put_set(&builder.build());
    let set = builder.build();
    let pod = owner_reference(("v1", "Pod"), "web-5", "web-5-uid", Some(true));
    world.put_claim(&builders::claim(&set, "data", 5).owner(pod));
    apply(&world, &set).await.unwrap();
    assert_eq!(world.requests()[1], "get statefulsets web");
    assert_eq!(owners(&world.api.actions()[2].json()), ["web"]);
}

#[tokio::test]
async fn release_removes_the_pod_from_its_claims_owners() {
    let set = two_claims().build();
    let pod = || owner_reference(("v1", "Pod"), "web-5", "web-5-uid", Some(true));
    let world = ApiWorld::new();
    world.put_claim(
        &builders::claim(&set, "data", 5)
            .owner(foreign_owner())
            .owner(pod())
            .owner(set_owner())
            .with("spec.future", "<"),
    );
    world.put_claim(&builders::claim(&set, "logs", 5).owner(pod()));
    let slot = condemned(&set);
    world
        .control
        .for_sync(&set)
        .release_claims(&slot)
        .await
        .unwrap();
    let expected = [
        "get persistentvolumeclaims data-web-5",
        "update persistentvolumeclaims data-web-5",
        "get persistentvolumeclaims logs-web-5",
        "update persistentvolumeclaims logs-web-5",
    ];
    assert_eq!(world.requests(), expected);
    let actions = world.api.actions();
    assert_eq!(owners(&actions[1].json()), ["b", "web"]);
    assert_eq!(actions[1].json()["spec"]["future"], "<");
    let metadata = &actions[3].json()["metadata"];
    assert!(metadata.get("ownerReferences").is_none(), "{metadata}");
    assert!(world.recorder.is_empty());
}

#[tokio::test]
async fn release_keeps_claims_that_the_pod_does_not_own() {
    let set = two_claims().build();
    let earlier = owner_reference(("v1", "Pod"), "web-5", "earlier", Some(true));
    let world = ApiWorld::new();
    world.put_claim(&builders::claim(&set, "data", 5).owner(earlier));
    let slot = condemned(&set);
    world
        .control
        .for_sync(&set)
        .release_claims(&slot)
        .await
        .unwrap();
    assert_eq!(world.requests(), [""; 0]);

    // The live claim counts.
    let pod = owner_reference(("v1", "Pod"), "web-5", "web-5-uid", Some(true));
    let claim = builders::claim(&set, "logs", 5);
    world.put_claim(&claim.clone().owner(pod));
    world.api.load(&PERSISTENT_VOLUME_CLAIMS, claim.text());
    world
        .control
        .for_sync(&set)
        .release_claims(&slot)
        .await
        .unwrap();
    assert_eq!(world.requests(), ["get persistentvolumeclaims logs-web-5"]);
}

#[tokio::test]
async fn release_reads_a_terminal_pods_claims_live() {
    for (when_scaled, phase, released) in [
        ("Delete", "Failed", true),
        ("Delete", "Running", false),
        ("Retain", "Failed", true),
    ] {
        let set = web().retention(when_scaled, "Retain").build();
        let world = world_with_unseen_owner(&set);
        let ended = builders::pod(&set, 5).phase(phase).build();
        let slot = PodSlot::Existing(Ordinal::from(5), Arc::new(ended));
        let control = world.control.for_sync(&set);
        control.release_claims(&slot).await.unwrap();
        let expected = if released { &RELEASED[..] } else { &[] };
        assert_eq!(world.requests(), expected, "{when_scaled} {phase}");
    }
}

#[tokio::test]
async fn deleted_pods_claims_are_released_live() {
    // The pod is condemned, too.
    let condemning = |set: Builder<StatefulSet>| set.with("spec.replicas", 5);
    for (set, is_condemned) in [
        (web().retention("Delete", "Retain"), false),
        (web(), false),
        (condemning(web()), true),
    ] {
        let set = set.build();
        let world = world_with_unseen_owner(&set);
        let pod = builders::pod(&set, 5);
        world.put_pod(&pod);
        let (control, pod) = (world.control.for_sync(&set), Arc::new(pod.build()));
        if is_condemned {
            control.delete_condemned_pod(&pod).await.unwrap();
        } else {
            control.delete_pod_keeping_claims(&pod).await.unwrap();
        }
        let expected = [&RELEASED[..], &["delete pods web-5"]].concat();
        assert_eq!(world.requests(), expected);
    }
}

const RELEASED: [&str; 2] = [
    "get persistentvolumeclaims data-web-5",
    "update persistentvolumeclaims data-web-5",
];

/// Returns a world whose cache lacks the pod among the owners of its claim.
fn world_with_unseen_owner(set: &StatefulSet) -> ApiWorld {
    let pod = owner_reference(("v1", "Pod"), "web-5", "web-5-uid", Some(true));
    let world = ApiWorld::new();
    let claim = builders::claim(set, "data", 5);
    world.put_claim(&claim);
    let live = claim.owner(pod);
    world.api.load(&PERSISTENT_VOLUME_CLAIMS, live.text());
    world
}

#[tokio::test]
async fn deleted_pods_missing_claim_needs_no_release() {
    let set = web().build();
    let world = ApiWorld::new();
    let pod = builders::pod(&set, 5);
    world.put_pod(&pod);
    let control = world.control.for_sync(&set);
    let pod = Arc::new(pod.build());
    control.delete_pod_keeping_claims(&pod).await.unwrap();
    let expected = ["get persistentvolumeclaims data-web-5", "delete pods web-5"];
    assert_eq!(world.requests(), expected);
}

#[tokio::test]
async fn failed_release_keeps_the_desired_pod() {
    let set = web().retention("Delete", "Retain").build();
    let world = World::new();
    world.put_claim(&builders::claim(&set, "data", 5));
    world.fail(Call::GetClaim, 0);
    let outdated = Arc::new(builders::pod(&set, 5).build());
    let control = world.control.for_sync(&set);
    control
        .delete_pod_keeping_claims(&outdated)
        .await
        .unwrap_err();
    assert_eq!(world.requests(Call::DeletePod), 0);
}

#[tokio::test]
async fn failed_release_returns_an_error_and_records_an_event() {
    let set = web().build();
    let pod = owner_reference(("v1", "Pod"), "web-5", "web-5-uid", Some(true));
    let world = World::new();
    let claim = builders::claim(&set, "data", 5).owner(pod);
    world.put_claim(&claim);
    world.fail(Call::UpdateClaim, 0);
    let slot = condemned(&set);
    let taken = world.control.for_sync(&set).release_claims(&slot).await;
    let text = "could not update claim data-web-5 for delete policy ownerRefs: boom";
    assert_eq!(taken.unwrap_err().to_string(), text);
    let event =
        format!("Warning FailedUpdate Update Pod web-5 in StatefulSet web failed error: {text}");
    assert_eq!(world.events(), [event]);

    world.fail(Call::GetClaim, 1);
    world
        .control
        .for_sync(&set)
        .release_claims(&slot)
        .await
        .unwrap_err();
}

#[tokio::test]
async fn foreign_controller_is_kept_and_reported_each_time() {
    let world = ApiWorld::new();
    let set = web().retention("Delete", "Delete").build();
    let claim = builders::claim(&set, "data", 5).owner(foreign_owner());
    world.put_claim(&claim);
    assert!(matches(&world, &set));
    for _ in 0..2 {
        apply(&world, &set).await.unwrap();
        assert_eq!(world.events(), [CONFLICTING]);
    }
    assert!(world.requests().is_empty());
}

#[tokio::test]
async fn foreign_controller_removes_our_reference() {
    let world = ApiWorld::new();
    let set = web().retention("Delete", "Delete").build();
    let claim = builders::claim(&set, "data", 5).owner(foreign_owner());
    world.put_claim(&claim.owner(set_owner()));
    assert!(!matches(&world, &set));
    apply(&world, &set).await.unwrap();
    assert_eq!(owners(&world.api.actions()[1].json()), ["b"]);
    assert_eq!(world.events(), [CONFLICTING]);
}

#[tokio::test]
async fn missing_claim_is_skipped() {
    let (world, set) = (ApiWorld::new(), two_claims().build());
    world.put_set(&two_claims().build());
    world.put_claim(&builders::claim(&set, "logs", 5));
    assert!(!matches(&world, &set));
    apply(&world, &set).await.unwrap();
    let last = world.requests().pop().unwrap();
    assert_eq!(last, "update persistentvolumeclaims logs-web-5");
    assert!(matches(&ApiWorld::new(), &set));
}

#[tokio::test]
async fn first_failure_stops_the_owner_updates() {
    let set = two_claims().build();
    let world = World::new();
    world.put_set(&two_claims().build());
    for template in ["data", "logs"] {
        world
            .objects
            .claims
            .put(builders::claim(&set, template, 5).json());
    }
    let pod = condemned(&set);
    let control = world.control.for_sync(&set);
    let apply = || control.update_pod_claim_for_retention_policy(&pod);
    world.fail(Call::GetClaim, 0);
    assert_eq!(
        apply().await.unwrap_err().to_string(),
        "Could not retrieve claim data-web-5 not found for web-5 when checking PVC deletion policy: boom"
    );
    world.fail(Call::UpdateClaim, 0);
    assert_eq!(
        apply().await.unwrap_err().to_string(),
        "could not update claim data-web-5 for delete policy ownerRefs: boom"
    );
    assert_eq!(world.requests(Call::UpdateClaim), 1);
    assert!(world.recorder.is_empty());
}

#[tokio::test]
async fn recreated_claim_is_a_conflict_and_not_written() {
    let world = ApiWorld::new();
    let set = web().retention("Retain", "Delete").build();
    let claim = builders::claim(&set, "data", 5);
    world.put_claim(&claim);
    world
        .api
        .load(&PERSISTENT_VOLUME_CLAIMS, claim.uid("new").text());
    let error = apply(&world, &set).await.unwrap_err();
    assert!(error.is_conflict());
    let text = error.to_string();
    assert!(
        text.starts_with("could not update claim data-web-5 for delete policy ownerRefs: "),
        "{text}"
    );
    assert_eq!(world.requests(), ["get persistentvolumeclaims data-web-5"]);
}

#[tokio::test]
async fn an_unknown_policy_retains() {
    let world = ApiWorld::new();
    let set = web().retention("Delete", "Later").build();
    world.put_claim(&builders::claim(&set, "data", 5).owner(set_owner()));
    apply(&world, &set).await.unwrap();
    assert!(owners(&world.api.actions()[1].json()).is_empty());
}

#[tokio::test]
async fn earlier_pods_claim_is_stale_unless_scaling_retains() {
    let pod = owner_reference(("v1", "Pod"), "web-5", "old-uid", Some(true));
    for (when_scaled, expected) in [
        ("Delete", Some("logs-web-5")),
        ("Later", Some("logs-web-5")),
        ("Retain", None),
    ] {
        let world = ApiWorld::new();
        let set = two_claims().retention(when_scaled, "Delete").build();
        world.put_claim(&builders::claim(&set, "data", 5));
        world.put_claim(&builders::claim(&set, "logs", 5).owner(pod.clone()));
        let slot = PodSlot::Missing(new_pod(&set, 5));
        let control = world.control.for_sync(&set);
        let stale = control.pod_claim_is_stale(&slot).unwrap();
        let stale = stale.as_ref().map(|claim| &*claim.name);
        assert_eq!(stale, expected, "{when_scaled}");
    }
}

#[tokio::test]
async fn stale_claim_lookup_fails_with_the_cache() {
    let (world, set) = (World::new(), two_claims().build());
    world.fail(Call::GetClaim, 0);
    let slot = PodSlot::Missing(new_pod(&set, 5));
    let control = world.control.for_sync(&set);
    let error = control.pod_claim_is_stale(&slot).unwrap_err();
    assert_eq!(error.to_string(), "boom");
}

/// At one request in ten seconds, a change of the set could come between a live read and its write.
#[tokio::test(start_paused = true)]
async fn checked_writes_follow_the_live_read_at_once() {
    let (world, set) = (ApiWorld::limited(0.1), web().retention("Delete", "Delete"));
    world.put_set(&set.build());
    let set = set.build();
    let claim = builders::claim(&set, "data", 5).owner(set_owner());
    world.put_claim(&claim);
    let pod = builders::pod(&set, 5);
    world.put_pod(&pod);

    let start = tokio::time::Instant::now();
    apply(&world, &set).await.unwrap();
    let owned = [
        "get persistentvolumeclaims data-web-5",
        "get statefulsets web",
        "update persistentvolumeclaims data-web-5",
    ];
    assert_eq!(world.requests(), owned);
    assert_eq!(start.elapsed().as_secs(), 10, "only the read waited");

    world.api.clear_actions();
    let control = world.control.for_sync(&set);
    control
        .delete_condemned_pod(&Arc::new(pod.build()))
        .await
        .unwrap();
    let deleted = ["get statefulsets web", "delete pods web-5"];
    assert_eq!(world.requests(), deleted);
    assert_eq!(start.elapsed().as_secs(), 30, "the tokens are owed");
}
