//! Recorded bytes of a template, and their comparison.

use statefulset_client::feature_gates::KubeVersion;

use super::*;

fn data(template: &str) -> RevisionData {
    RevisionData::new(&PodTemplate::from_value(
        &serde_json::from_str(template).unwrap(),
    ))
    .unwrap()
}

fn at(minor: u32, template: &Value) -> RevisionData {
    let gates = FeatureGates::at(KubeVersion::v1(minor));
    RevisionData::at(&PodTemplate::from_value(template), gates).unwrap()
}

fn record(template: &str) -> String {
    format!(r#"{{"spec":{{"template":{template}}}}}"#)
}

#[test]
fn template_is_recorded_sorted_escaped_and_marked_replace() {
    let data = data(
        r#"{ "spec": {"containers":[{"name":"c","command":["sh","-c","a && b > /dev/null"]}]},
             "metadata":{"labels":{"b":"2","a":"1"}} }"#,
    );
    assert_eq!(
        **data.recorded(),
        record(
            r#"{"$patch":"replace","metadata":{"labels":{"a":"1","b":"2"}},"spec":{"containers":[{"command":["sh","-c","a \u0026\u0026 b \u003e /dev/null"],"name":"c"}]}}"#
        )
    );
}

#[test]
fn numbers_are_recorded_as_doubles() {
    let data = data(
        r#"{"metadata":{},"spec":{"containers":null,"terminationGracePeriodSeconds":9223372036854775807,"activeDeadlineSeconds":9007199254740993}}"#,
    );
    assert_eq!(
        **data.recorded(),
        record(
            r#"{"$patch":"replace","metadata":{},"spec":{"activeDeadlineSeconds":9007199254740992,"containers":null,"terminationGracePeriodSeconds":9223372036854776000}}"#
        )
    );
}

#[test]
fn known_members_equal_the_references_record() {
    let data = data(
        r#"{"metadata":{"creationTimestamp":null,"future":1},"spec":{"containers":[{"name":"c","future":{"a":1}}],"future":[1]}}"#,
    );
    assert_eq!(
        **data.known().unwrap(),
        record(
            r#"{"$patch":"replace","metadata":{},"spec":{"containers":[{"name":"c","resources":{}}]}}"#
        )
    );
    assert!(data.recorded().contains("future"));
}

#[test]
fn undecodable_template_has_no_known_members() {
    let data = data(r#"{"metadata":{},"spec":{"containers":[],"hostNetwork":"yes"}}"#);
    assert!(data.known().is_none());
    assert!(data.equals(data.recorded()));
    assert!(!data.equals(""));
}

/// Builds a template with two containers, each with unknown fields, and one in the spec.
fn future(spec: &str, first: &str, second: &str) -> RevisionData {
    data(&format!(
        r#"{{"metadata":{{}},"spec":{{"containers":[{{"name":"a","resources":{{}}{first}}},{{"name":"b","resources":{{}}{second}}}]{spec}}}}}"#
    ))
}

/// True if the template equals the other one's recorded data.
fn is_equal(template: &RevisionData, recorded: &RevisionData) -> bool {
    template.equals(recorded.recorded())
}

#[test]
fn unknown_members_may_appear_and_disappear() {
    let plain = future("", "", "");
    let held = [
        future(r#","future":1"#, "", ""),
        future(r#","future":null"#, "", ""),
        future("", r#","future":{"a":[1,2]}"#, ""),
        future("", "", r#","future":"x""#),
        future(r#","other":[]"#, r#","future":1"#, r#","future":2"#),
    ];
    for held in &held {
        assert!(is_equal(held, held));
        assert!(is_equal(&plain, held), "gone: {}", held.recorded());
        assert!(is_equal(held, &plain), "new: {}", held.recorded());
    }
    // One field disappears while another appears.
    assert!(is_equal(&held[0], &held[2]) && is_equal(&held[2], &held[3]));
}

#[test]
fn members_of_a_version_are_known_to_it() {
    let newer = r#","evictionResponders":[{"name":"a.example/b","priority":1}]"#;
    let unknown = r#","future":1"#;
    for (member, minor, is_known) in [
        (newer, 33, false),
        (newer, 36, false),
        (newer, 37, true),
        (unknown, 37, false),
    ] {
        let [with, without] = [member, ""].map(|member| future(member, "", ""));
        for (template, recorded, is_same) in [
            (&with, &with, true),
            (&without, &without, true),
            (&with, &without, !is_known),
            (&without, &with, !is_known),
        ] {
            let data = at(minor, &template.template);
            assert_eq!(
                data.equals(recorded.recorded()),
                is_same,
                "{minor} {member}"
            );
        }
    }
}

#[test]
fn shared_unknown_members_must_be_equal() {
    for (template, recorded, expected) in [
        ("1", "2", false),
        ("1", r#""1""#, false),
        (r#"{"a":1,"b":2}"#, r#"{"a":1}"#, false),
        (r#"{"b":2,"a":1}"#, r#"{"a":1,"b":2}"#, true),
        ("[1,2]", "[2,1]", false),
        // Values compare in their recorded form.
        ("1.0", "1", true),
        ("9007199254740993", "9007199254740992", true),
        // A null counts as unset.
        ("null", "1", true),
        ("1", "null", true),
        ("null", "null", true),
    ] {
        let spec = |value: &str| future(&format!(r#","new":1,"future":{value}"#), "", "");
        let is_equal = is_equal(&spec(template), &spec(recorded));
        assert_eq!(is_equal, expected, "{template} {recorded}");
    }
}

#[test]
fn unknown_members_compare_by_path() {
    let first = |value: &str| future("", &format!(r#","future":{value}"#), "");
    let second = |value: &str| future("", "", &format!(r#","future":{value}"#));
    assert!(!is_equal(&first("1"), &first("2")));
    assert!(!is_equal(&second("1"), &second("2")));
    assert!(is_equal(&first("1"), &second("2")));
}

#[test]
fn changed_known_member_makes_data_unequal() {
    let recorded = future(r#","future":1"#, "", "");
    let others = [
        future(r#","future":1,"hostNetwork":true"#, "", ""),
        future(r#","hostNetwork":true"#, "", ""),
        future(r#","future":1"#, r#","image":"x""#, ""),
        data(r#"{"metadata":{},"spec":{"containers":null,"future":1}}"#),
    ];
    for other in &others {
        assert!(!is_equal(other, &recorded), "{}", other.recorded());
        assert!(!is_equal(&recorded, other), "{}", other.recorded());
    }
}

#[test]
fn data_with_more_than_a_template_is_not_equal() {
    let plain = future("", "", "");
    let recorded = future(r#","future":1"#, "", "").recorded().to_string();
    assert!(plain.equals(&recorded));
    for other in [
        recorded.replacen(r#"{"spec""#, r#"{"kind":"StatefulSet","spec""#, 1),
        recorded.replacen(r#"{"template""#, r#"{"replicas":1,"template""#, 1),
        recorded.replacen(r#""$patch":"replace","#, "", 1),
        recorded.replacen(r#""replace""#, r#""merge""#, 1),
        recorded.replacen(r#""metadata":{}"#, r#""metadata":[]"#, 1),
    ] {
        assert!(!plain.equals(&other), "{other}");
    }
    for other in ["", "{}", "null", "7", "[]", r#"{"spec":{"template":7}}"#] {
        assert!(!plain.equals(other), "{other}");
    }
}

#[test]
fn equality_compares_bytes() {
    let data = data(r#"{"metadata":{},"spec":{"containers":null}}"#);
    let recorded = data.recorded().to_string();
    assert!(data.equals(&recorded));
    assert!(!data.equals(&recorded.replace(':', ": ")));
}

#[test]
fn template_labels_are_strings() {
    let labels = |template: &str| {
        let data = data(template);
        data.template_labels()
            .into_iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        labels(r#"{"metadata":{"labels":{"b":"2","a":""}}}"#),
        ["a=", "b=2"]
    );
    assert!(labels(r#"{"metadata":{}}"#).is_empty());
    assert!(labels("{}").is_empty());
}

#[test]
fn old_form_records_null_creation_times() {
    for (template, expected) in [
        (
            r#"{"metadata":{"labels":{"a":"1"}},"spec":{"containers":null}}"#,
            r#"{"$patch":"replace","metadata":{"creationTimestamp":null,"labels":{"a":"1"}},"spec":{"containers":null}}"#,
        ),
        (
            r#"{"spec":{"containers":null}}"#,
            r#"{"$patch":"replace","metadata":{"creationTimestamp":null},"spec":{"containers":null}}"#,
        ),
        (
            r#"{"metadata":{"creationTimestamp":"2024-01-01T00:00:00Z"},"spec":{"containers":null}}"#,
            r#"{"$patch":"replace","metadata":{"creationTimestamp":"2024-01-01T00:00:00Z"},"spec":{"containers":null}}"#,
        ),
        (
            r#"{"metadata":{},"spec":{"containers":null,"volumes":[{"emptyDir":{},"name":"a"},{"ephemeral":{"volumeClaimTemplate":{"metadata":{},"spec":{"resources":{}}}},"name":"b"}]}}"#,
            r#"{"$patch":"replace","metadata":{"creationTimestamp":null},"spec":{"containers":null,"volumes":[{"emptyDir":{},"name":"a"},{"ephemeral":{"volumeClaimTemplate":{"metadata":{"creationTimestamp":null},"spec":{"resources":{}}}},"name":"b"}]}}"#,
        ),
    ] {
        let value = serde_json::from_str(template).unwrap();
        let old = at(33, &value);
        assert_eq!(**old.recorded(), record(expected), "{template}");
    }
}

#[test]
fn old_form_equals_data_of_either_version() {
    let template = r#"{"metadata":{"labels":{"a":"1"}},"spec":{"containers":null}}"#;
    let newer = data(template);
    let value = serde_json::from_str(template).unwrap();
    let older = at(33, &value);
    assert_ne!(older.recorded(), newer.recorded());
    assert!(older.equals(older.recorded()) && older.equals(newer.recorded()));
    // The reverse needs the semantic comparison.
    assert!(!newer.equals(older.recorded()));

    let value = serde_json::from_str(&template.replacen('{', r#"{"future":1,"#, 1)).unwrap();
    let with_unknown = at(33, &value);
    assert!(with_unknown.equals(older.recorded()) && with_unknown.equals(newer.recorded()));
    assert!(older.equals(with_unknown.recorded()));
    assert!(!newer.equals(with_unknown.recorded()));
}
