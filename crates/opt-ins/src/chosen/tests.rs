//! Tests of a set's choices.

use std::time::Duration;

use statefulset_client::feature_gates::FeatureGates;
use statefulset_controller_util::testing::builders;

use super::*;
use crate::defaults::OptInDefaults;
use crate::repair::Repair;
use crate::values::{ClaimResize, DeadlineReaction, GateKey, RepairMethod, RolloutTo};

fn with(set: &StatefulSet, defaults: &str, gates: FeatureGates) -> OptIns {
    let opt_in_defaults: OptInDefaults = defaults.parse().unwrap();
    chosen(
        set,
        &SyncRules {
            gates,
            opt_in_defaults,
        },
    )
}

fn set(annotations: &[(&str, &str)]) -> StatefulSet {
    annotations
        .iter()
        .fold(builders::set("web"), |set, (name, value)| {
            set.annotation(&format!("{PREFIX}{name}"), value)
        })
        .build()
}

fn of(annotations: &[(&str, &str)]) -> OptIns {
    let gates = FeatureGates::default().with_opt_ins();
    with(&set(annotations), "", gates)
}

#[test]
fn set_without_annotations_chooses_nothing() {
    assert_eq!(of(&[]), OptIns::default());
    assert_eq!(of(&[]).repair(), None);
    assert!(!of(&[]).has_conditions());
}

#[test]
fn every_carrier_makes_its_choice() {
    let minute = Duration::from_secs(60);
    let opt_ins = of(&[
        ("repair", "delete"),
        ("repair-after", "60"),
        ("progress-deadline", "1m"),
        ("on-deadline", "pause"),
        ("removal-gate", "example.com/drained=no"),
        ("removal-gate-timeout", "60s"),
        ("paused", "true"),
        ("rollout-to", "ordinal=2"),
    ]);
    let repair = Repair {
        method: RepairMethod::Delete,
        after: minute,
    };
    assert_eq!(opt_ins.repair(), Some(repair));
    assert!(opt_ins.has_conditions(), "the deadline brings them");
    assert_eq!(opt_ins.progress_deadline, Some(minute));
    assert_eq!(opt_ins.on_deadline, DeadlineReaction::Pause);
    let gate = opt_ins.removal_gate().unwrap();
    assert_eq!(gate.key.to_string(), "example.com/drained=no");
    assert_eq!(gate.timeout, Some(minute));
    assert!(opt_ins.paused);
    assert_eq!(opt_ins.rollout_to, Some(RolloutTo::Ordinal(2)));
    assert_eq!(opt_ins.defects, []);
    let limit = of(&[("rollout-to", "3")]).rollout_to;
    assert_eq!(limit, Some(RolloutTo::Count(3)));
    assert!(of(&[("conditions", "true")]).has_conditions());
}

#[test]
fn repair_waits_five_minutes_unless_told_otherwise() {
    let repair = of(&[("repair", "evict")]).repair().unwrap();
    assert_eq!(repair.after.as_secs(), 5 * 60);
    assert_eq!(of(&[("repair", "none")]).repair(), None);
}

#[test]
fn defaults_apply_to_sets_without_the_annotation() {
    let gates = FeatureGates::default().with_opt_ins();
    let defaults = "repair=evict,conditions=true";
    let opt_ins = with(&set(&[("repair", "none")]), defaults, gates);
    assert_eq!(opt_ins.repair(), None);
    assert!(opt_ins.has_conditions());
}

#[test]
fn set_opts_out_of_defaults() {
    let defaults = "repair=evict,progress-deadline=1m,removal-gate=hold,rollout-to=1";
    let none = ["repair", "progress-deadline", "removal-gate", "rollout-to"].map(|it| (it, "none"));
    let gates = FeatureGates::default().with_opt_ins();
    assert_eq!(with(&set(&none), defaults, gates), OptIns::default());
}

#[test]
fn choice_needs_its_gate() {
    let set = set(&[("repair", "evict"), ("conditions", "maybe")]);
    let defaults = "paused=true";
    let off = with(&set, defaults, FeatureGates::default());
    assert_eq!(off, OptIns::default());
    let gates = FeatureGates::default().stateful_set_repair(true);
    let opt_ins = with(&set, defaults, gates);
    assert!(opt_ins.repair().is_some());
    assert!(!opt_ins.paused);
    assert_eq!(opt_ins.defects, [], "the gate of the conditions is off");
}

#[test]
fn unusable_annotations_are_named() {
    let opt_ins = of(&[
        ("repair", "Evict"),
        ("progress-deadline", "0s"),
        ("repiar-after", "1m"),
        ("released", "true"),
    ]);
    assert_eq!(opt_ins.repair(), None);
    assert!(!opt_ins.has_conditions());
    let texts: Vec<String> = opt_ins.defects.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "statefulset-controller-manager/repair: \"Evict\": expected none, evict or delete",
            "statefulset-controller-manager/progress-deadline: \"0s\": expected more than 0 \
             seconds",
            "statefulset-controller-manager/repiar-after: unknown annotation",
        ]
    );
}

#[test]
fn unreadable_hold_holds_everything() {
    for (name, value) in [
        ("paused", "yes"),
        ("rollout-to", "half"),
        ("rollout-to", "-1"),
    ] {
        let opt_ins = of(&[(name, value)]);
        assert!(opt_ins.paused, "{name}: {value}");
        assert_eq!(opt_ins.defects.len(), 1);
    }
    let opt_ins = of(&[("repair", "delete"), ("repair-after", "1hour")]);
    assert_eq!(opt_ins.repair(), None);
    let opt_ins = of(&[("on-deadline", "puase")]);
    assert_eq!(opt_ins.on_deadline, DeadlineReaction::Pause);
    let timeout = ("removal-gate-timeout", "1h");
    let opt_ins = of(&[("removal-gate", "not a key=x"), timeout]);
    assert_eq!(opt_ins.removal_gate().unwrap().timeout, None);
    assert_eq!(*opt_ins.removal_gate().unwrap().key, GateKey::Unreadable);
    assert_eq!(opt_ins.defects.len(), 1);
}

#[test]
fn pause_needs_a_rolling_update() {
    let set = builders::set("web").on_delete();
    let set = set.annotation(Carrier::Paused.annotation(), "true").build();
    let gates = FeatureGates::default().with_opt_ins();
    let opt_ins = with(&set, "", gates);
    assert_eq!(opt_ins.defects, [Defect::NoRollout(Carrier::Paused)]);
    let defaults = "paused=true";
    let set = builders::set("web").on_delete().build();
    assert_eq!(with(&set, defaults, gates).defects, []);
}

#[test]
fn claim_sizes_name_templates_of_the_set() {
    let gates = FeatureGates::default().with_opt_ins();
    let read = |size: &str, resize: Option<&str>| {
        let set = builders::set("web")
            .claim_template("data")
            .claim_template("wal")
            .annotation(Carrier::ClaimSize.annotation(), size);
        let set = match resize {
            Some(resize) => set.annotation(Carrier::ClaimResize.annotation(), resize),
            None => set,
        };
        with(&set.build(), "", gates)
    };
    let sizes = |opt_ins: &OptIns| -> Vec<String> {
        let sizes = opt_ins.claim_sizes.iter();
        sizes.map(|(name, size)| format!("{name}={size}")).collect()
    };
    let opt_ins = read("wal=5Gi, data=20480Mi", Some("with-pod"));
    assert_eq!(sizes(&opt_ins), ["data=20Gi", "wal=5Gi"]);
    assert_eq!(opt_ins.claim_resize, ClaimResize::WithPod);
    assert_eq!(opt_ins.defects, []);
    let opt_ins = read("data=1", None);
    assert_eq!(opt_ins.claim_resize, ClaimResize::Online);
    assert_eq!(read("none", None), OptIns::default());
    for (size, resize, expected) in [
        (
            "data",
            None,
            "expected sizes of claim templates such as data=20Gi,wal=5Gi",
        ),
        (
            "data=20Gi,",
            None,
            "expected sizes of claim templates such as data=20Gi,wal=5Gi",
        ),
        (
            "data=0",
            None,
            "expected sizes of claim templates such as data=20Gi,wal=5Gi",
        ),
        (
            "data=-1Gi",
            None,
            "expected sizes of claim templates such as data=20Gi,wal=5Gi",
        ),
        (
            "data=1500m",
            None,
            "expected sizes of claim templates such as data=20Gi,wal=5Gi",
        ),
        (
            "data=100E",
            None,
            "expected sizes of claim templates such as data=20Gi,wal=5Gi",
        ),
        (
            "=1Gi",
            None,
            "expected sizes of claim templates such as data=20Gi,wal=5Gi",
        ),
        (
            "data=1Gi,data=2Gi",
            None,
            "expected one size for each claim template",
        ),
        (
            "data=1Gi,x=2Gi",
            None,
            "claim-size: the set has no claim template \"x\"",
        ),
        ("data=1Gi", Some("always"), "expected online or with-pod"),
    ] {
        let opt_ins = read(size, resize);
        assert!(opt_ins.claim_sizes.is_empty(), "{size}: nothing grows");
        let [defect] = &opt_ins.defects[..] else {
            panic!("{size}: {:?}", opt_ins.defects);
        };
        assert!(defect.to_string().ends_with(expected), "{defect}");
    }
}
