//! The runner's teeth: whatever single thing of an expectation is altered, the case fails.

use std::path::PathBuf;

use conformance::files::lines;
use conformance::outcome::Outcome;
use conformance::sync::{Case, judge, outcome};
use serde_json::{Value, json};

/// Every so many cases one is altered. A prime, so that no pattern of the recordings is missed.
const STRIDE: usize = 23;

/// A change of one compared field; `None` where the expectation has no such field.
type Alteration = (&'static str, fn(&mut Outcome) -> Option<()>);

const ALTERATIONS: [Alteration; 16] = [
    ("whether the sync failed", |o| Some(o.failed = !o.failed)),
    ("the requeue", |o| {
        o.requeue_after = Some(
            if o.requeue_after.is_some() {
                "1ns"
            } else {
                "7s"
            }
            .to_owned(),
        );
        Some(())
    }),
    ("a missing event", |o| o.events.pop().map(drop)),
    ("an extra event", |o| {
        Some(o.events.push("Normal Made Up".to_owned()))
    }),
    ("an event's text", |o| {
        o.events.first_mut().map(|event| event.push('.'))
    }),
    ("a label", |o| {
        member(o, "Pod/", "labels").map(|labels| labels["altered"] = json!("x"))
    }),
    ("a claim's label", |o| {
        member(o, "PersistentVolumeClaim/", "labels").map(|labels| labels["altered"] = json!("x"))
    }),
    ("a pod's owner", |o| {
        owner(o, "Pod/").map(|owner| owner["uid"] = json!("other"))
    }),
    ("a claim's owner", |o| {
        owner(o, "PersistentVolumeClaim/").map(|owner| owner["controller"] = json!(false))
    }),
    ("a revision's owner", |o| {
        owner(o, "ControllerRevision/").map(|owner| owner["name"] = json!("other"))
    }),
    ("one byte of revision data", |o| {
        let data = find(o, "ControllerRevision/")?.get_mut("data")?;
        let text = data.as_str()?.replacen("replace", "replaced", 1);
        Some(*data = Value::from(text))
    }),
    ("a revision's number", |o| {
        let number = find(o, "ControllerRevision/")?.get_mut("revision")?;
        Some(*number = json!(number.as_i64()? + 1))
    }),
    ("a pod's volume", |o| {
        let volumes = find(o, "Pod/")?
            .pointer_mut("/spec/volumes")?
            .as_array_mut()?;
        volumes
            .first_mut()
            .map(|volume| volume["name"] = json!("altered"))
    }),
    ("a status member", |o| {
        find(o, "StatefulSet/").map(|status| status["replicas"] = json!(77))
    }),
    ("a missing object", |o| {
        let key = o
            .objects
            .keys()
            .find(|key| !key.starts_with("StatefulSet/"))?
            .clone();
        o.objects.remove(&key).map(drop)
    }),
    ("an extra object", |o| {
        Some(drop(
            o.objects
                .insert("Pod/extra".to_owned(), json!({"kind": "Pod"})),
        ))
    }),
];

fn find<'a>(outcome: &'a mut Outcome, prefix: &str) -> Option<&'a mut Value> {
    outcome
        .objects
        .iter_mut()
        .find(|(key, _)| key.starts_with(prefix))
        .map(|(_, value)| value)
}

fn member<'a>(outcome: &'a mut Outcome, prefix: &str, member: &str) -> Option<&'a mut Value> {
    find(outcome, prefix)?.get_mut("metadata")?.get_mut(member)
}

fn owner<'a>(outcome: &'a mut Outcome, prefix: &str) -> Option<&'a mut Value> {
    let objects = outcome
        .objects
        .iter_mut()
        .filter(|(key, _)| key.starts_with(prefix));
    objects
        .filter_map(|(_, object)| object.pointer_mut("/metadata/ownerReferences/0"))
        .next()
}

#[test]
fn every_alteration_of_a_recorded_expectation_fails_its_case() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../vectors/sync.jsonl.gz");
    let lines = lines(&path).unwrap();
    let mut applied = [0_usize; ALTERATIONS.len()];
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
        for (index, (what, alter)) in ALTERATIONS.iter().enumerate() {
            let mut altered = recorded.clone();
            if alter(&mut altered).is_none() {
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
    for ((what, _), count) in ALTERATIONS.iter().zip(applied) {
        assert!(count > 0, "no sampled case has {what}");
    }
}
