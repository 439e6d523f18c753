//! Tests of feature gate lists.

use super::*;

const V1_33: KubeVersion = KubeVersion::v1(33);
const V1_35: KubeVersion = KubeVersion::v1(35);
const V1_36: KubeVersion = KubeVersion::v1(36);

#[test]
fn defaults_equal_reference_in_each_version() {
    let on = |version| {
        let gates = FeatureGates::parse("", version).unwrap();
        assert_eq!(gates, FeatureGates::at(version));
        let on = gates.entries().into_iter().filter(|(_, on)| *on);
        on.map(|(name, _)| name).collect::<Vec<_>>()
    };
    let newest = [
        "AtomicFIFO",
        "ComponentFlagz",
        "ComponentStatusz",
        "StaleControllerConsistencyStatefulSet",
        "StatefulSetSemanticRevisionComparison",
        "WatchListClient",
    ];
    assert_eq!(on(V1_36), newest);
    let mut with_max_unavailable = newest.to_vec();
    with_max_unavailable.insert(3, "MaxUnavailableStatefulSet");
    assert_eq!(on(V1_37), with_max_unavailable);
    // Without semantic comparison a takeover could restart pods, so every version enables it.
    assert_eq!(on(V1_35), newest[4..]);
    assert_eq!(on(V1_33), ["StatefulSetSemanticRevisionComparison"]);
    assert_eq!(FeatureGates::default(), FeatureGates::at(V1_36));
}

#[test]
fn list_sets_gates_by_name() {
    for text in [
        "MaxUnavailableStatefulSet=true, StatefulSetSemanticRevisionComparison=F,,",
        "kube:MaxUnavailableStatefulSet=1,kube: StatefulSetSemanticRevisionComparison = 0",
        "MaxUnavailableStatefulSet=f,StatefulSetSemanticRevisionComparison=F,\
         MaxUnavailableStatefulSet=T",
    ] {
        for version in [V1_33, V1_35, V1_36] {
            let expected = FeatureGates::at(version)
                .max_unavailable_stateful_set(true)
                .stateful_set_semantic_revision_comparison(false);
            assert_eq!(FeatureGates::parse(text, version), Ok(expected), "{text}");
        }
    }
}

#[test]
fn names_override_stages() {
    let parse = |text, version| FeatureGates::parse(text, version).unwrap();
    // Locked gates keep their default.
    let gates = parse("MaxUnavailableStatefulSet=false,AllBeta=true", V1_36);
    assert_eq!(gates, FeatureGates::default());
    let gates = parse("AllBeta=true", V1_36);
    assert!(gates.max_unavailable_stateful_set);
    assert!(!gates.controller_manager_release_leader_election_lock_on_exit);
    let gates = parse("AllAlpha=true", V1_36);
    assert!(gates.controller_manager_release_leader_election_lock_on_exit);
    assert!(!gates.max_unavailable_stateful_set);
    let gates = parse("AllBeta=false", V1_36);
    assert!(!gates.stale_controller_consistency_stateful_set);
    // Gates that were alpha in 1.33 are set as alpha gates.
    let gates = parse("kube:AllAlpha=true", V1_33);
    assert!(gates.max_unavailable_stateful_set && gates.component_flagz);
    assert!(!gates.controller_manager_release_leader_election_lock_on_exit);
}

#[test]
fn errors_equal_reference() {
    for (text, version, expected) in [
        ("A", V1_36, "missing bool value for A"),
        (
            "AllAlpha=maybe",
            V1_36,
            "invalid value of AllAlpha=maybe, err: \
             strconv.ParseBool: parsing \"maybe\": invalid syntax",
        ),
        (
            "Nonsense=true",
            V1_36,
            "unrecognized feature gate: Nonsense",
        ),
        // Removed after graduation.
        (
            "StatefulSetAutoDeletePVC=true",
            V1_33,
            "unrecognized feature gate: StatefulSetAutoDeletePVC",
        ),
        (
            "InOrderInformers=false",
            V1_36,
            "cannot set feature gate InOrderInformers to false, feature is locked to true",
        ),
        (
            "CoordinatedLeaderElection=true",
            V1_36,
            "cannot set feature gate CoordinatedLeaderElection to true, feature is locked to false",
        ),
        (
            "StaleControllerConsistencyStatefulSet=true",
            V1_35,
            "cannot set feature gate StaleControllerConsistencyStatefulSet to true, \
             feature is PreAlpha at emulated version 1.35",
        ),
        (
            "AtomicFIFO=false",
            V1_36,
            "StaleControllerConsistencyStatefulSet is enabled, \
             but depends on features that are disabled: [AtomicFIFO]",
        ),
        (
            "StatefulSetRecreateStrategy=true",
            V1_36,
            "cannot set feature gate StatefulSetRecreateStrategy to true, \
             feature is PreAlpha at emulated version 1.36",
        ),
        ("other:A=true", V1_36, "component not registered: other"),
        (
            "kube:AllBeta=true,AllAlpha=true",
            V1_36,
            "set kube feature gates with default empty prefix or kube: prefix consistently, \
             do not mix use",
        ),
    ] {
        let error = FeatureGates::parse(text, version).unwrap_err();
        assert_eq!(error.to_string(), expected, "{text}");
    }
    let text = "AtomicFIFO=false,StaleControllerConsistencyStatefulSet=false,InOrderInformers=true,\
                WatchListClient=false,CoordinatedLeaderElection=false";
    assert!(FeatureGates::parse(text, V1_36).is_ok());
}

#[test]
fn features_include_stages() {
    let features = FeatureGates::default().features();
    assert!(features.contains(&("MaxUnavailableStatefulSet", "BETA", false)));
    assert!(features.contains(&("InOrderInformers", "", true)));
    let alpha = "ControllerManagerReleaseLeaderElectionLockOnExit";
    assert!(features.contains(&(alpha, "ALPHA", false)));
    let preview = "PreviewParallelScaleDownFirst";
    let newer = FeatureGates::at(V1_37).features();
    assert!(newer.contains(&(preview, "PREVIEW", false)));
    // A program of 1.36 doesn't know the gates of 1.37.
    assert!(features.iter().all(|(name, ..)| *name != preview));
    let older = FeatureGates::at(V1_35).features();
    assert!(older.contains(&(ATOMIC_FIFO, "PREALPHA", false)));
}

#[test]
fn help_lists_gates_of_version() {
    let expected = [
        "kube:AllAlpha=true|false (ALPHA - default=false)",
        "kube:AllBeta=true|false (BETA - default=false)",
        "kube:ComponentFlagz=true|false (ALPHA - default=false)",
        "kube:ComponentStatusz=true|false (ALPHA - default=false)",
        "kube:MaxUnavailableStatefulSet=true|false (BETA - default=false)",
        "kube:StatefulSetClaimGrowth=true|false (ALPHA - default=false)",
        "kube:StatefulSetConditions=true|false (ALPHA - default=false)",
        "kube:StatefulSetInPlaceUpdate=true|false (ALPHA - default=false)",
        "kube:StatefulSetRemovalGate=true|false (ALPHA - default=false)",
        "kube:StatefulSetRepair=true|false (ALPHA - default=false)",
        "kube:StatefulSetRolloutControl=true|false (ALPHA - default=false)",
        "kube:StatefulSetSemanticRevisionComparison=true|false (BETA - default=true)",
        "kube:WatchListClient=true|false (BETA - default=true)",
    ];
    assert_eq!(known_gates(V1_35), expected);
    let newest = known_gates(V1_36);
    assert!(newest.is_sorted(), "{newest:?}");
    assert_eq!(newest.len(), 16);
    let added = known_gates(V1_37);
    let added: Vec<_> = added.iter().filter(|it| !newest.contains(it)).collect();
    let expected = [
        "kube:MaxUnavailableStatefulSet=true|false (BETA - default=true)",
        "kube:PreviewParallelScaleDownFirst=true|false (PREVIEW - default=false)",
        "kube:StatefulSetRecreateStrategy=true|false (ALPHA - default=false)",
    ];
    assert_eq!(added, expected.each_ref());
}

#[test]
fn events_and_revisions_follow_emulated_version() {
    for (minor, lower_case, null) in [(33, true, true), (34, true, false), (35, false, false)] {
        let gates = FeatureGates::at(KubeVersion::v1(minor));
        assert_eq!(gates.events_begin_in_lower_case(), lower_case, "{minor}");
        assert_eq!(gates.revisions_record_null_creation_time(), null, "{minor}");
    }
}

#[test]
fn update_rules_follow_emulated_version() {
    let answers = |gates: FeatureGates| {
        [
            gates.rejects_recreate(),
            gates.completes_every_strategy(),
            gates.keeps_recreate_conditions(),
            gates.replaces_unavailable_pods_outside_budget(),
        ]
    };
    for minor in 33..=36 {
        assert_eq!(
            answers(FeatureGates::at(KubeVersion::v1(minor))),
            [false; 4]
        );
    }
    assert_eq!(answers(FeatureGates::at(V1_37)), [true; 4]);
    let recreate = FeatureGates::parse("StatefulSetRecreateStrategy=true", V1_37).unwrap();
    assert!(recreate.stateful_set_recreate_strategy);
    assert_eq!(answers(recreate), [false, true, true, true]);
}

#[test]
fn stages_leave_previews_off() {
    let gates = FeatureGates::parse("AllAlpha=true,AllBeta=true", V1_37).unwrap();
    assert!(gates.stateful_set_recreate_strategy);
    assert!(!gates.preview_parallel_scale_down_first);
    let gates = FeatureGates::parse("PreviewParallelScaleDownFirst=true", V1_37).unwrap();
    assert!(gates.preview_parallel_scale_down_first);
}
