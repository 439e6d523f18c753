//! Which recorded revisions mean what a set's template means.

use serde_json::{Value, json};
use statefulset_controller_util::stateful_set::PodTemplate;
use statefulset_controller_util::testing::builders::{self, Builder};

use super::*;

fn set(change: impl FnOnce(Builder<StatefulSet>) -> Builder<StatefulSet>) -> StatefulSet {
    change(builders::set("web")).build()
}

fn plain() -> StatefulSet {
    set(|set| set)
}

/// The data that a controller which keeps everything records of a set.
fn recorded(set: &StatefulSet) -> String {
    RevisionData::new(&set.spec.template)
        .unwrap()
        .recorded()
        .to_string()
}

fn matches(set: &StatefulSet, data: &str) -> bool {
    let revision = builders::revision(set, "web-1", 1, data).build();
    matches_semantically(
        set,
        &RevisionData::new(&set.spec.template).unwrap(),
        &revision,
    )
}

fn edited(set: &StatefulSet, edit: impl FnOnce(&mut Value)) -> String {
    let mut data: Value = serde_json::from_str(&recorded(set)).unwrap();
    edit(&mut data["spec"]["template"]);
    data.to_string()
}

#[test]
fn differences_of_form_alone_dont_matter() {
    let set = plain();
    assert!(matches(&set, &recorded(&set)));
    assert!(
        matches(&set, &recorded(&set).replace("\":", "\" : ")),
        "spaces"
    );
    let older = edited(&set, |template| {
        template["metadata"]["creationTimestamp"] = Value::Null;
    });
    assert!(matches(&set, &older), "what 1.33 recorded");
    let without_defaults = edited(&set, |template| {
        let spec = template["spec"].as_object_mut().unwrap();
        spec.remove("dnsPolicy");
        spec.remove("securityContext");
        let container = spec["containers"][0].as_object_mut().unwrap();
        container.remove("terminationMessagePath");
        container.remove("resources");
    });
    assert!(matches(&set, &without_defaults));
    let zeros = edited(&set, |template| {
        template["spec"]["hostNetwork"] = false.into();
        template["spec"]["volumes"] = json!([]);
        template["spec"]["nodeName"] = "".into();
    });
    assert!(matches(&set, &zeros));
}

#[test]
fn differences_of_content_matter() {
    let set = plain();
    let other = edited(&set, |template| {
        template["spec"]["containers"][0]["image"] = "registry.example/app:2".into();
    });
    assert!(!matches(&set, &other));
    let other = edited(&set, |template| {
        template["spec"]["terminationGracePeriodSeconds"] = 31.into();
    });
    assert!(!matches(&set, &other));
    let other = edited(&set, |template| {
        template["metadata"]["labels"]["more"] = "1".into();
    });
    assert!(!matches(&set, &other));
}

#[test]
fn a_set_that_isnt_defaulted_doesnt_match_what_defaulting_adds() {
    let bare = set(|set| set.without("spec.template.spec.dnsPolicy"));
    assert!(!matches(&bare, &recorded(&bare)));
}

#[test]
fn data_that_cant_be_read_never_matches() {
    let set = plain();
    let overflow = edited(&set, |template| {
        template["spec"]["terminationGracePeriodSeconds"] = 9_223_372_036_854_776_000_u64.into();
    });
    for data in ["7", "[]", &*overflow] {
        assert!(!matches(&set, data), "{data}");
    }
}

#[test]
fn a_template_that_isnt_marked_as_a_replacement_matches_by_what_it_merges_to() {
    let set = plain();
    let unmarked = edited(&set, |template| {
        template.as_object_mut().unwrap().remove("$patch");
    });
    assert!(matches(&set, &unmarked));
    assert!(matches(&set, r#"{"spec":{"template":{"spec":{}}}}"#));
    assert!(!matches(
        &set,
        r#"{"spec":{"template":{"spec":{"hostNetwork":true}}}}"#
    ));
}

#[test]
fn a_revision_without_data_means_the_set_as_it_is() {
    assert!(matches(&plain(), "{}"));
    assert!(matches(&plain(), "null"));
}

#[test]
fn an_unknown_member_restarts_nothing_by_appearing_or_disappearing() {
    let future = set(|set| set.with("spec.template.spec.future", 1));
    assert!(matches(&future, &older(&plain())));
    assert!(matches(&plain(), &older(&future)));
}

/// Not equal in bytes, so that only the meaning counts.
fn older(set: &StatefulSet) -> String {
    edited(set, |template| {
        template["metadata"]["creationTimestamp"] = Value::Null;
    })
}

#[test]
fn a_changed_value_of_an_unknown_member_matters() {
    let with = |value: Value| set(|set| set.with("spec.template.spec.future", value));
    for (value, record, expected) in [
        (json!(1), json!(1), true),
        (json!({"a": [1, 2]}), json!({"a": [1, 2]}), true),
        (json!(2), json!(1), false),
        (json!({"a": 1, "b": 2}), json!({"a": 1}), false),
        // Numbers are compared as they are recorded.
        (json!(1.0), json!(1), true),
        (
            json!(9_223_372_036_854_775_807_i64),
            json!(9_223_372_036_854_775_807_i64),
            true,
        ),
    ] {
        let (set, record) = (with(value.clone()), with(record));
        assert_eq!(matches(&set, &older(&record)), expected, "{value}");
    }
}

#[test]
fn unknown_members_are_compared_in_their_container() {
    let container = "spec.template.spec.containers.0.future";
    let with = |value: &str| set(|set| set.with(container, json!(value)));
    assert!(matches(&with("x"), &older(&with("x"))));
    assert!(!matches(&with("y"), &older(&with("x"))));
    let moved = set(|set| set.with("spec.template.spec.future", json!("y")));
    assert!(matches(&moved, &older(&with("x"))), "another member");
}

#[test]
fn equal_revisions_are_found_in_order_by_their_bytes() {
    let set = plain();
    let future = self::set(|set| set.with("spec.template.spec.future", 1));
    let data = RevisionData::new(&PodTemplate::from_value(
        &set.spec.template.to_value().unwrap(),
    ))
    .unwrap();
    let revisions: Vec<_> = [
        ("a", recorded(&set)),
        ("b", recorded(&set).replace(':', ": ")),
        ("c", recorded(&set)),
        ("d", "{}".to_owned()),
        ("e", recorded(&future)),
    ]
    .into_iter()
    .map(|(name, data)| Arc::new(builders::revision(&set, name, 1, &data).build()))
    .collect();
    let found: Vec<&str> = find_equal_revisions(&revisions, &data)
        .map(|revision| &*revision.name)
        .collect();
    assert_eq!(found, ["a", "c", "e"]);
}
