//! Grace periods, finalizers, preconditions and propagation policies.

use crate::support::Plane;
use http::Method;
use kube_test_control_plane::TestControlPlane;
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";

async fn plane() -> Plane {
    Plane::new(TestControlPlane::builder().start().await)
}

/// Creates a pod on a node without a kubelet.
async fn scheduled(plane: &Plane, name: &str) -> String {
    let mut pod = crate::support::pod(name);
    pod["spec"]["nodeName"] = json!("n");
    plane.create(PODS, &pod).await;
    format!("{PODS}/{name}")
}

async fn delete(plane: &Plane, path: &str, options: Value) -> (u16, Value) {
    plane.call(Method::DELETE, path, &options).await
}

#[tokio::test(start_paused = true)]
async fn grace_period_can_only_be_shortened() {
    let plane = plane().await;
    let path = scheduled(&plane, "p").await;
    for (options, grace, ends, generation) in [
        (json!({}), 30, "2026-01-01T00:00:30Z", 2),
        (
            json!({"gracePeriodSeconds": 10}),
            10,
            "2026-01-01T00:00:10Z",
            2,
        ),
        (
            json!({"gracePeriodSeconds": 60}),
            10,
            "2026-01-01T00:00:10Z",
            2,
        ),
        (
            json!({"gracePeriodSeconds": -5}),
            1,
            "2026-01-01T00:00:01Z",
            2,
        ),
    ] {
        let (_, pod) = delete(&plane, &path, options).await;
        let metadata = &pod["metadata"];
        assert_eq!(metadata["deletionGracePeriodSeconds"], grace);
        assert_eq!(metadata["deletionTimestamp"], ends);
        assert_eq!(metadata["generation"], generation);
    }
    delete(&plane, &path, json!({"gracePeriodSeconds": 0})).await;
    assert_eq!(plane.code(&path).await, 404);
}

#[tokio::test(start_paused = true)]
async fn pods_that_do_not_run_are_deleted_immediately() {
    let plane = plane().await;
    plane
        .create(PODS, &crate::support::pod("unscheduled"))
        .await;
    delete(&plane, &format!("{PODS}/unscheduled"), json!({})).await;
    assert_eq!(plane.code(&format!("{PODS}/unscheduled")).await, 404);
    for phase in ["Succeeded", "Failed"] {
        let path = scheduled(&plane, "done").await;
        let status = json!({"status": {"phase": phase}});
        plane
            .call(Method::PATCH, &format!("{path}/status"), &status)
            .await;
        delete(&plane, &path, json!({})).await;
        assert_eq!(plane.code(&path).await, 404, "{phase}");
    }
}

#[tokio::test(start_paused = true)]
async fn last_finalizer_removes_only_after_the_grace_period() {
    let plane = plane().await;
    let path = scheduled(&plane, "p").await;
    let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    plane.call(Method::PATCH, &path, &hold).await;
    delete(&plane, &path, json!({})).await;
    let release = json!({"metadata": {
        "$deleteFromPrimitiveList/finalizers": ["example.com/hold"],
    }});
    plane.call(Method::PATCH, &path, &release).await;
    assert_eq!(plane.code(&path).await, 200);
    delete(&plane, &path, json!({"gracePeriodSeconds": 0})).await;
    assert_eq!(plane.code(&path).await, 404);

    let path = scheduled(&plane, "p").await;
    plane.call(Method::PATCH, &path, &hold).await;
    let (_, pod) = delete(&plane, &path, json!({"gracePeriodSeconds": 0})).await;
    assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(plane.code(&path).await, 200);
    plane.call(Method::PATCH, &path, &release).await;
    assert_eq!(plane.code(&path).await, 404);
}

#[tokio::test(start_paused = true)]
async fn preconditions_identify_the_object() {
    let plane = plane().await;
    let created = plane
        .create(MAPS, &json!({"metadata": {"name": "a"}}))
        .await;
    let path = format!("{MAPS}/a");
    let (uid, version) = (
        &created["metadata"]["uid"],
        &created["metadata"]["resourceVersion"],
    );
    for (preconditions, code) in [
        (json!({"uid": "other"}), 409),
        (json!({"resourceVersion": "1"}), 409),
        (json!({"uid": uid, "resourceVersion": "1"}), 409),
        (json!({"uid": uid, "resourceVersion": version}), 200),
    ] {
        let options = json!({"preconditions": preconditions});
        assert_eq!(
            delete(&plane, &path, options).await.0,
            code,
            "{preconditions}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn later_deletion_can_change_the_policy() {
    let plane = plane().await;
    plane
        .create(MAPS, &json!({"metadata": {"name": "a"}}))
        .await;
    let path = format!("{MAPS}/a");
    for (policy, finalizer) in [("Orphan", "orphan"), ("Foreground", "foregroundDeletion")] {
        let (code, object) = delete(&plane, &path, json!({"propagationPolicy": policy})).await;
        assert_eq!(code, 200);
        assert_eq!(object["metadata"]["finalizers"], json!([finalizer]));
    }
    let (_, status) = delete(&plane, &path, json!({"propagationPolicy": "Background"})).await;
    assert_eq!(status["status"], "Success");
    assert_eq!(plane.code(&path).await, 404);
    let both = json!({"propagationPolicy": "Orphan", "orphanDependents": true});
    plane
        .create(MAPS, &json!({"metadata": {"name": "a"}}))
        .await;
    assert_eq!(delete(&plane, &path, both).await.0, 422);
}

#[tokio::test(start_paused = true)]
async fn terminating_object_can_change_but_not_be_recreated() {
    let plane = plane().await;
    let body = json!({"metadata": {"name": "a", "finalizers": ["example.com/hold"]}});
    plane.create(MAPS, &body).await;
    let path = format!("{MAPS}/a");
    let (_, object) = delete(&plane, &path, json!({})).await;
    let deleted = object["metadata"]["deletionTimestamp"].clone();
    let patch = json!({"data": {"k": "v"}, "metadata": {"deletionTimestamp": null}});
    let (code, patched) = plane.call(Method::PATCH, &path, &patch).await;
    assert_eq!(
        (code, &patched["metadata"]["deletionTimestamp"]),
        (200, &deleted)
    );
    let more = json!({"metadata": {"finalizers": ["example.com/more"]}});
    assert_eq!(plane.call(Method::PATCH, &path, &more).await.0, 422);
    let (code, status) = plane.call(Method::POST, MAPS, &body).await;
    let message = "object is being deleted: configmaps \"a\" already exists";
    assert_eq!((code, &status["message"]), (409, &json!(message)));
    let generated = json!({"metadata": {"name": "a", "generateName": "a-"}});
    for path in [MAPS.to_owned(), format!("{MAPS}?dryRun=All")] {
        let (code, status) = plane.call(Method::POST, &path, &generated).await;
        let message = "object is being deleted: configmaps \"a\" already exists, the server was \
                       not able to generate a unique name for the object";
        assert_eq!((code, &status["message"]), (409, &json!(message)), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn system_namespaces_cannot_be_deleted() {
    let plane = plane().await;
    for name in ["default", "kube-system", "kube-public"] {
        let path = format!("/api/v1/namespaces/{name}");
        assert_eq!(delete(&plane, &path, json!({})).await.0, 403, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forced_deletion_succeeds_in_a_race() {
    let plane = std::sync::Arc::new(plane().await);
    for round in 0..200 {
        let path = scheduled(&plane, &format!("p-{round}")).await;
        // Acts like a kubelet: removes the pod once it is marked.
        let other = {
            let (plane, path) = (std::sync::Arc::clone(&plane), path.clone());
            async move {
                while !plane.is_deleting(&path).await && plane.code(&path).await == 200 {
                    tokio::task::yield_now().await;
                }
                delete(&plane, &path, json!({"gracePeriodSeconds": 0})).await;
            }
        };
        let mut others = tokio::task::JoinSet::new();
        others.spawn(other);
        let (code, pod) = delete(&plane, &path, json!({"gracePeriodSeconds": 0})).await;
        assert_eq!((code, &pod["kind"]), (200, &json!("Pod")), "round {round}");
        others.join_next().await.unwrap().unwrap();
        assert_eq!(plane.code(&path).await, 404);
    }
}

/// Deletes a namespace with these options and returns it with its finalizers.
async fn terminated(plane: &Plane, name: &str, options: Value) -> (Value, Value) {
    let namespaces = "/api/v1/namespaces";
    let object = json!({"metadata": {"name": name, "finalizers": ["example.com/f", "orphan"]}});
    plane.create(namespaces, &object).await;
    let (code, object) = delete(plane, &format!("{namespaces}/{name}"), options).await;
    assert_eq!(code, 200, "{object}");
    let finalizers = object["metadata"]["finalizers"].clone();
    (object, finalizers)
}

#[tokio::test(start_paused = true)]
async fn propagation_policy_marks_a_namespace() {
    let plane = plane().await;
    for (name, options, expected) in [
        ("plain", json!({}), json!(["example.com/f", "orphan"])),
        (
            "orphaning",
            json!({"propagationPolicy": "Orphan"}),
            json!(["example.com/f", "orphan"]),
        ),
        (
            "foreground",
            json!({"propagationPolicy": "Foreground"}),
            json!(["example.com/f", "foregroundDeletion"]),
        ),
        (
            "background",
            json!({"propagationPolicy": "Background"}),
            json!(["example.com/f"]),
        ),
        (
            "not-orphaning",
            json!({"orphanDependents": false}),
            json!(["example.com/f", "foregroundDeletion"]),
        ),
    ] {
        let (object, finalizers) = terminated(&plane, name, options).await;
        assert_eq!(finalizers, expected, "{name}");
        assert_eq!(object["status"]["phase"], "Terminating", "{name}");
        assert_eq!(object["spec"]["finalizers"], json!(["kubernetes"]));
        // A second deletion changes nothing while there may be content.
        let path = format!("/api/v1/namespaces/{name}");
        let (_, again) = delete(&plane, &path, json!({"propagationPolicy": "Foreground"})).await;
        assert_eq!(again, object, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn namespace_is_deleted_under_every_policy() {
    let plane = Plane::new(TestControlPlane::builder().all_actors().start().await);
    for policy in ["Orphan", "Foreground", "Background"] {
        let name = policy.to_lowercase();
        let object = json!({"metadata": {"name": name}});
        plane.create("/api/v1/namespaces", &object).await;
        let maps = format!("/api/v1/namespaces/{name}/configmaps");
        plane
            .create(&maps, &json!({"metadata": {"name": "m"}}))
            .await;
        let path = format!("/api/v1/namespaces/{name}");
        delete(&plane, &path, json!({"propagationPolicy": policy})).await;
        crate::support::eventually(|| async { plane.code(&path).await == 404 }).await;
        assert_eq!(plane.code(&format!("{maps}/m")).await, 404, "{policy}");
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn namespace_preconditions_have_separate_messages() {
    let plane = plane().await;
    let path = "/api/v1/namespaces/team";
    let object = json!({"metadata": {"name": "team"}});
    let created = plane.create("/api/v1/namespaces", &object).await;
    let uid = created["metadata"]["uid"].as_str().unwrap();
    let (code, answer) = delete(&plane, path, json!({"preconditions": {"uid": "u"}})).await;
    let message = format!(
        "Operation cannot be fulfilled on namespaces \"team\": Precondition failed: UID in \
         precondition: u, UID in object meta: {uid}"
    );
    assert_eq!((code, &answer["message"]), (409, &json!(message)));
    assert_eq!(
        answer["details"],
        json!({"name": "team", "kind": "namespaces"})
    );
    let stale = json!({"preconditions": {"resourceVersion": "1"}});
    let (code, answer) = delete(&plane, path, stale).await;
    let message = answer["message"].as_str().unwrap();
    assert_eq!(code, 409);
    assert!(
        message.contains("ResourceVersion in precondition: 1, "),
        "{message}"
    );
    plane.stop().await;
}
