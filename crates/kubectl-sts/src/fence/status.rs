//! The state of the fence.

use std::time::Duration;

use serde_json::Value;
use statefulset_fence::names::{FENCE, MIRROR, SYSTEM_NAMESPACE};
use statefulset_fence::{FenceSettings, NamespaceSelector, PartKind, Policy};
use tokio::time::sleep;

use super::probe::{Probed, path, probe};
use super::shipped::{self, Parts};
use crate::cluster::{Cluster, name};
use crate::report::{Outcome, Report};

/// Number of further probes: a changed policy takes effect after about a second, and the server may
/// name another policy that denies the probe, too.
const RETRIES: usize = 4;
/// Pause before a further probe.
const PAUSE: Duration = Duration::from_millis(500);

/// The stored objects.
pub(super) struct Stored {
    /// The settings in them; none if they don't look like shipped ones.
    pub(super) settings: Option<FenceSettings>,
    /// In the order of a removal: bindings first.
    pub(super) parts: Parts,
}

/// Reads the policies and bindings.
pub(super) async fn stored(cluster: &Cluster) -> anyhow::Result<Stored> {
    let mut parts = Vec::new();
    for kind in [PartKind::Binding, PartKind::Policy] {
        for name in [FENCE, MIRROR] {
            let object = cluster.get(&path(kind, name)).await?;
            parts.extend(object.map(|object| (kind, object)));
        }
    }
    Ok(Stored {
        settings: shipped::settings(&parts),
        parts,
    })
}

/// Names of the namespaces with the label, except those that are being deleted.
pub(super) async fn served_namespaces(
    cluster: &Cluster,
    selector: &NamespaceSelector,
) -> anyhow::Result<Vec<String>> {
    let (key, value) = (selector.key().replace('/', "%2F"), selector.value());
    let path = format!("/api/v1/namespaces?labelSelector={key}%3D{value}");
    let namespaces = cluster.list(&path).await?;
    let is_served = |namespace: &&Value| {
        let deleting = namespace.pointer("/metadata/deletionTimestamp");
        deleting.is_none() && name(namespace) != SYSTEM_NAMESPACE
    };
    Ok(namespaces.iter().filter(is_served).map(name).collect())
}

/// Checks that the objects are as shipped, and reports it. Returns their settings.
pub(super) async fn as_shipped(
    cluster: &Cluster,
    report: &mut Report,
) -> anyhow::Result<Option<FenceSettings>> {
    let Stored { settings, parts } = stored(cluster).await?;
    let settings = settings.unwrap_or_default();
    if let Some(gap) = shipped::difference(&settings, &parts)? {
        report.step(
            Outcome::Fail,
            format!("{gap}; repair it with: kubectl sts fence install"),
        );
        return Ok(None);
    }
    let text = format!(
        "both policies and bindings are as shipped, for the label {} and the user {}",
        settings.selector, settings.user
    );
    report.step(Outcome::Ok, text);
    Ok(Some(settings))
}

/// Reports whether a policy denies its probe in a namespace.
pub(super) async fn check_probe(
    cluster: &Cluster,
    policy: Policy,
    namespace: &str,
    report: &mut Report,
) -> bool {
    let called = match policy {
        Policy::Fence => "fence",
        Policy::Mirror => "mirror",
    };
    let mut probed = probe(cluster, policy, namespace).await;
    for _ in 0..RETRIES {
        if probed == Probed::Denied {
            break;
        }
        sleep(PAUSE).await;
        probed = probe(cluster, policy, namespace).await;
    }
    match probed {
        Probed::Denied => {
            let text = format!("the {called} is in force in namespace {namespace}");
            report.step(Outcome::Ok, text);
            true
        }
        Probed::Accepted => {
            let text = format!("the {called} is not in force in namespace {namespace}");
            report.step(Outcome::Fail, text);
            false
        }
        Probed::Unclear(reason) => {
            let text =
                format!("cannot tell whether the {called} is in force in {namespace}: {reason}");
            report.step(Outcome::Fail, text);
            false
        }
    }
}

/// Shows the state of the fence, and of each served namespace.
pub(super) async fn status(cluster: &Cluster, report: &mut Report) -> anyhow::Result<()> {
    let Some(settings) = as_shipped(cluster, report).await? else {
        report.conclude("the fence does not stand: nothing is written in labelled namespaces");
        return Ok(());
    };
    let mut stands = check_probe(cluster, Policy::Mirror, SYSTEM_NAMESPACE, report).await;
    let namespaces = served_namespaces(cluster, &settings.selector).await?;
    for namespace in &namespaces {
        stands &= check_probe(cluster, Policy::Fence, namespace, report).await;
    }
    report.conclude(match (stands, namespaces.as_slice()) {
        (false, _) => "the fence does not stand everywhere".to_owned(),
        (true, []) => format!(
            "the fence stands; no namespace has the label {}",
            settings.selector
        ),
        (true, _) => format!("the fence stands in {}", namespaces.join(", ")),
    });
    Ok(())
}
