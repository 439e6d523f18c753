//! Containers that don't run or aren't ready.

use statefulset_controller::opt_ins::Cause;
use statefulset_controller_util::pod::ContainerTrouble;

use super::rollout::undo;
use crate::model::{ContainerStatus, ContainerTerminated, Pod};
use crate::why::case::Case;
use crate::why::finding::Finding;

/// Restarts from which on a container counts as restarting again and again.
const RESTARTS_MIN: i64 = 2;
/// Seconds after the last end in which a running container counts as restarting.
const RECENT_SECONDS: i64 = 600;

/// The broken container of a pod that isn't ready, if any.
pub(in crate::why) fn find(case: Case<'_>, pod: &Pod) -> Option<Finding> {
    pod.containers().find_map(|container| {
        let waiting = container.state.waiting.as_ref();
        let reason = waiting.map_or("", |waiting| waiting.reason.as_str());
        let trouble = ContainerTrouble::of_waiting(reason);
        match trouble {
            Some(ContainerTrouble::ImagePull) => Some(image_pull(case, pod, container)),
            Some(ContainerTrouble::ContainerConfig) => Some(config(case, pod, container)),
            Some(ContainerTrouble::CrashLoop) | None => {
                let backs_off = trouble.is_some();
                let is_looping = backs_off || container.restart_count >= RESTARTS_MIN;
                let last = last_end(container).filter(|_| !container.ready)?;
                let is_recent = backs_off || is_recent(case, last, RECENT_SECONDS);
                let counts = is_recent && (last.exit_code != 0 || is_looping);
                counts.then(|| restarts(case, pod, container, last))
            }
        }
    })
}

/// The container of a ready pod that restarts again and again, if any: the pod doesn't stay ready
/// for long enough.
pub(in crate::why) fn restarting(case: Case<'_>, pod: &Pod) -> Option<Finding> {
    let recent = RECENT_SECONDS.max(case.set.spec.min_ready_seconds);
    pod.containers().find_map(|container| {
        let last = last_end(container)?;
        let is_recent = is_recent(case, last, recent);
        let is_looping = container.restart_count >= RESTARTS_MIN && is_recent;
        is_looping.then(|| restarts(case, pod, container, last))
    })
}

/// Reports whether a container ended in the last seconds. An end without a time counts.
fn is_recent(case: Case<'_>, last: &ContainerTerminated, seconds: i64) -> bool {
    let ended = last.finished_at;
    ended.is_none_or(|ended| case.seconds_since(ended) <= seconds)
}

fn last_end(container: &ContainerStatus) -> Option<&ContainerTerminated> {
    let last = container.state.terminated.as_ref();
    last.or(container.last_state.terminated.as_ref())
}

fn image_pull(case: Case<'_>, pod: &Pod, container: &ContainerStatus) -> Finding {
    let containers = pod.spec.init_containers.iter();
    let mut containers = containers.chain(&pod.spec.containers);
    let spec = containers.find(|it| it.name == container.name);
    let image = spec.map_or("", |spec| spec.image.as_str());
    let name = &pod.metadata.name;
    let text = format!("the image {image} of pod {name} can't be pulled");
    let finding = Finding::stuck(Cause::ImagePull.name(), text).shown_by(state(container));
    undo(case, pod, finding, "correct the image or the registry")
}

fn config(case: Case<'_>, pod: &Pod, container: &ContainerStatus) -> Finding {
    let waiting = container.state.waiting.as_ref();
    let message = waiting.map_or("", |waiting| waiting.message.as_str());
    if let Some(object) = missing_object(message) {
        return missing(case, pod, &object).shown_by(state(container));
    }
    let text = format!(
        "container {} of pod {} can't be created",
        container.name, pod.metadata.name
    );
    let finding = Finding::stuck(Cause::ContainerConfig.name(), text).shown_by(state(container));
    undo(case, pod, finding, "correct the container")
}

/// The cause if a pod needs an object that doesn't exist.
pub(super) fn missing(case: Case<'_>, pod: &Pod, object: &str) -> Finding {
    let name = &pod.metadata.name;
    let text = format!("pod {name} needs the {object}, which doesn't exist");
    let finding = Finding::stuck("config-missing", text);
    let fix = format!("create the {object}: the kubelet then starts the container by itself");
    match case.revision_before() {
        Some(_) => undo(case, pod, finding, "").but(format!("or {fix}")),
        None => finding.but(fix),
    }
}

/// The missing object in a kubelet's message, such as `secret absent`.
pub(super) fn missing_object(message: &str) -> Option<String> {
    let after = |start: &str| message.split_once(start).map(|(_, rest)| rest);
    let quoted = |kind: &str| {
        let rest = after(&format!("{kind} \""))?;
        let (name, rest) = rest.split_once('"')?;
        rest.starts_with(" not found").then(|| name.to_owned())
    };
    for (kind, shown) in [
        ("secret", "secret"),
        ("configmap", "config map"),
        ("serviceaccounts", "service account"),
    ] {
        if let Some(name) = quoted(kind) {
            return Some(format!("{shown} {name}"));
        }
    }
    if let Some(rest) = after("couldn't find key ") {
        let (key, place) = rest.split_once(" in ")?;
        let place = place
            .split([',', ' '])
            .take(2)
            .collect::<Vec<_>>()
            .join(" ");
        return Some(format!("key {key} of {place}"));
    }
    for kind in ["secret", "config"] {
        if let Some(key) = after(&format!("references non-existent {kind} key: ")) {
            return Some(format!("key {key} of a {kind}"));
        }
    }
    None
}

/// A container that ends again and again.
fn restarts(
    case: Case<'_>,
    pod: &Pod,
    container: &ContainerStatus,
    last: &ContainerTerminated,
) -> Finding {
    let (name, pod_name) = (&container.name, &pod.metadata.name);
    let (code, times) = (last.exit_code, container.restart_count);
    let probe = killing_probe(case, pod, name);
    let (cause, text, fix) = match (code, probe) {
        (0, Some(probe)) => (
            "restart-loop",
            format!(
                "the {probe} probe kills container {name} of pod {pod_name} again and again (exit \
                 code 0, {times} restarts)"
            ),
            "correct the probe or the program",
        ),
        (0, None) => (
            "restart-loop",
            format!(
                "container {name} of pod {pod_name} ends again and again with exit code 0 \
                 ({times} restarts)"
            ),
            "let the container's command run on",
        ),
        (_, Some(probe)) => (
            Cause::CrashLoop.name(),
            format!(
                "the {probe} probe kills container {name} of pod {pod_name} again and again (exit \
                 code {code}, {times} restarts)"
            ),
            "correct the probe or the program",
        ),
        (_, None) => (
            Cause::CrashLoop.name(),
            format!(
                "container {name} of pod {pod_name} crashes (exit code {code}, {times} restarts)"
            ),
            "correct the template",
        ),
    };
    let reason = &last.reason;
    let ended = format!("container {name} ended last with exit code {code} ({reason})");
    let finding = Finding::stuck(cause, text).shown_by(state(container).into_iter().chain([ended]));
    undo(case, pod, finding, fix)
}

/// The probe whose failures kill the container, by the kubelet's events.
fn killing_probe(case: Case<'_>, pod: &Pod, container: &str) -> Option<&'static str> {
    let uid = &pod.metadata.uid;
    let notices = case.snapshot.notices(uid).iter();
    let is_about = |path: &str| path.is_empty() || path.contains(&format!("{{{container}}}"));
    let mut kills = notices.filter(|event| event.is_killing());
    kills.find_map(|event| {
        let message = &event.message;
        let is_own = message.contains(&format!("Container {container} "))
            && is_about(&event.involved_object.field_path);
        let probes = ["liveness", "startup"].into_iter();
        let mut probes = probes.filter(|_| is_own);
        probes.find(|probe| message.contains(&format!("failed {probe} probe")))
    })
}

/// The reason for which a container waits.
fn state(container: &ContainerStatus) -> Option<String> {
    let waiting = container.state.waiting.as_ref()?;
    let message = if waiting.message.is_empty() {
        "no message"
    } else {
        &waiting.message
    };
    Some(format!(
        "container {}: {}: {message}",
        container.name, waiting.reason
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_objects_are_read_from_messages() {
        for (message, object) in [
            ("secret \"absent\" not found", Some("secret absent")),
            (
                "MountVolume.SetUp failed for volume \"v\" : configmap \"absent\" not found",
                Some("config map absent"),
            ),
            (
                "couldn't find key k in Secret default/known",
                Some("key k of Secret default/known"),
            ),
            (
                "references non-existent secret key: k",
                Some("key k of a secret"),
            ),
            ("failed to reserve container name", None),
        ] {
            assert_eq!(missing_object(message).as_deref(), object, "{message}");
        }
    }
}
