//! Comparison of the documentation's examples with real output.

use kube_test_control_plane::auth::Identity;
use serde_json::json;
use statefulset_controller::opt_ins::Cause;

use crate::history::halfway;
use crate::kubectl::kubectl;
use crate::preflight::three_sets;
use crate::shadow_report::{cluster, report_of};
use crate::stage::{SETS, Stage, complete, web};
use crate::timeline::crashing;
use crate::watch::starting_slowly;
use crate::why::two_sets;

const GUIDE: &str = include_str!("../../../../docs/kubectl-sts.md");
const SHADOW: &str = include_str!("../../../../docs/shadow.md");

/// Checks that the page shows this output after the command. A line `…` stands for any lines, and a
/// line that ends in `…` for any line with that beginning.
fn assert_example(page: &str, command: &str, output: &str) {
    let start = format!("```text\n$ kubectl sts {command}\n");
    let example = page.split(&start).nth(1);
    let example = example.unwrap_or_else(|| panic!("no example of {command}:\n{output}"));
    let example = example.split("\n```").next().unwrap_or_default();
    let mut lines = output.lines();
    let mut may_skip = false;
    for wanted in example.lines() {
        if wanted == "…" {
            may_skip = true;
            continue;
        }
        let is_wanted = |line: &str| match wanted.strip_suffix('…') {
            Some(beginning) => line.starts_with(beginning),
            None => line == wanted,
        };
        let found = if may_skip {
            lines.any(is_wanted)
        } else {
            lines.next().is_some_and(is_wanted)
        };
        assert!(found, "{command}: {wanted:?} is not in\n{output}");
        may_skip = false;
    }
    let rest = lines.next();
    let is_end = may_skip || rest.is_none_or(|line| line.starts_with("exit code"));
    assert!(is_end, "{command}: the example lacks {rest:?}");
}

#[tokio::test(start_paused = true)]
async fn examples_of_why_are_true() {
    let stage = two_sets().await;
    assert_example(GUIDE, "why", &stage.sts("why").await);
    assert_example(GUIDE, "why web", &stage.sts("why web").await);
}

#[tokio::test(start_paused = true)]
async fn example_of_a_risk_is_true() {
    let stage = complete().await;
    kubectl(&stage, "kubectl -n default delete pvc data-web-1").await;
    let risks = GUIDE.split("A claim that is being deleted while").nth(1);
    assert_example(
        risks.unwrap_or_default(),
        "why web",
        &stage.sts("why web").await,
    );
}

/// Causes are names for programs: the page lists each.
#[test]
fn every_cause_has_a_row() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/why");
    let mut folders = vec![folder];
    let mut causes = std::collections::BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the folder exists") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(path).expect("a source file");
            let words = text.split('"').skip(1).step_by(2);
            let before = text.split('"').step_by(2);
            for (before, word) in before.zip(words) {
                let starts = ["::stuck(", "::waiting(", "cause: ", "cause = "];
                if starts
                    .iter()
                    .any(|start| before.trim_end().ends_with(start.trim_end()))
                {
                    causes.insert(word.to_owned());
                }
            }
        }
    }
    causes.extend(Cause::ALL.map(|cause| cause.name().to_owned()));
    causes.remove("settled");
    // A condition's reason alone: this program names the unavailable pod's own cause.
    causes.remove(Cause::UnavailableBudget.name());
    assert!(causes.len() > 40, "{causes:?}");
    let missing: Vec<&String> = causes
        .iter()
        .filter(|cause| !GUIDE.contains(&format!("`{cause}`")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[tokio::test(start_paused = true)]
async fn examples_of_plan_are_true() {
    let stage = Stage::start().await;
    stage.create(SETS, &web(2)).await;
    stage.pass(120).await;
    let rollout = "plan web --image app=app:2";
    assert_example(GUIDE, rollout, &stage.sts(rollout).await);

    let stage = Stage::start().await;
    let mut set = web(3);
    set["spec"]["persistentVolumeClaimRetentionPolicy"] = json!({"whenScaled": "Delete"});
    stage.create(SETS, &set).await;
    stage.pass(120).await;
    let smaller = "plan web --replicas 1";
    assert_example(GUIDE, smaller, &stage.sts(smaller).await);
}

#[tokio::test(start_paused = true)]
async fn example_of_a_recreation_is_true() {
    let stage = complete().await;
    let recreation = "recreate web --set serviceName=db \
                      --set volumeClaimTemplates[data].spec.resources.requests.storage=2Gi";
    assert_example(GUIDE, recreation, &stage.sts(recreation).await);
}

#[tokio::test(start_paused = true)]
async fn examples_of_revisions_are_true() {
    let stage = halfway().await;
    assert_example(GUIDE, "history web", &stage.sts("history web").await);
    assert_example(GUIDE, "diff web", &stage.sts("diff web").await);
}

#[tokio::test(start_paused = true)]
async fn examples_of_watch_and_timeline_are_true() {
    let stage = starting_slowly().await;
    let once = "watch web --once";
    assert_example(GUIDE, once, &stage.sts(once).await);
    let stage = crashing().await;
    assert_example(GUIDE, "timeline web", &stage.sts("timeline web").await);
}

#[tokio::test(start_paused = true)]
async fn example_of_preflight_is_true() {
    let stage = Stage::start().await;
    stage.create(SETS, &web(3)).await;
    stage.pass(60).await;
    let pod = json!({
        "metadata": {"name": "kcm", "labels": {"component": "kube-controller-manager"}},
        "spec": {"containers": [{
            "name": "kcm", "image": "kcm:1", "args": ["--concurrent-statefulset-syncs=10"],
        }]},
    });
    let pods = "/api/v1/namespaces/kube-system/pods";
    stage.create(pods, &pod).await;
    assert_example(GUIDE, "preflight", &stage.sts("preflight").await);
    let upgrade = "preflight --to 1.37";
    assert_example(GUIDE, upgrade, &three_sets().await.sts(upgrade).await);
}

#[tokio::test(start_paused = true)]
async fn example_of_the_shadow_report_is_true() {
    let stage = Stage::without_controller().await;
    let counts = json!({"equal": 1318, "late": 3, "refused": 1, "foreign": 17, "different": 0});
    let user = cluster("kube-system", report_of(42, &counts, &[]));
    let command = "shadow-report -n kube-system";
    assert_example(SHADOW, command, &stage.sts_as(user, command).await);
    // The command needs the pods of the namespace.
    let jane = stage.plane.client_as(Identity::user("jane"));
    let refused = stage.sts_as(jane, command).await;
    let start = "error: list pods in namespace kube-system: needs permission to list pods";
    assert!(refused.starts_with(start), "{refused}");
}
