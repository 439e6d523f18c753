//! Control of what sets opt in to.

use serde_json::{Value, json};
use statefulset_client::feature_gates::FeatureGates;

use crate::stage::{SET, SETS, Stage, web, why};

/// A cluster with a complete set that has these annotations.
async fn opted(annotations: Value) -> Stage {
    let stage = Stage::with_opt_ins().await;
    let mut set = web(4);
    set["metadata"]["annotations"] = annotations;
    stage.create(SETS, &set).await;
    stage.pass(60).await;
    stage
}

/// Returns the images of the pods.
async fn images(stage: &Stage) -> Vec<String> {
    let pods = stage.get("/api/v1/namespaces/default/pods").await;
    let pods = pods["items"].as_array().expect("a list");
    let image = |pod: &Value| {
        pod["spec"]["containers"][0]["image"]
            .as_str()
            .map(str::to_owned)
    };
    pods.iter().filter_map(image).collect()
}

async fn conditions(stage: &Stage) -> Value {
    stage.get(SET).await["status"]["conditions"].clone()
}

async fn annotation(stage: &Stage, name: &str) -> Value {
    let set = stage.get(SET).await;
    set["metadata"]["annotations"][format!("statefulset-controller-manager/{name}")].clone()
}

#[tokio::test(start_paused = true)]
async fn rollout_pauses_goes_a_step_and_resumes() {
    let stage = opted(json!({})).await;
    stage.set_image("app:2").await;
    while !images(&stage).await.contains(&"app:2".to_owned()) {
        stage.pass(1).await;
    }
    let text = stage.sts("pause web --dry-run").await;
    assert!(
        text.starts_with("default/web\nthe controller would write nothing\n"),
        "{text}"
    );
    let line = "would write statefulset-controller-manager/paused=true \
                statefulset-controller-manager/rollout-to=ordinal=3\n";
    assert!(text.ends_with(line), "{text}");
    assert_eq!(annotation(&stage, "paused").await, Value::Null);

    let text = stage.sts("pause web").await;
    assert!(
        text.ends_with(&line.replace("would write", "wrote")),
        "{text}"
    );
    stage.pass(300).await;
    assert_eq!(images(&stage).await, ["app:1", "app:1", "app:1", "app:2"]);
    let answer = why(&stage).await;
    assert_eq!(answer["cause"], "paused", "{answer:#}");
    assert_eq!(
        answer["resolve"],
        json!(["kubectl sts resume web -n default"])
    );

    let text = stage.sts("step web").await;
    assert!(text.contains("delete pod web-2"), "{text}");
    assert!(!text.contains("delete pod web-1"), "{text}");
    assert!(text.contains("the rollout reached its limit"), "{text}");
    stage.pass(300).await;
    assert_eq!(images(&stage).await, ["app:1", "app:1", "app:2", "app:2"]);
    let answer = why(&stage).await;
    assert_eq!(answer["cause"], "rollout-limit", "{answer:#}");

    let text = stage.sts("resume web").await;
    assert!(text.contains("delete pod web-0"), "{text}");
    stage.pass(300).await;
    assert_eq!(images(&stage).await, ["app:2"; 4]);
    assert_eq!(annotation(&stage, "rollout-to").await, Value::Null);
    let text = stage.sts("resume web").await;
    let expected = "error: the rollout of StatefulSet web is neither paused nor limited\n";
    assert_eq!(text, expected);
}

#[tokio::test(start_paused = true)]
async fn plan_and_why_name_a_repair() {
    let repair = json!({"statefulset-controller-manager/repair": "delete"});
    let stage = opted(repair).await;
    let annotations = json!({"kubelet.test-control-plane/image-pull-failure": "{}"});
    let template = json!({"metadata": {"annotations": annotations}});
    stage
        .patch(SET, &json!({"spec": {"template": template}}))
        .await;
    stage.pass(120).await;
    let answer = why(&stage).await;
    assert_eq!(answer["cause"], "image-pull", "{answer:#}");
    let good = r#"{"spec":{"template":{"metadata":{"annotations":null}}}}"#;
    let plan = stage.sts(&format!("plan web --patch {good}")).await;
    assert!(plan.contains("delete pod web-3"), "{plan}");
    assert!(plan.contains("complete after"), "{plan}");

    let budget = json!({
        "metadata": {"name": "web"},
        "spec": {"minAvailable": 4, "selector": {"matchLabels": {"app": "web"}}},
    });
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    stage.create(budgets, &budget).await;
    let repair = json!({"statefulset-controller-manager/repair": "evict"});
    stage
        .patch(SET, &json!({"metadata": {"annotations": repair}}))
        .await;
    let metadata = json!({"annotations": null});
    let patch = json!({"spec": {"template": {"metadata": metadata}}});
    stage.patch(SET, &patch).await;
    stage.pass(60).await;
    let answer = why(&stage).await;
    assert_eq!(answer["cause"], "eviction-refused", "{answer:#}");
    let commands = json!(["kubectl -n default delete pod web-3"]);
    assert_eq!(answer["resolve"], commands);
    let text = answer["evidence"].to_string();
    assert!(text.contains("PodDisruptionBudget web"), "{answer:#}");
}

#[tokio::test(start_paused = true)]
async fn closed_gate_is_named() {
    let stage = opted(json!({"statefulset-controller-manager/removal-gate": "hold"})).await;
    let labels = json!({"metadata": {"labels": {"hold": "yes"}}});
    stage
        .patch("/api/v1/namespaces/default/pods/web-3", &labels)
        .await;
    stage.patch(SET, &json!({"spec": {"replicas": 3}})).await;
    stage.pass(60).await;
    let answer = why(&stage).await;
    assert_eq!(answer["cause"], "removal-gate", "{answer:#}");
    assert_eq!(
        answer["text"],
        "pod web-3 is not removed before its gate hold is lifted"
    );
    let labels = json!({"metadata": {"labels": {"hold": null}}});
    stage
        .patch("/api/v1/namespaces/default/pods/web-3", &labels)
        .await;
    stage.pass(60).await;
    assert_eq!(why(&stage).await["state"], "settled");
}

#[tokio::test(start_paused = true)]
async fn clean_removes_what_opt_ins_left() {
    let mut stage = opted(json!({
        "statefulset-controller-manager/conditions": "true",
        "statefulset-controller-manager/removal-gate": "hold",
        "other": "stays",
    }))
    .await;
    let kinds = conditions(&stage).await;
    let kinds = kinds.as_array().expect("the set has conditions");
    let kinds: Vec<_> = kinds.iter().map(|it| it["type"].clone()).collect();
    assert_eq!(
        kinds,
        ["Available", "Stalled", "Reconciling", "Progressing"]
    );
    let labels = json!({"metadata": {"labels": {"hold": "yes"}}});
    stage
        .patch("/api/v1/namespaces/default/pods/web-3", &labels)
        .await;
    stage.patch(SET, &json!({"spec": {"replicas": 3}})).await;
    stage.pass(60).await;

    stage.stop_controller();
    let text = stage.sts("clean").await;
    let expected = "note    StatefulSet web still opts in: a running controller writes its conditions \
                    again; add --annotations\n\
                    done    removed 4 conditions of StatefulSet web\n\
                    done    withdrew the request to remove pod web-3\n\
                    cleaned 1 StatefulSet\n";
    assert_eq!(text, expected);
    stage.start_controller_with(FeatureGates::default().with_opt_ins());
    stage.pass(60).await;
    assert_ne!(
        conditions(&stage).await,
        Value::Null,
        "the controller wrote them again"
    );
    let text = stage.sts("clean web --annotations").await;
    let begin = "done    removed 2 annotations of StatefulSet web\n";
    assert!(text.starts_with(begin), "{text}");
    stage.pass(60).await;
    assert_eq!(conditions(&stage).await, Value::Null);
    let set = stage.get(SET).await;
    assert_eq!(set["metadata"]["annotations"], json!({"other": "stays"}));
    let text = stage.sts("clean").await;
    assert_eq!(text, "cleaned 1 StatefulSet\n");
    let text = stage.sts("clean db").await;
    assert_eq!(
        text,
        "error: StatefulSet db doesn't exist in namespace default\n"
    );
}

/// Lets the controller resize pods, which the built-in controller's role doesn't.
async fn permit_resizes(stage: &Stage) {
    let group = "rbac.authorization.k8s.io";
    let path = |kind: &str| format!("/apis/{group}/v1/namespaces/default/{kind}");
    let rule = json!({"apiGroups": [""], "resources": ["pods/resize"], "verbs": ["patch"]});
    let role = json!({
        "apiVersion": format!("{group}/v1"), "kind": "Role",
        "metadata": {"name": "resizer"}, "rules": [rule],
    });
    stage.create(&path("roles"), &role).await;
    let account = json!({
        "kind": "ServiceAccount", "namespace": "kube-system", "name": "statefulset-controller",
    });
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "RoleBinding",
        "metadata": {"name": "resizer"}, "subjects": [account],
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "resizer"},
    });
    stage.create(&path("rolebindings"), &binding).await;
}

#[tokio::test(start_paused = true)]
async fn deferred_resize_is_evidence() {
    let stage = Stage::with_opt_ins().await;
    permit_resizes(&stage).await;
    let mut set = web(2);
    set["metadata"]["annotations"] =
        json!({"statefulset-controller-manager/in-place": "resources"});
    set["spec"]["template"]["metadata"]["annotations"] =
        json!({"kubelet.test-control-plane/resize": "deferred"});
    let container = |cpu: &str| json!([{"name": "app", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}]);
    set["spec"]["template"]["spec"]["containers"] = container("100m");
    stage.create(SETS, &set).await;
    stage.pass(60).await;
    let template = json!({"spec": {"containers": container("200m")}});
    stage
        .patch(SET, &json!({"spec": {"template": template}}))
        .await;
    stage.pass(30).await;
    let answer = why(&stage).await;
    assert_eq!(answer["cause"], "in-place-update", "{answer:#}");
    let evidence = "condition PodResizePending: Deferred: Node didn't have enough resource: cpu";
    assert_eq!(answer["evidence"], json!([evidence]), "{answer:#}");
    let limit = "the pod is replaced if that lasts longer than its time limit \
                 (statefulset-controller-manager/in-place-timeout)";
    assert_eq!(answer["caution"], limit);
}
