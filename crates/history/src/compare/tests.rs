//! Semantic comparison of recorded revisions with a set's template.

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

/// Data that a controller records for a set, unknown fields included.
fn recorded(set: &StatefulSet) -> String {
    RevisionData::new(&set.spec.template)
        .unwrap()
        .recorded()
        .to_string()
}

fn matches(set: &StatefulSet, data: &str) -> bool {
    let revision = builders::revision(set, "web-1", 1, data).build();
    stateful_set_matches_revision(
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
fn differences_in_form_match() {
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

/// kubernetes/kubernetes#140459 changes the text of such quantities.
#[test]
fn another_spelling_of_a_quantity_matches() {
    let spelled = |memory: &str| {
        set(|set| set.with("spec.template.spec.overhead", json!({"memory": memory})))
    };
    for (recorded_text, text) in [
        ("1024Mi", "1Gi"),
        ("2000000000000000000", "2E"),
        ("2E", "2000000000000000000"),
    ] {
        let set = spelled(text);
        let other = edited(&set, |template| {
            template["spec"]["overhead"]["memory"] = recorded_text.into();
        });
        assert!(matches(&set, &other), "{recorded_text} and {text}");
    }
    let other = edited(&spelled("2E"), |template| {
        template["spec"]["overhead"]["memory"] = "3E".into();
    });
    assert!(!matches(&spelled("2E"), &other));
}

#[test]
fn differences_in_content_dont_match() {
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
fn set_without_defaults_doesnt_match_defaulted_data() {
    let bare = set(|set| set.without("spec.template.spec.dnsPolicy"));
    assert!(!matches(&bare, &recorded(&bare)));
}

#[test]
fn unreadable_data_never_matches() {
    let set = plain();
    let overflow = edited(&set, |template| {
        template["spec"]["terminationGracePeriodSeconds"] = 9_223_372_036_854_776_000_u64.into();
    });
    for data in ["7", "[]", &*overflow] {
        assert!(!matches(&set, data), "{data}");
    }
}

#[test]
fn unmarked_template_matches_by_its_merged_result() {
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
fn revision_without_data_matches_the_set() {
    assert!(matches(&plain(), "{}"));
    assert!(matches(&plain(), "null"));
}

#[test]
fn unknown_member_on_one_side_matches() {
    let future = set(|set| set.with("spec.template.spec.future", 1));
    assert!(matches(&future, &older(&plain())));
    assert!(matches(&plain(), &older(&future)));
}

/// Data with other bytes, which only the semantic comparison can match.
fn older(set: &StatefulSet) -> String {
    edited(set, |template| {
        template["metadata"]["creationTimestamp"] = Value::Null;
    })
}

#[test]
fn changed_unknown_member_doesnt_match() {
    let with = |value: Value| set(|set| set.with("spec.template.spec.future", value));
    for (value, record, expected) in [
        (json!(1), json!(1), true),
        (json!({"a": [1, 2]}), json!({"a": [1, 2]}), true),
        (json!(2), json!(1), false),
        (json!({"a": 1, "b": 2}), json!({"a": 1}), false),
        // Numbers compare in their recorded form.
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
fn unknown_members_compare_per_container() {
    let container = "spec.template.spec.containers.0.future";
    let with = |value: &str| set(|set| set.with(container, json!(value)));
    assert!(matches(&with("x"), &older(&with("x"))));
    assert!(!matches(&with("y"), &older(&with("x"))));
    let moved = set(|set| set.with("spec.template.spec.future", json!("y")));
    assert!(matches(&moved, &older(&with("x"))), "another member");
}

#[test]
fn equal_revisions_are_found_by_bytes_in_order() {
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
