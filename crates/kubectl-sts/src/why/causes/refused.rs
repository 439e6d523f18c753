//! Writes of the controller that the server refuses, or that no controller sends.

use crate::decide::{Decision, Write};
use crate::model::Event;
use crate::why::case::Case;
use crate::why::finding::Finding;

/// Seconds after which a write that isn't sent shows that no controller works.
const PATIENCE_SECONDS: i64 = 60;

/// The cause if the controller's next step doesn't happen.
pub(in crate::why) fn find(case: Case<'_>, decision: &Decision) -> Option<Finding> {
    let writes = &decision.writes;
    let warnings = case.snapshot.warnings(&case.set.metadata.uid);
    let failed = writes.iter().find_map(|write| {
        let event = warnings.iter().find(|event| is_about(event, write))?;
        Some((write, event))
    });
    if let Some((write, event)) = failed {
        return Some(refusal(case, write, event));
    }
    // Another version of the controller may leave out repairs, but never pods.
    let is_needed = |write: &Write| {
        write.resource == "pods" && (write.verb == "create" || write.verb == "delete")
    };
    let is_unseen = case.set.metadata.generation > case.set.status.observed_generation;
    let is_due = !writes.is_empty() && is_unseen || writes.iter().any(is_needed);
    (is_due && is_overdue(case)).then(|| no_controller(case))
}

/// The cause if another pod has the name of a pod to create.
pub(in crate::why) fn name_taken(case: Case<'_>, decision: &Decision) -> Option<Finding> {
    let mut writes = decision.writes.iter();
    writes.find_map(|write| taken_name(case, write))
}

fn taken_name(case: Case<'_>, write: &Write) -> Option<Finding> {
    let name = &write.name;
    if write.verb != "create" || write.resource != "pods" {
        return None;
    }
    let pod = case.snapshot.pod(name)?;
    if pod.metadata.is_controlled_by(&case.set.metadata.uid) {
        return None;
    }
    let owner = pod.metadata.controller();
    let owner = owner.map_or_else(
        || "no controller, and labels that the selector doesn't match".to_owned(),
        |owner| format!("the controller {} {}", owner.kind, owner.name),
    );
    let text = format!("the name {name} is taken by a pod that isn't the set's");
    let finding = Finding::stuck("name-taken", text)
        .shown_by([format!("pod {name} has {owner}")])
        .since(pod.metadata.creation_timestamp)
        .resolved_by(case.delete_pod(name))
        .but("check the pod first: another user or controller created it");
    Some(finding)
}

/// Reports whether an event says that this write failed.
fn is_about(event: &Event, write: &Write) -> bool {
    let reason = match write.verb {
        "create" => "FailedCreate",
        "delete" => "FailedDelete",
        _ => "FailedUpdate",
    };
    event.reason == reason && event.message.contains(&write.name)
}

/// Reports whether a working controller would have sent the next write.
fn is_overdue(case: Case<'_>) -> bool {
    let set = case.set;
    let pods = case.snapshot.pods_of(set).flat_map(|pod| {
        let conditions = pod.status.conditions.iter();
        let changes = conditions.filter_map(|condition| condition.last_transition_time);
        changes.chain(pod.metadata.creation_timestamp)
    });
    let revisions = case.snapshot.revisions_of(set).into_iter();
    let revisions = revisions.filter_map(|revision| revision.metadata.creation_timestamp);
    let latest = pods
        .chain(revisions)
        .chain(set.metadata.creation_timestamp)
        .max();
    latest.is_some_and(|latest| {
        case.snapshot.now.duration_since(latest).as_secs() >= PATIENCE_SECONDS
    })
}

/// The cause if nothing acts on the set.
pub(in crate::why) fn no_controller(case: Case<'_>) -> Finding {
    let set = case.set;
    Finding::stuck("no-controller", "no controller manages the set")
        .shown_by([format!(
            "generation {}, status of generation {}",
            set.metadata.generation, set.status.observed_generation
        )])
        .but(
            "check that exactly one StatefulSet controller runs and holds its lease in kube-system",
        )
}

/// The cause in the server's message.
fn refusal(case: Case<'_>, next: &Write, event: &Event) -> Finding {
    let message = event.message.as_str();
    let (verb, name) = (next.verb, &next.name);
    let namespace = &case.snapshot.namespace;
    let finding = if let Some(quota) = after(message, "exceeded quota: ", &[',']) {
        let text = format!("the quota {quota} leaves no room for {name}");
        let finding = Finding::stuck("quota", text);
        match raised(case, message) {
            Some(hard) => {
                let patch = format!(r#"{{"spec":{{"hard":{{{hard}}}}}}}"#);
                let command = format!("patch resourcequota {quota} --type=merge -p '{patch}'");
                finding.resolved_by(case.kubectl(&command))
            }
            None => finding.but(format!("raise the quota {quota}")),
        }
    } else if let Some(account) = after(message, "serviceaccount \"", &['"']) {
        let text = format!("the service account {account} doesn't exist");
        Finding::stuck("service-account-missing", text)
            .resolved_by(case.kubectl(&format!("create serviceaccount {account}")))
    } else if let Some(class) = after(message, "no PriorityClass with name ", &[' ']) {
        let text = format!("the priority class {class} doesn't exist");
        Finding::stuck("priority-class-missing", text)
            .resolved_by(format!("kubectl create priorityclass {class} --value=0"))
    } else if message.contains("violates PodSecurity") {
        let text = format!("namespace {namespace} forbids pods of this template");
        let label = "pod-security.kubernetes.io/enforce=privileged";
        Finding::stuck("pod-security", text)
            .resolved_by(format!(
                "kubectl label namespace {namespace} {label} --overwrite"
            ))
            .but("fixing the template's security context is better")
    } else if let Some(hook) = after(message, "webhook \"", &['"']) {
        let text = format!("the webhook {hook} refuses to {verb} {name}");
        Finding::stuck("webhook", text).but(format!(
            "satisfy or repair the webhook; kubectl get validatingwebhookconfigurations,\
             mutatingwebhookconfigurations shows which configuration contains {hook}"
        ))
    } else {
        Finding::stuck(
            "write-refused",
            format!("the server refuses to {verb} {name}"),
        )
    };
    let shown = format!("event {}: {message}", event.reason);
    finding.shown_by([shown]).since(event.first())
}

/// The text between `start` and one of `ends`.
fn after<'a>(message: &'a str, start: &str, ends: &[char]) -> Option<&'a str> {
    let (_, rest) = message.split_once(start)?;
    rest.split(ends).next()
}

/// The limits of a quota that admit all missing pods, as members of JSON. Amounts with units are
/// left to the user.
fn raised(case: Case<'_>, message: &str) -> Option<String> {
    let requested = amounts(message, "requested: ")?;
    let used = amounts(message, "used: ")?;
    let missing = i64::from(case.set.replicas())
        - i64::try_from(case.snapshot.pods_of(case.set).count()).ok()?;
    let hard = requested.iter().map(|(resource, requested)| {
        let (_, used) = used.iter().find(|(found, _)| found == resource)?;
        Some(format!(
            r#""{resource}":"{}""#,
            used + requested * missing.max(1)
        ))
    });
    let hard: Option<Vec<String>> = hard.collect();
    Some(hard?.join(","))
}

/// The amounts after a keyword in a quota's message, such as `used: pods=2,requests.cpu=1, limited:`.
fn amounts<'a>(message: &'a str, start: &str) -> Option<Vec<(&'a str, i64)>> {
    let (_, rest) = message.split_once(start)?;
    let list = rest.split(", ").next()?;
    let pairs = list.split(',').map(|pair| {
        let (resource, amount) = pair.split_once('=')?;
        Some((resource, amount.trim().parse().ok()?))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_quotas_are_read() {
        let message = "pods \"web-2\" is forbidden: exceeded quota: q, requested: count/pods=1,pods=1, \
                       used: count/pods=2,pods=2, limited: count/pods=2,pods=2";
        assert_eq!(after(message, "exceeded quota: ", &[',']), Some("q"));
        assert_eq!(
            amounts(message, "used: "),
            Some(vec![("count/pods", 2), ("pods", 2)])
        );
        assert_eq!(amounts("used: cpu=500m, limited: cpu=1", "used: "), None);
    }
}
