//! A pod's claims, and the volumes that use them.

use serde_json::json;
use statefulset_controller_util::testing::builders::{self, Builder};

use super::*;
use crate::tests::world::existing;

fn web() -> Builder<StatefulSet> {
    builders::set("web")
        .claim_template("data")
        .claim_template("logs")
}

fn one_claim(set: &StatefulSet) -> NewClaim<'_> {
    let mut claims = persistent_volume_claims(set, Ordinal::from(2));
    claims.next().unwrap()
}

#[test]
fn new_claim_is_its_template_with_identity_and_labels() {
    let set = web().with("spec.volumeClaimTemplates.0.spec.future", "<");
    let set = set.build();
    let claim = one_claim(&set);
    assert_eq!(claim.name, "data-web-2");
    assert_eq!(
        claim.to_value().unwrap(),
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data-web-2", "namespace": "ns", "labels": {"app": "web"}},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem",
                "resources": {"requests": {"storage": "1Gi"}}, "future": "<",
            },
            "status": {"phase": "Pending"},
        })
    );
    assert!(claim.body().unwrap().contains(r#""future":"\u003c""#));
}

#[test]
fn match_labels_override_the_templates_labels() {
    let template = "spec.volumeClaimTemplates.0.metadata";
    let set = web()
        .with(
            &format!("{template}.labels"),
            json!({"app": "other", "kept": "1"}),
        )
        .with(&format!("{template}.annotations"), json!({"a": "b"}))
        .with(&format!("{template}.finalizers"), json!(["example.com/f"]))
        .with(
            "spec.selector.matchExpressions",
            json!([{"key": "tier", "operator": "In", "values": ["db"]}]),
        );
    let claim = one_claim(&set.build()).to_value().unwrap();
    let metadata = &claim["metadata"];
    assert_eq!(metadata["labels"], json!({"app": "web", "kept": "1"}));
    assert_eq!(metadata["annotations"], json!({"a": "b"}));
    assert_eq!(metadata["finalizers"], json!(["example.com/f"]));

    let bare = web().without("spec.selector.matchLabels").build();
    let claim = one_claim(&bare).to_value().unwrap();
    assert_eq!(claim["metadata"].get("labels"), None);
}

#[test]
fn template_without_kind_gets_one() {
    let set = web()
        .without("spec.volumeClaimTemplates.0.kind")
        .without("spec.volumeClaimTemplates.0.apiVersion");
    let claim = one_claim(&set.build()).to_value().unwrap();
    assert_eq!(claim["kind"], "PersistentVolumeClaim");
    assert_eq!(claim["apiVersion"], "v1");
}

#[test]
fn last_of_templates_with_one_name_counts() {
    let set = web()
        .claim_template("data")
        .with("spec.volumeClaimTemplates.2.spec.storageClassName", "fast")
        .build();
    let claims = persistent_volume_claims(&set, Ordinal::from(0));
    let claims: Vec<NewClaim<'_>> = claims.collect();
    let names: Vec<&str> = claims.iter().map(|claim| &*claim.name).collect();
    assert_eq!(names, ["logs-web-0", "data-web-0"]);
    let last = claims[1].to_value().unwrap();
    assert_eq!(last["spec"]["storageClassName"], "fast");
}

#[test]
fn storage_matches_if_every_template_has_its_claim() {
    let set = web().build();
    let pod = || builders::pod(&set, 1);
    let extra = json!({"name": "extra", "persistentVolumeClaim": {"claimName": "any"}});
    for (pod, expected) in [
        (pod(), true),
        (
            pod().with("spec.volumes.0.persistentVolumeClaim.readOnly", true),
            true,
        ),
        (
            pod().with(
                "spec.volumes.0.persistentVolumeClaim.claimName",
                "data-web-2",
            ),
            false,
        ),
        (pod().with("spec.volumes.1.name", "other"), false),
        (
            pod().with("spec.volumes.1", json!({"name": "logs", "emptyDir": {}})),
            false,
        ),
        (pod().with("spec.volumes", json!([])), false),
        (
            pod().with(
                "spec.volumes",
                json!([
                    extra,
                    pod().json()["spec"]["volumes"][1],
                    pod().json()["spec"]["volumes"][0]
                ]),
            ),
            true,
        ),
    ] {
        let text = pod.text();
        let pod = pod.build();
        assert_eq!(storage_matches(&set, &pod), expected, "{text}");
    }
    for (name, expected) in [
        ("web-1", true),
        ("web-2", false),
        ("web-01", false),
        ("b-1", false),
    ] {
        let pod = pod().with("metadata.name", name).build();
        assert_eq!(storage_matches(&set, &pod), expected, "{name}");
    }
}

#[test]
fn claim_volumes_come_first_and_others_keep_order() {
    let set = web().build();
    let mut pod = json!({"spec": {"volumes": [
        {"name": "z", "emptyDir": {}},
        {"name": "logs", "emptyDir": {}},
        {"name": "a", "configMap": {"name": "c"}, "future": 1},
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-9", "readOnly": true}},
    ], "hostname": "x"}});
    update_storage(&set, Ordinal::from(1), &mut pod);
    assert_eq!(
        pod,
        json!({"spec": {"volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}},
            {"name": "logs", "persistentVolumeClaim": {"claimName": "logs-web-1"}},
            {"name": "z", "emptyDir": {}},
            {"name": "a", "configMap": {"name": "c"}, "future": 1},
        ], "hostname": "x"}})
    );
}

#[test]
fn empty_volume_list_is_removed() {
    let set = builders::set("web").build();
    for volumes in [json!(null), json!([])] {
        let mut pod = json!({"spec": {"volumes": volumes}});
        update_storage(&set, Ordinal::from(0), &mut pod);
        assert_eq!(pod, json!({"spec": {}}));
    }
}

#[test]
fn claim_names_depend_on_set_and_ordinal_alone() {
    let set = web().build();
    let stranger = builders::set("web-x").claim_template("data").build();
    let volume = "spec.volumes.0.persistentVolumeClaim.claimName";
    let pod = || builders::pod(&set, 2);
    for (pod, is_borrowed) in [
        (pod(), true),
        (pod().with(volume, "data-web-3"), false),
        (pod().with(volume, "data-web-x-2"), false),
        (pod().without("spec.volumes"), false),
        (builders::pod(&set, "02").with(volume, "data-web-02"), false),
        (builders::pod(&stranger, 2), false),
    ] {
        let text = pod.text();
        let slot = existing(&pod);
        let template = &set.spec.claim_templates[0];
        let pod = slot.existing().map(AsRef::as_ref);
        let name = claim_name(&set, template, slot.ordinal(), pod);
        assert_eq!(name, "data-web-2", "{text}");
        assert_eq!(matches!(name, Cow::Borrowed(_)), is_borrowed, "{text}");
    }
}
