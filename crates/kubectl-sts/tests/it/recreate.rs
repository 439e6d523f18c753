//! Recreation of sets in place.

mod deletion;
mod interruptions;
mod kills;
mod refusals;

use serde_json::{Value, json};

use crate::stage::{SET, SETS, Stage, web};

/// The recreation of the tests: a larger claim template and another service.
const CHANGE: &str = "recreate web --set serviceName=db \
                      --set volumeClaimTemplates[data].spec.resources.requests.storage=2Gi";
/// Path of the record.
const RECORDS: &str = "/api/v1/namespaces/default/configmaps";
const RECORD: &str = "statefulset-controller-manager-recreate-web";

/// A set whose claims go with it.
fn owning(replicas: u32) -> Value {
    let mut set = web(replicas);
    set["spec"]["persistentVolumeClaimRetentionPolicy"] = json!({"whenDeleted": "Delete"});
    set
}

/// A cluster with this set, which has had a rollout.
async fn settled(set: &Value) -> Stage {
    let stage = Stage::start().await;
    stage.create(SETS, set).await;
    stage.pass(60).await;
    stage.set_image("app:2").await;
    stage.pass(60).await;
    stage
}

/// The names and uids of the objects of a kind.
async fn uids(stage: &Stage, path: &str) -> Vec<(String, String)> {
    let list = stage.get(path).await;
    let items = list["items"].as_array().expect("a list").iter();
    let text = |item: &Value, field: &str| {
        let text = item["metadata"][field].as_str();
        text.expect("metadata has texts").to_owned()
    };
    items
        .map(|it| (text(it, "name"), text(it, "uid")))
        .collect()
}

const KINDS: [&str; 3] = [
    "/api/v1/namespaces/default/pods",
    "/api/v1/namespaces/default/persistentvolumeclaims",
    "/apis/apps/v1/namespaces/default/controllerrevisions",
];

/// The uids of all pods, claims and revisions.
async fn all_uids(stage: &Stage) -> Vec<Vec<(String, String)>> {
    let mut all = Vec::new();
    for kind in KINDS {
        all.push(uids(stage, kind).await);
    }
    all
}

/// Checks that the set owns each pod, claim and revision, and is complete.
async fn assert_owned(stage: &Stage, context: &str) {
    let set = stage.get(SET).await;
    let uid = &set["metadata"]["uid"];
    for kind in KINDS {
        let list = stage.get(kind).await;
        for item in list["items"].as_array().expect("a list") {
            let owners = item["metadata"]["ownerReferences"].as_array();
            let owners = owners.map_or(&[][..], Vec::as_slice);
            let owners: Vec<&Value> = owners.iter().map(|owner| &owner["uid"]).collect();
            assert_eq!(owners, [uid], "{context}: {item:#}");
        }
    }
    let status = &set["status"];
    assert_eq!(
        status["readyReplicas"], set["spec"]["replicas"],
        "{context}"
    );
    assert_eq!(
        status["currentRevision"], status["updateRevision"],
        "{context}"
    );
    assert_eq!(
        status["observedGeneration"], set["metadata"]["generation"],
        "{context}"
    );
}

/// The service and the claim size of the set.
async fn form(stage: &Stage) -> (Value, Value) {
    let set = stage.get(SET).await;
    let claim = &set["spec"]["volumeClaimTemplates"][0];
    let size = claim["spec"]["resources"]["requests"]["storage"].clone();
    (set["spec"]["serviceName"].clone(), size)
}

async fn records(stage: &Stage) -> Vec<String> {
    let records = uids(stage, RECORDS).await.into_iter();
    let names = records.map(|(name, _)| name);
    names.filter(|name| name != "kube-root-ca.crt").collect()
}

#[tokio::test(start_paused = true)]
async fn claim_size_and_service_change_without_a_restart() {
    let stage = settled(&owning(3)).await;
    let (before, set) = (all_uids(&stage).await, stage.get(SET).await);
    let preview = stage.sts(&format!("{CHANGE} --dry-run")).await;
    let expected = "\
change  spec.serviceName: web to db
change  spec.volumeClaimTemplates[data].spec.resources.requests.storage: 1Gi to 2Gi
keep    3 pods, 3 claims and 2 revisions
note    running pods keep their host names in service \"web\", until they restart for another reason: keep that Service until then
note    3 claims of template data keep their size; only new ones get 2Gi
no pod restarts
nothing was written
";
    assert_eq!(preview, expected);
    assert_eq!(stage.get(SET).await, set, "a dry run writes nothing");

    let text = stage.sts(CHANGE).await;
    let done = text.strip_prefix(&preview.replace("nothing was written\n", ""));
    let done = done.unwrap_or_else(|| panic!("{text}"));
    let uid = set["metadata"]["uid"].as_str().expect("a uid");
    let expected = format!(
        "\
done    saved the old and the new StatefulSet web in ConfigMap {RECORD}; after an interruption, go on with: kubectl sts recreate web --continue -n default; or go back with: kubectl sts recreate web --restore -n default
done    deleted StatefulSet web (uid {uid}) without its pods
done    created the new StatefulSet web
ok      3 pods adopted, with the same uids
ok      3 claims kept, with the same uids
ok      2 revisions adopted
StatefulSet web is recreated
"
    );
    let is_step = |line: &&str| !line.starts_with("waiting: ");
    let steps: Vec<&str> = done.lines().filter(is_step).collect();
    assert_eq!(steps, expected.lines().collect::<Vec<_>>());
    stage.pass(60).await;
    assert_eq!(all_uids(&stage).await, before);
    assert_owned(&stage, "after the recreation").await;
    assert_eq!(form(&stage).await, (json!("db"), json!("2Gi")));
    assert!(records(&stage).await.is_empty());

    let again = stage.sts(CHANGE).await;
    let error = "error: no immutable field of StatefulSet web changes: change it with kubectl apply \
                 or kubectl patch\n";
    assert_eq!(again, error);
    let again = stage.sts("recreate web --continue").await;
    assert_eq!(again, "no recreation of StatefulSet web is under way\n");
}
