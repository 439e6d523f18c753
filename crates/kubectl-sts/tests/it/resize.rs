//! Growth of claims.

use serde_json::{Value, json};

use crate::kubectl::kubectl;
use crate::stage::{SET, SETS, Stage, web, why};

const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";

/// A cluster with a complete set whose claims have the class `growing`, which allows expansion,
/// `fixed`, which doesn't, `with-pod`, whose volumes need a restart of the pod, or `fails`.
async fn with_class(class: &str) -> Stage {
    let stage = Stage::with_opt_ins().await;
    for name in ["growing", "fixed", "with-pod", "fails"] {
        let parameters = match name {
            "growing" | "fixed" => json!({}),
            expansion => json!({"expansion": expansion}),
        };
        let class = json!({
            "metadata": {"name": name}, "provisioner": "example.com/p",
            "allowVolumeExpansion": name != "fixed", "parameters": parameters,
        });
        stage
            .create("/apis/storage.k8s.io/v1/storageclasses", &class)
            .await;
    }
    let mut set = web(2);
    set["spec"]["volumeClaimTemplates"][0]["spec"]["storageClassName"] = class.into();
    stage.create(SETS, &set).await;
    stage.pass(60).await;
    stage
}

async fn sizes(stage: &Stage) -> Vec<Value> {
    let list = stage.get(CLAIMS).await;
    let claims = list["items"].as_array().expect("a list").iter();
    let size = |claim: &Value| claim["spec"]["resources"]["requests"]["storage"].clone();
    claims.map(size).collect()
}

#[tokio::test(start_paused = true)]
async fn claims_grow_one_after_the_other() {
    let stage = with_class("growing").await;
    let text = stage.sts("resize web data=2Gi --dry-run").await;
    let plan = "CLAIM       REQUEST  CAPACITY  WANTED  CLASS    STATE\n\
                data-web-1  1Gi      1Gi       2Gi     growing  it is to grow\n\
                data-web-0  1Gi      1Gi       2Gi     growing  it is to grow\n";
    assert_eq!(text, format!("{plan}nothing was written\n"));
    assert_eq!(sizes(&stage).await, ["1Gi", "1Gi"]);

    let text = stage.sts("resize web data=2Gi").await;
    assert!(text.starts_with(plan), "{text}");
    assert!(
        text.contains("wrote statefulset-controller-manager/claim-size=data=2Gi\n"),
        "{text}"
    );
    assert!(text.ends_with("2 claims have the size\n"), "{text}");
    assert_eq!(sizes(&stage).await, ["2Gi", "2Gi"]);
    stage.pass(5).await;
    assert_eq!(why(&stage).await["state"], "settled");
    let set = stage.get(SET).await;
    let condition = &set["status"]["conditions"][0];
    assert_eq!(condition["type"], "ClaimsResized");
    assert_eq!(condition["status"], "True");
}

#[tokio::test(start_paused = true)]
async fn class_that_forbids_growth_is_named() {
    let stage = with_class("fixed").await;
    let text = stage.sts("resize web data=2Gi").await;
    assert!(
        text.contains("fixed  the storage class forbids expansion\n"),
        "{text}"
    );
    assert!(text.contains("\nClassForbids: 0 of 2 claims"), "{text}");
    assert_eq!(sizes(&stage).await, ["1Gi", "1Gi"]);
    let answer = why(&stage).await;
    assert_eq!(answer["cause"], "claim-growth", "{answer:#}");
    assert_eq!(answer["state"], "stuck");
    let list = stage.sts("why").await;
    assert!(list.contains("claim-growth"), "{list}");
}

#[tokio::test(start_paused = true)]
async fn restart_that_volumes_need_is_advised() {
    let stage = with_class("with-pod").await;
    stage.sts("resize web data=2Gi").await;
    let answer = why(&stage).await;
    assert_eq!(answer["cause"], "claim-growth", "{answer:#}");
    let command = "restart the pods of these claims, or let the controller do it: \
                   kubectl sts resize web data=2Gi --with-pod -n default";
    assert_eq!(answer["caution"], command);

    let strategy = json!({"type": "OnDelete", "rollingUpdate": null});
    let patch = json!({"spec": {"updateStrategy": strategy}});
    stage.patch(SET, &patch).await;
    stage.pass(5).await;
    let text = stage.sts("resize web data=2Gi --with-pod").await;
    assert!(!text.contains("when the controller has"), "{text}");
    assert!(text.contains("\nAwaitsPodRestart: 0 of 2"), "{text}");
    let answer = why(&stage).await;
    assert_eq!(
        answer["caution"],
        "restart the pods of these claims one by one"
    );
}

#[tokio::test(start_paused = true)]
async fn restarts_by_the_controller_are_planned_and_told() {
    let stage = with_class("with-pod").await;
    stage.sts("resize web data=2Gi").await;
    let text = stage.sts("resize web data=2Gi --with-pod").await;
    let carrier = "statefulset-controller-manager";
    let begin = format!(
        "CLAIM       REQUEST  CAPACITY  WANTED  CLASS     STATE\n\
         data-web-1  2Gi      1Gi       2Gi     with-pod  the file system grows when the controller \
         has restarted the pod\n\
         data-web-0  2Gi      1Gi       2Gi     with-pod  the file system grows when the controller \
         has restarted the pod\n\
         wrote {carrier}/claim-resize=with-pod\n\
         wrote {carrier}/claim-size=data=2Gi\n\
         claim data-web-1: it has the size\n"
    );
    assert!(text.starts_with(&begin), "{text}");
    assert!(text.ends_with("2 claims have the size\n"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn provider_that_tries_again_is_waited_for() {
    let stage = with_class("fails").await;
    let text = stage.sts("resize web data=2Gi --timeout 5m").await;
    let end = "0 of 2 claims have the size at the time limit; ProviderError: 0 of 2 claims";
    assert!(text.contains(end), "{text}");
    assert!(text.ends_with("exit code 3\n"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn provider_of_storage_is_quoted() {
    let stage = with_class("fails").await;
    stage.sts("resize web data=2Gi").await;
    let failed = json!({
        "type": "ControllerResizeError", "status": "True", "message": "no space in the pool",
    });
    let claim = format!("{CLAIMS}/data-web-1/status");
    let status = json!({"status": {"conditions": [failed]}});
    stage.patch(&claim, &status).await;
    stage.pass(5).await;
    let answer = why(&stage).await;
    let evidence = "claim data-web-1: ControllerResizeError: no space in the pool";
    assert_eq!(answer["evidence"], json!([evidence]), "{answer:#}");
}

#[tokio::test(start_paused = true)]
async fn unusable_size_is_evidence() {
    let stage = with_class("growing").await;
    let annotations = json!({"statefulset-controller-manager/claim-size": "data=big"});
    let patch = json!({"metadata": {"annotations": annotations}});
    stage.patch(SET, &patch).await;
    stage.pass(5).await;
    let text = stage.sts("why web").await;
    let evidence = "  evidence  condition OptInsValid: statefulset-controller-manager/claim-size";
    assert!(text.contains(evidence), "{text}");
}

#[tokio::test(start_paused = true)]
async fn unusable_sizes_write_nothing() {
    let stage = with_class("growing").await;
    for (sizes, expected) in [
        (
            "logs=2Gi",
            "StatefulSet web has no claim template logs; it has data",
        ),
        (
            "data=1Mi",
            "the claim template data of StatefulSet web has 1Gi, more than 1Mi",
        ),
    ] {
        let text = stage.sts(&format!("resize web {sizes}")).await;
        assert!(text.contains(&format!("error: {expected}")), "{text}");
    }
    stage.sts("resize web data=3Gi").await;
    let text = stage.sts("resize web data=2Gi").await;
    let expected = "error: claim data-web-1 requests 3Gi, more than 2Gi, and claims never shrink\n";
    assert!(text.ends_with(expected), "{text}");
    let set = stage.get(SET).await;
    let size = &set["metadata"]["annotations"]["statefulset-controller-manager/claim-size"];
    assert_eq!(size, "data=3Gi");
}

#[tokio::test(start_paused = true)]
async fn smaller_size_than_that_of_claims_is_taken_back_by_a_command() {
    let stage = with_class("growing").await;
    stage.sts("resize web data=3Gi").await;
    let annotations = json!({"statefulset-controller-manager/claim-size": "data=2Gi"});
    stage
        .patch(SET, &json!({"metadata": {"annotations": annotations}}))
        .await;
    stage.pass(5).await;
    let answer = why(&stage).await;
    let caution = "claims never shrink, so the command lets the other claims of the template grow, \
                   for good";
    assert_eq!(answer["caution"], caution, "{answer:#}");
    let command = answer["resolve"][0].as_str().expect("a command");
    kubectl(&stage, command).await;
    stage.pass(5).await;
    assert_eq!(why(&stage).await["cause"], "settled");
    let set = stage.get(SET).await;
    let size = &set["metadata"]["annotations"]["statefulset-controller-manager/claim-size"];
    assert_eq!(size, "data=3Gi");
}

#[tokio::test(start_paused = true)]
async fn controller_that_left_a_growth_is_missed() {
    let mut stage = with_class("growing").await;
    stage.stop_controller();
    let growing = json!({
        "type": "ClaimsResized", "status": "False", "reason": "Queued",
        "lastTransitionTime": "2026-03-01T12:01:00Z",
        "message": "1 of 2 claims have the size that the set asks for",
    });
    let status = json!({"status": {"conditions": [growing]}});
    stage.patch(&format!("{SET}/status"), &status).await;
    stage.pass(60).await;
    assert_eq!(why(&stage).await["cause"], "claim-growth");
    let renewed = stage.now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
    // The built-in controller may be off although its program has its lease.
    for (name, seconds) in [
        ("statefulset-controller-manager", 15),
        ("kube-controller-manager", 600),
    ] {
        let lease = json!({
            "metadata": {"name": name},
            "spec": {"holderIdentity": "host_1", "leaseDurationSeconds": seconds,
                "renewTime": renewed},
        });
        stage.create(leases, &lease).await;
    }
    assert_eq!(why(&stage).await["cause"], "claim-growth");
    stage.pass(60).await;
    let answer = why(&stage).await;
    assert_eq!(answer["cause"], "no-controller", "{answer:#}");
    let line = "lease statefulset-controller-manager has no holder";
    assert!(answer["evidence"].to_string().contains(line), "{answer:#}");
}

#[tokio::test(start_paused = true)]
async fn silence_of_the_controller_is_told() {
    let mut stage = with_class("growing").await;
    stage.stop_controller();
    let text = stage.sts("resize web data=2Gi --timeout 30s").await;
    let question = "the controller reports nothing: does it run with the feature gate \
                    StatefulSetClaimGrowth?\n";
    assert!(text.contains(question), "{text}");
    assert!(
        text.ends_with("0 of 2 claims have the size at the time limit\nexit code 3\n"),
        "{text}"
    );
}
