//! Values that clients rarely send: empty terms and texts, signs, second errors of one value.

use http::Method;
use kube_test_control_plane::TestControlPlane;
use serde_json::{Value, json};

use crate::support::{Plane, exchange};

const PODS: &str = "/api/v1/namespaces/default/pods";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

async fn plane() -> Plane {
    Plane::new(TestControlPlane::builder().start().await)
}

fn pod(spec: &Value) -> Value {
    let mut pod = json!({"metadata": {"name": "x"}, "spec": spec});
    if pod["spec"].get("containers").is_none() {
        pod["spec"]["containers"] = json!([{"name": "c", "image": "i"}]);
    }
    pod
}

fn deployment_with(max_unavailable: &str) -> Value {
    let labels = json!({"app": "x"});
    json!({"metadata": {"name": "x"}, "spec": {
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
        "strategy": {"rollingUpdate": {"maxUnavailable": max_unavailable, "maxSurge": 0}},
    }})
}

/// Creates the objects, each of which is refused with errors that start like these.
async fn refuse(cases: Vec<(&str, Value, Vec<String>)>) {
    let plane = plane().await;
    for (path, object, starts) in cases {
        let found = plane.refused(Method::POST, path, &object).await;
        assert_eq!(found.len(), starts.len(), "{found:#?}");
        for (found, start) in found.iter().zip(&starts) {
            assert!(found.starts_with(start), "{found}\n{start}");
        }
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn each_error_of_a_value_is_told() {
    let percent = "must be a numeric string followed by an ending '%'";
    let duplicate = "allowedTopologies[0].matchLabelExpressions: Duplicate value: \"\"";
    let cost = "controller.kubernetes.io/pod-deletion-cost";
    let mut costly = pod(&json!({}));
    costly["metadata"]["annotations"] = json!({(cost): ""});
    refuse(vec![
        (
            "/apis/storage.k8s.io/v1/storageclasses",
            json!({"metadata": {"name": "x"}, "provisioner": "p", "allowedTopologies": [{}]}),
            vec![duplicate.to_owned()],
        ),
        (
            "/api/v1/namespaces/default/secrets",
            json!({
                "metadata": {"name": "x"}, "type": "kubernetes.io/ssh-auth",
                "data": {"ssh-privatekey": ""},
            }),
            vec!["data[ssh-privatekey]: Required value".to_owned()],
        ),
        (
            "/apis/apps/v1/namespaces/default/deployments",
            deployment_with("-5%"),
            vec![
                format!(
                    "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"-5%\": a valid \
                     percent string {percent}"
                ),
                "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"-5%\": may not be 0 \
                 when `maxSurge` is 0"
                    .to_owned(),
            ],
        ),
        (
            PODS,
            costly,
            vec![format!(
                "metadata.annotations[{cost}]: Invalid value: \"\": must be a 32bit integer"
            )],
        ),
        (
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            json!({"metadata": {"name": "system-node-critical"}, "value": 5}),
            vec![
                "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved \
                 for system use only. error: value of system-node-critical PriorityClass must be \
                 2000001000"
                    .to_owned(),
            ],
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
            json!({
                "metadata": {"name": "x"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
                "subjects": [{"kind": "ServiceAccount", "name": "A", "apiGroup": "b"}],
            }),
            vec![
                "subjects[0].name: Invalid value: \"A\"".to_owned(),
                "subjects[0].apiGroup: Unsupported value: \"b\"".to_owned(),
            ],
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            json!({"metadata": {"name": "x"}, "aggregationRule": {}}),
            vec![
                "aggregationRule.clusterRoleSelectors: Required value: at least one \
                 clusterRoleSelector required if aggregationRule is non-nil"
                    .to_owned(),
            ],
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            json!({"metadata": {"name": "x"}, "aggregationRule": {"clusterRoleSelectors": [
                {"matchExpressions": [{"key": "a", "operator": "Like"}]},
            ]}}),
            vec![
                "aggregationRule.clusterRoleSelectors[0].matchExpressions[0].operator: Invalid \
                 value: \"Like\": not a valid selector operator"
                    .to_owned(),
                "aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label \
                 selector."
                    .to_owned(),
            ],
        ),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn each_error_of_a_container_is_told() {
    refuse(vec![
        (
            PODS,
            pod(&json!({"initContainers": [{"image": "i"}, {"image": "i"}]})),
            vec![
                "spec.initContainers[0].name: Required value".to_owned(),
                "spec.initContainers[1].name: Required value".to_owned(),
            ],
        ),
        (
            PODS,
            pod(&json!({
                "resourceClaims": [{"name": "a", "resourceClaimName": "a"}],
                "containers": [{"name": "c", "image": "i", "resources": {
                    "claims": [{"name": "a", "request": "B"}, {"name": "a", "request": "B"}],
                }}],
            })),
            vec![
                "spec.containers[0].resources.claims[0].request: Invalid value: \"B\"".to_owned(),
                "spec.containers[0].resources.claims[1].request: Invalid value: \"B\"".to_owned(),
                "spec.containers[0].resources.claims[1]: Duplicate value: \"a/B\"".to_owned(),
            ],
        ),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn conditions_of_failure_policies_have_a_default_status() {
    let plane = plane().await;
    let job = json!({"metadata": {"name": "x"}, "spec": {
        "podFailurePolicy": {"rules": [{
            "action": "Ignore",
            "onPodConditions": [{"type": "DisruptionTarget", "status": ""}],
        }]},
        "template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}],
        }},
    }});
    let made = plane.create(JOBS, &job).await;
    let condition = &made["spec"]["podFailurePolicy"]["rules"][0]["onPodConditions"][0];
    assert_eq!(condition["status"], "True");
    plane.stop().await;
}

/// Sends the addresses of a pod's status. Returns the code, the causes and the warnings.
async fn send_addresses(plane: &Plane, addresses: &[&str]) -> (u16, Vec<String>, Vec<String>) {
    let mut pod = plane.get(&format!("{PODS}/x")).await;
    let list: Vec<Value> = addresses.iter().map(|ip| json!({"ip": ip})).collect();
    pod["status"]["podIP"] = json!(addresses[0]);
    pod["status"]["podIPs"] = json!(list);
    let headers = [("Content-Type", "application/json")];
    let server = plane.0.server();
    let path = format!("{PODS}/x/status");
    let answer = exchange(server, Method::PUT, &path, &headers, pod.to_string()).await;
    let warnings = answer.headers.get_all("warning").iter();
    let warnings = warnings.map(|it| it.to_str().unwrap().to_owned()).collect();
    let body: Value = serde_json::from_str(&answer.text()).unwrap();
    let causes = body["details"]["causes"].as_array().cloned();
    let causes = causes.unwrap_or_default().into_iter().map(|cause| {
        let text = |member: &str| cause[member].as_str().unwrap().to_owned();
        format!("{}: {}", text("field"), text("message"))
    });
    (answer.code, causes.collect(), warnings)
}

#[tokio::test(start_paused = true)]
async fn addresses_of_pods_are_of_two_families_in_their_usual_form() {
    let plane = plane().await;
    plane.create(PODS, &pod(&json!({}))).await;
    let (code, _, warnings) = send_addresses(&plane, &["10.0.0.1", "FD00::1"]).await;
    assert_eq!(code, 200);
    assert_eq!(
        warnings,
        [
            "299 - \"status.podIPs[1].ip: IPv6 address \\\"FD00::1\\\" should be in RFC 5952 \
             canonical format (\\\"fd00::1\\\")\""
        ]
    );
    let (code, causes, _) = send_addresses(&plane, &["10.0.0.1", "x"]).await;
    assert_eq!(code, 422);
    let starts = [
        "status.podIPs[1]: Invalid value: \"x\": must be a valid IP address",
        "status.podIPs: Internal error: failed to check for dual stack with error:invalid IP[1]: x",
        "status.podIPs: Invalid value",
    ];
    assert_eq!(causes.len(), starts.len(), "{causes:#?}");
    for (found, start) in causes.iter().zip(starts) {
        assert!(found.starts_with(start), "{found}\n{start}");
    }
    plane.stop().await;
}
