//! Data that a change costs, as `plan` counts it.

use serde_json::{Value, json};

use crate::kubectl::kubectl;
use crate::stage::{SET, SETS, Stage, web};

const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const PODS: &str = "/api/v1/namespaces/default/pods";
const VOLUMES: &str = "/api/v1/persistentvolumes";

/// A cluster with this set, settled.
async fn settled(set: &Value) -> Stage {
    let stage = Stage::start().await;
    stage.create(SETS, set).await;
    stage.pass(120).await;
    stage
}

async fn get(stage: &Stage, path: &str) -> Value {
    stage
        .ask("GET", path, "application/json", &Value::Null)
        .await
}

async fn claim(stage: &Stage, name: &str) -> Value {
    get(stage, &format!("{CLAIMS}/{name}")).await
}

/// Names of the claims in the plan with this end of their data.
async fn planned(stage: &Stage, question: &str) -> (Vec<(String, String)>, bool) {
    let text = stage.sts(&format!("{question} -o json")).await;
    let is_dangerous = text.ends_with("exit code 2\n");
    let json = text.split("\nexit code 2\n").next().unwrap_or_default();
    let json = json.split("\nincomplete").next().unwrap_or_default();
    let plan: Value = serde_json::from_str(json).unwrap_or_else(|_| panic!("{text}"));
    let claims = plan["claimsDeleted"].as_array().expect("a list").iter();
    let field = |claim: &Value, name: &str| claim[name].as_str().expect("a text").to_owned();
    let claims = claims.map(|claim| (field(claim, "name"), field(claim, "data")));
    (claims.collect(), is_dangerous)
}

fn lost(claims: &[&str]) -> Vec<(String, String)> {
    let lost = claims
        .iter()
        .map(|it| ((*it).to_owned(), "lost".to_owned()));
    lost.collect()
}

#[tokio::test(start_paused = true)]
async fn claim_that_only_its_pod_keeps_is_lost_with_the_pod() {
    let stage = settled(&web(2)).await;
    kubectl(&stage, "kubectl -n default delete pvc data-web-1").await;
    let rollout = "plan web --image app=app:2";
    let plan = stage.sts(rollout).await;
    let line = "DATA LOSS: claim data-web-1 (1Gi, storage class none) would be deleted: it is \
                already being deleted, and only pod web-1 keeps it; its volume pvc-";
    assert!(plan.contains(line), "{plan}");
    assert!(plan.ends_with("exit code 2\n"), "{plan}");
    // The prediction is true.
    let before = claim(&stage, "data-web-1").await;
    stage.set_image("app:2").await;
    stage.pass(60).await;
    let after = claim(&stage, "data-web-1").await;
    assert_ne!(before["metadata"]["uid"], after["metadata"]["uid"]);
    let volume = before["spec"]["volumeName"].as_str().expect("a name");
    let volumes = get(&stage, VOLUMES).await;
    assert!(!volumes.to_string().contains(volume), "{volumes:#}");
}

#[tokio::test(start_paused = true)]
async fn claim_whose_pod_the_change_keeps_is_only_at_risk() {
    let stage = settled(&web(2)).await;
    kubectl(&stage, "kubectl -n default delete pvc data-web-1").await;
    let plan = stage.sts("plan web --replicas 3").await;
    let line = "AT RISK: claim data-web-1 is being deleted; only pod web-1 keeps it";
    assert!(plan.contains(line), "{plan}");
    assert!(!plan.contains("exit code"), "{plan}");
    let (claims, is_dangerous) = planned(&stage, "plan web --replicas 1").await;
    assert_eq!((claims, is_dangerous), (lost(&["data-web-1"]), true));
}

#[tokio::test(start_paused = true)]
async fn retained_volume_keeps_the_data() {
    let mut set = web(3);
    set["spec"]["persistentVolumeClaimRetentionPolicy"] = json!({"whenScaled": "Delete"});
    let stage = settled(&set).await;
    for name in ["data-web-1", "data-web-2"] {
        let claim = claim(&stage, name).await;
        let volume = claim["spec"]["volumeName"].as_str().expect("a name");
        let policy = json!({"spec": {"persistentVolumeReclaimPolicy": "Retain"}});
        stage.patch(&format!("{VOLUMES}/{volume}"), &policy).await;
    }
    let plan = stage.sts("plan web --replicas 1").await;
    assert!(
        plan.contains("DATA KEPT: claim data-web-2 (1Gi, storage class none) would be deleted: whenScaled: Delete removes it with its pod; its volume pvc-"),
        "{plan}"
    );
    assert!(
        plan.contains("keeps the data (reclaim policy Retain)"),
        "{plan}"
    );
    assert!(!plan.contains("exit code"), "{plan}");
    // With a successor of the same name, the pod starts without its data.
    kubectl(&stage, "kubectl -n default delete pvc data-web-2").await;
    let plan = stage.sts("plan web --image app=app:2").await;
    assert!(plan.contains("DATA DETACHED: claim data-web-2 "), "{plan}");
    assert!(plan.ends_with("exit code 2\n"), "{plan}");
}

#[tokio::test(start_paused = true)]
async fn unreadable_volume_counts_as_lost() {
    let stage = settled(&web(2)).await;
    kubectl(&stage, "kubectl -n default delete pvc data-web-1").await;
    let jane = stage.reader("jane", &["get", "list", "patch"]).await;
    let plan = stage.sts_as(jane, "plan web --image app=app:2").await;
    assert!(plan.contains("DATA LOSS: claim data-web-1 "), "{plan}");
    let line = "; the reclaim policy of its volume pvc-";
    assert!(plan.contains(line), "{plan}");
    assert!(
        plan.contains("needs permission to get persistentvolumes"),
        "{plan}"
    );
    assert!(plan.ends_with("exit code 2\n"), "{plan}");
}

/// Replaces the owners of a claim.
async fn own(stage: &Stage, claim: &str, owners: &[Value]) {
    let patch = json!({"metadata": {"ownerReferences": owners}});
    stage.patch(&format!("{CLAIMS}/{claim}"), &patch).await;
}

fn owner(version: &str, kind: &str, name: &str, uid: &str) -> Value {
    json!({"apiVersion": version, "kind": kind, "name": name, "uid": uid})
}

async fn uid(stage: &Stage, path: &str) -> String {
    let object = get(stage, path).await;
    object["metadata"]["uid"]
        .as_str()
        .expect("a uid")
        .to_owned()
}

/// The set's former uid, as in a restored backup.
fn former() -> Value {
    owner(
        "apps/v1",
        "StatefulSet",
        "web",
        "00000000-0000-0000-0000-000000000001",
    )
}

#[tokio::test(start_paused = true)]
async fn claims_whose_owners_are_gone_are_lost() {
    let mut stage = Stage::without_collector().await;
    stage.create(SETS, &web(3)).await;
    stage.pass(120).await;
    stage.stop_controller();
    let maps = "/api/v1/namespaces/default/configmaps";
    stage
        .create(maps, &json!({"metadata": {"name": "keeper"}}))
        .await;
    let keeper = uid(&stage, &format!("{maps}/keeper")).await;
    let keeper = owner("v1", "ConfigMap", "keeper", &keeper);
    let other = owner(
        "v1",
        "ConfigMap",
        "keeper",
        "00000000-0000-0000-0000-000000000002",
    );
    own(&stage, "data-web-0", &[former(), keeper]).await;
    own(&stage, "data-web-1", &[former(), other]).await;
    own(&stage, "data-web-2", &[former()]).await;
    let question = "plan web --replicas 4";
    let (claims, is_dangerous) = planned(&stage, question).await;
    let wanted = lost(&["data-web-1", "data-web-2"]);
    assert_eq!((claims, is_dangerous), (wanted, true));
    let plan = stage.sts(question).await;
    let line = "would be deleted: its owner StatefulSet web (uid 00000000-0000-0000-0000-000000000001) \
                no longer exists, so the garbage collector deletes it; ";
    assert!(plan.contains(line), "{plan}");
}

/// An owner that the user may not read, or of an unknown kind, is no proof of a loss.
#[tokio::test(start_paused = true)]
async fn owner_that_cannot_be_looked_up_counts_as_existing() {
    let stage = settled(&web(1)).await;
    let cluster = owner(
        "example.com/v1",
        "Cluster",
        "main",
        "00000000-0000-0000-0000-000000000003",
    );
    own(&stage, "data-web-0", &[cluster]).await;
    let plan = stage.sts("plan web --image app=app:2").await;
    assert!(!plan.contains("DATA"), "{plan}");
    let note = "incomplete: Cluster main, the owner of data-web-0, can't be looked up";
    assert!(plan.contains(note), "{plan}");
}

/// The built-in controller never touches a claim with a stale owner.
#[tokio::test(start_paused = true)]
async fn built_in_controller_keeps_stale_owners_of_claims() {
    let stage = Stage::without_collector().await;
    stage.create(SETS, &web(2)).await;
    stage.pass(120).await;
    let pod = uid(&stage, &format!("{PODS}/web-1")).await;
    let pod = owner("v1", "Pod", "web-1", &pod);
    let mut set = get(&stage, SET).await;
    for entry in set["metadata"]["managedFields"]
        .as_array_mut()
        .expect("a list")
    {
        if entry["subresource"] == "status" {
            entry["manager"] = json!("kube-controller-manager");
        }
    }
    let stored = stage.plane.server().store_as_is(set.to_string().as_bytes());
    stored.expect("the store takes any object");
    own(&stage, "data-web-1", &[former(), pod]).await;
    let (claims, is_dangerous) = planned(&stage, "plan web --image app=app:2").await;
    assert_eq!((claims, is_dangerous), (lost(&["data-web-1"]), true));
}

#[tokio::test(start_paused = true)]
async fn claims_of_a_set_that_is_being_deleted_are_lost() {
    let mut set = web(2);
    set["spec"]["persistentVolumeClaimRetentionPolicy"] = json!({"whenDeleted": "Delete"});
    set["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let stage = settled(&set).await;
    let options = json!({"propagationPolicy": "Background"});
    stage.ask("DELETE", SET, "application/json", &options).await;
    stage.pass(10).await;
    let plan = stage.sts("plan web --image app=app:2").await;
    for name in ["data-web-0", "data-web-1"] {
        let line = format!(
            "DATA LOSS: claim {name} (1Gi, storage class none) would be deleted: StatefulSet web \
             is being deleted, and owns it (whenDeleted: Delete); its volume pvc-"
        );
        assert!(plan.contains(&line), "{plan}");
    }
    assert!(
        plan.contains("the set is being deleted: the change has no effect"),
        "{plan}"
    );
    assert!(plan.ends_with("exit code 2\n"), "{plan}");
}

#[tokio::test(start_paused = true)]
async fn claims_without_the_set_as_owner_outlive_it() {
    let mut set = web(2);
    set["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let stage = settled(&set).await;
    let options = json!({"propagationPolicy": "Background"});
    stage.ask("DELETE", SET, "application/json", &options).await;
    stage.pass(10).await;
    let (claims, is_dangerous) = planned(&stage, "plan web --replicas 3").await;
    assert_eq!((claims, is_dangerous), (Vec::new(), false));
}

/// A new set finds the claims of an earlier one, with all that happens to them.
#[tokio::test(start_paused = true)]
async fn claims_of_an_earlier_set_count_for_a_new_one() {
    let stage = settled(&web(2)).await;
    let hangs = json!({"metadata": {"annotations": {"kubelet.test-control-plane/stop": "hangs"}}});
    stage.patch(&format!("{PODS}/web-1"), &hangs).await;
    stage
        .ask("DELETE", SET, "application/json", &json!({}))
        .await;
    kubectl(&stage, "kubectl -n default delete pvc data-web-1").await;
    stage.pass(120).await;
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join(format!("claims-{}.yaml", std::process::id()));
    std::fs::write(&path, web(2).to_string()).expect("the manifest is written");
    let plan = stage.sts(&format!("plan -f {}", path.display())).await;
    std::fs::remove_file(&path).expect("the manifest exists");
    assert!(!plan.contains("create claim"), "{plan}");
    assert!(plan.contains("create pod web-0"), "{plan}");
    let line = "AT RISK: claim data-web-1 is being deleted; only pod web-1 keeps it";
    assert!(plan.contains(line), "{plan}");
}
