//! Writes of the controller that the server refuses.

use super::quota;
use crate::decide::{Decision, Write};
use crate::model::Event;
use crate::why::case::Case;
use crate::why::finding::{Doubt, Finding};

/// Consideration after every fix.
const RETRY: &str = "after the fix, the controller tries again in 1000 s at most, and at once after \
                     any change of the set";

/// The cause if the server refuses the controller's next step.
pub(in crate::why) fn find(case: Case<'_>, decision: &Decision) -> Option<Finding> {
    let (write, event) = failed(case, decision)?;
    let finding = refusal(case, write, event);
    let caution = finding.caution.as_ref();
    let caution = caution.map_or_else(|| RETRY.to_owned(), |it| format!("{it}; {RETRY}"));
    Some(finding.but(caution))
}

/// The first write that failed when the controller sent it last, with the event.
pub(in crate::why) fn failed<'a>(
    case: Case<'a>,
    decision: &'a Decision,
) -> Option<(&'a Write, &'a Event)> {
    let uid = &case.set.metadata.uid;
    let warnings = case.snapshot.warnings(uid);
    let notices = case.snapshot.notices(uid);
    decision.writes.iter().find_map(|write| {
        let event = warnings.iter().find(|event| is_about(event, write))?;
        let mut successes = notices.iter().filter(|it| is_success_of(it, write));
        let is_past = successes.any(|success| success.last() > event.last());
        (!is_past).then_some((write, event))
    })
}

/// Reports whether an event says that this write succeeded.
fn is_success_of(event: &Event, write: &Write) -> bool {
    let reason = match write.verb {
        "create" => "SuccessfulCreate",
        "delete" => "SuccessfulDelete",
        _ => "SuccessfulUpdate",
    };
    event.reason == reason && names(&event.message, &write.name)
}

/// Reports whether an event says that this write failed.
fn is_about(event: &Event, write: &Write) -> bool {
    let reason = match write.verb {
        "create" => "FailedCreate",
        "delete" => "FailedDelete",
        _ => "FailedUpdate",
    };
    event.reason == reason && names(&event.message, &write.name)
}

/// Reports whether a message contains a name. A pod's name may begin another one, and end the name
/// of a claim.
pub(super) fn names(message: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let mut words = message.split(|c: char| !is_part(c));
    words.any(|word| word.trim_end_matches('.') == name)
}

/// The cause in the server's message.
fn refusal(case: Case<'_>, next: &Write, event: &Event) -> Finding {
    let message = event.message.as_str();
    let (verb, name) = (next.verb, &next.name);
    let namespace = &case.snapshot.namespace;
    let finding = if let Some(finding) = quota::refusal(case, next, message) {
        finding
    } else if let Some(account) = after(message, "serviceaccount \"", &['"']) {
        let text = format!("the service account {account} doesn't exist");
        Finding::stuck("service-account-missing", text)
            .resolved_by(case.kubectl(&format!("create serviceaccount {account}")))
            .doubted_by(Doubt::ServiceAccount(account.to_owned()))
    } else if let Some(class) = after(message, "no PriorityClass with name ", &[' ']) {
        let text = format!("the priority class {class} doesn't exist");
        Finding::stuck("priority-class-missing", text)
            .resolved_by(format!("kubectl create priorityclass {class} --value=0"))
            .doubted_by(Doubt::PriorityClass(class.to_owned()))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_about_whole_names() {
        let event = |message: &str| -> Event {
            let event = json!({"reason": "FailedCreate", "message": message});
            serde_json::from_value(event).unwrap()
        };
        let write = Write {
            verb: "create",
            resource: "pods",
            name: "web-1".to_owned(),
        };
        let own = "Create Pod web-1 in StatefulSet web failed error: pods \"web-1\" is forbidden";
        assert!(is_about(&event(own), &write));
        assert!(is_about(&event("failed for web-1."), &write));
        assert!(!is_about(
            &event("Create Pod web-10 in StatefulSet web failed"),
            &write
        ));
        assert!(!is_about(&event("claim data-web-1 is forbidden"), &write));
    }
}
