//! Tests against the recorded behaviour of upstream: revision bytes, names and hashes,
//! decoding and encoding, defaults.

#![expect(
    clippy::unwrap_used,
    reason = "clippy does not treat test helpers as tests"
)]

use std::fs::File;
use std::io::BufRead;
use std::io::BufReader;
use std::path::PathBuf;

use flate2::read::GzDecoder;
use kube_apimachinery::defaults::set_claim_defaults;
use kube_apimachinery::defaults::set_pod_defaults;
use kube_apimachinery::defaults::set_pod_template_defaults;
use kube_apimachinery::defaults::set_stateful_set_defaults;
use kube_apimachinery::hash::FNV1_32_OFFSET;
use kube_apimachinery::hash::fnv1_32;
use kube_apimachinery::hash::safe_encode_string;
use kube_apimachinery::json::numbers_as_doubles;
use kube_apimachinery::json::to_go_string;
use kube_apimachinery::schema::UnknownMembers;
use kube_apimachinery::schema::normalize;
use kube_apimachinery::schema::unknown_members;
use serde_json::Value;
use serde_json::json;

/// Opens a vector file.
fn open(name: &str) -> File {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../test/vectors");
    File::open(folder.join(name)).unwrap()
}

/// Reads a vector file with one JSON object per line.
fn vectors(name: &str) -> Vec<Value> {
    let lines = BufReader::new(GzDecoder::new(open(name))).lines();
    lines
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
        .collect()
}

/// Returns the objects of `kind` at the start and at the end of a case of `sync.jsonl.gz`.
fn sync_objects<'a>(case: &'a Value, kind: &str) -> Vec<&'a Value> {
    let of_kind = |object: &&Value| object["kind"] == kind;
    let lists = [&case["objects"], &case["expect"]["final"]];
    lists
        .into_iter()
        .flat_map(|list| list.as_array().unwrap())
        .filter(of_kind)
        .collect()
}

/// Returns the template recorded in a revision, without the patch directive.
fn recorded_template(revision: &Value) -> Option<Value> {
    let mut template = revision["data"]["spec"]["template"].clone();
    template.as_object_mut()?.remove("$patch");
    Some(template)
}

fn normal(type_name: &str, value: &Value) -> Value {
    normalize(type_name, value, UnknownMembers::Drop, "").unwrap()
}

#[test]
fn revision_data_names_and_hashes_match_the_reference() {
    let cases = vectors("revisions.jsonl.gz");
    assert_eq!(cases.len(), 300);
    for case in &cases {
        let mut template = case["set"]["spec"]["template"].clone();
        numbers_as_doubles(&mut template);
        template["$patch"] = json!("replace");
        let data = to_go_string(&json!({"spec": {"template": template}}));
        assert_eq!(case["expect"]["patch"], data, "{}", case["id"]);

        let name = case["set"]["metadata"]["name"].as_str().unwrap();
        let name = &name[..name.len().min(223)];
        for (count, expected) in case["expect"]["names"].as_object().unwrap() {
            let probe = if count == "nil" { "" } else { count };
            let hash = fnv1_32(probe.as_bytes(), fnv1_32(data.as_bytes(), FNV1_32_OFFSET));
            let hash = safe_encode_string(&hash.to_string());
            assert_eq!(*expected, format!("{name}-{hash}"), "{}", case["id"]);
            if count == "0" {
                assert_eq!(case["expect"]["hash"], hash, "{}", case["id"]);
            }
        }
    }
}

#[test]
fn go_encoded_objects_are_already_normal() {
    for case in &vectors("revisions.jsonl.gz") {
        let template = &case["set"]["spec"]["template"];
        assert_eq!(
            normal("PodTemplateSpec", template),
            *template,
            "{}",
            case["id"]
        );
        assert_eq!(
            normal("StatefulSet", &case["set"]),
            case["set"],
            "{}",
            case["id"]
        );
        assert_eq!(
            unknown_members("StatefulSet", &case["set"]),
            [],
            "{}",
            case["id"]
        );
    }
    for cluster in &vectors("settled.jsonl.gz") {
        for set in cluster["statefulsets"]["items"].as_array().unwrap() {
            assert_eq!(normal("StatefulSet", set), *set, "{}", cluster["id"]);
        }
        for claim in cluster["persistentvolumeclaims"]["items"]
            .as_array()
            .unwrap()
        {
            assert_eq!(
                normal("PersistentVolumeClaim", claim),
                *claim,
                "{}",
                cluster["id"]
            );
        }
        for revision in cluster["controllerrevisions"]["items"].as_array().unwrap() {
            let template = recorded_template(revision).unwrap();
            assert_eq!(
                normal("PodTemplateSpec", &template),
                template,
                "{}",
                cluster["id"]
            );
        }
        for pod in cluster["pods"]["items"].as_array().unwrap() {
            assert_eq!(
                normal("PodSpec", &pod["spec"]),
                pod["spec"],
                "{}",
                cluster["id"]
            );
        }
    }
}

#[test]
fn sync_inputs_decode_idempotently() {
    for case in &vectors("sync.jsonl.gz") {
        for (kind, type_name) in [
            ("StatefulSet", "StatefulSet"),
            ("PersistentVolumeClaim", "PersistentVolumeClaim"),
        ] {
            for object in sync_objects(case, kind) {
                let once = normal(type_name, object);
                assert_eq!(normal(type_name, &once), once, "{}", case["id"]);
            }
        }
    }
}

/// Applies defaults twice; the second time must change nothing.
fn defaulted(value: &Value, set_defaults: impl Fn(&mut Value)) -> Value {
    let mut value = value.clone();
    set_defaults(&mut value);
    let once = value.clone();
    set_defaults(&mut value);
    assert_eq!(value, once);
    value
}

#[test]
fn defaults_do_not_change_defaulted_objects() {
    for case in &vectors("revisions.jsonl.gz") {
        let template = &case["set"]["spec"]["template"];
        assert_eq!(
            defaulted(template, set_pod_template_defaults),
            *template,
            "{}",
            case["id"]
        );
        let set = defaulted(&case["set"], |set| set_stateful_set_defaults(set, false));
        assert_eq!(set, case["set"], "{}", case["id"]);
    }
    for cluster in &vectors("settled.jsonl.gz") {
        let id = &cluster["id"];
        let items = |list: &str| cluster[list]["items"].as_array().unwrap();
        for set in items("statefulsets") {
            assert_eq!(
                defaulted(set, |set| set_stateful_set_defaults(set, false)),
                *set,
                "{id}"
            );
        }
        for revision in items("controllerrevisions") {
            let template = recorded_template(revision).unwrap();
            assert_eq!(
                defaulted(&template, set_pod_template_defaults),
                template,
                "{id}"
            );
        }
        for pod in items("pods") {
            assert_eq!(defaulted(pod, set_pod_defaults), *pod, "{id}");
        }
        for claim in items("persistentvolumeclaims") {
            assert_eq!(defaulted(claim, set_claim_defaults), *claim, "{id}");
        }
    }
}

/// Adds a field if it is absent; returns whether it was.
fn fill(object: &mut Value, member: &str, value: &str) -> bool {
    let is_absent = object.get(member).is_none();
    if is_absent {
        object[member] = json!(value);
    }
    is_absent
}

#[test]
fn sync_inputs_already_have_defaults() {
    let mut before_defaulting = 0;
    for case in &vectors("sync.jsonl.gz") {
        for set in sync_objects(case, "StatefulSet") {
            let template = &set["spec"]["template"];
            assert_eq!(
                defaulted(template, set_pod_template_defaults),
                *template,
                "{}",
                case["id"]
            );
        }
        for revision in sync_objects(case, "ControllerRevision") {
            let mut template = recorded_template(revision).unwrap();
            let after = defaulted(&template, set_pod_template_defaults);
            // Some cases imitate a server that lacked these defaults.
            let (spec, count) = (&mut template["spec"], &mut before_defaulting);
            *count += usize::from(fill(spec, "dnsPolicy", "ClusterFirst"));
            let container = &mut spec["containers"][0];
            *count += usize::from(fill(container, "terminationMessagePolicy", "File"));
            assert_eq!(after, template, "{}", case["id"]);
        }
    }
    assert!(before_defaulting > 0);
}

/// Returns the spec that a server stores for the body of a create, admission aside.
fn created_spec(resource: &str, body: &Value) -> Option<Value> {
    let (type_name, value) = match resource {
        "statefulsets" => ("StatefulSet", body),
        "persistentvolumeclaims" => ("PersistentVolumeClaim", body),
        "pods" => ("PodSpec", &body["spec"]),
        _ => return None,
    };
    let mut object = normal(type_name, value);
    match resource {
        "statefulsets" => set_stateful_set_defaults(&mut object, false),
        "persistentvolumeclaims" => set_claim_defaults(&mut object),
        _ => {
            object = json!({ "spec": object });
            set_pod_defaults(&mut object);
        }
    }
    Some(object["spec"].take())
}

#[test]
fn stored_objects_equal_decoded_and_defaulted_requests() {
    let cases: Vec<Value> =
        serde_json::from_reader(BufReader::new(open("apiserver.json"))).unwrap();
    let steps = cases
        .iter()
        .flat_map(|case| case["steps"].as_array().unwrap());
    let mut compared = 0;
    for step in steps.filter(|step| step["method"] == "POST" && step.get("project").is_none()) {
        let answer = &step["response"]["body"];
        if answer.get("spec").is_none() {
            continue;
        }
        let path = step["path"].as_str().unwrap();
        let resource = path
            .split('?')
            .next()
            .and_then(|path| path.rsplit('/').next())
            .unwrap();
        let Some(mut created) = created_spec(resource, &step["body"]) else {
            continue;
        };
        let mut stored = answer["spec"].clone();
        // Admission plugins set these in pods.
        for spec in [&mut created, &mut stored] {
            for member in ["tolerations", "priority", "preemptionPolicy"] {
                spec.as_object_mut().unwrap().remove(member);
            }
        }
        assert_eq!(created, stored, "{path}");
        compared += 1;
    }
    assert!(compared > 50, "{compared}");
}
