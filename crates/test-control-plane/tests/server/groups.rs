//! The groups besides those of workloads: defaults, validation and tables of their kinds.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use kube_test_control_plane::TestControlPlane;
use serde_json::{Value, json};

use crate::support::{Plane, get_as};

const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";

async fn plane() -> Plane {
    Plane::new(TestControlPlane::builder().start().await)
}

fn job(name: &str) -> Value {
    let container = json!({"name": "c", "image": "registry.example/c:1"});
    json!({
        "metadata": {"name": name},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    })
}

/// An object of each kind, with its collection.
fn examples() -> Vec<(&'static str, Value)> {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let backend = json!({"service": {"name": "web", "port": {"number": 80}}});
    let path = json!({"path": "/", "pathType": "Prefix", "backend": backend});
    let cron = json!({"schedule": "*/5 * * * *", "jobTemplate": {"spec": job("x")["spec"]}});
    let webhook = json!({
        "name": "check.acme.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": {"namespace": "default", "name": "web"}},
        "rules": [{
            "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
            "resources": ["pods"],
        }],
    });
    vec![
        (JOBS, job("example")),
        (
            "/apis/batch/v1/namespaces/default/cronjobs",
            json!({"spec": cron}),
        ),
        (
            "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
            json!({"spec": {"scaleTargetRef": target, "maxReplicas": 3, "behavior": {}}}),
        ),
        (
            "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
            json!({"spec": {"rules": [{"host": "a.example", "http": {"paths": [path]}}]}}),
        ),
        (
            "/apis/networking.k8s.io/v1/ingressclasses",
            json!({"spec": {
                "controller": "example.com/ingress",
                "parameters": {"kind": "Config", "name": "a"},
            }}),
        ),
        (
            "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
            json!({"spec": {"podSelector": {}, "egress": [{"ports": [{"port": 53}]}]}}),
        ),
        (
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            json!({"value": 1000}),
        ),
        ("/apis/storage.k8s.io/v1/csidrivers", json!({"spec": {}})),
        (
            "/apis/storage.k8s.io/v1/csinodes",
            json!({"spec": {"drivers": [{"name": "a.example", "nodeID": "1", "topologyKeys": null}]}}),
        ),
        (
            "/apis/storage.k8s.io/v1/volumeattachments",
            json!({"spec": {
                "attacher": "a.example", "nodeName": "node-1",
                "source": {"persistentVolumeName": "v"},
            }}),
        ),
        (
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
            json!({"webhooks": [webhook]}),
        ),
        (
            "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
            json!({"webhooks": [webhook]}),
        ),
        (
            "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
            json!({
                "addressType": "IPv4", "ports": [{"port": 80}],
                "endpoints": [{"addresses": ["10.0.0.1"]}],
            }),
        ),
    ]
}

/// Objects of kinds about nodes, volumes, requests and devices, with their collections.
fn more_examples() -> Vec<(&'static str, Value)> {
    let request = json!({"name": "gpu", "exactly": {"deviceClassName": "example"}});
    let claim = json!({"devices": {"requests": [request]}});
    vec![
        (
            "/apis/node.k8s.io/v1/runtimeclasses",
            json!({"handler": "sandbox", "scheduling": {
                "nodeSelector": {"disk": "ssd"},
                "tolerations": [{"key": "sandbox", "operator": "Exists"}],
            }}),
        ),
        (
            "/apis/storage.k8s.io/v1/volumeattributesclasses",
            json!({"driverName": "a.example", "parameters": {"iops": "100"}}),
        ),
        (
            "/apis/storage.k8s.io/v1/namespaces/default/csistoragecapacities",
            json!({"storageClassName": "fast", "capacity": "1Gi"}),
        ),
        (
            "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
            json!({"spec": {"priorityLevelConfiguration": {"name": "example"}}}),
        ),
        (
            "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
            json!({"spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}}),
        ),
        (
            "/apis/resource.k8s.io/v1/deviceclasses",
            json!({"spec": {"extendedResourceName": "a.example/gpu"}}),
        ),
        (
            "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
            json!({"spec": claim}),
        ),
        (
            "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates",
            json!({"spec": {"spec": claim}}),
        ),
        (
            "/apis/resource.k8s.io/v1/resourceslices",
            json!({"spec": {
                "driver": "a.example", "nodeName": "node-1",
                "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "gpu-0"}],
            }}),
        ),
    ]
}

/// Creates an object of each kind and returns them by the last segment of their collection.
async fn create_all(plane: &Plane) -> Value {
    let mut all = json!({});
    for (path, mut object) in examples().into_iter().chain(more_examples()) {
        object["metadata"] = json!({"name": "example"});
        let (code, created) = plane.call(Method::POST, path, &object).await;
        assert_eq!(code, 201, "{path}: {created}");
        let name = path.rsplit('/').next().unwrap();
        all[name] = created;
    }
    all
}

#[tokio::test(start_paused = true)]
async fn objects_get_their_defaults() {
    let plane = plane().await;
    let all = create_all(&plane).await;
    let (jobs, scaler) = (&all["jobs"], &all["horizontalpodautoscalers"]);
    assert_eq!(jobs["spec"]["backoffLimit"], 6);
    assert_eq!(jobs["metadata"]["generation"], 1);
    let labels = &jobs["spec"]["template"]["metadata"]["labels"];
    assert_eq!(labels["batch.kubernetes.io/job-name"], "example");
    let uid = &jobs["metadata"]["uid"];
    let selected = json!({"batch.kubernetes.io/controller-uid": uid});
    assert_eq!(jobs["spec"]["selector"]["matchLabels"], selected);
    let cron = &all["cronjobs"]["spec"];
    assert_eq!(cron["concurrencyPolicy"], "Allow");
    let pod = &cron["jobTemplate"]["spec"]["template"]["spec"];
    assert_eq!(pod["dnsPolicy"], "ClusterFirst");
    assert_eq!(scaler["spec"]["metrics"][0]["resource"]["name"], "cpu");
    let down = &scaler["spec"]["behavior"]["scaleDown"];
    assert_eq!(down["selectPolicy"], "Max");
    assert_eq!(
        all["networkpolicies"]["spec"]["policyTypes"],
        json!(["Ingress", "Egress"])
    );
    let parameters = &all["ingressclasses"]["spec"]["parameters"];
    assert_eq!(parameters["scope"], "Cluster");
    let hook = &all["mutatingwebhookconfigurations"]["webhooks"][0];
    assert_eq!(hook["reinvocationPolicy"], "Never");
    assert_eq!(hook["clientConfig"]["service"]["port"], 443);
    let port = json!({"name": "", "port": 80, "protocol": "TCP"});
    assert_eq!(all["endpointslices"]["ports"][0], port);
    assert_eq!(all["flowschemas"]["spec"]["matchingPrecedence"], 1000);
    let limited = json!({
        "nominalConcurrencyShares": 30, "lendablePercent": 0, "limitResponse": {"type": "Reject"},
    });
    assert_eq!(
        all["prioritylevelconfigurations"]["spec"]["limited"],
        limited
    );
    let exactly = &all["resourceclaims"]["spec"]["devices"]["requests"][0]["exactly"];
    assert_eq!(
        (&exactly["allocationMode"], &exactly["count"]),
        (&json!("ExactCount"), &json!(1))
    );
    let finalizers = json!(["kubernetes.io/vac-protection"]);
    assert_eq!(
        all["volumeattributesclasses"]["metadata"]["finalizers"],
        finalizers
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn tables_have_the_columns_of_kubectl() {
    let plane = plane().await;
    create_all(&plane).await;
    for (path, cells) in [
        (JOBS, json!(["example", "Running", "0/1", "", "0s"])),
        (
            "/apis/batch/v1/cronjobs",
            json!([
                "example",
                "*/5 * * * *",
                "<none>",
                "False",
                0,
                "<none>",
                "0s"
            ]),
        ),
        (
            "/apis/autoscaling/v2/horizontalpodautoscalers",
            json!([
                "example",
                "Deployment/web",
                "cpu: <unknown>/80%",
                "1",
                3,
                0,
                "0s"
            ]),
        ),
        (
            "/apis/autoscaling/v1/horizontalpodautoscalers",
            json!(["example", "Deployment/web", "cpu: <unknown>/80%"]),
        ),
        (
            "/apis/node.k8s.io/v1/runtimeclasses",
            json!(["example", "sandbox", "0s"]),
        ),
        (
            "/apis/storage.k8s.io/v1/volumeattributesclasses",
            json!(["example", "a.example", "0s"]),
        ),
        (
            "/apis/resource.k8s.io/v1/resourceslices",
            json!(["example", "node-1", "a.example", "node-1", "0s"]),
        ),
        (
            "/apis/resource.k8s.io/v1/resourceclaims",
            json!(["example", "pending", "0s"]),
        ),
        (
            "/apis/networking.k8s.io/v1/ingresses",
            json!(["example", "<none>", "a.example", "", "80", "0s"]),
        ),
        (
            "/apis/networking.k8s.io/v1/networkpolicies",
            json!(["example", "<none>", "0s"]),
        ),
        (
            "/apis/storage.k8s.io/v1/csidrivers",
            json!([
                "example",
                true,
                false,
                false,
                "<unset>",
                false,
                "Persistent",
                "0s"
            ]),
        ),
        (
            "/apis/storage.k8s.io/v1/volumeattachments",
            json!(["example", "a.example", "v", "node-1", false, "0s"]),
        ),
        (
            "/apis/discovery.k8s.io/v1/endpointslices",
            json!(["example", "IPv4", "80", "10.0.0.1", "0s"]),
        ),
        (
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            json!(["example", 1000, false, "0s", "PreemptLowerPriority"]),
        ),
    ] {
        let table = get_as(plane.0.server(), path, TABLE).await.json();
        let count = cells.as_array().unwrap().len();
        let row = table["rows"][0]["cells"].as_array().unwrap();
        assert_eq!(json!(row[..count]), cells, "{path}");
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn invalid_objects_are_rejected() {
    let plane = plane().await;
    let change = |mut object: Value, pointer: &str, value: Value| {
        object["metadata"] = json!({"name": "example"});
        *object.pointer_mut(pointer).unwrap() = value;
        object
    };
    let of = |kind: &str| {
        let mut all = examples().into_iter();
        all.find(|(path, _)| path.ends_with(kind)).unwrap()
    };
    for (kind, pointer, value, message) in [
        (
            "/jobs",
            "/spec/template/spec/restartPolicy",
            json!("Always"),
            "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \
             \"Never\"",
        ),
        (
            "/cronjobs",
            "/spec/schedule",
            json!("often"),
            "spec.schedule: Invalid value: \"often\": expected exactly 5 fields, found 1: [often]",
        ),
        (
            "/horizontalpodautoscalers",
            "/spec/maxReplicas",
            json!(0),
            "spec.maxReplicas: Required value: must be set and greater than 0",
        ),
        (
            "/ingresses",
            "/spec/rules/0/http/paths/0/path",
            json!("x"),
            "spec.rules[0].http.paths[0].path: Invalid value: \"x\": must be an absolute path",
        ),
        (
            "/validatingwebhookconfigurations",
            "/webhooks/0/clientConfig",
            json!({}),
            "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
        ),
        (
            "/endpointslices",
            "/addressType",
            json!("IPv5"),
            "addressType: Unsupported value: \"IPv5\": supported values: \"FQDN\", \"IPv4\", \
             \"IPv6\"",
        ),
    ] {
        let (path, object) = of(kind);
        let object = change(object, pointer, value);
        let (code, body) = plane.call(Method::POST, path, &object).await;
        assert_eq!(code, 422, "{kind}: {body}");
        let found = body["message"].as_str().unwrap();
        assert!(found.contains(message), "{found}");
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn immutable_members_keep_their_value() {
    let plane = plane().await;
    create_all(&plane).await;
    let path = format!("{JOBS}/example");
    let (_, mut found) = plane.call(Method::GET, &path, &Value::Null).await;
    found["spec"]["parallelism"] = json!(2);
    let (code, found) = plane.call(Method::PUT, &path, &found).await;
    assert_eq!((code, &found["metadata"]["generation"]), (200, &json!(2)));
    let mut other = found.clone();
    other["spec"]["template"]["spec"]["containers"][0]["image"] = json!("other");
    let (code, body) = plane.call(Method::PUT, &path, &other).await;
    assert_eq!(code, 422, "{body}");
    let class = "/apis/scheduling.k8s.io/v1/priorityclasses/example";
    let (_, mut found) = plane.call(Method::GET, class, &Value::Null).await;
    found["value"] = json!(5);
    let (code, body) = plane.call(Method::PUT, class, &found).await;
    assert_eq!(code, 422, "{body}");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn deleted_job_leaves_its_pods_by_default() {
    let plane = plane().await;
    create_all(&plane).await;
    let path = format!("{JOBS}/example");
    let (code, body) = plane.call(Method::DELETE, &path, &Value::Null).await;
    assert_eq!(code, 200);
    assert_eq!(body["metadata"]["finalizers"], json!(["orphan"]));
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn pod_takes_the_priority_of_its_class() {
    let plane = plane().await;
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let example = json!({"metadata": {"name": "example"}, "value": 1000});
    plane.create(classes, &example).await;
    let mut pod = crate::support::pod("p");
    pod["spec"]["priorityClassName"] = json!("example");
    let pods = "/api/v1/namespaces/default/pods";
    let (code, created) = plane.call(Method::POST, pods, &pod).await;
    assert_eq!((code, &created["spec"]["priority"]), (201, &json!(1000)));
    let class = |name: &str| json!({"metadata": {"name": name}, "value": 5, "globalDefault": true});
    plane.create(classes, &class("usual")).await;
    let (code, body) = plane.call(Method::POST, classes, &class("second")).await;
    assert_eq!(code, 403, "{body}");
    let (_, created) = plane
        .call(Method::POST, pods, &crate::support::pod("q"))
        .await;
    assert_eq!(created["spec"]["priorityClassName"], "usual");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn pod_takes_nodes_and_tolerations_of_its_runtime_class() {
    let plane = plane().await;
    let class = json!({"metadata": {"name": "example"}, "handler": "sandbox", "scheduling": {
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "sandbox", "operator": "Exists"}],
    }});
    plane
        .create("/apis/node.k8s.io/v1/runtimeclasses", &class)
        .await;
    let pods = "/api/v1/namespaces/default/pods";
    let mut pod = crate::support::pod("p");
    pod["spec"]["runtimeClassName"] = json!("example");
    pod["spec"]["nodeSelector"] = json!({"zone": "a"});
    let created = plane.create(pods, &pod).await;
    let selector = json!({"zone": "a", "disk": "ssd"});
    assert_eq!(created["spec"]["nodeSelector"], selector);
    let toleration = json!({"key": "sandbox", "operator": "Exists"});
    let tolerations = created["spec"]["tolerations"].as_array().unwrap();
    assert!(tolerations.contains(&toleration), "{tolerations:?}");
    pod["metadata"]["name"] = json!("q");
    pod["spec"]["nodeSelector"] = json!({"disk": "tape"});
    let (code, body) = plane.call(Method::POST, pods, &pod).await;
    let why = "pods \"q\" is forbidden: conflict: \
               runtimeClass.scheduling.nodeSelector[disk] = ssd; pod.spec.nodeSelector[disk] = tape";
    assert_eq!((code, &body["message"]), (403, &json!(why)));
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn priority_and_fairness_has_its_mandatory_objects() {
    let plane = plane().await;
    for resource in ["flowschemas", "prioritylevelconfigurations"] {
        let path = format!("/apis/flowcontrol.apiserver.k8s.io/v1/{resource}");
        for name in ["catch-all", "exempt"] {
            let found = plane.get(&format!("{path}/{name}")).await;
            let annotations = &found["metadata"]["annotations"];
            assert_eq!(annotations["apf.kubernetes.io/autoupdate-spec"], "true");
        }
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn claims_use_devices_of_others_only_in_admin_namespaces() {
    let plane = plane().await;
    let request = json!({
        "name": "gpu", "exactly": {"deviceClassName": "a", "adminAccess": true},
    });
    let spec = json!({"devices": {"requests": [request]}});
    let claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
    let claim = json!({"metadata": {"name": "a"}, "spec": spec});
    let refused = plane.refused(Method::POST, claims, &claim).await;
    let why = "spec.devices.requests[0].adminAccess: Forbidden: admin access to devices requires the \
               `resource.kubernetes.io/admin-access: true` label on the containing namespace";
    assert_eq!(refused, [why]);
    let labels = json!({"resource.kubernetes.io/admin-access": "true"});
    let namespace = json!({"metadata": {"name": "admin", "labels": labels}});
    plane.create("/api/v1/namespaces", &namespace).await;
    plane
        .create(&claims.replace("default", "admin"), &claim)
        .await;
    plane.stop().await;
}

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

fn signing_request(name: &str) -> Value {
    let pem = "-----BEGIN CERTIFICATE REQUEST-----\nAA==\n-----END CERTIFICATE REQUEST-----\n";
    json!({
        "metadata": {"name": name},
        "spec": {
            "request": STANDARD.encode(pem),
            "signerName": "example.com/signer",
            "usages": ["client auth"],
            "username": "somebody else",
        },
    })
}

#[tokio::test(start_paused = true)]
async fn certificate_request_is_approved_and_issued() {
    let plane = plane().await;
    let created = plane.create(REQUESTS, &signing_request("a")).await;
    assert_eq!(created["spec"]["username"], "kubernetes-admin");
    assert_eq!(created["status"], json!({}));
    let path = format!("{REQUESTS}/a");
    let condition = json!({"type": "Approved", "status": "True", "reason": "Mine"});
    let mut approved = created.clone();
    approved["status"] = json!({"conditions": [condition], "certificate": "AA=="});
    let ignored = plane.call(Method::PUT, &path, &approved).await;
    assert_eq!((ignored.0, &ignored.1["status"]), (200, &json!({})));
    let approval = format!("{path}/approval");
    let (code, approved) = plane.call(Method::PUT, &approval, &approved).await;
    assert_eq!(code, 200, "{approved}");
    assert_eq!(approved["status"].get("certificate"), None);
    let since = &approved["status"]["conditions"][0]["lastTransitionTime"];
    assert!(since.is_string(), "{approved}");
    let mut issued = approved.clone();
    issued["status"] = json!({"certificate": "AA==", "conditions": []});
    let (code, issued) = plane
        .call(Method::PUT, &format!("{path}/status"), &issued)
        .await;
    assert_eq!(
        (code, &issued["status"]["certificate"]),
        (200, &json!("AA=="))
    );
    assert_eq!(issued["status"]["conditions"][0]["type"], "Approved");
    let table = get_as(plane.0.server(), REQUESTS, TABLE).await.json();
    let cells = json!([
        "a",
        "0s",
        "example.com/signer",
        "kubernetes-admin",
        "<none>",
        "Approved,Issued"
    ]);
    assert_eq!(table["rows"][0]["cells"], cells);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn contradicting_approvals_are_rejected() {
    let plane = plane().await;
    let mut created = plane.create(REQUESTS, &signing_request("a")).await;
    created["status"]["conditions"] = json!([
        {"type": "Approved", "status": "True"},
        {"type": "Denied", "status": "True"},
    ]);
    let path = format!("{REQUESTS}/a/approval");
    let (code, body) = plane.call(Method::PUT, &path, &created).await;
    assert_eq!(code, 422, "{body}");
    let mut bare = signing_request("b");
    bare["spec"]["request"] = json!("AA==");
    let (code, body) = plane.call(Method::POST, REQUESTS, &bare).await;
    assert_eq!(code, 422, "{body}");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn api_services_and_components_are_read() {
    let plane = plane().await;
    let services = plane
        .get("/apis/apiregistration.k8s.io/v1/apiservices")
        .await;
    assert_eq!(services["kind"], "APIServiceList");
    let apps = plane
        .get("/apis/apiregistration.k8s.io/v1/apiservices/v1.apps")
        .await;
    assert_eq!(apps["spec"]["group"], "apps");
    let body = json!({
        "metadata": {"name": "v1beta1.metrics.example.io"},
        "spec": {
            "group": "metrics.example.io", "version": "v1beta1",
            "groupPriorityMinimum": 100, "versionPriority": 100,
            "insecureSkipTLSVerify": true, "service": {"name": "m", "namespace": "kube-system"},
        },
    });
    let path = "/apis/apiregistration.k8s.io/v1/apiservices";
    let created = plane.create(path, &body).await;
    assert_eq!(created["spec"]["service"]["port"], 443);
    let own = format!("{path}/v1beta1.metrics.example.io");
    assert_eq!(plane.get(&own).await, created);
    let listed = plane.get(path).await;
    let listed = listed["items"].as_array().unwrap();
    assert_eq!(
        listed.len(),
        services["items"].as_array().unwrap().len() + 1
    );
    let mut wrong = body;
    wrong["metadata"]["name"] = json!("metrics");
    wrong["spec"]["caBundle"] = json!("YQ==");
    wrong["spec"]["versionPriority"] = json!(1001);
    let refused = plane.refused(Method::POST, path, &wrong).await;
    assert_eq!(
        refused,
        [
            "metadata.name: Invalid value: \"metrics\": must be `spec.version+\".\"+spec.group`: \
             \"v1beta1.metrics.example.io\"",
            "spec.versionPriority: Invalid value: 1001: must be positive and less than 1000",
            "spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present",
        ]
    );
    let (code, _) = plane.call(Method::DELETE, &own, &json!({})).await;
    assert_eq!((code, plane.code(&own).await), (200, 404));
    let scheduler = plane.get("/api/v1/componentstatuses/scheduler").await;
    assert_eq!(scheduler["conditions"][0]["status"], "True");
    assert_eq!(plane.code("/api/v1/componentstatuses/none").await, 404);
    plane.stop().await;
}
