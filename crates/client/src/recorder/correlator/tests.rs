//! Tests of the correlator, with upstream's tables.

use super::*;
use crate::recorder::event::event_name;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn event_about(
    name: &str,
    severity: EventType,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> Event {
    let object = ObjectReference {
        kind: "StatefulSet".to_owned(),
        namespace: "ns".to_owned(),
        name: name.to_owned(),
        uid: "u".to_owned(),
        api_version: "apps/v1".to_owned(),
        resource_version: String::new(),
    };
    Event {
        name: event_name(name, now.as_nanosecond()),
        object: Arc::new(object),
        resource_version: now.as_second().to_string(),
        component: "c".into(),
        severity,
        reason: reason.to_owned(),
        message: message.into(),
        first_timestamp: now,
        last_timestamp: now,
        count: 1,
        reporting: true,
    }
}

fn event(message: &str, now: Timestamp) -> Event {
    event_about("web", EventType::Normal, "SuccessfulCreate", message, now)
}

/// Sends one message per second; returns `count message` for each event sent.
fn send_all(correlator: &mut Correlator, start: i64, messages: &[String]) -> Vec<String> {
    let mut out = Vec::new();
    for (second, message) in (start..).zip(messages) {
        let now = at(second);
        if let Some(event) = correlator.correlate(event(message, now), now) {
            correlator.update_state(&event);
            out.push(format!("{} {}", event.count, event.message));
        }
    }
    out
}

fn messages(numbers: impl IntoIterator<Item = u32>) -> Vec<String> {
    numbers
        .into_iter()
        .map(|number| format!("m{number:02}"))
        .collect()
}

#[test]
fn repeated_event_increments_count() {
    let mut correlator = Correlator::new();
    let first = correlator.correlate(event("same", at(0)), at(0)).unwrap();
    let second = correlator.correlate(event("same", at(16)), at(16)).unwrap();
    assert_eq!((first.count, second.count), (1, 2));
    assert_eq!(second.name, first.name);
    assert_eq!(second.first_timestamp, at(0));
    assert_eq!(second.last_timestamp, at(16));
    let patch = r#"{"count":2,"lastTimestamp":"2023-11-14T22:13:36Z","message":"same"}"#;
    assert_eq!(second.to_patch(), patch);
}

#[test]
fn different_events_are_not_merged() {
    let mut correlator = Correlator::new();
    for (severity, reason, message) in [
        (EventType::Normal, "R", "m"),
        (EventType::Normal, "R", "n"),
        (EventType::Normal, "S", "m"),
        (EventType::Warning, "R", "m"),
    ] {
        let event = event_about("web", severity, reason, message, at(0));
        assert_eq!(correlator.correlate(event, at(0)).unwrap().count, 1);
    }
}

#[test]
fn tenth_message_of_group_is_combined() {
    let mut correlator = Correlator::new();
    let out = send_all(&mut correlator, 0, &messages(0..12));
    assert_eq!(out[8], "1 m08");
    assert_eq!(out[9], "1 (combined from similar events): m09");
    assert_eq!(out[10], "2 (combined from similar events): m10");
    assert_eq!(out[11], "3 (combined from similar events): m11");
}

#[test]
fn combined_event_is_new_event_about_same_object() {
    let mut correlator = Correlator::new();
    send_all(&mut correlator, 0, &messages(0..9));
    // Recorded before its turn.
    let original = Event {
        count: 3,
        ..event("last", at(15))
    };
    let combined = correlator.correlate(original.clone(), at(20)).unwrap();
    assert_eq!(combined.name, original.name);
    assert_eq!(
        (combined.first_timestamp, combined.last_timestamp),
        (at(20), at(20))
    );
    assert_eq!(combined.count, 1);
    assert_eq!(combined.object, original.object);
    assert_eq!(combined.resource_version, original.resource_version);
    let json: serde_json::Value = serde_json::from_str(&combined.to_json()).unwrap();
    assert_eq!(json["reportingComponent"], "");
    assert_eq!(json["source"]["component"], "c");
}

#[test]
fn known_message_is_sent_unchanged_after_combining() {
    let mut correlator = Correlator::new();
    send_all(&mut correlator, 0, &messages(0..10));
    // The set now holds nine messages, because the first one was removed.
    assert_eq!(send_all(&mut correlator, 20, &messages([5])), ["2 m05"]);
    let combined = "2 (combined from similar events): m00";
    assert_eq!(send_all(&mut correlator, 21, &messages([0])), [combined]);
}

#[test]
fn group_is_forgotten_after_ten_quiet_minutes() {
    let mut correlator = Correlator::new();
    send_all(&mut correlator, 0, &messages(0..9));
    let combined = "1 (combined from similar events): m20";
    assert_eq!(send_all(&mut correlator, 608, &messages([20])), [combined]);
    assert_eq!(send_all(&mut correlator, 1209, &messages([21])), ["1 m21"]);
}

#[test]
fn repeated_message_keeps_group_alive() {
    let mut correlator = Correlator::new();
    send_all(&mut correlator, 0, &messages(0..9));
    send_all(&mut correlator, 500, &messages([8]));
    let combined = "1 (combined from similar events): m20";
    assert_eq!(send_all(&mut correlator, 1000, &messages([20])), [combined]);
}

#[test]
fn object_may_send_burst_then_one_per_five_minutes() {
    let mut correlator = Correlator::new();
    let same = vec!["same".to_owned(); 30];
    assert_eq!(send_all(&mut correlator, 0, &same).len(), 25);
    // The dropped events were counted.
    assert_eq!(send_all(&mut correlator, 300, &same), ["31 same"]);
    let other = event_about("other", EventType::Normal, "R", "m", at(301));
    assert!(correlator.correlate(other, at(301)).is_some());
    let warning = event_about("web", EventType::Warning, "R", "m", at(301));
    assert!(correlator.correlate(warning, at(301)).is_some());
}
