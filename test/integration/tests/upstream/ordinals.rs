//! Start ordinals.

use std::collections::BTreeSet;

use integration::World;
use integration::stateful_sets::{create_stable, list_pods, name, scale_stable, stateful_set};
use serde_json::{Value, json};

mod test_stateful_set_start_ordinal {
    use super::*;

    /// Creates a set of `replicas` with these ordinals in its spec, and scales it down to one.
    async fn assert_ordinals(namespace: &str, ordinals: Value, replicas: u32, first: u32) {
        let world = World::with_controller().await;
        let space = world.namespace(namespace).await;
        let mut set = stateful_set("sts", replicas);
        if !ordinals.is_null() {
            set["spec"]["ordinals"] = ordinals;
        }
        create_stable(&space, &set).await;
        let pods = list_pods(&space).await;
        let names: BTreeSet<&str> = pods.iter().map(name).collect();
        let wanted: Vec<String> = (first..first + replicas)
            .map(|ordinal| format!("sts-{ordinal}"))
            .collect();
        assert_eq!(names, wanted.iter().map(String::as_str).collect());
        for pod in &pods {
            let label = &pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"];
            let index = label.as_str().unwrap();
            assert_eq!(name(pod), format!("sts-{index}"));
        }

        scale_stable(&space, "sts", 1).await;
        let left = list_pods(&space).await;
        let left: Vec<&str> = left.iter().map(name).collect();
        assert_eq!(left, [format!("sts-{first}")]);
    }

    #[tokio::test(start_paused = true)]
    async fn default_start_ordinal_no_ordinals_set() {
        assert_ordinals("no-ordinals", Value::Null, 3, 0).await;
    }

    #[tokio::test(start_paused = true)]
    async fn default_start_ordinal() {
        assert_ordinals("no-start-ordinals", json!({}), 3, 0).await;
    }

    #[tokio::test(start_paused = true)]
    async fn start_ordinal_4() {
        assert_ordinals("start-ordinal-4", json!({"start": 4}), 4, 4).await;
    }

    /// Upstream's test has 5 in its name, but 2 in its set.
    #[tokio::test(start_paused = true)]
    async fn start_ordinal_5() {
        assert_ordinals("start-ordinal-5", json!({"start": 2}), 7, 2).await;
    }
}
