//! Tests of the fence as it is installed: the policies are those that the program expects.

use e2e::deploy::Chart;
use serde_json::{Value, json};
use statefulset_fence::{FencePolicies, FenceSettings};

use super::{OVERLAYS, apply, build_with, kustomization, of_kind};

/// The component on each overlay, and the chart with its value.
fn installations() -> Vec<Vec<Value>> {
    let component =
        |overlay: &str| build_with(&kustomization(overlay), &kustomization("components/fence"));
    let chart = || Chart::shipped().with(json!({"fence": {"enabled": true}}));
    let named = chart().with(json!({"name": "mine", "serviceAccount": {"name": "own"}}));
    let mut all: Vec<Vec<Value>> = OVERLAYS.map(component).into();
    all.extend([chart().render("default"), named.render("default")]);
    all
}

/// The user as which the Deployment's pods write.
fn user(objects: &[Value]) -> String {
    let deployment = of_kind(objects, "Deployment");
    let account = &deployment["spec"]["template"]["spec"]["serviceAccountName"];
    let namespace = &deployment["metadata"]["namespace"];
    let [namespace, account] = [namespace, account].map(|name| name.as_str().unwrap());
    format!("system:serviceaccount:{namespace}:{account}")
}

#[test]
fn shipped_policies_are_those_that_the_program_expects() {
    for objects in installations() {
        let settings = FenceSettings::default().user(user(&objects));
        let pod = &of_kind(&objects, "Deployment")["spec"]["template"]["spec"];
        let flag = format!("--namespace-selector={}", settings.selector);
        let arguments = pod["containers"][0]["args"].as_array().unwrap();
        assert!(arguments.contains(&json!(flag)), "{arguments:?}");
        let expected = FencePolicies::new(&settings).unwrap();
        let kinds = expected.objects().map(|object| object["kind"].clone());
        let mut found = objects.clone();
        found.retain(|object| kinds.contains(&object["kind"]));
        for object in &mut found {
            object["metadata"].as_object_mut().unwrap().remove("labels");
        }
        assert_eq!(found.iter().collect::<Vec<_>>(), expected.objects());
    }
}

#[test]
fn account_may_read_the_fence_and_namespaces_alone() {
    for objects in installations() {
        let roles = objects.iter().filter(|object| {
            let name = object["metadata"]["name"].as_str().unwrap();
            object["kind"] == "ClusterRole" && name.ends_with(":fence")
        });
        let roles: Vec<&Value> = roles.collect();
        let [role] = roles[..] else {
            panic!("{roles:?}");
        };
        for rule in role["rules"].as_array().unwrap() {
            assert_eq!(rule["verbs"], json!(["get", "list", "watch"]));
        }
        let name = &role["metadata"]["name"];
        let binding = objects.iter().find(|it| it["roleRef"]["name"] == *name);
        let subject = &binding.unwrap()["subjects"][0];
        let [namespace, account] = ["namespace", "name"].map(|it| subject[it].as_str().unwrap());
        let bound = format!("system:serviceaccount:{namespace}:{account}");
        assert_eq!(bound, user(&objects));
    }
}

#[tokio::test(start_paused = true)]
async fn embedded_api_server_accepts_the_fence() {
    for objects in installations() {
        apply(&objects).await;
    }
}
