//! Tests of the defaults against the API's documented values, and of malformed objects.

#![expect(
    clippy::needless_pass_by_value,
    reason = "literals read better without a borrow"
)]

use serde_json::Value;
use serde_json::json;

use super::*;

fn defaulted(mut value: Value, set_defaults: impl Fn(&mut Value)) -> Value {
    set_defaults(&mut value);
    let once = value.clone();
    set_defaults(&mut value);
    assert_eq!(value, once);
    once
}

fn template_spec(spec: Value) -> Value {
    defaulted(json!({ "spec": spec }), set_pod_template_defaults)["spec"].take()
}

fn container(container: Value) -> Value {
    template_spec(json!({ "containers": [container] }))["containers"][0].take()
}

fn volume(volume: Value) -> Value {
    template_spec(json!({ "volumes": [volume] }))["volumes"][0].take()
}

fn bare_set(spec: Value, max_unavailable_gate: bool) -> Value {
    let set_defaults = |set: &mut Value| set_stateful_set_defaults(set, max_unavailable_gate);
    defaulted(json!({ "spec": spec }), set_defaults)["spec"].take()
}

#[test]
fn empty_template_gets_pod_spec_defaults() {
    let expected = json!({
        "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "securityContext": {},
        "terminationGracePeriodSeconds": 30, "schedulerName": "default-scheduler",
    });
    assert_eq!(template_spec(json!({})), expected);
    assert_eq!(template_spec(Value::Null), expected);
    assert_eq!(
        defaulted(json!({}), set_pod_template_defaults),
        json!({ "spec": expected })
    );
    let zero = json!({
        "dnsPolicy": "", "restartPolicy": null, "securityContext": null, "schedulerName": "",
        "terminationGracePeriodSeconds": null,
    });
    assert_eq!(template_spec(zero), expected);
    let kept = template_spec(json!({"terminationGracePeriodSeconds": 0, "dnsPolicy": "None"}));
    assert_eq!(kept["terminationGracePeriodSeconds"], 0);
    assert_eq!(kept["dnsPolicy"], "None");
}

#[test]
fn every_kind_of_container_gets_defaults() {
    let expected = json!({
        "name": "c", "image": "web:1", "imagePullPolicy": "IfNotPresent",
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
    });
    for sort in ["containers", "initContainers", "ephemeralContainers"] {
        let spec = template_spec(json!({ sort: [{"name": "c", "image": "web:1"}] }));
        assert_eq!(spec[sort], json!([expected]));
    }
    assert_eq!(
        container(json!({"image": "web"}))["imagePullPolicy"],
        "Always"
    );
    assert_eq!(container(json!({}))["imagePullPolicy"], "IfNotPresent");
}

#[test]
fn container_parts_get_defaults() {
    let value = container(json!({
        "ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}],
        "env": [
            {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "B", "valueFrom": {"fileKeyRef": {"key": "k"}}},
        ],
        "resources": {"limits": {"cpu": "0.0001", "memory": 1024}, "requests": {"cpu": "1.5"}},
        "livenessProbe": {"httpGet": {"port": 80}, "grpc": {"port": 1}},
        "readinessProbe": {"timeoutSeconds": 5, "grpc": {"port": 1, "service": "s"}},
        "startupProbe": {},
        "lifecycle": {
            "postStart": {"httpGet": {"port": 1, "path": "/x"}}, "preStop": {"exec": {}},
        },
    }));
    assert_eq!(
        value["ports"][0],
        json!({"containerPort": 80, "protocol": "TCP"})
    );
    assert_eq!(value["ports"][1]["protocol"], "UDP");
    assert_eq!(value["env"][0]["valueFrom"]["fieldRef"]["apiVersion"], "v1");
    assert_eq!(
        value["env"][1]["valueFrom"]["fileKeyRef"]["optional"],
        false
    );
    let expected = json!({"limits": {"cpu": "1m", "memory": "1024"}, "requests": {"cpu": "1500m"}});
    assert_eq!(value["resources"], expected);
    let startup = json!({
        "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3,
    });
    assert_eq!(value["startupProbe"], startup);
    let get = json!({"port": 80, "path": "/", "scheme": "HTTP"});
    assert_eq!(value["livenessProbe"]["httpGet"], get);
    assert_eq!(
        value["livenessProbe"]["grpc"],
        json!({"port": 1, "service": ""})
    );
    assert_eq!(value["readinessProbe"]["timeoutSeconds"], 5);
    assert_eq!(value["readinessProbe"]["grpc"]["service"], "s");
    let get = json!({"port": 1, "path": "/x", "scheme": "HTTP"});
    assert_eq!(value["lifecycle"]["postStart"]["httpGet"], get);
    assert_eq!(value["lifecycle"]["preStop"], json!({"exec": {}}));
}

#[test]
fn volumes_get_defaults_of_their_source() {
    for (source, expected) in [
        (json!({}), json!({"emptyDir": {}})),
        (json!({"emptyDir": null}), json!({"emptyDir": {}})),
        (json!({"newSource": {}}), json!({"newSource": {}})),
        (
            json!({"secret": {}}),
            json!({"secret": {"defaultMode": 420}}),
        ),
        (
            json!({"configMap": {"defaultMode": 0}}),
            json!({"configMap": {"defaultMode": 0}}),
        ),
        (
            json!({"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "f"}}]}}),
            json!({"downwardAPI": {"defaultMode": 420, "items": [
                {"path": "p", "fieldRef": {"fieldPath": "f", "apiVersion": "v1"}},
            ]}}),
        ),
        (
            json!({"projected": {"sources": [
                {"serviceAccountToken": {"path": "t"}},
                {"downwardAPI": {"items": [{"path": "p", "fieldRef": {}}]}},
            ]}}),
            json!({"projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}},
                {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"apiVersion": "v1"}}]}},
            ]}}),
        ),
        (
            json!({"hostPath": {"path": "/"}}),
            json!({"hostPath": {"path": "/", "type": ""}}),
        ),
        (
            json!({"image": {"reference": "x"}}),
            json!({"image": {"reference": "x", "pullPolicy": "Always"}}),
        ),
        (
            json!({"iscsi": {}}),
            json!({"iscsi": {"iscsiInterface": "default"}}),
        ),
        (
            json!({"rbd": {}}),
            json!({"rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"}}),
        ),
        (
            json!({"azureDisk": {"fsType": ""}}),
            json!({"azureDisk": {
                "cachingMode": "ReadWrite", "kind": "Shared", "fsType": "", "readOnly": false,
            }}),
        ),
        (
            json!({"scaleIO": {"fsType": ""}}),
            json!({"scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"}}),
        ),
        (
            json!({"ephemeral": {"volumeClaimTemplate": {
                "spec": {"resources": {"requests": {"storage": "0.1Gi"}}},
            }}}),
            json!({"ephemeral": {"volumeClaimTemplate": {"spec": {
                "resources": {"requests": {"storage": "107374182400m"}}, "volumeMode": "Filesystem",
            }}}}),
        ),
    ] {
        assert_eq!(volume(source), expected);
    }
}

#[test]
fn pod_gets_defaults_beyond_the_template() {
    let pod = json!({"spec": {
        "hostNetwork": true,
        "containers": [{
            "ports": [{"containerPort": 80}, {"containerPort": 81, "hostPort": 82}],
            "resources": {"limits": {"cpu": "2", "memory": "1u"}, "requests": {"cpu": "1"}},
        }],
        "initContainers": [{"resources": {"limits": {"cpu": "1"}, "requests": null}}],
        "overhead": {"cpu": "1u"},
        "resources": {"limits": {"cpu": "1u"}},
    }});
    let pod = defaulted(pod, set_pod_defaults);
    let spec = &pod["spec"];
    assert_eq!(spec["enableServiceLinks"], true);
    assert_eq!(spec["containers"][0]["ports"][0]["hostPort"], 80);
    assert_eq!(spec["containers"][0]["ports"][1]["hostPort"], 82);
    assert_eq!(
        spec["containers"][0]["resources"],
        json!({"limits": {"cpu": "2", "memory": "1m"}, "requests": {"cpu": "1", "memory": "1m"}})
    );
    assert_eq!(
        spec["initContainers"][0]["resources"]["requests"],
        json!({"cpu": "1"})
    );
    assert_eq!(spec["overhead"], json!({"cpu": "1m"}));
    assert_eq!(spec["resources"], json!({"limits": {"cpu": "1m"}}));
    assert_eq!(spec["restartPolicy"], "Always");

    let template = template_spec(json!({"hostNetwork": true, "containers": [{
        "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "2"}},
    }]}));
    assert_eq!(template.get("enableServiceLinks"), None);
    assert_eq!(template["containers"][0]["ports"][0].get("hostPort"), None);
    assert_eq!(
        template["containers"][0]["resources"],
        json!({"limits": {"cpu": "2"}})
    );
}

#[test]
fn set_gets_defaults_including_templates() {
    let spec = bare_set(
        json!({"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}),
        false,
    );
    let retention = json!({"whenDeleted": "Retain", "whenScaled": "Retain"});
    assert_eq!(spec["podManagementPolicy"], "OrderedReady");
    assert_eq!(
        spec["updateStrategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})
    );
    assert_eq!(spec["persistentVolumeClaimRetentionPolicy"], retention);
    assert_eq!(
        (&spec["replicas"], &spec["revisionHistoryLimit"]),
        (&json!(1), &json!(10))
    );
    assert_eq!(spec["template"]["spec"]["dnsPolicy"], "ClusterFirst");
    assert_eq!(
        spec["volumeClaimTemplates"][0],
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
            "spec": {"volumeMode": "Filesystem"}, "status": {"phase": "Pending"},
        })
    );
    let kept = bare_set(json!({"replicas": 0, "revisionHistoryLimit": 0}), false);
    assert_eq!(
        (&kept["replicas"], &kept["revisionHistoryLimit"]),
        (&json!(0), &json!(0))
    );
}

#[test]
fn explicit_strategy_gets_no_defaults() {
    let strategy = |strategy: Value, gate| {
        bare_set(json!({"updateStrategy": strategy}), gate)["updateStrategy"].take()
    };
    let rolling = json!({"type": "RollingUpdate"});
    assert_eq!(strategy(rolling.clone(), true), rolling);
    let on_delete = json!({"type": "OnDelete"});
    assert_eq!(strategy(on_delete.clone(), true), on_delete);
    assert_eq!(
        strategy(json!({"rollingUpdate": {"partition": 3}}), true),
        json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 3, "maxUnavailable": 1}})
    );
}

#[test]
fn claim_gets_volume_mode_and_phase() {
    let claim = json!({
        "spec": {"resources": {"requests": {"storage": "1024Mi"}}},
        "status": {"phase": "Bound", "capacity": {"storage": "1u"}},
    });
    let expected = json!({
        "spec": {"resources": {"requests": {"storage": "1Gi"}}, "volumeMode": "Filesystem"},
        "status": {"phase": "Bound", "capacity": {"storage": "1m"}},
    });
    assert_eq!(defaulted(claim, set_claim_defaults), expected);
}

#[test]
fn malformed_objects_stay_unchanged() {
    for value in [
        json!(null),
        json!(1),
        json!("x"),
        json!([]),
        json!({"spec": []}),
    ] {
        for set_defaults in [
            set_pod_template_defaults,
            set_pod_defaults,
            set_claim_spec_only,
        ] {
            assert_eq!(defaulted(value.clone(), set_defaults), value);
        }
        assert_eq!(
            defaulted(value.clone(), |set| set_stateful_set_defaults(set, true)),
            value
        );
    }
    let spec = json!({
        "containers": [1, null, {"ports": 1, "env": [{"valueFrom": []}], "livenessProbe": true,
            "resources": {"limits": {"cpu": "x", "memory": null, "pods": {}}, "requests": 1}}],
        "volumes": {"a": 1}, "initContainers": "x", "overhead": [1], "resources": 7,
        "dnsPolicy": 5, "securityContext": "x",
    });
    let pod = defaulted(json!({ "spec": spec }), set_pod_defaults);
    assert_eq!(
        pod["spec"]["containers"][2]["resources"],
        spec["containers"][2]["resources"]
    );
    assert_eq!(pod["spec"]["dnsPolicy"], 5);
    assert_eq!(pod["spec"]["volumes"], spec["volumes"]);
    let spec = json!({
        "template": [], "updateStrategy": 1, "volumeClaimTemplates": [1],
        "persistentVolumeClaimRetentionPolicy": "x",
    });
    let set = bare_set(spec.clone(), true);
    for (name, value) in spec.as_object().unwrap() {
        assert_eq!(set[name], *value);
    }
}

/// Sets the defaults of a claim that has a spec; leaves any other unchanged.
fn set_claim_spec_only(claim: &mut Value) {
    if claim.get("spec").is_none() {
        set_claim_defaults(claim);
    }
}
