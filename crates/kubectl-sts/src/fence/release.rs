//! The way back: the built-in controller serves the namespace again.

use std::time::Duration;

use anyhow::bail;
use serde_json::{Value, json};
use statefulset_fence::Policy;
use tokio::time::sleep;

use super::install::label_patch;
use super::probe::{Probed, probe};
use super::status::stored;
use crate::cluster::{Cluster, name};
use crate::report::{Outcome, Report};

/// Pause between two looks at the policies.
const PAUSE: Duration = Duration::from_millis(500);
/// Number of looks before the wait is given up.
const LOOKS_MAX: usize = 60;
/// Time that further API servers may take to apply a changed label.
const PROPAGATION: Duration = Duration::from_millis(1_200);
/// Annotation of the updates that wake the built-in controller; it is removed at once.
const ANNOTATION: &str = "statefulset-controller-manager/released";

/// Removes the label, waits until the API server applies it, and wakes the built-in controller, whose
/// back-off may have reached 1,000 s: an update of a set makes it sync at once.
pub(super) async fn release(
    cluster: &Cluster,
    namespace: &str,
    report: &mut Report,
) -> anyhow::Result<()> {
    let settings = stored(cluster).await?.settings.unwrap_or_default();
    let selector = &settings.selector;
    let path = format!("/api/v1/namespaces/{namespace}");
    let Some(found) = cluster.get(&path).await? else {
        bail!("namespace {namespace} doesn't exist");
    };
    let labels = found.pointer("/metadata/labels");
    let label = labels.and_then(|labels| labels.get(selector.key()));
    if label.and_then(Value::as_str) == Some(selector.value()) {
        cluster
            .patch(&path, &label_patch(selector.key(), None))
            .await?;
        report.step(Outcome::Done, format!("removed the label {selector}"));
    } else {
        report.step(
            Outcome::Ok,
            format!("the namespace has no label {selector}"),
        );
    }
    wait_for_end(cluster, namespace, report).await?;
    let sets = format!("/apis/apps/v1/namespaces/{namespace}/statefulsets");
    let found = cluster.list(&sets).await?;
    for set in &found {
        let set = format!("{sets}/{}", name(set));
        for value in [Some("true"), None] {
            let patch = json!({"metadata": {"annotations": {ANNOTATION: value}}});
            cluster.patch(&set, &patch).await?;
        }
    }
    let count = crate::output::counted(found.len(), "StatefulSet");
    report.step(
        Outcome::Done,
        format!("woke the built-in controller for {count}"),
    );
    report.conclude(format!(
        "the built-in controller serves namespace {namespace}"
    ));
    Ok(())
}

/// Waits until the API server applies the fence no longer.
async fn wait_for_end(
    cluster: &Cluster,
    namespace: &str,
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut probed = probe(cluster, Policy::Fence, namespace).await;
    for _ in 0..LOOKS_MAX {
        if probed == Probed::Accepted {
            break;
        }
        sleep(PAUSE).await;
        probed = probe(cluster, Policy::Fence, namespace).await;
    }
    match probed {
        Probed::Accepted => report.step(
            Outcome::Ok,
            "the fence no longer denies the built-in controller's writes",
        ),
        Probed::Denied => {
            bail!("the API server still applies the fence in namespace {namespace}; try again")
        }
        Probed::Unclear(reason) => report.step(
            Outcome::Note,
            format!("cannot tell whether the fence still applies: {reason}"),
        ),
    }
    // Another API server may see the label a little longer.
    sleep(PROPAGATION).await;
    Ok(())
}
