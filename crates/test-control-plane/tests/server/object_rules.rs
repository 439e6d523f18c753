//! Rules of single objects, with upstream's messages.

use http::Method;
use serde_json::{Value, json};

use crate::support::Plane;

const NAMESPACE: &str = "namespaces/default";

/// Returns what follows `is invalid: ` in a message.
fn why(status: &Value) -> &str {
    let message = status["message"].as_str().unwrap_or_default();
    message
        .split_once(" is invalid: ")
        .map_or(message, |(_, why)| why)
}

/// Checks the errors of new objects at a path.
async fn are_refused(path: &str, cases: &[(Value, &str)]) {
    let plane = Plane::started().await;
    for (object, expected) in cases {
        let mut object = object.clone();
        if object["metadata"].get("name").is_none() {
            object["metadata"]["name"] = json!("a");
        }
        let status = plane
            .send(Method::POST, path, "application/json", &object)
            .await
            .json();
        assert_eq!(why(&status), *expected, "{object}");
    }
    plane.stop().await;
}

#[tokio::test]
async fn ingresses_have_clean_paths_and_one_backend() {
    let ingress = |path: &str, backend: Value| {
        let path = json!({"path": path, "pathType": "Prefix", "backend": backend});
        json!({"spec": {"rules": [{"http": {"paths": [path]}}]}})
    };
    let service = json!({"service": {"name": "s", "port": {"number": 80}}});
    let both = json!({"service": {"name": "s", "port": {"number": 80, "name": "p"}}});
    are_refused(
        &format!("/apis/networking.k8s.io/v1/{NAMESPACE}/ingresses"),
        &[
            (
                ingress("/a/..", service.clone()),
                "spec.rules[0].http.paths[0].path: Invalid value: \"/a/..\": cannot end with '/..'",
            ),
            (
                ingress("/a//b", service),
                "spec.rules[0].http.paths[0].path: Invalid value: \"/a//b\": must not contain '//'",
            ),
            (
                ingress("/", json!({})),
                "spec.rules[0].http.paths[0].backend: Invalid value: \"\": resource or service backend \
                 is required",
            ),
            (
                ingress("/", both),
                "spec.rules[0].http.paths[0].backend: Invalid value: \"\": cannot set both port name & \
                 port number",
            ),
            (
                json!({"spec": {}}),
                "spec: Invalid value: null: either `defaultBackend` or `rules` must be specified",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn network_policies_have_two_types_and_peers_of_one_form() {
    let peer = |peer: Value| json!({"spec": {"podSelector": {}, "ingress": [{"from": [peer]}]}});
    let block = json!({"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}});
    are_refused(
        &format!("/apis/networking.k8s.io/v1/{NAMESPACE}/networkpolicies"),
        &[
            (
                json!({"spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress", "Other"]}}),
                "spec.policyTypes: Invalid value: [\"Ingress\",\"Egress\",\"Other\"]: may not specify \
                 more than two policyTypes",
            ),
            (
                peer(json!({})),
                "spec.ingress[0].from[0]: Required value: must specify a peer",
            ),
            (
                peer(block),
                "spec.ingress[0].from[0]: Forbidden: may not specify both ipBlock and another peer",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn services_have_the_fields_of_their_type() {
    let service = |mut spec: Value| {
        spec["ports"] = json!([{"port": 80}]);
        json!({"spec": spec})
    };
    are_refused(
        &format!("/api/v1/{NAMESPACE}/services"),
        &[
            (
                service(json!({"type": "NodePort", "clusterIP": "None"})),
                "spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort \
                 services",
            ),
            (
                service(json!({"externalTrafficPolicy": "Local"})),
                "spec.externalTrafficPolicy: Invalid value: \"Local\": may only be set for \
                 externally-accessible services",
            ),
            (
                service(json!({"healthCheckNodePort": 1})),
                "spec.healthCheckNodePort: Invalid value: 1: may only be set when `type` is \
                 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
            ),
            (
                service(json!({
                    "sessionAffinity": "ClientIP",
                    "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 86401}},
                })),
                "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 86401: must be \
                 greater than 0 and less than 86400",
            ),
            (
                service(json!({"externalIPs": ["127.0.0.1", "x"]})),
                "[spec.externalIPs[0]: Invalid value: \"127.0.0.1\": may not be in the loopback range \
                 (127.0.0.0/8, ::1/128), spec.externalIPs[1]: Invalid value: \"x\": must be a valid IP \
                 address, (e.g. 10.9.8.7 or 2001:db8::ffff)]",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn pods_have_valid_volumes_and_variables() {
    let pod = |member: &str, value: Value, rest: Value| {
        let mut spec = rest;
        spec["containers"] = json!([{"name": "c", "image": "i"}]);
        match member {
            "volume" => spec["volumes"] = json!([value]),
            "container" => {
                for (name, value) in value.as_object().unwrap() {
                    spec["containers"][0][name] = value.clone();
                }
            }
            _ => spec[member] = value,
        }
        json!({"spec": spec})
    };
    let disk = |kind: &str| json!({"name": "v", "azureDisk": {"diskName": "d", "diskURI": "x", "kind": kind}});
    let flocker = json!({"name": "v", "flocker": {"datasetName": "a", "datasetUUID": "b"}});
    let variable = json!({"env": [{"name": "A", "valueFrom": {}}]});
    let windows = json!({"windowsOptions": {"gmsaCredentialSpec": ""}});
    are_refused(
        &format!("/api/v1/{NAMESPACE}/pods"),
        &[
            (
                pod("securityContext", windows, json!({})),
                "spec.securityContext.windowsOptions.gmsaCredentialSpec: Invalid value: \"\": \
                 gmsaCredentialSpec cannot be an empty string",
            ),
            (
                pod("volume", disk("Managed"), json!({})),
                "spec.volumes[0].azureDisk.diskURI: Unsupported value: \"x\": supported values: \
                 \"/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/\
                 disks/{disk-id}\"",
            ),
            (
                pod("volume", flocker, json!({})),
                "spec.volumes[0].flocker: Invalid value: \"resource\": datasetName and datasetUUID can \
                 not be specified simultaneously",
            ),
            (
                pod("container", variable, json!({})),
                "spec.containers[0].env[0].valueFrom: Invalid value: \"\": must specify one of: \
                 `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn workloads_have_limits_that_depend_on_others() {
    let template = json!({
        "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let deployment = json!({"spec": {
        "selector": {"matchLabels": {"a": "b"}}, "template": template,
        "progressDeadlineSeconds": 5, "minReadySeconds": 10,
    }});
    let path = format!("/apis/apps/v1/{NAMESPACE}/deployments");
    let why =
        "spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds";
    are_refused(&path, &[(deployment, why)]).await;
    let mut template = template;
    template["spec"]["restartPolicy"] = json!("Never");
    let job = json!({"spec": {
        "completionMode": "Indexed", "completions": 100_001, "backoffLimitPerIndex": 1,
        "template": template,
    }});
    let path = format!("/apis/batch/v1/{NAMESPACE}/jobs");
    let why =
        "spec.maxFailedIndexes: Required value: must be specified when completions is above 100000";
    are_refused(&path, &[(job, why)]).await;
    let name = "a".repeat(53);
    let cron_job = json!({
        "metadata": {"name": name},
        "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": template}}},
    });
    let why =
        format!("metadata.name: Invalid value: \"{name}\": must be no more than 52 characters");
    let path = format!("/apis/batch/v1/{NAMESPACE}/cronjobs");
    are_refused(&path, &[(cron_job, &why)]).await;
    let scaler = json!({"spec": {
        "minReplicas": 2, "maxReplicas": 1, "scaleTargetRef": {"kind": "X", "name": "x", "apiVersion": "a/v1"},
    }});
    let why = "spec.maxReplicas: Invalid value: 1: must be greater than or equal to `minReplicas`";
    let path = format!("/apis/autoscaling/v2/{NAMESPACE}/horizontalpodautoscalers");
    are_refused(&path, &[(scaler, why)]).await;
}

#[tokio::test]
async fn attachments_have_one_volume() {
    let attachment =
        |source: Value| json!({"spec": {"attacher": "a", "nodeName": "n", "source": source}});
    let one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    are_refused(
        "/apis/storage.k8s.io/v1/volumeattachments",
        &[
            (
                attachment(json!({})),
                &format!("spec.source: Required value: {one}"),
            ),
            (
                attachment(json!({"inlineVolumeSpec": {}, "persistentVolumeName": "v"})),
                &format!("spec.source: Forbidden: {one}"),
            ),
            (
                attachment(json!({"persistentVolumeName": ""})),
                "spec.source.persistentVolumeName: Required value: must specify non empty \
                 persistentVolumeName",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn rules_come_between_the_rounds_of_metadata() {
    let plane = Plane::started().await;
    let roles = format!("/apis/rbac.authorization.k8s.io/v1/{NAMESPACE}/roles");
    let role = |rules: Value, annotations: Value| json!({"metadata": {"name": "r", "annotations": annotations}, "rules": rules});
    plane.create(&roles, &role(json!([]), json!({}))).await;
    let wrong = role(
        json!([{"verbs": ["get"], "resources": ["pods"]}]),
        json!({"a b": "c"}),
    );
    let status = plane
        .send(
            Method::PUT,
            &format!("{roles}/r"),
            "application/json",
            &wrong,
        )
        .await
        .json();
    let fields = |status: &Value| -> Vec<String> {
        let causes = status["details"]["causes"].as_array().unwrap();
        causes
            .iter()
            .map(|cause| cause["field"].as_str().unwrap().to_owned())
            .collect()
    };
    let annotations = "metadata.annotations";
    let expected = [
        annotations,
        annotations,
        annotations,
        "rules[0].apiGroups",
        annotations,
    ];
    assert_eq!(fields(&status), expected);
    let classes = "/apis/storage.k8s.io/v1/storageclasses";
    let class = |mode: &str, annotations: Value| {
        json!({
            "metadata": {"name": "c", "annotations": annotations}, "provisioner": "a/b",
            "volumeBindingMode": mode,
        })
    };
    plane.create(classes, &class("Immediate", json!({}))).await;
    let wrong = class("x", json!({"a b": "c"}));
    let path = format!("{classes}/c");
    let status = plane
        .send(Method::PUT, &path, "application/json", &wrong)
        .await
        .json();
    let mode = "volumeBindingMode";
    let expected = [
        annotations,
        annotations,
        annotations,
        mode,
        annotations,
        mode,
    ];
    assert_eq!(fields(&status), expected);
    plane.stop().await;
}

#[tokio::test]
async fn slices_count_changes_besides_their_metadata() {
    let plane = Plane::started().await;
    let path = format!("/apis/discovery.k8s.io/v1/{NAMESPACE}/endpointslices");
    let slice = |endpoints: Value, metadata: Value| {
        let mut slice = json!({"addressType": "IPv4", "endpoints": endpoints, "ports": [], "metadata": metadata});
        slice["metadata"]["name"] = json!("s");
        slice
    };
    let endpoint = json!([{"addresses": ["10.1.2.3"]}]);
    plane.create(&path, &slice(json!([]), json!({}))).await;
    let one = format!("{path}/s");
    for (slice, generation) in [
        (slice(json!([]), json!({})), 1),
        (slice(json!([]), json!({"annotations": {"a": "b"}})), 1),
        (slice(json!([]), json!({"labels": {"a": "b"}})), 2),
        (slice(endpoint.clone(), json!({"labels": {"a": "b"}})), 3),
        // Dropped topology counts.
        (
            slice(
                json!([{"addresses": ["10.1.2.3"], "deprecatedTopology": {"a": "b"}}]),
                json!({"labels": {"a": "b"}}),
            ),
            4,
        ),
    ] {
        let found = plane
            .send(Method::PUT, &one, "application/json", &slice)
            .await
            .json();
        assert_eq!(found["metadata"]["generation"], generation, "{slice}");
    }
    plane.stop().await;
}

#[tokio::test]
async fn pod_keeps_its_class_and_may_add_no_gate() {
    let plane = Plane::started().await;
    let path = format!("/api/v1/{NAMESPACE}/pods");
    let pod = |gates: Value| {
        json!({
            "metadata": {"name": "p"}, "status": {"qosClass": "Burstable", "phase": "Running"},
            "spec": {"containers": [{"name": "c", "image": "i"}], "schedulingGates": gates},
        })
    };
    let created = plane.create(&path, &pod(json!([]))).await;
    let status = (&created["status"]["qosClass"], &created["status"]["phase"]);
    assert_eq!(status, (&json!("Burstable"), &json!("Pending")));
    let gates = json!({"spec": {"schedulingGates": [{"name": "a"}, {"name": "b"}, {"name": "a"}]}});
    let content_type = "application/merge-patch+json";
    let status = plane
        .send(Method::PATCH, &format!("{path}/p"), content_type, &gates)
        .await
        .json();
    let new = |index: usize, name: &str| {
        format!(
            "spec.schedulingGates[{index}].name: Forbidden: only deletion is allowed, but found new \
             scheduling gate '{name}'"
        )
    };
    let repeated = "[spec.schedulingGates[2]: Duplicate value: \"a\"";
    let expected = format!("{repeated}, {}, {}]", new(1, "b"), new(2, "a"));
    assert_eq!(why(&status), expected);
    plane.stop().await;
}

#[tokio::test]
async fn immutable_map_differs_from_one_that_is_empty() {
    let plane = Plane::started().await;
    let path = format!("/api/v1/{NAMESPACE}/configmaps");
    let map = json!({"metadata": {"name": "m"}, "immutable": true});
    plane.create(&path, &map).await;
    let mut empty = map;
    empty["data"] = json!({});
    let status = plane
        .send(
            Method::PUT,
            &format!("{path}/m"),
            "application/json",
            &empty,
        )
        .await
        .json();
    assert_eq!(
        why(&status),
        "data: Forbidden: field is immutable when `immutable` is set"
    );
    plane.stop().await;
}

#[tokio::test]
async fn applied_integers_wrap() {
    let plane = Plane::started().await;
    let path = format!("/apis/apps/v1/{NAMESPACE}/statefulsets/s?fieldManager=m");
    let set = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}}, "minReadySeconds": 2_147_483_648_i64,
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    });
    let status = plane
        .send(Method::PATCH, &path, "application/apply-patch+yaml", &set)
        .await
        .json();
    let message =
        "spec.minReadySeconds: Invalid value: -2147483648: must be greater than or equal to 0";
    assert_eq!(why(&status), message);
    plane.stop().await;
}

#[tokio::test]
async fn scales_have_valid_metadata() {
    let plane = Plane::started().await;
    let path = format!("/apis/apps/v1/{NAMESPACE}/statefulsets");
    let template = json!({
        "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let spec = json!({"selector": {"matchLabels": {"a": "b"}}, "template": template});
    let set = json!({"metadata": {"name": "s"}, "spec": spec});
    plane.create(&path, &set).await;
    let scale = json!({
        "metadata": {"name": "s", "namespace": "default", "finalizers": ["x"]}, "spec": {"replicas": -1},
    });
    let path = format!("{path}/s/scale");
    let status = plane
        .send(Method::PUT, &path, "application/json", &scale)
        .await
        .json();
    assert_eq!(
        status["message"],
        "Scale.autoscaling \"s\" is invalid: [metadata.finalizers[0]: Invalid value: \"x\": name is \
         neither a standard finalizer name nor is it fully qualified, spec.replicas: Invalid value: \
         -1: must be greater than or equal to 0]"
    );
    plane.stop().await;
}
