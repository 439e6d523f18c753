//! Test of the runner's sensitivity: any single change of an expectation fails its case.

use std::path::PathBuf;

use conformance::files::lines;
use conformance::outcome::Outcome;
use conformance::sync::{judge, outcome};
use conformance::sync_case::Case;
use serde_json::{Value, json};

/// One in this many cases is altered. A prime, to avoid patterns in the recordings.
const STRIDE: usize = 23;

/// A change of one compared field; false if the expectation lacks the field.
type Alteration = (&'static str, fn(&mut Outcome) -> bool);

const ALTERATIONS: [Alteration; 20] = [
    ("whether the sync failed", |o| {
        o.failed = !o.failed;
        true
    }),
    ("the requeue", |o| {
        o.requeue_after = Some(
            if o.requeue_after.is_some() {
                "1ns"
            } else {
                "7s"
            }
            .to_owned(),
        );
        true
    }),
    ("a missing event", |o| o.events.pop().is_some()),
    ("an extra event", |o| {
        o.events.push("Normal Made Up".to_owned());
        true
    }),
    ("an event's text", |o| {
        o.events.first_mut().map(|event| event.push('.')).is_some()
    }),
    ("a missing request", |o| o.requests.pop().is_some()),
    ("an extra request", |o| {
        o.requests
            .push(json!({"request": "get pods x", "body": null}));
        true
    }),
    ("a request's name", |o| {
        let request = o.requests.first_mut();
        request.is_some_and(|request| {
            request["request"] = json!("delete pods other");
            true
        })
    }),
    ("a request's body", |o| {
        let mut requests = o.requests.iter_mut();
        let request = requests.find(|request| request["body"].is_object());
        request.is_some_and(|request| {
            request["body"]["made-up"] = json!(1);
            true
        })
    }),
    ("a pod's label", |o| {
        set(o, "Pod/", "/metadata/labels", json!({"a": "b"}))
    }),
    ("a claim's label", |o| {
        set(
            o,
            "PersistentVolumeClaim/",
            "/metadata/labels",
            json!({"a": "b"}),
        )
    }),
    ("a pod's owner", |o| {
        set(o, "Pod/", "/metadata/ownerReferences/0/uid", json!("x"))
    }),
    ("a claim's owner", |o| {
        let controller = "/metadata/ownerReferences/0/controller";
        set(o, "PersistentVolumeClaim/", controller, json!("x"))
    }),
    ("a revision's owner", |o| {
        set(
            o,
            "ControllerRevision/",
            "/metadata/ownerReferences/0/name",
            json!("x"),
        )
    }),
    ("one byte of revision data", |o| {
        let data = find(o, "ControllerRevision/", "/data");
        data.is_some_and(|data| {
            let text = data
                .as_str()
                .map(|text| text.replacen("replace", "replacf", 1));
            *data = json!(text);
            true
        })
    }),
    ("a revision's number", |o| {
        set(o, "ControllerRevision/", "/revision", json!(777))
    }),
    ("a pod's volume", |o| {
        set(o, "Pod/", "/spec/volumes/0/name", json!("x"))
    }),
    ("a status member", |o| {
        set(o, "StatefulSet/", "/replicas", json!(777))
    }),
    ("a missing object", |o| {
        let key = o
            .objects
            .keys()
            .find(|key| !key.starts_with("StatefulSet/"))
            .cloned();
        key.is_some_and(|key| o.objects.remove(&key).is_some())
    }),
    ("an extra object", |o| {
        o.objects
            .insert("Pod/extra".to_owned(), json!({"kind": "Pod"}));
        true
    }),
];

/// Field at `pointer` of the first object of a kind that has it.
fn find<'a>(outcome: &'a mut Outcome, kind: &str, pointer: &str) -> Option<&'a mut Value> {
    let mut objects = outcome
        .objects
        .iter_mut()
        .filter(|(key, _)| key.starts_with(kind));
    objects.find_map(|(_, object)| object.pointer_mut(pointer))
}

fn set(outcome: &mut Outcome, kind: &str, pointer: &str, value: Value) -> bool {
    find(outcome, kind, pointer)
        .map(|member| *member = value)
        .is_some()
}

#[test]
fn every_altered_expectation_fails_its_case() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../vectors/sync.jsonl.gz");
    let lines = lines(&path).unwrap();
    let mut applied = [0_usize; ALTERATIONS.len()];
    let mut deviating = 0;
    for line in lines.iter().step_by(STRIDE) {
        let case = Case::parse(line).unwrap();
        let actual = outcome(&case).unwrap();
        let recorded = case.expected().unwrap();
        let verdict = judge(&case, recorded.clone(), &actual);
        assert!(
            verdict.differences.is_empty(),
            "{}: {:?}",
            case.id,
            verdict.differences
        );
        deviating += usize::from(!verdict.deviations.is_empty());
        for (index, (what, alter)) in ALTERATIONS.iter().enumerate() {
            let mut altered = recorded.clone();
            if !alter(&mut altered) {
                continue;
            }
            applied[index] += 1;
            let verdict = judge(&case, altered, &actual);
            assert!(
                !verdict.differences.is_empty(),
                "{}: {what} went unnoticed",
                case.id
            );
        }
    }
    assert!(deviating > 0, "no sampled case deviates");
    for ((what, _), count) in ALTERATIONS.iter().zip(applied) {
        assert!(count > 0, "no sampled case has {what}");
    }
}
