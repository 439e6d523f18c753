//! The bytes that a template is recorded as, and which recorded bytes equal it.

use super::*;

fn data(template: &str) -> RevisionData {
    RevisionData::new(&PodTemplate::from_value(
        &serde_json::from_str(template).unwrap(),
    ))
}

fn record(template: &str) -> String {
    format!(r#"{{"spec":{{"template":{template}}}}}"#)
}

#[test]
fn the_template_is_recorded_sorted_escaped_and_marked_as_a_replacement() {
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
fn numbers_take_the_detour_over_doubles() {
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
fn known_members_are_what_the_reference_would_record() {
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
fn a_template_that_the_reference_couldnt_read_has_no_known_members() {
    let data = data(r#"{"metadata":{},"spec":{"containers":[],"hostNetwork":"yes"}}"#);
    assert!(data.known().is_none());
    assert!(data.equals(data.recorded()));
    assert!(!data.equals(""));
}

#[test]
fn the_own_bytes_and_those_of_the_reference_are_equal_and_no_others() {
    let plain = r#"{"metadata":{},"spec":{"containers":[{"name":"c","resources":{}}]}}"#;
    let future =
        r#"{"metadata":{},"spec":{"containers":[{"name":"c","resources":{}}],"future":1}}"#;
    let other = r#"{"metadata":{},"spec":{"containers":[{"name":"c","resources":{}}],"future":2}}"#;
    for (template, recorded, equal) in [
        (plain, plain, true),
        (future, future, true),
        // What a controller recorded that didn't know the member.
        (future, plain, true),
        // The member is gone, or has another value.
        (plain, future, false),
        (other, future, false),
    ] {
        let recorded = data(recorded);
        assert_eq!(
            data(template).equals(recorded.recorded()),
            equal,
            "{template} {}",
            recorded.recorded()
        );
    }
}

#[test]
fn equal_means_equal_bytes() {
    let data = data(r#"{"metadata":{},"spec":{"containers":null}}"#);
    let recorded = data.recorded().to_string();
    assert!(data.equals(&recorded));
    assert!(!data.equals(&recorded.replace(':', ": ")));
}

#[test]
fn template_labels_are_given_as_text() {
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
fn versions_before_1_34_recorded_empty_creation_times() {
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
        let old = RevisionData::with_null_creation_time(&PodTemplate::from_value(&value));
        assert_eq!(**old.recorded(), record(expected), "{template}");
    }
}

#[test]
fn the_older_form_equals_what_either_version_recorded() {
    let template = r#"{"metadata":{"labels":{"a":"1"}},"spec":{"containers":null}}"#;
    let newer = data(template);
    let value = serde_json::from_str(template).unwrap();
    let older = RevisionData::with_null_creation_time(&PodTemplate::from_value(&value));
    assert_ne!(older.recorded(), newer.recorded());
    assert!(older.equals(older.recorded()) && older.equals(newer.recorded()));
    // The other way it takes the semantic comparison.
    assert!(!newer.equals(older.recorded()));
}
