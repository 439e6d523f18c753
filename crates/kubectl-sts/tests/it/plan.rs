//! Comparison of `plan` with the controller's actual writes.

use kube_test_control_plane::admission::{AdmissionRequest, Denial, Operation};
use kube_test_control_plane::audit::AuditEntry;
use serde_json::{Value, json};

use crate::stage::{SET, SETS, Stage, web};

/// A cluster with this set, settled.
async fn settled(set: &Value) -> Stage {
    let stage = Stage::start().await;
    stage.create(SETS, set).await;
    stage.pass(120).await;
    stage
}

/// The planned writes, such as `create pods web-2`.
fn planned(plan: &str) -> Vec<String> {
    let json = plan.strip_suffix("exit code 2\n").unwrap_or(plan);
    let plan: Value = serde_json::from_str(json).unwrap_or_else(|_| panic!("{plan}"));
    let text = |step: &Value, member: &str| step[member].as_str().expect("a text").to_owned();
    let steps = plan["steps"].as_array().expect("a list").iter();
    let line = |it: &Value| [text(it, "verb"), text(it, "resource"), text(it, "name")].join(" ");
    steps.map(line).collect()
}

/// The controller's writes in the cluster, in the same form.
fn written(stage: &Stage) -> Vec<String> {
    let is_step = |entry: &AuditEntry| {
        entry.user.ends_with(":statefulset-controller")
            && entry.is_change()
            && entry.subresource.is_empty()
            && entry.resource != "events"
    };
    let entries = stage.plane.server().audit().matching(is_step);
    let line = |it: &AuditEntry| format!("{} {} {}", it.verb.name(), it.resource, it.name);
    entries.iter().map(line).collect()
}

#[tokio::test(start_paused = true)]
async fn rollout_is_planned_pod_by_pod() {
    let stage = settled(&web(2)).await;
    let before = stage.plane.server().audit().mark();
    let plan = stage.sts("plan web --image app=app:2").await;
    let lines: Vec<&str> = plan.lines().map(str::trim).collect();
    let wanted = [
        "default/web",
        "+0s  create revision web-74c9548cf9",
        "+0s  delete pod web-1",
        "wait until web-1 is gone",
        "+1s  create pod web-1 (revision web-74c9548cf9)",
        "wait until web-1 is ready",
        "+3s  delete pod web-0",
        "wait until web-0 is gone",
        "+4s  create pod web-0 (revision web-74c9548cf9)",
        "complete after about 6s (the existing pods took 2s to become ready)",
    ];
    assert_eq!(lines, wanted);
    let writes = stage
        .plane
        .server()
        .audit()
        .since(before, AuditEntry::is_write);
    let of_user = |it: &&AuditEntry| !it.user_agent.contains("test-control-plane");
    assert_eq!(
        writes
            .expect("a short log")
            .iter()
            .find(of_user)
            .map(AuditEntry::summary),
        None
    );
}

#[tokio::test(start_paused = true)]
async fn deleted_data_and_outages_have_their_own_exit_code() {
    let mut set = web(3);
    set["spec"]["persistentVolumeClaimRetentionPolicy"] = json!({"whenScaled": "Delete"});
    let stage = settled(&set).await;
    let plan = stage.sts("plan web --replicas 1").await;
    for claim in ["data-web-1", "data-web-2"] {
        let line = format!("DATA LOSS: claim {claim} (1Gi, storage class none) would be deleted");
        assert!(plan.contains(&line), "{plan}");
    }
    assert!(plan.ends_with("exit code 2\n"), "{plan}");
    assert!(!plan.contains("data-web-0"), "{plan}");
    let safe = stage.sts("plan web --replicas 4").await;
    assert!(!safe.contains("exit code"), "{safe}");
}

#[tokio::test(start_paused = true)]
async fn refused_and_impossible_changes_are_explained() {
    let stage = settled(&web(1)).await;
    let refused = stage
        .sts(r#"plan web --patch {"spec":{"serviceName":"other"}}"#)
        .await;
    let start = "error: the server would refuse the change: StatefulSet.apps \"web\" is invalid";
    assert!(refused.starts_with(start), "{refused}");
    let unknown = stage.sts("plan web --image db=db:1").await;
    assert_eq!(
        unknown,
        "error: the template has no container db; its containers are app\n"
    );
    let missing = stage.sts("plan web --rollback 7").await;
    assert_eq!(
        missing,
        "error: web has no revision 7; its revisions are 1\n"
    );
    let stuck = r#"{"spec":{"template":{"spec":{"nodeSelector":{"disk":"fast"}}}}}"#;
    let plan = stage.sts(&format!("plan web --patch {stuck}")).await;
    assert!(plan.contains("stops after about"), "{plan}");
    assert!(plan.contains("none has the labels disk=fast"), "{plan}");
}

/// A small generator, so that every case is known by its number.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// A set and a change of it, as the arguments of `plan` and as a strategic merge patch.
fn case(number: u64) -> (Value, String, Value) {
    let mut draw = Draw(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut set = web(u32::try_from(draw.below(5)).expect("small"));
    if draw.below(2) == 0 {
        set["spec"]["podManagementPolicy"] = json!("Parallel");
    }
    if draw.below(3) == 0 {
        let policies = ["Retain", "Delete"];
        let scaled = policies[usize::from(draw.below(2) == 0)];
        let deleted = policies[usize::from(draw.below(2) == 0)];
        set["spec"]["persistentVolumeClaimRetentionPolicy"] =
            json!({"whenScaled": scaled, "whenDeleted": deleted});
    }
    if draw.below(4) == 0 {
        set["spec"]["ordinals"] = json!({"start": draw.below(4)});
    }
    if draw.below(4) == 0 {
        set["spec"]["minReadySeconds"] = json!(draw.below(20));
    }
    match draw.below(5) {
        0 => set["spec"]["updateStrategy"] = json!({"type": "OnDelete"}),
        1 => {
            let partition = json!({"partition": draw.below(5)});
            set["spec"]["updateStrategy"] = json!({"rollingUpdate": partition});
        }
        _ => {}
    }
    let mut spec = json!({});
    if draw.below(2) == 0 {
        spec["replicas"] = json!(draw.below(7));
    }
    if draw.below(2) == 0 {
        spec["template"] = json!({"spec": {"containers": [{"name": "app", "image": "app:2"}]}});
    }
    if draw.below(4) == 0 {
        spec["ordinals"] = json!({"start": draw.below(4)});
    }
    let patch = json!({"spec": spec});
    (set, format!("plan web -o json --patch {patch}"), patch)
}

/// Cases of each test, unless `PLANS_PER_TEST` says more.
const CASES: u64 = 12;

/// Plans and makes generated changes, and compares the order of the writes.
async fn plans_are_followed(first: u64) {
    let more = std::env::var("PLANS_PER_TEST").ok();
    let cases = more.map_or(CASES, |more| {
        more.parse().expect("PLANS_PER_TEST is a number")
    });
    for number in first..first + cases {
        let (set, question, patch) = case(number);
        let stage = settled(&set).await;
        let plan = stage.sts(&question).await;
        stage.plane.server().audit().clear();
        let format = "application/strategic-merge-patch+json";
        stage.ask("PATCH", SET, format, &patch).await;
        stage.pass(400).await;
        let (planned, written) = (planned(&plan), written(&stage));
        assert!(
            planned == written,
            "case {number}: {set}\n{patch}\n{planned:#?}\n{written:#?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn plans_from_0_are_followed() {
    plans_are_followed(0).await;
}

#[tokio::test(start_paused = true)]
async fn plans_from_1000_are_followed() {
    plans_are_followed(1000).await;
}

#[tokio::test(start_paused = true)]
async fn plans_from_2000_are_followed() {
    plans_are_followed(2000).await;
}

#[tokio::test(start_paused = true)]
async fn plan_follows_the_version_of_the_server() {
    let stage = Stage::with_recreate().await;
    stage.create(SETS, &web(2)).await;
    stage.pass(120).await;
    let recreate = json!({"type": "Recreate", "rollingUpdate": null});
    let container = json!({"name": "app", "image": "app:2"});
    let template = json!({"spec": {"containers": [container]}});
    let patch = json!({"spec": {"updateStrategy": recreate, "template": template}});
    let plan = stage
        .sts(&format!("plan web -o json --patch {patch}"))
        .await;
    stage.plane.server().audit().clear();
    let format = "application/strategic-merge-patch+json";
    stage.ask("PATCH", SET, format, &patch).await;
    stage.pass(120).await;
    let written = written(&stage);
    assert!(
        written.contains(&"delete pods web-0".to_owned()),
        "{written:?}"
    );
    assert_eq!(planned(&plan), written);
}

#[tokio::test(start_paused = true)]
async fn manifest_of_a_new_set_is_planned() {
    let stage = Stage::start().await;
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join(format!("planned-set-{}.yaml", std::process::id()));
    let text = format!("kind: Service\n---\n{}\n", web(2));
    std::fs::write(&path, text).expect("the manifest is written");
    let question = format!("plan -o json -f {}", path.display());
    let plan = stage.sts(&question).await;
    stage.create(SETS, &web(2)).await;
    stage.pass(120).await;
    assert_eq!(planned(&plan), written(&stage));
    let changed = web(3).to_string().replace("app:1", "app:2");
    std::fs::write(&path, changed).expect("the manifest is written");
    let plan = stage.sts(&question).await;
    let first = [
        "create controllerrevisions web-74c9548cf9",
        "create persistentvolumeclaims data-web-2",
    ];
    assert_eq!(planned(&plan)[..2], first);
    std::fs::remove_file(&path).expect("the manifest exists");
}

#[tokio::test(start_paused = true)]
async fn manifest_is_applied_as_kubectl_does() {
    let stage = Stage::start().await;
    let mut set = web(1);
    set["spec"]["minReadySeconds"] = json!(2);
    set["spec"]["template"]["spec"]["containers"][0]["tty"] = json!(true);
    let last = set.to_string();
    set["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": last});
    stage.create(SETS, &set).await;
    stage.pass(60).await;
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join(format!("applied-set-{}.yaml", std::process::id()));
    let mut file = web(1);
    // The manifest leaves the number of pods to an autoscaler.
    file["spec"]
        .as_object_mut()
        .expect("a spec")
        .remove("replicas");
    std::fs::write(&path, file.to_string()).expect("the manifest is written");
    stage
        .patch(SET, &json!({"spec": {"minReadySeconds": 3}}))
        .await;
    stage.pass(60).await;
    let plan = stage.sts(&format!("plan -f {}", path.display())).await;
    assert!(plan.contains("delete pod web-0"), "{plan}");
    std::fs::remove_file(&path).expect("the manifest exists");
}

#[tokio::test(start_paused = true)]
async fn server_checks_the_change_where_the_user_may() {
    let stage = settled(&web(1)).await;
    let hook = |request: &mut AdmissionRequest<'_>| {
        if request.kind.plural == "statefulsets" && request.operation == Operation::Update {
            return Err(Denial::Forbidden("no updates on Fridays".to_owned()));
        }
        Ok(())
    };
    stage.plane.server().admission().add("fridays", hook);
    let refused = stage.sts("plan web --image app=app:2").await;
    let start = "error: the server would refuse the change: ";
    assert!(refused.starts_with(start), "{refused}");
    assert!(refused.contains("no updates on Fridays"), "{refused}");
}

/// The programs' rules may be older or newer than the cluster's: only its server decides.
#[tokio::test(start_paused = true)]
async fn own_validation_refuses_nothing_that_the_server_accepts() {
    let stage = settled(&web(1)).await;
    let server = Lenient::of(&stage);
    let patch = r#"{"spec":{"template":{"spec":{"restartPolicy":"Sometimes"}}}}"#;
    let line = format!("plan web --patch {patch}");
    let strict = stage.sts(&line).await;
    assert!(
        strict.starts_with(
            "error: the server would refuse the change: StatefulSet.apps \"web\" is invalid"
        ),
        "{strict}"
    );
    // The pods of this template are invalid for the copy, too.
    let plan = stage.sts_as(server, &line).await;
    assert!(plan.contains("delete pod web-0"), "{plan}");
    assert!(plan.contains("create pod web-0"), "{plan}");
    assert!(plan.contains("complete after about"), "{plan}");
}

/// A cluster whose server accepts every dry run.
struct Lenient;

impl Lenient {
    fn of(stage: &Stage) -> kube::Client {
        let client = stage.plane.client();
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let client = client.clone();
            async move { Self::answer(client, request).await }
        });
        kube::Client::new(service, "default")
    }

    async fn answer(
        client: kube::Client,
        request: http::Request<kube::client::Body>,
    ) -> Result<http::Response<kube::client::Body>, tower::BoxError> {
        let is_dry_run = request
            .uri()
            .query()
            .is_some_and(|it| it.contains("dryRun=All"));
        if !is_dry_run {
            return Ok(client.send(request).await?);
        }
        let (parts, body) = request.into_parts();
        let patch: Value = serde_json::from_slice(&body.collect_bytes().await?)?;
        if parts.method == http::Method::POST {
            return Ok(http::Response::new(kube::client::Body::from(
                patch.to_string().into_bytes(),
            )));
        }
        let read = http::Request::get(parts.uri.path()).body(Vec::new())?;
        let mut set: Value = serde_json::from_str(&client.request_text(read).await?)?;
        set["spec"]["template"]["spec"]["restartPolicy"] =
            patch["spec"]["template"]["spec"]["restartPolicy"].clone();
        let generation = set["metadata"]["generation"].as_i64().unwrap_or_default();
        set["metadata"]["generation"] = json!(generation + 1);
        Ok(http::Response::new(kube::client::Body::from(
            set.to_string().into_bytes(),
        )))
    }
}

/// A user who may only read gets a hint instead of the server's decision.
#[tokio::test(start_paused = true)]
async fn own_validation_is_a_hint_where_the_server_cannot_be_asked() {
    let stage = settled(&web(1)).await;
    let jane = stage.reader("jane", &["get", "list"]).await;
    let refused = r#"plan web --patch {"spec":{"serviceName":"other"}}"#;
    let hint = stage.sts_as(jane.clone(), refused).await;
    let start = "error: the server was not asked (needs permission to patch statefulsets in \
                 namespace default); the validation of this program, which may differ from the \
                 server's, objects: StatefulSet.apps \"web\" is invalid";
    assert!(hint.starts_with(start), "{hint}");
    let plan = stage.sts_as(jane, "plan web --image app=app:2").await;
    assert!(plan.contains("delete pod web-0"), "{plan}");
    let note = "server-side dry run skipped: needs permission to patch statefulsets in namespace \
                default";
    assert!(plan.contains(note), "{plan}");
}

/// Either permission to change the set is enough, for one part of a change and for several.
#[tokio::test(start_paused = true)]
async fn either_permission_to_change_the_set_is_enough() {
    let stage = settled(&web(1)).await;
    for verb in ["patch", "update"] {
        let user = stage.reader(verb, &["get", "list", verb]).await;
        for line in [
            "plan web --replicas 2",
            "plan web --replicas 2 --image app=app:2",
        ] {
            let plan = stage.sts_as(user.clone(), line).await;
            assert!(plan.contains("create pod web-1"), "{verb}: {plan}");
            assert!(!plan.contains("skipped"), "{verb}: {plan}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn parts_of_a_change_are_combined() {
    let stage = settled(&web(1)).await;
    let line =
        r#"plan web -o json --replicas 2 --image app=app:2 --patch {"spec":{"minReadySeconds":5}}"#;
    let plan = stage.sts(line).await;
    let steps = planned(&plan);
    assert!(steps.contains(&"create pods web-1".to_owned()), "{steps:?}");
    assert!(steps.contains(&"delete pods web-0".to_owned()), "{steps:?}");
    let refused = r#"plan web --replicas 2 --patch {"spec":{"serviceName":"other"}}"#;
    let refused = stage.sts(refused).await;
    assert!(
        refused.starts_with("error: the server would refuse the change: "),
        "{refused}"
    );
}
