//! Sets restored from recorded revisions.

use statefulset_controller_util::testing::builders;

use super::*;
use crate::data::RevisionData;
use statefulset_controller_util::stateful_set::UpdateStrategy;

fn apply(data: &str) -> Result<StatefulSet, Error> {
    let set = builders::set("web").image("registry.example/app:2").build();
    let revision = builders::revision(&set, "web-1", 1, data);
    apply_revision(&set, &Arc::new(revision.build()))
}

fn present() -> StatefulSet {
    builders::set("web").image("registry.example/app:2").build()
}

#[test]
fn empty_revision_leaves_set_unchanged() {
    let set = present();
    for data in ["null", "{}", r#"{"spec":{}}"#, r#"{"other":1}"#] {
        let applied = apply(data).unwrap();
        let template = applied.spec.template.to_json();
        assert_eq!(template, set.spec.template.to_json(), "{data}");
    }
    for data in ["", "null"] {
        let revision = ControllerRevision {
            data: data.into(),
            ..ControllerRevision::default()
        };
        let applied = apply_revision(&set, &Arc::new(revision)).unwrap();
        let template = applied.spec.template.to_json();
        assert_eq!(template, set.spec.template.to_json(), "{data:?}");
    }
}

#[test]
fn non_object_data_is_rejected() {
    for data in ["7", "[]", r#""text""#, "true"] {
        let error = apply(data).unwrap_err();
        assert_eq!(error.to_string(), "invalid JSON document", "{data}");
    }
    let set = present();
    let broken = ControllerRevision {
        data: r#"{"spec":"#.into(),
        ..ControllerRevision::default()
    };
    let error = apply_revision(&set, &Arc::new(broken)).unwrap_err();
    assert_eq!(error.to_string(), "invalid JSON document");
}

#[test]
fn apply_restores_only_the_template() {
    let old = builders::set("web").image("registry.example/app:1").build();
    let applied = apply(RevisionData::new(&old.spec.template).unwrap().recorded()).unwrap();
    assert_eq!(
        applied.spec.template.to_value().unwrap(),
        old.spec.template.to_value().unwrap()
    );
    assert!(!applied.spec.template.to_json().contains("$patch"));
    assert_eq!(applied.spec.replicas, 1);
    assert_eq!(applied.uid(), "web-uid");
}

#[test]
fn unknown_template_members_survive() {
    let applied = apply(
        r#"{"spec":{"template":{"$patch":"replace","metadata":{"future":1},"spec":{"containers":[{"name":"c","future":{"x":[1.5]}}],"hostNetwork":false}}}}"#,
    )
    .unwrap();
    assert_eq!(
        applied.spec.template.to_value().unwrap(),
        serde_json::json!({
            "metadata": {"future": 1},
            "spec": {"containers": [{"name": "c", "future": {"x": [1.5]}, "resources": {}}]},
        })
    );
}

#[test]
fn number_out_of_range_gives_gos_error() {
    let error = apply(
        r#"{"spec":{"template":{"$patch":"replace","metadata":{},"spec":{"containers":null,"terminationGracePeriodSeconds":9223372036854776000}}}}"#,
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "json: cannot unmarshal number 9223372036854776000 into Go struct field PodSpec.spec.template.spec.terminationGracePeriodSeconds of type int64"
    );
}

#[test]
fn number_with_exponent_decodes_as_integer() {
    let applied = apply(
        r#"{"spec":{"template":{"$patch":"replace","spec":{"containers":[],"terminationGracePeriodSeconds":3e1}}}}"#,
    )
    .unwrap();
    let template = applied.spec.template.to_value().unwrap();
    assert_eq!(template["spec"]["terminationGracePeriodSeconds"], 30);
}

#[test]
fn replaced_spec_drops_the_update_strategy() {
    for data in [
        r#"{"$patch":"replace"}"#,
        r#"{"spec":{"$patch":"replace"}}"#,
        r#"{"$patch":"delete","spec":{"template":{"spec":{"containers":[]}}}}"#,
    ] {
        let applied = apply(data).unwrap();
        assert_eq!(
            applied.spec.update_strategy,
            UpdateStrategy::default(),
            "{data}"
        );
        let template = applied.spec.template.to_value().unwrap();
        assert_eq!(template["spec"]["containers"], Value::Null, "{data}");
    }
}

#[test]
fn apply_keeps_integers_exact() {
    let applied = apply(
        r#"{"spec":{"template":{"$patch":"replace","metadata":{},"spec":{"containers":null,"terminationGracePeriodSeconds":9007199254740993}}}}"#,
    )
    .unwrap();
    let template = applied.spec.template.to_value().unwrap();
    assert_eq!(
        template["spec"]["terminationGracePeriodSeconds"],
        9_007_199_254_740_993_i64
    );
}

#[test]
fn unmarked_template_merges_lists_by_key() {
    let applied = apply(
        r#"{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"other"},{"name":"sidecar"}]}}}}"#,
    )
    .unwrap();
    let template = applied.spec.template.to_value().unwrap();
    let containers = template["spec"]["containers"].as_array().unwrap();
    let image = |name: &str| {
        let container = containers
            .iter()
            .find(|container| container["name"] == name)
            .unwrap();
        container["image"].clone()
    };
    assert_eq!(image("main"), "other");
    assert_eq!(containers.len(), 2);
    assert!(
        containers
            .iter()
            .any(|container| container["name"] == "sidecar")
    );
}

#[test]
fn null_template_becomes_empty() {
    let applied = apply(r#"{"spec":{"template":null}}"#).unwrap();
    assert_eq!(
        applied.spec.template.to_value().unwrap(),
        serde_json::json!({"metadata": {}, "spec": {"containers": null}})
    );
}

#[test]
fn unknown_directive_is_rejected() {
    let error = apply(r#"{"spec":{"template":{"$patch":"mend","spec":{}}}}"#).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot apply revision ns/web-1: unknown patch type found: mend"
    );
}

#[test]
fn malformed_data_fails_with_the_references_error() {
    for (data, error) in [
        (
            r#"{"spec":[]}"#,
            "json: cannot unmarshal array into Go struct field StatefulSet.spec of type v1.StatefulSetSpec",
        ),
        (
            r#"{"spec":{"template":"x"}}"#,
            "json: cannot unmarshal string into Go struct field StatefulSetSpec.spec.template of type v1.PodTemplateSpec",
        ),
        (
            r#"{"spec":{"template":{"spec":{"containers":"x"}}}}"#,
            "json: cannot unmarshal string into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container",
        ),
        (
            r#"{"spec":{"template":{"$patch":"weird","a":1}}}"#,
            "cannot apply revision ns/web-1: unknown patch type found: weird",
        ),
        (
            r#"{"$patch":"weird"}"#,
            "cannot apply revision ns/web-1: unknown patch type found: weird",
        ),
        (
            r#"{"spec":{"$patch":5}}"#,
            "cannot apply revision ns/web-1: unknown patch type found: 5",
        ),
    ] {
        assert_eq!(apply(data).unwrap_err().to_string(), error, "{data}");
    }
    assert!(apply(r#"{"spec":{"template":{"$patch":5}}}"#).is_err());
}

#[test]
fn data_without_template_leaves_it_empty() {
    for data in [
        r#"{"$patch":"replace"}"#,
        r#"{"$patch":"delete","spec":{"template":{"metadata":{"name":"x"}}}}"#,
        r#"{"spec":null}"#,
        r#"{"spec":{"$patch":"replace"}}"#,
        r#"{"spec":{"template":{"$patch":"delete"}}}"#,
    ] {
        let template = apply(data).unwrap().spec.template.to_value().unwrap();
        let empty = serde_json::json!({"metadata": {}, "spec": {"containers": null}});
        assert_eq!(template, empty, "{data}");
    }
    let replaced = apply(r#"{"$patch":"replace","spec":{"template":{"spec":{"nodeName":"n"}}}}"#);
    assert_eq!(
        replaced.unwrap().spec.template.to_value().unwrap(),
        serde_json::json!({"metadata": {}, "spec": {"containers": null, "nodeName": "n"}})
    );
}

#[test]
fn deep_data_never_panics() {
    let deep = |depth: usize| {
        let (open, close) = (r#"{"a":"#.repeat(depth), "}".repeat(depth));
        format!(r#"{{"zzz":{open}1{close},"spec":{{"template":null}}}}"#)
    };
    assert!(apply(&deep(90)).is_ok());
    let error = apply(&deep(10_050)).unwrap_err();
    assert_eq!(error.to_string(), "invalid JSON document");
}

#[test]
fn apply_changes_only_the_template() {
    let set = present();
    let applied = apply(
        r#"{"metadata":{"name":"other"},"spec":{"replicas":3,"ordinals":{"start":5},"serviceName":"other","selector":null}}"#,
    )
    .unwrap();
    assert_eq!(applied.name(), set.name());
    assert_eq!(applied.spec.replicas, set.spec.replicas);
    assert_eq!(applied.spec.template.to_json(), set.spec.template.to_json());
}

/// Pods of such a revision are created from the update revision.
#[test]
fn revision_without_an_update_strategy_replaces_it() {
    for (data, replaces) in [
        (r#"{"spec":null}"#, true),
        (r#"{"$patch":"delete"}"#, true),
        (r#"{"spec":{"$patch":"replace","template":{}}}"#, true),
        (r#"{"spec":{"updateStrategy":null}}"#, true),
        (r#"{"spec":{"updateStrategy":{"$patch":"delete"}}}"#, true),
        (r#"{"spec":{"updateStrategy":{"type":"OnDelete"}}}"#, true),
        (
            r#"{"spec":{"updateStrategy":{"rollingUpdate":null}}}"#,
            false,
        ),
        (r#"{"spec":{"template":null}}"#, false),
        (r#"{"spec":{"template":{"$patch":"replace"}}}"#, false),
    ] {
        let strategy = apply(data).unwrap().spec.update_strategy;
        assert_eq!(strategy == UpdateStrategy::default(), replaces, "{data}");
    }
}

#[test]
fn data_is_merged_as_in_the_reference() {
    for (data, pointer, expected) in [
        // A directive where nothing exists to merge into, or another type.
        (
            r#"{"spec":{"template":{"spec":{"nodeSelector":{"$patch":"x"}}}}}"#,
            "/spec/nodeSelector",
            None,
        ),
        (
            r#"{"spec":{"template":{"spec":{"containers":{"$patch":"merge"}}}}}"#,
            "/spec/containers",
            Some(serde_json::json!(null)),
        ),
        (
            r#"{"spec":{"template":{"spec":{"dnsConfig":{"options":[{"$patch":"delete"},{"name":"a","value":null}]}}}}}"#,
            "/spec/dnsConfig/options",
            Some(serde_json::json!([{"name": "a"}])),
        ),
        // A replaced template is taken as it is.
        (
            r#"{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"a":null,"$patch":"x"}}}}}"#,
            "/metadata/labels",
            Some(serde_json::json!({"a": "", "$patch": "x"})),
        ),
        (
            r#"{"spec":{"template":{"$patch":"replace","spec":{"containers":[{"$patch":"delete"}]}}}}"#,
            "/spec/containers/0/name",
            Some(serde_json::json!("")),
        ),
    ] {
        let template = apply(data).unwrap().spec.template.to_value().unwrap();
        assert_eq!(template.pointer(pointer), expected.as_ref(), "{data}");
    }
}
