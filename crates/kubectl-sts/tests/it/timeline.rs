//! `timeline` as text and as a picture.

use serde_json::json;

use crate::stage::{SET, SETS, Stage, web};

/// A cluster whose set crashes in its second revision.
pub(crate) async fn crashing() -> Stage {
    let stage = Stage::start().await;
    stage.create(SETS, &web(2)).await;
    stage.pass(60).await;
    let annotations = json!({"kubelet.test-control-plane/crash": "{exitCode: 3}"});
    let template = json!({"metadata": {"annotations": annotations}});
    stage
        .patch(SET, &json!({"spec": {"template": template}}))
        .await;
    stage.pass(60).await;
    stage
}

#[tokio::test(start_paused = true)]
async fn timeline_lists_revisions_pods_and_crashes_in_order() {
    let stage = crashing().await;
    let text = stage.sts("timeline web").await;
    let position = |wanted: &str| {
        let mut lines = text.lines();
        let found = lines.position(|line| line.contains(wanted));
        found.unwrap_or_else(|| panic!("{wanted} is missing:\n{text}"))
    };
    let order = [
        "set    revision 1 (web-5cd748bc4): first known",
        "web-0  created with revision web-5cd748bc4",
        "revision 2 (web-",
        "SuccessfulDelete: Delete Pod web-1 in StatefulSet web successful",
        "exit code 3",
    ];
    let positions = order.map(position);
    assert!(positions.is_sorted(), "{positions:?}\n{text}");
    let first = text.lines().next().expect("a line");
    assert!(first.starts_with("2026-03-01T12:00:00Z  set"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn picture_has_a_row_for_every_pod() {
    let stage = crashing().await;
    let svg = stage.sts("timeline web --svg").await;
    assert!(svg.starts_with("<svg xmlns"), "{svg}");
    assert!(svg.ends_with("</svg>\n"), "{svg}");
    for row in ["set", "web-0", "web-1"] {
        assert!(svg.contains(&format!("\">{row}</text>")), "{svg}");
    }
    assert!(svg.contains("fill=\"#bb0000\""), "{svg}");
    for tick in ["12:00:00", "12:01:00", "12:02:00"] {
        assert!(svg.contains(&format!("\">{tick}</text>")), "{svg}");
    }
    let opened = svg.matches("<circle").count();
    assert_eq!(opened, svg.matches("</circle>").count());
    if let Some(path) = std::env::var_os("TIMELINE_SVG") {
        std::fs::write(path, svg).expect("the picture is written");
    }
}
