//! Values of a wrong type next to unknown fields, defaults and patches. The responses were recorded from
//! upstream.

use http::Method;
use kube_test_control_plane::{EmulatedVersion, TestControlPlane};
use serde_json::{Value, json};

use crate::support::{Answer, Plane};

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// Returns the path of the objects of a kind in the namespace `default`.
fn path_of(kind: &str) -> &'static str {
    match kind {
        "ConfigMap" => "/api/v1/namespaces/default/configmaps",
        "CronJob" => "/apis/batch/v1/namespaces/default/cronjobs",
        "DaemonSet" => "/apis/apps/v1/namespaces/default/daemonsets",
        "HorizontalPodAutoscaler" => {
            "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
        }
        "Job" => "/apis/batch/v1/namespaces/default/jobs",
        "Pod" => "/api/v1/namespaces/default/pods",
        "PodDisruptionBudget" => "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        "Secret" => "/api/v1/namespaces/default/secrets",
        "ServiceAccount" => "/api/v1/namespaces/default/serviceaccounts",
        "StatefulSet" => "/apis/apps/v1/namespaces/default/statefulsets",
        other => panic!("no path of {other}"),
    }
}

/// Returns the code, the body and the warnings of a response.
fn parts(answer: &Answer) -> (u16, Value, String) {
    let warnings = answer.header("warning").to_owned();
    (answer.code, answer.json(), warnings)
}

/// Returns the message about a new object, without the start that names it.
async fn refused(plane: &Plane, mut object: Value) -> String {
    object["metadata"]["name"] = json!("a");
    let kind = object["kind"].as_str().unwrap().to_owned();
    let path = format!("{}?dryRun=All&fieldValidation=Warn", path_of(&kind));
    let (code, body, warnings) = parts(&plane.send(Method::POST, &path, JSON, &object).await);
    let message = body["message"].as_str().unwrap_or_default().to_owned();
    match code {
        400 => assert_eq!(warnings, "", "{message}"),
        422 => {}
        _ => panic!("{code}: {body}"),
    }
    let starts = [" cannot be handled as a ", " is invalid: "];
    let start = starts.iter().find_map(|start| message.split_once(*start));
    start.map_or(message.clone(), |(_, rest)| rest.to_owned())
}

fn set(spec: &Value) -> Value {
    let mut set = json!({
        "selector": {"matchLabels": {"app": "a"}},
        "serviceName": "s",
        "template": {
            "metadata": {"labels": {"app": "a"}},
            "spec": {"containers": [{"name": "c", "image": "i:1"}]},
        },
    });
    for (name, value) in spec.as_object().unwrap() {
        set[name] = value.clone();
    }
    json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s"}, "spec": set})
}

#[tokio::test]
async fn wrong_types_come_before_unknown_fields_and_defaults() {
    let plane = Plane::started().await;
    let pod = |spec: Value| json!({"apiVersion": "v1", "kind": "Pod", "spec": spec, "foo": 1});
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "foo": 1});
    for (object, message) in [
        (
            json!({"spec": {"backoffLimitPerIndex": 2_147_483_648_i64}}),
            "Job: json: cannot unmarshal number 2147483648 into Go struct field \
             JobSpec.spec.backoffLimitPerIndex of type int32",
        ),
        (
            json!({"metadata": {"labels": "v"}, "spec": {}}),
            "Job: json: cannot unmarshal string into Go struct field ObjectMeta.metadata.labels of \
             type map[string]string",
        ),
    ] {
        let mut job = job.clone();
        for (name, value) in object.as_object().unwrap() {
            job[name] = value.clone();
        }
        assert_eq!(refused(&plane, job).await, message);
    }
    for (object, message) in [
        (
            pod(json!({"restartPolicy": 0})),
            "Pod: json: cannot unmarshal number into Go struct field PodSpec.spec.restartPolicy of \
             type v1.RestartPolicy",
        ),
        (
            json!({
                "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
                "spec": {"metrics": ["x"]},
            }),
            "HorizontalPodAutoscaler: json: cannot unmarshal string into Go struct field \
             HorizontalPodAutoscalerSpec.spec.metrics of type v2.MetricSpec",
        ),
        (
            set(&json!({"volumeClaimTemplates": [{"apiVersion": {}}]})),
            "StatefulSet: json: cannot unmarshal object into Go struct field \
             PersistentVolumeClaim.spec.volumeClaimTemplates.TypeMeta.apiVersion of type string",
        ),
        (
            json!({
                "apiVersion": "v1", "kind": "Secret", "data": {"k": "v"}, "stringData": {"k": "w"},
            }),
            "Secret: illegal base64 data at input byte 0",
        ),
        (
            json!({
                "apiVersion": "apps/v1", "kind": "DaemonSet",
                "metadata": {"annotations": {"deprecated.daemonset.template.generation": "http"}},
            }),
            "DaemonSet: strconv.ParseInt: parsing \"http\": invalid syntax",
        ),
    ] {
        assert_eq!(refused(&plane, object).await, message);
    }
    plane.stop().await;
}

#[tokio::test]
async fn missing_objects_get_defaults_all_the_same() {
    let plane = Plane::started().await;
    let cron_job = json!({"apiVersion": "batch/v1", "kind": "CronJob"});
    assert_eq!(
        refused(&plane, cron_job).await,
        "[spec.schedule: Required value, spec.jobTemplate.spec.template.spec.containers: Required \
         value, spec.jobTemplate.spec.template.spec.restartPolicy: Required value: valid values: \
         \"OnFailure\", \"Never\"]"
    );
    let spec = json!({"containers": [{"name": "c", "image": "i"}], "volumes": [{"foo": ""}]});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": spec});
    let message = "spec.volumes[0].name: Required value";
    assert_eq!(refused(&plane, pod).await, message);
    plane.stop().await;
}

#[tokio::test]
async fn budget_is_checked_before_its_metadata() {
    let plane = Plane::started().await;
    let owner = json!({"apiVersion": "", "kind": "X", "name": "x", "uid": "u"});
    let budget = |spec: Value| {
        json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"ownerReferences": [owner]}, "spec": spec,
        })
    };
    let message =
        "metadata.ownerReferences.apiVersion: Invalid value: \"\": version must not be empty";
    assert_eq!(refused(&plane, budget(json!({}))).await, message);
    let wrong = budget(json!({"minAvailable": -1}));
    assert!(!refused(&plane, wrong).await.contains("ownerReferences"));
    plane.stop().await;
}

#[tokio::test]
async fn patches_are_decoded_like_upstream() {
    let plane = Plane::started().await;
    plane.create(path_of("StatefulSet"), &set(&json!({}))).await;
    let invalid =
        |shown: &str, why: &str| format!(" \"\" is invalid: patch: Invalid value: {shown}: {why}");
    for (content_type, patch, code, message) in [
        (
            STRATEGIC,
            json!({"$retainKeys": ["x"], "spec": {"replicas": 2}}),
            400,
            "invalid patch format of retainKeys".to_owned(),
        ),
        (
            STRATEGIC,
            json!({"spec": {"foo": 1, "template": ["a"]}}),
            422,
            invalid(
                "\"map[spec:map[foo:1 template:[a]]]\"",
                "cannot restore struct from: slice",
            ),
        ),
        (
            STRATEGIC,
            json!({"metadata": {"uid": 5}}),
            422,
            invalid(
                "\"map[metadata:map[uid:5]]\"",
                "cannot convert int64 to types.UID",
            ),
        ),
        (
            "application/json-patch+json",
            json!([{"foo": ""}]),
            422,
            "the server rejected our request due to an error in our request".to_owned(),
        ),
    ] {
        let path = format!(
            "{}/s?dryRun=All&fieldValidation=Strict",
            path_of("StatefulSet")
        );
        let found = parts(&plane.send(Method::PATCH, &path, content_type, &patch).await);
        assert_eq!(
            (found.0, found.1["message"].as_str()),
            (code, Some(&*message))
        );
    }
    // An integer that is too wide wraps, as in Go.
    let path = format!("{}/s?dryRun=All", path_of("StatefulSet"));
    let wide = json!({"spec": {"revisionHistoryLimit": 2_147_483_648_i64}});
    let (code, found, _) = parts(&plane.send(Method::PATCH, &path, STRATEGIC, &wide).await);
    assert_eq!(
        (code, &found["spec"]["revisionHistoryLimit"]),
        (200, &json!(i32::MIN))
    );
    plane.stop().await;
}

#[tokio::test]
async fn patches_of_a_scale_are_checked_for_unknown_fields() {
    let plane = Plane::started().await;
    plane.create(path_of("StatefulSet"), &set(&json!({}))).await;
    let path = format!("{}/s/scale", path_of("StatefulSet"));
    let patch = json!({"spec": {"replicas": 2, "foo": 1}});
    let strict = format!("{path}?fieldValidation=Strict");
    let (code, found, _) = parts(&plane.send(Method::PATCH, &strict, MERGE, &patch).await);
    let message = found["message"].as_str().unwrap();
    assert_eq!(code, 422, "{message}");
    assert!(message.ends_with("strict decoding error: unknown field \"spec.foo\""));
    let warned = format!("{path}?fieldValidation=Warn");
    let (code, found, warnings) = parts(&plane.send(Method::PATCH, &warned, MERGE, &patch).await);
    assert_eq!((code, &found["spec"]["replicas"]), (200, &json!(2)));
    assert_eq!(warnings, "299 - \"unknown field \\\"spec.foo\\\"\"");
    plane.stop().await;
}

#[tokio::test]
async fn managers_follow_the_conversions_of_upstream() {
    let plane = Plane::started().await;
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}, "secrets": [{}],
    });
    let found = plane.create(path_of("ServiceAccount"), &account).await;
    assert_eq!(found["metadata"].get("managedFields"), None);
    let mut daemon_set = set(&json!({}));
    daemon_set["kind"] = json!("DaemonSet");
    daemon_set["spec"]
        .as_object_mut()
        .unwrap()
        .remove("serviceName");
    let found = plane.create(path_of("DaemonSet"), &daemon_set).await;
    let owned = &found["metadata"]["managedFields"][0]["fieldsV1"]["f:metadata"]["f:annotations"];
    let counter = json!({".": {}, "f:deprecated.daemonset.template.generation": {}});
    assert_eq!(*owned, counter);
    plane.stop().await;
}

#[tokio::test]
async fn dry_run_of_an_update_keeps_the_link_that_was_sent() {
    let plane = Plane::started().await;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "selfLink": "/x"}});
    let created = plane.create(path_of("ConfigMap"), &map).await;
    assert_eq!(created["metadata"].get("selfLink"), None);
    let path = format!("{}/m", path_of("ConfigMap"));
    let (_, found, _) = parts(&plane.send(Method::PUT, &path, JSON, &map).await);
    let version = &created["metadata"]["resourceVersion"];
    assert_eq!(
        (
            found["metadata"].get("selfLink"),
            &found["metadata"]["resourceVersion"]
        ),
        (None, version)
    );
    let dry = format!("{path}?dryRun=All");
    let (_, found, _) = parts(&plane.send(Method::PUT, &dry, JSON, &map).await);
    assert_eq!(found["metadata"]["selfLink"], "/x");
    plane.stop().await;
}

#[tokio::test]
async fn errors_show_null_for_a_missing_pointer() {
    let plane = Plane::started().await;
    let template = json!({
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]},
    });
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
        "spec": {
            "completionMode": "Indexed", "completions": 1, "template": template,
            "successPolicy": {"rules": [{"succeededCount": 1}]},
        },
    });
    plane.create(path_of("Job"), &job).await;
    let path = format!("{}/j", path_of("Job"));
    let patch = json!({"spec": {"successPolicy": null}});
    let (_, found, _) = parts(&plane.send(Method::PATCH, &path, MERGE, &patch).await);
    assert_eq!(
        found["message"],
        "Job.batch \"j\" is invalid: spec.successPolicy: Invalid value: null: field is immutable"
    );
    plane.stop().await;
}

#[tokio::test]
async fn errors_show_the_fields_of_the_version() {
    for (version, is_shown) in [
        (EmulatedVersion::V1_36, false),
        (EmulatedVersion::V1_37, true),
    ] {
        let builder = TestControlPlane::builder().emulated_version(version);
        let plane = Plane::new(builder.start().await);
        let spec = json!({
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}],
            "volumes": [{"name": "v", "secret": {"secretName": "s"}}],
        });
        let job = |image: &str| {
            let mut spec = spec.clone();
            spec["containers"][0]["image"] = json!(image);
            json!({
                "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
                "spec": {"template": {"spec": spec}},
            })
        };
        plane.create(path_of("Job"), &job("i:1")).await;
        let path = format!("{}/j", path_of("Job"));
        let patch = job("i:2");
        let (code, found, _) = parts(&plane.send(Method::PATCH, &path, STRATEGIC, &patch).await);
        let message = found["message"].as_str().unwrap();
        assert_eq!(code, 422, "{message}");
        assert!(message.contains("\"DefaultMode\":420"), "{message}");
        assert_eq!(message.contains("\"DefaultUser\""), is_shown, "{message}");
        plane.stop().await;
    }
}
