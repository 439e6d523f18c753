//! Lifetime and scope of remembered results.

use kube_apimachinery::json::Document;
use statefulset_client::cache::indexer::{CachedObject as _, SharedParts};
use statefulset_client::feature_gates::KubeVersion;

use super::*;
use crate::stateful_set::StatefulSet;
use crate::testing::builders::{self, Builder};

fn unchanged() -> AppliedRevision {
    AppliedRevision {
        template: None,
        replaces_strategy: false,
    }
}

/// Applies a revision, and keeps the result.
fn set_applied(memo: &TemplateMemo, revision: &Arc<ControllerRevision>, parts: AppliedRevision) {
    memo.applied(revision, || Ok::<_, ()>(parts)).unwrap();
}

/// Returns the kept parts of a revision.
fn kept(memo: &TemplateMemo, revision: &Arc<ControllerRevision>) -> Option<AppliedRevision> {
    memo.applied(revision, || Err(())).ok()
}

fn revision(version: &str) -> Arc<ControllerRevision> {
    Arc::new(ControllerRevision {
        uid: "u".into(),
        resource_version: version.into(),
        ..ControllerRevision::default()
    })
}

#[test]
fn history_is_known_by_versions_length_and_gates() {
    let memo = TemplateMemo::default();
    let gates = FeatureGates::default();
    let history = [revision("1"), revision("2")];
    assert!(!memo.equals_latest(gates, &history));
    memo.set_equals_latest(gates, &history);
    assert!(memo.equals_latest(gates, &history));
    assert!(memo.equals_latest(gates, &[revision("1"), revision("2")]));

    assert!(!memo.equals_latest(gates, &history[1..]));
    assert!(!memo.equals_latest(gates, &[revision("3"), Arc::clone(&history[1])]));
    let other_uid = ControllerRevision {
        uid: "v".into(),
        ..(*history[1]).clone()
    };
    assert!(!memo.equals_latest(gates, &[Arc::clone(&history[0]), other_uid.into()]));
    let other_gates = FeatureGates::at(KubeVersion::v1(33));
    assert!(!memo.equals_latest(other_gates, &history));
}

#[test]
fn revision_without_a_version_is_never_known() {
    let memo = TemplateMemo::default();
    let never_stored = revision("");
    set_applied(&memo, &never_stored, unchanged());
    assert!(!memo.is_applicable(&never_stored));
}

#[test]
fn last_two_applicable_revisions_are_known() {
    let memo = TemplateMemo::default();
    let revisions = ["1", "2", "3"].map(revision);
    for revision in &revisions {
        assert!(!memo.is_applicable(revision));
        set_applied(&memo, revision, unchanged());
    }
    let known = revisions.each_ref().map(|it| memo.is_applicable(it));
    assert_eq!(known, [false, true, true]);
}

#[test]
fn next_state_of_a_set_shares_the_memo_of_the_same_template() {
    let web = builders::set("web").image("1");
    let first = Arc::new(web.build());
    let next = |set: Builder<StatefulSet>| {
        let last = |_: &str, _: &str| Some(Arc::clone(&first));
        let (document, texts) = (Document::default(), SharedParts::default());
        StatefulSet::decode_next(&document, &set.text(), &texts, &last).unwrap()
    };
    let known = revision("1");
    set_applied(first.spec.template.memo(), &known, unchanged());

    let relabeled = next(web.clone().label("a", "b"));
    assert!(relabeled.spec.template.memo().is_applicable(&known));
    assert!(Arc::ptr_eq(&relabeled.spec.selector, &first.spec.selector));
    let scaled = next(web.clone().replicas(7));
    assert_eq!(scaled.spec.replicas, 7);
    assert!(scaled.spec.template.memo().is_applicable(&known));
    let rolled = next(web.image("2"));
    assert!(!rolled.spec.template.memo().is_applicable(&known));
    let applied = first.with_template(rolled.spec.template.clone());
    assert!(!applied.spec.template.memo().is_applicable(&known));
}

#[test]
fn results_are_kept_until_forgotten() {
    let memo = TemplateMemo::default();
    let (first, second) = (revision("1"), revision("2"));
    let template = |length: usize| AppliedRevision {
        template: Some(PodTemplate::from_value(&"x".repeat(length - 2).into())),
        replaces_strategy: false,
    };
    set_applied(&memo, &first, template(KEPT_BYTES_MAX));
    set_applied(&memo, &second, template(KEPT_BYTES_MAX + 1));
    assert_eq!(kept(&memo, &first).unwrap().bytes(), KEPT_BYTES_MAX);
    assert!(kept(&memo, &second).is_none());

    set_applied(&memo, &second, template(7));
    assert_eq!(kept(&memo, &second).unwrap().bytes(), 7);
    assert!(memo.is_applicable(&first), "the second has one place");

    memo.forget_applied();
    for revision in [&first, &second] {
        assert!(kept(&memo, revision).is_none() && memo.is_applicable(revision));
    }
}
