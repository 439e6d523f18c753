//! Bodies of new pods.

use kube_apimachinery::json::on_large_stack;
use statefulset_controller_util::stateful_set::PodTemplate;
use statefulset_controller_util::testing::builders::{self, Builder};

use super::*;

/// Returns the body as a value, from the whole template.
fn to_value(pod: &NewPod) -> Value {
    let mut template = pod.set.spec.template.to_value().unwrap();
    let mut member = |name| template.get_mut(name).map(Value::take).unwrap_or_default();
    pod.of_template(member("metadata"), member("spec"))
}

fn body(set: &Builder<StatefulSet>, ordinal: i32) -> Value {
    let pod = NewPod::new(&set.build(), "web-1", Ordinal::from(ordinal));
    let body = to_value(&pod);
    assert_eq!(pod.body().unwrap(), to_go_string(&body));
    body
}

#[test]
fn new_pod_is_its_template_with_identity_and_owner() {
    let set = builders::set("web").start(2).claim_template("data");
    let pod = NewPod::new(&set.build(), "web-1", Ordinal::from(2));
    assert_eq!((&*pod.name, &*pod.revision), ("web-2", "web-1"));
    let mut body = body(&set, 2);
    let container = body["spec"]["containers"][0].take();
    assert_eq!(container["image"], "registry.example/app:1");
    assert_eq!(
        body,
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "web-2", "generateName": "web-", "namespace": "ns",
                "labels": {
                    "app": "web", "apps.kubernetes.io/pod-index": "2",
                    "controller-revision-hash": "web-1",
                    "statefulset.kubernetes.io/pod-name": "web-2",
                },
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web",
                    "uid": "web-uid", "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "spec": {
                "containers": [null], "dnsPolicy": "ClusterFirst", "hostname": "web-2",
                "restartPolicy": "Always", "schedulerName": "default-scheduler",
                "securityContext": {}, "subdomain": "web-svc", "terminationGracePeriodSeconds": 30,
                "volumes": [
                    {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-2"}},
                ],
            },
            "status": {},
        })
    );
}

#[test]
fn only_labels_annotations_and_finalizers_are_copied() {
    let set = builders::set("web").with(
        "spec.template.metadata",
        json!({
            "labels": {"app": "web", "statefulset.kubernetes.io/pod-name": "mine",
                "apps.kubernetes.io/pod-index": "9", "controller-revision-hash": "mine"},
            "annotations": {"a": "<b>"}, "finalizers": ["example.com/f"],
            "name": "mine", "namespace": "mine", "generateName": "mine-", "uid": "mine",
            "creationTimestamp": null, "ownerReferences": [{"name": "mine"}],
        }),
    );
    let mut metadata = body(&set, 0)["metadata"].take();
    assert_eq!(metadata["annotations"].take(), json!({"a": "<b>"}));
    assert_eq!(metadata["finalizers"].take(), json!(["example.com/f"]));
    let labels = metadata["labels"].take();
    assert_eq!(labels["statefulset.kubernetes.io/pod-name"], "web-0");
    assert_eq!(labels["apps.kubernetes.io/pod-index"], "0");
    assert_eq!(labels["controller-revision-hash"], "web-1");
    assert_eq!(metadata["ownerReferences"][0]["name"], "web");
    let rest: Vec<&String> = metadata.as_object().unwrap().keys().collect();
    assert_eq!(
        rest,
        [
            "annotations",
            "finalizers",
            "generateName",
            "labels",
            "name",
            "namespace",
            "ownerReferences"
        ]
    );
    assert_eq!(
        (&metadata["name"], &metadata["namespace"]),
        (&json!("web-0"), &json!("ns"))
    );
}

#[test]
fn empty_metadata_members_are_left_out() {
    let set = builders::set("web").with(
        "spec.template.metadata",
        json!({"labels": null, "annotations": {}, "finalizers": []}),
    );
    let metadata = body(&set, 0)["metadata"].take();
    assert_eq!(metadata.get("annotations"), None);
    assert_eq!(metadata.get("finalizers"), None);
    assert_eq!(metadata["labels"].as_object().unwrap().len(), 3);
    let bare = builders::set("web").without("spec.template.metadata");
    assert_eq!(body(&bare, 0)["metadata"]["labels"], metadata["labels"]);
}

#[test]
fn unknown_members_of_the_template_survive() {
    let set = builders::set("web")
        .with("spec.template.spec.future", json!({"b": 1, "a": [2.5]}))
        .with("spec.template.spec.containers.0.future", "<&>");
    let spec = body(&set, 0)["spec"].take();
    assert_eq!(spec["future"], json!({"b": 1, "a": [2.5]}));
    assert_eq!(spec["containers"][0]["future"], "<&>");
    let pod = NewPod::new(&set.build(), "web-1", Ordinal::from(0));
    assert!(
        pod.body()
            .unwrap()
            .contains(r#""future":"\u003c\u0026\u003e""#)
    );
}

#[test]
fn host_name_and_subdomain_are_overwritten() {
    let named = builders::set("web")
        .with("spec.template.spec.hostname", "mine")
        .with("spec.template.spec.subdomain", "mine");
    let spec = body(&named, 0)["spec"].take();
    assert_eq!(
        (&spec["hostname"], &spec["subdomain"]),
        (&json!("web-0"), &json!("web-svc"))
    );

    for set in [
        named.clone().with("spec.serviceName", ""),
        named.without("spec.serviceName"),
    ] {
        let spec = body(&set, 0)["spec"].take();
        assert_eq!(spec["hostname"], "web-0");
        assert_eq!(spec.get("subdomain"), None);
    }
}

#[test]
fn claim_volumes_replace_and_precede_template_volumes() {
    let set = builders::set("web")
        .claim_template("data")
        .claim_template("logs")
        .with(
            "spec.template.spec.volumes",
            json!([{"name": "tmp", "emptyDir": {}}, {"name": "logs", "emptyDir": {}}]),
        );
    assert_eq!(
        body(&set, 4)["spec"]["volumes"],
        json!([
            {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-4"}},
            {"name": "logs", "persistentVolumeClaim": {"claimName": "logs-web-4"}},
            {"name": "tmp", "emptyDir": {}},
        ])
    );
}

#[test]
fn large_integers_stay_exact() {
    let path = "spec.template.spec.terminationGracePeriodSeconds";
    let set = builders::set("web").with(path, 9_007_199_254_740_993_i64);
    assert_eq!(
        body(&set, 0)["spec"]["terminationGracePeriodSeconds"],
        9_007_199_254_740_993_i64
    );
}

#[test]
fn new_pod_uses_the_template_of_its_set() {
    let old = builders::set("web").image("registry.example/app:0").build();
    let pod = NewPod::new(&old, "web-0", Ordinal::from(1));
    assert_eq!(
        to_value(&pod)["spec"]["containers"][0]["image"],
        "registry.example/app:0"
    );
}

#[test]
fn odd_templates_still_give_pods_an_identity() {
    let mut set = builders::set("web").build();
    for template in [
        json!(null),
        json!("x"),
        json!([1]),
        json!({"metadata": "x", "spec": [1]}),
        json!({"metadata": ["x"], "spec": "y"}),
        json!({"metadata": {"labels": "x", "annotations": 7}}),
    ] {
        set.spec.template = PodTemplate::from_value(&template);
        let pod = NewPod::new(&set, "web-1", Ordinal::from(0));
        let body = to_value(&pod);
        assert_eq!(body["metadata"]["name"], "web-0", "{template}");
        assert_eq!(body["metadata"]["labels"][REVISION_LABEL], "web-1");
        assert_eq!(body["spec"]["hostname"], "web-0");
    }
}

#[tokio::test]
async fn deep_metadata_of_a_template_is_dropped() {
    let deep = (0..200).fold(json!({}), |inner, _| json!([inner]));
    let member = "spec.template.metadata.managedFields";
    let set = builders::set("web").with(member, deep).build();
    let pod = NewPod::new(&set, "web-1", Ordinal::from(0));
    on_large_stack(async move {
        let body = pod.body().unwrap();
        assert_eq!(body, to_go_string(&to_value(&pod)));
        assert!(!body.contains("managedFields"));
    })
    .await;
}
