//! The whole proof, with the rights of an administrator: of two namespaces, one with the label, the
//! built-in controller must act in the one without it alone.

use std::time::Duration;

use anyhow::bail;
use jiff::Timestamp;
use serde_json::{Value, json};
use statefulset_fence::names::SYSTEM_NAMESPACE;
use statefulset_fence::{FenceSettings, Policy, Trace, is_foreign};
use tokio::time::sleep;

use super::probe::{Probed, probe};
use super::status::{as_shipped, check_probe};
use crate::cluster::Cluster;
use crate::report::{Outcome, Report};

/// Beginning of the names of the probe sets' namespaces.
const PREFIX: &str = "statefulset-controller-manager-probe";
/// Name of the probe sets.
const SET: &str = "probe";
/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(500);
/// Number of looks at a policy that isn't in force yet.
const PROBES_MAX: usize = 20;
/// Number of looks at the unlabelled set: its controller may be busy.
const LOOKS_MAX: usize = 120;
/// Time after the built-in controller acted in one namespace, in which it would act in the other.
const GRACE: Duration = Duration::from_secs(5);

/// Proves that the fence works for a namespace, and cleans up.
pub(super) async fn prove(
    cluster: &Cluster,
    namespace: &str,
    now: Timestamp,
    report: &mut Report,
) -> anyhow::Result<()> {
    let settings = as_shipped(cluster, report).await?;
    let Some(settings) = settings else {
        report.conclude("not proved");
        return Ok(());
    };
    let path = format!("/api/v1/namespaces/{namespace}");
    let Some(found) = cluster.get(&path).await? else {
        bail!("namespace {namespace} doesn't exist");
    };
    let selector = &settings.selector;
    let labels = found.pointer("/metadata/labels");
    let label = labels.and_then(|labels| labels.get(selector.key()));
    let is_labelled = label.and_then(Value::as_str) == Some(selector.value());
    check_probe(cluster, Policy::Mirror, SYSTEM_NAMESPACE, report).await;
    if is_labelled {
        check_probe(cluster, Policy::Fence, namespace, report).await;
    } else {
        let text = format!("namespace {namespace} has no label {selector} yet");
        report.step(Outcome::Note, text);
    }
    if namespace == SYSTEM_NAMESPACE {
        report.step(Outcome::Fail, format!("{SYSTEM_NAMESPACE} is never served"));
    }
    let probes = Probes::new(now);
    let acted = try_out(cluster, &probes, &settings, report).await;
    let unlabelled = cluster.delete(&probes.unlabelled()).await;
    let labelled = cluster.delete(&probes.labelled()).await;
    acted?;
    unlabelled.and(labelled)?;
    report.step(Outcome::Done, "deleted the probe namespaces");
    report.conclude(match (report.has_findings(), is_labelled) {
        (true, _) => "not proved: do not label namespaces".to_owned(),
        (false, true) => format!("proved: the fence gives namespace {namespace} one writer"),
        (false, false) => format!(
            "proved; hand the namespace over with: kubectl label namespace {namespace} {selector}"
        ),
    });
    Ok(())
}

/// The namespaces of the probe sets.
struct Probes {
    unlabelled: String,
    labelled: String,
}

impl Probes {
    /// Names that an interrupted proof hasn't left behind.
    fn new(now: Timestamp) -> Self {
        let second = now.as_second();
        Self {
            unlabelled: format!("{PREFIX}-unfenced-{second}"),
            labelled: format!("{PREFIX}-fenced-{second}"),
        }
    }

    /// Path of the namespace without the label.
    fn unlabelled(&self) -> String {
        format!("/api/v1/namespaces/{}", self.unlabelled)
    }

    /// Path of the namespace with the label.
    fn labelled(&self) -> String {
        format!("/api/v1/namespaces/{}", self.labelled)
    }
}

/// Creates a set without pods in each of two namespaces, and looks who acts on it.
async fn try_out(
    cluster: &Cluster,
    probes: &Probes,
    settings: &FenceSettings,
    report: &mut Report,
) -> anyhow::Result<()> {
    let selector = &settings.selector;
    let Probes {
        unlabelled,
        labelled,
    } = probes;
    for (name, labels) in [
        (unlabelled, json!({})),
        (labelled, json!({selector.key(): selector.value()})),
    ] {
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": labels},
        });
        cluster.create("/api/v1/namespaces", &namespace).await?;
    }
    report.step(
        Outcome::Done,
        format!("created the probe namespaces {unlabelled} and {labelled}"),
    );
    let mut tries = 0;
    while probe(cluster, Policy::Fence, labelled).await != Probed::Denied {
        tries += 1;
        if tries == PROBES_MAX {
            let text = format!("the fence is not in force in the labelled namespace {labelled}");
            report.step(Outcome::Fail, text);
            return Ok(());
        }
        sleep(PAUSE).await;
    }
    for namespace in [labelled, unlabelled] {
        let sets = format!("/apis/apps/v1/namespaces/{namespace}/statefulsets");
        cluster.create(&sets, &probe_set()).await?;
    }
    let mut looks = 0;
    while !built_in_acts(cluster, unlabelled).await? {
        looks += 1;
        if looks == LOOKS_MAX {
            let text = "no built-in controller acts on a set without the label: it is disabled, or \
                        a provider runs it under another name";
            report.step(Outcome::Fail, text);
            return Ok(());
        }
        sleep(PAUSE).await;
    }
    report.step(
        Outcome::Ok,
        "the built-in controller acts on a set without the label",
    );
    sleep(GRACE).await;
    if built_in_acts(cluster, labelled).await? {
        let text = "the built-in controller acts on a set with the label, too: it writes as \
                    another user, so the fence can't be used on this cluster";
        report.step(Outcome::Fail, text);
    } else {
        let text = "the built-in controller leaves the set with the label alone";
        report.step(Outcome::Ok, text);
    }
    Ok(())
}

fn probe_set() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": SET},
        "spec": {
            "replicas": 0, "serviceName": SET,
            "selector": {"matchLabels": {"app": SET}},
            "template": {
                "metadata": {"labels": {"app": SET}},
                "spec": {"containers": [{"name": "none", "image": "none"}]},
            },
        },
    })
}

/// True if the built-in controller has created a revision of the probe set.
async fn built_in_acts(cluster: &Cluster, namespace: &str) -> anyhow::Result<bool> {
    let path = format!("/apis/apps/v1/namespaces/{namespace}/controllerrevisions");
    let revisions = cluster.list(&path).await?;
    Ok(revisions.iter().any(|it| is_foreign(it, Trace::Owned)))
}
