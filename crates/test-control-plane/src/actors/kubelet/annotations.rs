//! What annotations on a pod say of its behaviour.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::behaviour::PodBehaviour;
use crate::object::MetadataRef;

/// How the annotations start.
const PREFIX: &str = "kubelet.test-control-plane/";

/// The behaviour with everything that annotations set. What can't be read is left out.
pub(super) fn overridden(mut behaviour: PodBehaviour, pod: &Value) -> PodBehaviour {
    let metadata = MetadataRef(pod.get("metadata"));
    if metadata.0.and_then(|m| m.get("annotations")).is_none() {
        return behaviour;
    }
    let note = Note(metadata);
    note.set("start-delay", &mut behaviour.start_delay);
    note.set("init-delay", &mut behaviour.init_delay);
    note.set("ready-delay", &mut behaviour.ready_delay);
    note.set("outcome", &mut behaviour.outcome);
    note.set("cause", &mut behaviour.cause);
    note.set("image-pull-failure", &mut behaviour.image_pull_failure);
    note.set("crash", &mut behaviour.crash);
    note.set("flap", &mut behaviour.flap);
    note.set("pre-stop-delay", &mut behaviour.pre_stop_delay);
    note.set("stop-delay", &mut behaviour.stop_delay);
    note.set("stop", &mut behaviour.stop);
    note.set("stop-exit-code", &mut behaviour.stop_exit_code);
    behaviour
}

/// The annotations of a pod.
struct Note<'a>(MetadataRef<'a>);

impl Note<'_> {
    /// Sets what the annotation says, in YAML.
    fn set<T: DeserializeOwned>(&self, name: &str, value: &mut T) {
        let Some(text) = self.0.annotation(&format!("{PREFIX}{name}")) else {
            return;
        };
        match serde_saphyr::from_str(text) {
            Ok(said) => *value = said,
            Err(err) => {
                let (namespace, pod) = (self.0.namespace(), self.0.name());
                tracing::warn!(namespace, pod, "annotation {PREFIX}{name}: {err}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::super::behaviour::{Crash, Outcome, Stop};
    use super::*;

    #[test]
    fn annotations_are_yaml() {
        let pod = json!({"metadata": {"annotations": {
            "kubelet.test-control-plane/ready-delay": "1s..2s",
            "kubelet.test-control-plane/outcome": "never-ready",
            "kubelet.test-control-plane/crash": "{after: 5s, times: 3, reason: OOMKilled}",
            "kubelet.test-control-plane/flap": "{}",
            "kubelet.test-control-plane/stop": "ignores-sigterm",
            "kubelet.test-control-plane/stop-exit-code": "143",
            "kubelet.test-control-plane/start-delay": "soon",
        }}});
        let found = overridden(PodBehaviour::default(), &pod);
        assert_eq!(found.ready_delay.to_string(), "1000ms..2000ms");
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
        assert!(found.start_delay.is_zero());
    }
}
