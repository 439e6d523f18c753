//! Tests of the opt-ins as they are installed, and of the health check for Argo CD.

use e2e::deploy::Chart;
use mlua::{Lua, LuaSerdeExt as _};
use serde_json::{Value, json};
use statefulset_client::feature_gates::FeatureGates;

use super::{OVERLAYS, apply, build_with, kustomization, of_kind};

/// The component on each overlay, and the chart with its value.
fn installations() -> Vec<Vec<Value>> {
    let component = |overlay: &str| {
        build_with(
            &kustomization(overlay),
            &kustomization("components/opt-ins"),
        )
    };
    let chart = || Chart::shipped().with(json!({"optIns": {"enabled": true}}));
    let named = chart().with(json!({"name": "mine", "serviceAccount": {"name": "own"}}));
    let mut all: Vec<Vec<Value>> = OVERLAYS.map(component).into();
    all.extend([chart().render("default"), named.render("default")]);
    all
}

#[test]
fn installed_gates_are_those_of_all_opt_ins() {
    for objects in installations() {
        let pod = &of_kind(&objects, "Deployment")["spec"]["template"]["spec"];
        let arguments = pod["containers"][0]["args"].as_array().unwrap();
        let arguments = arguments.iter().filter_map(Value::as_str);
        let mut gates = arguments.filter_map(|it| it.strip_prefix("--feature-gates="));
        let version = FeatureGates::default().emulation_version;
        let gates = FeatureGates::parse(gates.next().unwrap(), version).unwrap();
        assert_eq!(gates, FeatureGates::default().with_opt_ins());
    }
}

#[tokio::test(start_paused = true)]
async fn account_may_evict_and_resize_pods() {
    for objects in installations() {
        let is_role = |it: &&Value| {
            let name = it["metadata"]["name"].as_str().unwrap();
            it["kind"] == "ClusterRole" && name.ends_with(":opt-ins")
        };
        let role = objects.iter().find(is_role).unwrap();
        let rules = json!([
            {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
            {"apiGroups": [""], "resources": ["pods/resize"], "verbs": ["patch"]},
        ]);
        assert_eq!(role["rules"], rules);
        let name = &role["metadata"]["name"];
        let binding = objects.iter().find(|it| it["roleRef"]["name"] == *name);
        let subject = &binding.unwrap()["subjects"][0];
        let deployment = of_kind(&objects, "Deployment");
        let pod = &deployment["spec"]["template"]["spec"];
        assert_eq!(subject["name"], pod["serviceAccountName"]);
        assert_eq!(subject["namespace"], deployment["metadata"]["namespace"]);
        apply(&objects).await;
    }
}

/// Runs the health check as Argo CD does, and returns the status and its message.
fn health(set: &Value) -> (String, String) {
    let script = include_str!("../../../../crates/controller-manager/deploy/argo-cd/health.lua");
    let lua = Lua::new();
    lua.globals()
        .set("obj", lua.to_value(set).unwrap())
        .unwrap();
    let health: mlua::Table = lua.load(script).eval().unwrap();
    (
        health.get("status").unwrap(),
        health.get("message").unwrap(),
    )
}

/// A set of three pods, with these numbers of updated and ready ones, and conditions.
fn set(updated: i32, ready: i32, conditions: &Value) -> Value {
    let current = if updated == 3 { "web-2" } else { "web-1" };
    json!({
        "metadata": {"generation": 2},
        "spec": {"replicas": 3, "updateStrategy": {"type": "RollingUpdate"}},
        "status": {
            "observedGeneration": 2, "replicas": 3,
            "updatedReplicas": updated, "readyReplicas": ready,
            "currentRevision": current, "updateRevision": "web-2",
            "conditions": conditions,
        },
    })
}

#[test]
fn argo_cd_sees_stalled_and_paused_sets() {
    let condition = |kind: &str, status: &str, reason: &str| json!({"type": kind, "status": status, "reason": reason, "message": "told"});
    let none = json!([]);
    let stalled = json!([
        condition("Available", "False", "PodsUnavailable"),
        condition("Stalled", "True", "ImagePull"),
        condition("Reconciling", "False", "ImagePull"),
        condition("Progressing", "False", "ImagePull"),
    ]);
    let working = json!([
        condition("Stalled", "False", "InProgress"),
        condition("Reconciling", "True", "InProgress"),
        condition("Progressing", "True", "InProgress"),
    ]);
    let held = |reason: &str| json!([condition("Progressing", "Unknown", reason)]);
    for (set, status, message) in [
        (set(1, 2, &stalled), "Degraded", "told"),
        (set(3, 3, &working), "Progressing", "told"),
        (set(1, 3, &held("Paused")), "Suspended", "told"),
        (set(1, 3, &held("RolloutLimit")), "Suspended", "told"),
        (set(1, 3, &none), "Progressing", "1 of 3 pods are updated"),
        (set(3, 2, &none), "Progressing", "2 of 3 pods are ready"),
        (set(3, 3, &none), "Healthy", "3 pods are ready"),
    ] {
        let expected = (status.to_owned(), message.to_owned());
        assert_eq!(health(&set), expected, "{set:#}");
    }
    let mut unseen = set(3, 3, &none);
    unseen["metadata"]["generation"] = json!(3);
    assert_eq!(health(&unseen).0, "Progressing");
    let mut below = set(1, 3, &held("Partition"));
    below["spec"]["updateStrategy"]["rollingUpdate"] = json!({"partition": 2});
    assert_eq!(health(&below).0, "Healthy");
    let mut on_delete = set(1, 3, &held("OnDelete"));
    on_delete["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
    assert_eq!(health(&on_delete).0, "Healthy");
}
