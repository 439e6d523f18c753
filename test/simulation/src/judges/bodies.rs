//! Fields that updates may change.

use std::collections::BTreeSet;

use kube_test_control_plane::route::Verb;
use serde_json::{Value, json};

use super::{Case, Verdict, Write, opt_ins};

/// Labels of a pod's identity.
const IDENTITY: [&str; 2] = [
    "statefulset.kubernetes.io/pod-name",
    "apps.kubernetes.io/pod-index",
];

pub(super) fn judge(case: &Case<'_>, write: &Write<'_>, verdict: &mut Verdict) {
    let request = write.request;
    if write.creates("persistentvolumeclaims") {
        judge_new_claim(case, write, verdict);
    }
    if request.verb != Some(Verb::Update) || !request.subresource.is_empty() {
        return;
    }
    let body = request.json();
    let Some(base) = base(case, &body) else {
        let message = format!("{}: based on no stored version", write.named());
        verdict.broken("P-4", request.sent, message);
        return;
    };
    let rule = match request.resource.as_str() {
        "pods" => "I-1",
        "persistentvolumeclaims" => "V-1",
        _ => "R-3",
    };
    let allows_requests = case
        .plan
        .settings
        .allows_opt_ins(write.sync.process.instance);
    let is_request = |changed: &str| {
        allows_requests && (opt_ins::is_request(changed) || opt_ins::is_in_place(changed))
    };
    let changed = changes(&base, &body);
    let is_repair_of_pod = !changed.iter().any(|it| is_request(it));
    for changed in changed {
        let is_allowed = match request.resource.as_str() {
            "pods" => is_repair(&changed) || is_request(&changed),
            "persistentvolumeclaims" if changed == "/spec/resources" => {
                allows_requests && opt_ins::is_growth(case, write, &base)
            }
            "persistentvolumeclaims" => changed == "/metadata/ownerReferences",
            "controllerrevisions" => changed == "/revision",
            _ => false,
        };
        if !is_allowed {
            let message = format!("{}: changes {changed}", write.named());
            verdict.broken(rule, request.sent, message);
        }
    }
    if request.resource == "pods" && is_repair_of_pod {
        judge_repair(write, &body, verdict);
    }
}

/// Returns the stored object that a change is based on.
fn base(case: &Case<'_>, body: &Value) -> Option<Value> {
    let version = body.pointer("/metadata/resourceVersion")?.as_str()?;
    let commit = case.commit(version.parse().ok()?)?;
    Some(commit.entry.object.draft().to_value())
}

/// Returns the JSON pointers of the fields that differ, down to labels. The server keeps the
/// version, the managed fields, and the generation by itself.
fn changes(base: &Value, body: &Value) -> Vec<String> {
    let by_server = |name: &str| ["resourceVersion", "managedFields", "generation"].contains(&name);
    let mut found = Vec::new();
    for member in members(base, body) {
        let (old, new) = (&base[&member], &body[&member]);
        if !["metadata", "spec"].contains(&member.as_str()) {
            let typed = ["apiVersion", "kind"].contains(&member.as_str());
            if old != new && !typed {
                found.push(format!("/{member}"));
            }
            continue;
        }
        for inner in members(old, new) {
            let (old, new) = (&old[&inner], &new[&inner]);
            if member == "metadata" && inner == "labels" {
                let labels = members(old, new);
                let differing = labels.into_iter().filter(|it| old[it] != new[it]);
                found.extend(differing.map(|it| format!("/metadata/labels/{it}")));
            } else if old != new && !(member == "metadata" && by_server(&inner)) {
                found.push(format!("/{member}/{inner}"));
            }
        }
    }
    found
}

fn members(left: &Value, right: &Value) -> BTreeSet<String> {
    let of = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let names = of(left).into_iter().chain(of(right));
    names.map(|(name, _)| name).collect()
}

/// Reports whether a field of a pod is repaired by the controller: labels of its identity, and
/// volumes.
fn is_repair(pointer: &str) -> bool {
    let label = pointer.strip_prefix("/metadata/labels/");
    label.is_some_and(|label| IDENTITY.contains(&label)) || pointer == "/spec/volumes"
}

/// I-1: a repaired pod has its identity again.
fn judge_repair(write: &Write<'_>, body: &Value, verdict: &mut Verdict) {
    let pod = crate::views::Pod::read(body);
    let mut claims = write
        .ordinal()
        .into_iter()
        .flat_map(|ordinal| write.view.set.claims_of(ordinal));
    if pod.name_label != pod.name || !claims.all(|claim| pod.claims.contains(&claim)) {
        let message = format!("{}: it stays wrong", write.named());
        verdict.broken("I-1", write.request.sent, message);
    }
}

/// V-1: a new claim equals its template, and has no owner yet.
fn judge_new_claim(case: &Case<'_>, write: &Write<'_>, verdict: &mut Verdict) {
    let (set, name) = (write.view.set, &write.request.name);
    let body = write.request.json();
    let mut templates = set.claim_templates.iter().zip(&set.claims);
    let template = templates.find(|(_, template)| {
        let rest = name.strip_prefix(template.as_str());
        rest.is_some_and(|rest| rest.starts_with(&format!("-{}-", set.name)))
    });
    let is_right = template.is_some_and(|(template, name)| {
        opt_ins::new_spec(case, write, name, &template["spec"]) == body["spec"]
            && body["metadata"]["labels"]["app"] == json!(set.app)
            && body["metadata"].get("ownerReferences").is_none()
    });
    if !is_right {
        let message = format!("{}: not what the template says", write.named());
        verdict.broken("V-1", write.request.sent, message);
    }
}
