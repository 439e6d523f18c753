//! Tests of shadow mode as it is installed: it may only read.

use e2e::deploy::Chart;
use serde_json::{Value, json};

use super::{OVERLAYS, apply, build_with, kustomization, of_kind};

/// The component on each overlay, and the chart with its value.
fn installations() -> [Vec<Value>; 3] {
    let component =
        |overlay: &str| build_with(&kustomization(overlay), &kustomization("components/shadow"));
    let [first, second] = OVERLAYS.map(component);
    let chart = Chart::shipped().with(json!({"shadow": true}));
    [first, second, chart.render("default")]
}

#[test]
fn shadow_runs_alone_with_an_account_that_only_reads() {
    for objects in installations() {
        let deployment = of_kind(&objects, "Deployment");
        let pod = &deployment["spec"]["template"]["spec"];
        assert_eq!(deployment["spec"]["replicas"], 1);
        let arguments = pod["containers"][0]["args"].as_array().unwrap();
        let open = "--authorization-always-allow-paths=/healthz,/readyz,/livez,/shadow";
        for argument in ["--shadow", open] {
            assert!(arguments.contains(&json!(argument)), "{arguments:?}");
        }
        let subject = json!({
            "kind": "ServiceAccount", "name": pod["serviceAccountName"],
            "namespace": deployment["metadata"]["namespace"],
        });
        let role = of_kind(&objects, "ClusterRole");
        let bindings = objects.iter().filter(|it| it["subjects"][0] == subject);
        let mut roles: Vec<&Value> = bindings.map(|it| &it["roleRef"]["name"]).collect();
        roles.retain(|it| **it != role["metadata"]["name"]);
        let delegation = [
            "system:auth-delegator",
            "extension-apiserver-authentication-reader",
        ];
        assert_eq!(roles.len(), delegation.len(), "{roles:?}");
        for name in delegation {
            assert!(roles.contains(&&json!(name)), "{roles:?}");
        }
        for rule in role["rules"].as_array().unwrap() {
            for verb in rule["verbs"].as_array().unwrap() {
                assert!(["get", "list", "watch"].contains(&verb.as_str().unwrap()));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn embedded_api_server_accepts_the_shadow() {
    for objects in installations() {
        apply(&objects).await;
    }
}
