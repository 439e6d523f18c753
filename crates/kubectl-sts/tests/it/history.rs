//! `history` and `diff`.

use kube_test_control_plane::auth::Identity;
use serde_json::{Value, json};

use crate::stage::{SET, SETS, Stage, web};

/// A cluster whose set is at its second of two revisions below the partition.
pub(crate) async fn halfway() -> Stage {
    let stage = Stage::start().await;
    stage.create(SETS, &web(3)).await;
    stage.pass(60).await;
    let partition = json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 2}}}});
    stage.patch(SET, &partition).await;
    stage.set_image("app:2").await;
    stage.pass(60).await;
    stage
}

fn names(history: &str) -> (String, String) {
    let history: Value = serde_json::from_str(history).expect("the answer is JSON");
    let name = |at: usize| {
        history["revisions"][at]["name"]
            .as_str()
            .expect("a name")
            .to_owned()
    };
    (name(0), name(1))
}

#[tokio::test(start_paused = true)]
async fn history_names_pods_and_changes() {
    let stage = halfway().await;
    let (first, second) = names(&stage.sts("history web -o json").await);
    let lines = stage.sts("history sts/web").await;
    let lines: Vec<String> = lines.lines().map(words).collect();
    assert_eq!(
        lines,
        [
            "REVISION NAME AGE ROLE PODS CHANGE".to_owned(),
            format!("1 {first} 2m current web-0 web-1 first known"),
            format!("2 {second} 60s update web-2 spec.containers[app].image: app:1 to app:2"),
        ]
    );
    let yaml = stage.sts("history web -o yaml").await;
    assert!(yaml.contains("path: spec.containers[app].image"), "{yaml}");
}

#[tokio::test(start_paused = true)]
async fn diff_compares_revisions_by_number_or_name() {
    let stage = halfway().await;
    let (first, second) = names(&stage.sts("history web -o json").await);
    let forward = format!(
        "web: revision 1 ({first}) to 2 ({second})\nspec.containers[app].image\n  - app:1\n  + app:2\n"
    );
    assert_eq!(stage.sts("diff web").await, forward);
    assert_eq!(stage.sts(&format!("diff web 1 {second}")).await, forward);
    let back = stage.sts("diff web 2 1").await;
    assert!(back.ends_with("  - app:2\n  + app:1\n"), "{back}");
    let equal = stage.sts("diff web 2 2").await;
    assert!(equal.ends_with("the templates are equal\n"), "{equal}");
    let unknown = "error: StatefulSet web has no revision 9; its revisions are 1, 2\n";
    assert_eq!(stage.sts("diff web 9").await, unknown);
}

#[tokio::test(start_paused = true)]
async fn set_without_controller_has_no_revisions() {
    let stage = Stage::without_controller().await;
    stage.create(SETS, &web(1)).await;
    let text = "default/web has no revisions: no controller has seen it yet\n";
    assert_eq!(stage.sts("history web").await, text);
    let error = "error: StatefulSet web has no revisions: no controller has seen it yet\n";
    assert_eq!(stage.sts("diff web").await, error);
}

#[tokio::test(start_paused = true)]
async fn missing_objects_and_permissions_are_named() {
    let stage = Stage::start().await;
    let missing =
        "error: StatefulSet db doesn't exist in namespace default; choose another with -n\n";
    assert_eq!(stage.sts("history db").await, missing);
    let jane = stage.plane.client_as(Identity::user("jane"));
    let refused = stage.sts_as(jane, "history web").await;
    let advice = "needs permission to get statefulsets in namespace default: ";
    assert!(refused.contains(advice), "{refused}");
    assert_eq!(refused.lines().count(), 1, "{refused}");
}

/// A line with one space between its words.
fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}
