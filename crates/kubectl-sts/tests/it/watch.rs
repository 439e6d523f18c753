//! The table of `watch`.

use serde_json::json;

use crate::stage::{SET, SETS, Stage, web};

/// A cluster with a set whose second pod is starting.
pub(crate) async fn starting_slowly() -> Stage {
    let stage = Stage::start().await;
    let mut set = web(3);
    let annotations = json!({"kubelet.test-control-plane/start-delay": "30s"});
    set["spec"]["template"]["metadata"]["annotations"] = annotations;
    stage.create(SETS, &set).await;
    stage.pass(45).await;
    stage
}

#[tokio::test(start_paused = true)]
async fn table_shows_present_and_missing_pods() {
    let stage = starting_slowly().await;
    let text = stage.sts("watch web --once").await;
    let lines: Vec<String> = text.lines().map(words).collect();
    assert_eq!(
        lines[0],
        "default/web: 1 of 3 ready, 2 updated; pod web-1 is starting (Pending)"
    );
    assert_eq!(
        lines[1],
        "[######..............] 1 of 3 pods done, about 62s left"
    );
    assert_eq!(
        lines[2],
        "ORDINAL POD REVISION PHASE READY NODE ZONE CLAIMS"
    );
    assert!(lines[3].starts_with("0 web-0 web-"), "{text}");
    assert!(
        lines[3].ends_with("Running yes node-0 - data-web-0 Bound"),
        "{text}"
    );
    assert!(
        lines[4].ends_with("Pending no node-1 - data-web-1 Bound"),
        "{text}"
    );
    assert_eq!(lines[5], "2 web-2 - Missing no - -");
    stage.pass(120).await;
    let text = stage.sts("watch web --once").await;
    assert!(
        text.starts_with("default/web: 3 of 3 ready, 3 updated; nothing is left to do"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn huge_sets_fit_on_a_screen() {
    let stage = Stage::without_controller().await;
    stage.create(SETS, &web(1)).await;
    stage
        .patch(SET, &json!({"spec": {"replicas": 2_000_000_000}}))
        .await;
    let text = stage.sts("watch web --once").await;
    assert_eq!(text.lines().count(), 23, "{text}");
}

/// A line with one space between its words.
fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}
