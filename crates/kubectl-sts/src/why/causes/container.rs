//! Containers that don't run or aren't ready.

use crate::model::{ContainerStatus, Pod};
use crate::why::case::Case;
use crate::why::finding::Finding;

/// Reasons for a container to wait that don't pass by themselves.
const PULL: [&str; 4] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
];
const CONFIG: [&str; 3] = [
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
];

/// The broken container of a pod, if any.
pub(in crate::why) fn find(case: Case<'_>, pod: &Pod) -> Option<Finding> {
    pod.containers()
        .find_map(|container| broken(case, pod, container))
}

fn broken(case: Case<'_>, pod: &Pod, container: &ContainerStatus) -> Option<Finding> {
    let name = &pod.metadata.name;
    let waiting = container.state.waiting.as_ref();
    let reason = waiting.map_or("", |waiting| waiting.reason.as_str());
    let last = container.state.terminated.as_ref();
    let last = last.or(container.last_state.terminated.as_ref());
    let (cause, text) = if PULL.contains(&reason) {
        let spec = pod
            .spec
            .containers
            .iter()
            .find(|it| it.name == container.name);
        let image = spec.map_or("", |spec| spec.image.as_str());
        (
            "image-pull",
            format!("the image {image} of pod {name} can't be pulled"),
        )
    } else if CONFIG.contains(&reason) {
        (
            "container-config",
            format!(
                "container {} of pod {name} can't be created",
                container.name
            ),
        )
    } else if let Some(last) = last.filter(|last| !container.ready && last.exit_code != 0) {
        let (code, times) = (last.exit_code, container.restart_count);
        let text = format!(
            "container {} of pod {name} crashes (exit code {code}, {times} restarts)",
            container.name
        );
        ("crash-loop", text)
    } else {
        return None;
    };
    let state = waiting.map(|waiting| {
        let message = if waiting.message.is_empty() {
            "no message"
        } else {
            &waiting.message
        };
        format!(
            "container {}: {}: {message}",
            container.name, waiting.reason
        )
    });
    let ended = last.map(|last| {
        let reason = &last.reason;
        format!(
            "container {} ended last with exit code {} ({reason})",
            container.name, last.exit_code
        )
    });
    let finding = Finding::stuck(cause, text).shown_by(state.into_iter().chain(ended));
    Some(undo(case, pod, finding))
}

/// A pod that runs for long and isn't ready.
pub(in crate::why) fn never_ready(case: Case<'_>, pod: &Pod) -> Finding {
    let name = &pod.metadata.name;
    let condition = pod.condition("Ready");
    let shown = condition.map(|it| format!("condition Ready: {}: {}", it.reason, it.message));
    let text = format!("pod {name} runs and doesn't become ready");
    let finding = Finding::stuck("never-ready", text).shown_by(shown);
    undo(case, pod, finding)
}

/// Returns to the revision before, or names the container to repair. An ordered set then still waits
/// for the broken pod, which must be deleted.
fn undo(case: Case<'_>, pod: &Pod, finding: Finding) -> Finding {
    let set = case.set;
    let (set_name, name) = (&set.metadata.name, &pod.metadata.name);
    let revisions = case.snapshot.revisions_of(set);
    let is_latest = |name: &str| name == set.status.update_revision;
    let before = revisions
        .iter()
        .rev()
        .find(|it| !is_latest(&it.metadata.name));
    let is_running = pod.status.phase == "Running" && finding.cause == "never-ready";
    let finding = if let Some(before) = before {
        let number = before.revision;
        let undo = format!("rollout undo statefulset/{set_name} --to-revision={number}");
        finding.resolved_by(case.kubectl(&undo))
    } else if is_running {
        finding.but(format!(
            "check kubectl logs {name} first: the new pod may fail as well"
        ))
    } else {
        let container = pod
            .spec
            .containers
            .first()
            .map_or("", |it| it.name.as_str());
        let command = format!("set image statefulset/{set_name} {container}=IMAGE");
        finding
            .resolved_by(case.kubectl(&command))
            .but("the set has no earlier revision: fix the template")
    };
    finding.resolved_by(case.delete_pod(name))
}
