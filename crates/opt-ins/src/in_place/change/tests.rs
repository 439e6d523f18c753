//! Tests of the changes that a running pod can follow.

use InPlaceScope::{Metadata, Resources};
use serde_json::json;
use statefulset_controller_util::testing::builders;

use super::*;

fn template() -> Value {
    json!({
        "metadata": {"labels": {"app": "web", "tier": "a"}, "annotations": {"note": "1"}},
        "spec": {
            "initContainers": [
                {"name": "prepare", "image": "p", "resources": {"requests": {"cpu": "10m"}}},
                {"name": "proxy", "image": "x", "restartPolicy": "Always",
                    "resources": {"requests": {"memory": "64Mi"}}},
            ],
            "containers": [{
                "name": "db", "image": "db:1",
                "env": [{"name": "A", "value": "1"}],
                "resizePolicy": [{"resourceName": "memory", "restartPolicy": "NotRequired"}],
                "resources": {
                    "requests": {"cpu": "500m", "memory": "1Gi", "example.com/disk": "1"},
                    "limits": {"memory": "2Gi", "example.com/disk": "1"},
                },
            }],
        },
    })
}

fn changed(edit: impl FnOnce(&mut Value)) -> Template {
    let mut template = template();
    edit(&mut template);
    Template(template)
}

fn change(edit: impl FnOnce(&mut Value), scope: InPlaceScope) -> Result<Change, String> {
    let change = Change::between(&Template(template()), &changed(edit), scope);
    change.map_err(|reason| reason.to_string())
}

fn db(template: &mut Value) -> &mut Value {
    &mut template["spec"]["containers"][0]
}

#[test]
fn labels_and_annotations_are_added_changed_and_removed() {
    let change = change(
        |it| {
            it["metadata"] = json!({
                "labels": {"app": "web", "tier": "b", "controller-revision-hash": "odd"},
                "annotations": {"new": ""},
            });
        },
        Metadata,
    );
    let change = change.unwrap();
    assert!(!change.resizes);
    let texts = change.texts.iter();
    let texts: Vec<_> = texts
        .map(|it| (it.place, &*it.key, it.value.as_deref()))
        .collect();
    assert_eq!(
        texts,
        [
            ("labels", "tier", Some("b")),
            ("annotations", "note", None),
            ("annotations", "new", Some("")),
        ]
    );
}

#[test]
fn amounts_change_in_every_kind_of_container() {
    for (what, edit) in [
        (
            "main",
            (|it| db(it)["resources"]["requests"]["cpu"] = "1".into()) as fn(&mut Value),
        ),
        ("limit", |it| {
            db(it)["resources"]["limits"]["memory"] = "3Gi".into();
        }),
        ("init", |it| {
            it["spec"]["initContainers"][0]["resources"]["requests"]["cpu"] = "1".into();
        }),
        ("sidecar", |it| {
            it["spec"]["initContainers"][1]["resources"]["requests"]["memory"] = "1Mi".into();
        }),
    ] {
        assert!(change(edit, Resources).unwrap().resizes, "{what}");
        let error = change(edit, Metadata).unwrap_err();
        assert!(
            error.ends_with("the set asks for metadata only"),
            "{what}: {error}"
        );
    }
}

#[test]
fn other_spelling_of_an_amount_is_no_resize() {
    let change = change(
        |it| db(it)["resources"]["requests"]["cpu"] = "0.5".into(),
        Metadata,
    );
    assert!(!change.unwrap().resizes);
}

#[test]
fn null_equals_absent() {
    let change = change(
        |it| {
            it["metadata"]["creationTimestamp"] = Value::Null;
            it["spec"]["volumes"] = Value::Null;
            db(it)["command"] = Value::Null;
            db(it)["lifecycle"] = Value::Null;
            it["spec"]["resources"] = Value::Null;
        },
        Metadata,
    );
    assert_eq!(change.unwrap().texts, []);
}

#[test]
fn field_of_a_newer_server_may_appear_and_not_change() {
    let newer = |value: &str| changed(|it| it["spec"]["future"] = value.into());
    let old = Template(template());
    assert!(Change::between(&old, &newer("a"), Metadata).is_ok());
    assert!(Change::between(&newer("a"), &old, Metadata).is_ok());
    let error = Change::between(&newer("a"), &newer("b"), Metadata).unwrap_err();
    assert_eq!(error.to_string(), "a field of a newer API server differs");
}

#[test]
fn request_follows_the_limit_that_alone_is_given() {
    let limited =
        |memory: &str| changed(|it| db(it)["resources"] = json!({"limits": {"memory": memory}}));
    let change = Change::between(&limited("1Gi"), &limited("2Gi"), Resources).unwrap();
    let name = ("containers", "db".into());
    let amounts = &change.amounts[&name];
    let names = [["requests", "memory"], ["limits", "memory"]];
    assert_eq!(
        amounts.resources(&names),
        json!({"requests": {"memory": "2Gi"}, "limits": {"memory": "2Gi"}})
    );
}

#[test]
fn other_changes_are_named() {
    for (expected, edit) in [
        (
            "spec.containers[0].image differs",
            (|it| db(it)["image"] = "db:2".into()) as fn(&mut Value),
        ),
        ("spec.containers[0].env[0].value differs", |it| {
            db(it)["env"][0]["value"] = "2".into();
        }),
        ("spec.containers differs", |it| {
            let list = it["spec"]["containers"].as_array_mut().unwrap();
            list.push(json!({"name": "more", "image": "m"}));
        }),
        (
            "spec.containers[0].resources.limits.example.com/disk differs",
            |it| {
                db(it)["resources"]["limits"]["example.com/disk"] = "2".into();
                db(it)["resources"]["requests"]["example.com/disk"] = "1".into();
            },
        ),
        (
            "spec.containers[0].resizePolicy[0].restartPolicy differs",
            |it| {
                db(it)["resizePolicy"][0]["restartPolicy"] = "RestartContainer".into();
            },
        ),
        ("metadata.finalizers differs", |it| {
            it["metadata"]["finalizers"] = json!(["a/b"]);
        }),
        ("only one revision has limits.cpu of container db", |it| {
            db(it)["resources"]["limits"]["cpu"] = "1".into();
        }),
        (
            "only one revision has limits.memory of container db",
            |it| {
                db(it)["resources"]["limits"]
                    .as_object_mut()
                    .unwrap()
                    .remove("memory");
            },
        ),
        (
            "only one revision has requests.cpu of container prepare",
            |it| {
                it["spec"]["initContainers"][0]["resources"] = json!({});
            },
        ),
    ] {
        assert_eq!(change(edit, Resources).unwrap_err(), expected);
    }
}

#[test]
fn container_that_restarts_for_the_resource_is_replaced() {
    let with = |cpu: &str, memory: &str| {
        changed(|it| {
            db(it)["resizePolicy"] =
                json!([{"resourceName": "memory", "restartPolicy": "RestartContainer"}]);
            db(it)["resources"]["requests"] = json!({"cpu": cpu, "memory": memory});
        })
    };
    let old = with("1", "1Gi");
    let error = Change::between(&old, &with("1", "2Gi"), Resources).unwrap_err();
    let expected = "container db restarts for a change of memory";
    assert_eq!(error.to_string(), expected);
    assert!(
        Change::between(&old, &with("2", "1Gi"), Resources)
            .unwrap()
            .resizes
    );
}

#[test]
fn resources_of_the_whole_pod_stay() {
    let with = |cpu: &str| {
        changed(|it| {
            it["spec"]["resources"] = json!({"requests": {"cpu": "2"}});
            db(it)["resources"]["requests"]["cpu"] = cpu.into();
        })
    };
    let error = Change::between(&with("1"), &with("2"), Resources).unwrap_err();
    assert_eq!(error, Reason::PodResources);
}

#[test]
fn template_is_read_from_a_whole_record_alone() {
    let set = builders::set("web").build();
    let revision = |data: &str| builders::revision(&set, "web-1", 1, data).build();
    let whole = revision(r#"{"spec":{"template":{"$patch":"replace","spec":{}}}}"#);
    assert_eq!(Template::of(&whole), Ok(Template(json!({"spec": {}}))));
    for data in [
        r#"{"spec":{"template":{"spec":{}}}}"#,
        r#"{"spec":{}}"#,
        "null",
        "[]",
    ] {
        assert!(Template::of(&revision(data)).is_err(), "{data}");
    }
}
