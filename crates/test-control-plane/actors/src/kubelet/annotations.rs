//! Pod annotations that override the behaviour of a pod.

use kube_test_control_plane_api::object::MetadataRef;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::behaviour::PodBehaviour;

/// Prefix of the annotations.
const PREFIX: &str = "kubelet.test-control-plane/";

/// Applies a pod's annotations to a behaviour. Returns the errors of invalid annotations, which are
/// ignored.
pub(super) fn overridden(mut behaviour: PodBehaviour, pod: &Value) -> (PodBehaviour, Vec<String>) {
    let metadata = MetadataRef(pod.get("metadata"));
    if metadata.0.and_then(|m| m.get("annotations")).is_none() {
        return (behaviour, Vec::new());
    }
    let mut note = Note {
        metadata,
        complaints: Vec::new(),
    };
    note.set("start-delay", &mut behaviour.start_delay);
    note.set("init-delay", &mut behaviour.init_delay);
    note.set("ready-delay", &mut behaviour.ready_delay);
    note.set("outcome", &mut behaviour.outcome);
    note.set("cause", &mut behaviour.cause);
    note.set("image-pull-failure", &mut behaviour.image_pull_failure);
    note.set("crash", &mut behaviour.crash);
    note.set("flap", &mut behaviour.flap);
    note.set("readiness", &mut behaviour.readiness);
    note.set("pre-stop-delay", &mut behaviour.pre_stop_delay);
    note.set("stop-delay", &mut behaviour.stop_delay);
    note.set("stop", &mut behaviour.stop);
    note.set("stop-exit-code", &mut behaviour.stop_exit_code);
    note.set("resize", &mut behaviour.resize);
    note.set("resize-delay", &mut behaviour.resize_delay);
    (behaviour, note.complaints)
}

/// The annotations of a pod.
struct Note<'a> {
    metadata: MetadataRef<'a>,
    /// Errors in the annotations.
    complaints: Vec<String>,
}

impl Note<'_> {
    /// Sets a value from the annotation's YAML.
    fn set<T: DeserializeOwned>(&mut self, name: &str, value: &mut T) {
        let Some(text) = self.metadata.annotation(&format!("{PREFIX}{name}")) else {
            return;
        };
        match serde_saphyr::from_str(text) {
            Ok(said) => *value = said,
            Err(err) => {
                let err = err.to_string();
                let why = err.lines().next().unwrap_or_default();
                let complaint = format!("annotation {PREFIX}{name} can't be read: {why}");
                self.complaints.push(complaint);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::super::behaviour::{Crash, Outcome, ReadinessStep, Stop};
    use super::*;
    use kube_test_control_plane_server::faults::Delay;

    #[test]
    fn annotations_are_parsed_as_yaml() {
        let pod = json!({"metadata": {"annotations": {
            "kubelet.test-control-plane/ready-delay": "1s..2s",
            "kubelet.test-control-plane/outcome": "never-ready",
            "kubelet.test-control-plane/crash": "{after: 5s, times: 3, reason: OOMKilled}",
            "kubelet.test-control-plane/flap": "{}",
            "kubelet.test-control-plane/readiness": "[{ready: 5s}, {unready: 1s..2s}]",
            "kubelet.test-control-plane/stop": "ignores-sigterm",
            "kubelet.test-control-plane/stop-exit-code": "143",
            "kubelet.test-control-plane/start-delay": "soon",
        }}});
        let (found, complaints) = overridden(PodBehaviour::default(), &pod);
        assert_eq!(found.ready_delay.to_string(), "1s..2s");
        assert_eq!(found.outcome, Outcome::NeverReady);
        let crash = Crash {
            after: Duration::from_secs(5).into(),
            times: Some(3),
            reason: "OOMKilled".to_owned(),
            ..Crash::default()
        };
        assert_eq!(found.crash, Some(crash));
        assert!(found.flap.is_some() && found.image_pull_failure.is_none());
        assert_eq!(
            (found.stop, found.stop_exit_code),
            (Stop::IgnoresSigterm, 143)
        );
        let seconds = |from, to| {
            let seconds = Duration::from_secs;
            Delay::between(seconds(from), seconds(to))
        };
        let script = [
            ReadinessStep::Ready(seconds(5, 5)),
            ReadinessStep::Unready(seconds(1, 2)),
        ];
        assert_eq!(found.readiness, script);
        assert!(found.start_delay.is_zero());
        assert_eq!(complaints.len(), 1);
        assert!(complaints[0].starts_with("annotation kubelet.test-control-plane/start-delay"));
    }
}
