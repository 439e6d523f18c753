//! Tests of the component for shadow mode: it may only read.

use serde_json::{Value, json};

use super::{OVERLAYS, apply, build_with, kustomization, of_kind};

const ACCOUNT: &str = "statefulset-controller-shadow";

fn shadowed(overlay: &str) -> Vec<Value> {
    build_with(&kustomization(overlay), &kustomization("components/shadow"))
}

#[test]
fn shadow_runs_alone_with_an_account_that_only_reads() {
    for overlay in OVERLAYS {
        let objects = shadowed(overlay);
        let deployment = of_kind(&objects, "Deployment");
        let pod = &deployment["spec"]["template"]["spec"];
        assert_eq!(deployment["spec"]["replicas"], 1);
        assert_eq!(pod["serviceAccountName"], ACCOUNT);
        let arguments = pod["containers"][0]["args"].as_array().unwrap();
        assert!(arguments.contains(&json!("--shadow")), "{arguments:?}");
        let subject = json!({
            "kind": "ServiceAccount", "name": ACCOUNT,
            "namespace": deployment["metadata"]["namespace"],
        });
        let bindings = objects.iter().filter(|it| it["subjects"][0] == subject);
        let mut roles: Vec<&str> = bindings
            .map(|it| it["roleRef"]["name"].as_str().unwrap())
            .collect();
        roles.sort_unstable();
        let delegation = [
            "extension-apiserver-authentication-reader",
            ACCOUNT,
            "system:auth-delegator",
        ];
        assert_eq!(roles, delegation);
        let role = of_kind(&objects, "ClusterRole");
        for rule in role["rules"].as_array().unwrap() {
            for verb in rule["verbs"].as_array().unwrap() {
                assert!(["get", "list", "watch"].contains(&verb.as_str().unwrap()));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn embedded_api_server_accepts_the_shadow() {
    for overlay in OVERLAYS {
        apply(&shadowed(overlay)).await;
    }
}
