//! The removal of what opt-ins left.

use anyhow::{Context as _, ensure};
use http::Method;
use serde_json::{Map, Value, json};
use statefulset_controller::opt_ins::{Carrier, REQUESTED_LABEL, is_own_condition};
use statefulset_controller_util::stateful_set::Condition;

use super::{carried, write};
use crate::Session;
use crate::cluster::{Cluster, name, text};
use crate::output::counted;
use crate::report::{Outcome, Report};

/// Attempts to write a status that another client changes at the same time.
const ATTEMPTS_MAX: usize = 5;

/// Removes conditions of opt-ins and the labels of requested removals; with `annotations`, the
/// carriers first. Without names, of all sets of the namespace.
///
/// # Errors
///
/// An object can't be read or written; the message names it.
pub(crate) async fn clean(
    session: &Session,
    names: &[String],
    annotations: bool,
) -> anyhow::Result<Report> {
    let cluster = Cluster::new(session.client.clone());
    let namespace = &session.namespace;
    let sets = format!("/apis/apps/v1/namespaces/{namespace}/statefulsets");
    let pods = cluster
        .list(&format!("/api/v1/namespaces/{namespace}/pods"))
        .await?;
    let mut report = Report::new();
    let mut found = cluster.list(&sets).await?;
    for name_of in names {
        let exists = found.iter().any(|set| name(set) == *name_of);
        ensure!(
            exists,
            "StatefulSet {name_of} doesn't exist in namespace {namespace}"
        );
    }
    found.retain(|set| names.is_empty() || names.contains(&name(set)));
    for set in &found {
        if annotations {
            remove_annotations(session, set, &mut report).await?;
        } else if Carrier::ALL.iter().any(|it| carried(set, *it).is_some()) {
            let text = format!(
                "StatefulSet {} still opts in: a running controller writes its conditions again; \
                 add --annotations",
                name(set)
            );
            report.step(Outcome::Note, text);
        }
        let path = format!("{sets}/{}", name(set));
        let mut attempts = 0..ATTEMPTS_MAX;
        while !remove_conditions(&cluster, &path, &mut report).await? {
            let text = "keeps changing; try again";
            ensure!(
                attempts.next().is_some(),
                "StatefulSet {} {text}",
                name(set)
            );
        }
        remove_labels(&cluster, set, &pods, &mut report).await?;
    }
    report.conclude(format!("cleaned {}", counted(found.len(), "StatefulSet")));
    Ok(report)
}

/// Removes the carriers from a set.
async fn remove_annotations(
    session: &Session,
    set: &Value,
    report: &mut Report,
) -> anyhow::Result<()> {
    let carriers = Carrier::ALL.into_iter();
    let given = carriers.filter(|carrier| carried(set, *carrier).is_some());
    let removed: Map<String, Value> = given
        .map(|carrier| (carrier.annotation().to_owned(), Value::Null))
        .collect();
    if removed.is_empty() {
        return Ok(());
    }
    let count = removed.len();
    write(session, set, Value::Object(removed)).await?;
    let text = format!(
        "removed {} of StatefulSet {}",
        counted(count, "annotation"),
        name(set)
    );
    report.step(Outcome::Done, text);
    Ok(())
}

/// Removes the conditions of opt-ins from a set's status. Returns false if the set changed meanwhile.
async fn remove_conditions(
    cluster: &Cluster,
    path: &str,
    report: &mut Report,
) -> anyhow::Result<bool> {
    // The set may have changed with its annotations.
    let Some(set) = cluster.get(path).await? else {
        return Ok(true);
    };
    let conditions = set.pointer("/status/conditions").and_then(Value::as_array);
    let conditions = conditions.map_or(&[][..], Vec::as_slice);
    let mut kept = Vec::new();
    for condition in conditions {
        let decoded = Condition::of(condition)
            .with_context(|| format!("read a condition of StatefulSet {}", name(&set)))?;
        if !is_own_condition(&decoded) {
            kept.push(condition);
        }
    }
    let removed = conditions.len() - kept.len();
    if removed == 0 {
        return Ok(true);
    }
    let version = text(&set, "/metadata/resourceVersion");
    let kept = if kept.is_empty() {
        Value::Null
    } else {
        json!(kept)
    };
    let patch = json!({
        "metadata": {"resourceVersion": version},
        "status": {"conditions": kept},
    });
    let status = format!("{path}/status");
    match cluster.send(Method::PATCH, &status, Some(&patch)).await {
        // A running controller removes them as well.
        Err(kube::Error::Api(status)) if status.code == 409 => return Ok(false),
        sent => drop(sent.with_context(|| format!("patch the status of {}", name(&set)))?),
    }
    let text = format!(
        "removed {} of StatefulSet {}",
        counted(removed, "condition"),
        name(&set)
    );
    report.step(Outcome::Done, text);
    Ok(true)
}

/// Removes the labels of requested removals from a set's pods.
async fn remove_labels(
    cluster: &Cluster,
    set: &Value,
    pods: &[Value],
    report: &mut Report,
) -> anyhow::Result<()> {
    let labels = |pod: &Value| pod.pointer("/metadata/labels").cloned().unwrap_or_default();
    let requested = pods.iter().filter(|pod| {
        let owners = pod.pointer("/metadata/ownerReferences");
        let owners = owners.and_then(Value::as_array).into_iter().flatten();
        let mut owners = owners.filter(|owner| text(owner, "/uid") == text(set, "/metadata/uid"));
        labels(pod).get(REQUESTED_LABEL).is_some() && owners.next().is_some()
    });
    for pod in requested {
        let namespace = text(pod, "/metadata/namespace");
        let path = format!("/api/v1/namespaces/{namespace}/pods/{}", name(pod));
        let patch = json!({"metadata": {
            "uid": text(pod, "/metadata/uid"),
            "labels": {REQUESTED_LABEL: null},
        }});
        match cluster.send(Method::PATCH, &path, Some(&patch)).await {
            // The pod is gone, or another one has its name.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => continue,
            sent => drop(sent.with_context(|| format!("patch pod {}", name(pod)))?),
        }
        let done = format!("withdrew the request to remove pod {}", name(pod));
        report.step(Outcome::Done, done);
    }
    Ok(())
}
