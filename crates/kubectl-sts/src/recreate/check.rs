//! Reasons against a recreation, and notes about its effects, by the old and the new set and the
//! existing objects.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{bail, ensure};
use kube_apimachinery::selector::{LabelSelector, Selector};
use serde_json::Value;

use super::form::immutable_changes;
use crate::cluster::{name, text};
use crate::model::{Pod, Set};
use crate::objects::Snapshot;
use crate::output::counted;

/// Annotation with the manifest that `kubectl apply` used last.
pub(super) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A recreation to check.
pub(super) struct Case<'a> {
    pub(super) old: &'a Value,
    pub(super) new: &'a Value,
    /// The existing set.
    pub(super) set: &'a Set,
    pub(super) snapshot: &'a Snapshot,
}

impl Case<'_> {
    fn pods(&self) -> impl Iterator<Item = &Pod> {
        self.snapshot.pods_of(self.set)
    }
}

/// Checks that the new set adopts every pod, and can work with it.
///
/// # Errors
///
/// A reason against the recreation.
pub(super) fn check(case: &Case<'_>) -> anyhow::Result<()> {
    let set = name(case.old);
    let other = name(case.new);
    ensure!(
        set == other,
        "the new set is named {other}, not {set}: a recreation keeps the name, because pods and \
         claims are named after it"
    );
    ensure!(
        !immutable_changes(case.old, case.new).is_empty(),
        "no immutable field of StatefulSet {set} changes: change it with kubectl apply or kubectl \
         patch"
    );
    let finalizers = &case.set.metadata.finalizers;
    ensure!(
        finalizers.is_empty(),
        "StatefulSet {set} has the finalizer {}, whose owner would treat the recreation as the end \
         of the set: remove it first",
        finalizers.join(", ")
    );
    check_selector(case)?;
    check_volumes(case)
}

/// Checks that the new selector selects the template, every pod and the revisions that pods run.
fn check_selector(case: &Case<'_>) -> anyhow::Result<()> {
    let set = name(case.old);
    let selector = selector(case.new)?;
    let template = labels(case.new.pointer("/spec/template/metadata/labels"));
    ensure!(
        selector.matches(&template),
        "the new selector of StatefulSet {set} doesn't select the labels of its template: add them"
    );
    let mut pods = case.pods();
    if let Some(pod) = pods.find(|pod| !selector.matches(&pod.metadata.labels)) {
        bail!(
            "the new selector of StatefulSet {set} doesn't select pod {}, which no controller would \
             manage: keep the selector, or label the pod first",
            pod.metadata.name
        );
    }
    let in_use: BTreeSet<&str> = case.pods().map(|pod| pod.metadata.revision()).collect();
    let revisions = case.snapshot.revisions_of(case.set);
    let mut revisions = revisions.iter().map(|it| &it.metadata);
    if let Some(lost) =
        revisions.find(|it| in_use.contains(&*it.name) && !selector.matches(&it.labels))
    {
        bail!(
            "the new selector of StatefulSet {set} doesn't select revision {}, which its pods run: \
             keep the selector, or label the revision first",
            lost.name
        );
    }
    Ok(())
}

/// Checks that every pod has a volume for every claim template: the controller can't add one to an
/// existing pod, and tries indefinitely.
fn check_volumes(case: &Case<'_>) -> anyhow::Result<()> {
    let set = name(case.old);
    for pod in case.pods() {
        let pod_name = &pod.metadata.name;
        for template in templates(case.new) {
            let template = text(template, "/metadata/name");
            ensure!(
                pod.mounts(&format!("{template}-{pod_name}")),
                "pod {pod_name} has no volume for claim template {template}, and the controller \
                 would try indefinitely to add it (kubernetes/kubernetes#141876): scale StatefulSet \
                 {set} to 0 first, or keep its claim templates"
            );
        }
    }
    Ok(())
}

/// Returns what the user should know before.
pub(super) fn notes(case: &Case<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let service = |set: &Value| text(set, "/spec/serviceName");
    let (old, new) = (service(case.old), service(case.new));
    if old != new && case.pods().next().is_some() {
        notes.push(format!(
            "running pods keep their host names in service {old:?}, until they restart for another \
             reason: keep that Service until then"
        ));
    }
    notes.extend(sizes(case));
    notes.extend(removed_templates(case));
    let status = &case.set.status;
    if status.current_revision != status.update_revision {
        notes.push(format!(
            "the rollout from {} to {} isn't complete, and a new set forgets where it began: a lost \
             pod below the partition gets {}",
            status.current_revision, status.update_revision, status.update_revision
        ));
    }
    let owners = case.set.metadata.owner_references.iter();
    notes.extend(owners.filter(|owner| owner.controller).map(|owner| {
        format!(
            "{} {} controls the set and may create it again first, or undo the change: pause it",
            owner.kind, owner.name
        )
    }));
    let annotations = case.old.pointer("/metadata/annotations");
    if annotations.is_some_and(|it| it.get(LAST_APPLIED).is_some()) {
        let text = "kubectl apply made this set: change its manifest in the same way, or the next \
                    apply fails";
        notes.push(text.to_owned());
    }
    notes
}

/// A note for each claim template whose existing claims keep another size.
fn sizes(case: &Case<'_>) -> Vec<String> {
    let size = |template: &Value| text(template, "/spec/resources/requests/storage");
    let mut notes = Vec::new();
    for template in templates(case.new) {
        let (name, size) = (text(template, "/metadata/name"), size(template));
        let prefix = format!("{name}-{}-", case.set.metadata.name);
        let claims = case.snapshot.claims();
        let claims =
            claims.filter(|claim| claim.metadata.name.starts_with(&prefix) && claim.size() != size);
        let count = claims.count();
        if count > 0 {
            notes.push(format!(
                "{} of template {name} keep their size; only new ones get {size}",
                counted(count, "claim")
            ));
        }
    }
    notes
}

/// A note for each claim template that the new set lacks.
fn removed_templates(case: &Case<'_>) -> Vec<String> {
    let names = |set| templates(set).map(|it| text(it, "/metadata/name"));
    let kept: BTreeSet<String> = names(case.new).collect();
    let removed = names(case.old).filter(|name| !kept.contains(name));
    removed
        .map(|name| format!("the claims of template {name} stay, but new pods don't mount them"))
        .collect()
}

fn templates(set: &Value) -> impl Iterator<Item = &Value> {
    let templates = set.pointer("/spec/volumeClaimTemplates");
    templates.and_then(Value::as_array).into_iter().flatten()
}

/// The selector of a workload; one without a selector selects nothing.
pub(super) fn selector(workload: &Value) -> anyhow::Result<Selector> {
    let selector = workload.pointer("/spec/selector").cloned();
    let selector: Option<LabelSelector> = selector.map(serde_json::from_value).transpose()?;
    Ok(Selector::from_label_selector(selector.as_ref())?)
}

/// The labels at a place of an object.
pub(super) fn labels(labels: Option<&Value>) -> BTreeMap<String, String> {
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    labels
        .map(|(key, value)| (key.clone(), text(value)))
        .collect()
}
