//! Test of a graceful shutdown: the controller finishes its current syncs only.

use serde_json::{Value, json};

use crate::harness::{History, Kind, Plane, Signal, programs, set_with_claims};

const REPLICAS: usize = 6;

/// Starts a controller, stops it after its first write, and checks that it exits cleanly.
fn end_after_a_write(plane: &Plane, history: &mut History) {
    // Writes of its predecessor don't count.
    let (_, before) = plane.api.list(Kind::Set);
    let controller = plane.controller();
    history.until_controller_writes(before);
    controller.signal(Signal::TERM);
    let finished = controller.wait();
    assert_eq!(finished.code, Some(0), "{finished:#?}");
}

/// Rest of each name after the prefix.
fn names(objects: &[Value], prefix: &str) -> Vec<String> {
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap().to_owned();
    let names = objects.iter().map(name);
    names
        .map(|name| name.strip_prefix(prefix).unwrap().to_owned())
        .collect()
}

#[test]
fn shutdown_during_a_rollout_finishes_current_syncs() {
    let plane = Plane::start(&programs(), "20ms");
    let mut history = History::begin(&plane.api);
    plane
        .api
        .create(Kind::Set, &set_with_claims("web", REPLICAS));
    let complete = |history: &History| history.is_complete("web");
    for _ in 0..REPLICAS {
        end_after_a_write(&plane, &mut history);
        // A sync creates a pod's claims first, and must not stop in between.
        let (claims, _) = plane.api.list(Kind::Claim);
        let (pods, _) = plane.api.list(Kind::Pod);
        assert_eq!(names(&claims, "www-web-"), names(&pods, "web-"));
    }
    let controller = plane.controller();
    history.until("the set to be complete", complete);
    assert_eq!(history.deletions(), [0; 0]);
    let pods = history.counts(Kind::Pod, "web-");
    assert_eq!(pods.into_values().collect::<Vec<_>>(), [(1, 0); REPLICAS]);
    controller.signal(Signal::TERM);
    assert_eq!(controller.wait().code, Some(0));

    let image = json!([{"name": "c", "image": "busybox:2"}]);
    let patch = json!({"spec": {"template": {"spec": {"containers": image}}}});
    plane.api.merge(Kind::Set, "web", &patch);
    for _ in 0..REPLICAS {
        end_after_a_write(&plane, &mut history);
    }
    let _controller = plane.controller();
    history.until("the set to be complete", complete);
    assert_eq!(history.deletions(), [5, 4, 3, 2, 1, 0]);
    assert_eq!(history.out_of_turn(), [""; 0]);
    let pods = history.counts(Kind::Pod, "web-");
    assert_eq!(pods.into_values().collect::<Vec<_>>(), [(2, 1); REPLICAS]);
    let claims = history.counts(Kind::Claim, "www-web-");
    assert_eq!(claims.into_values().collect::<Vec<_>>(), [(1, 0); REPLICAS]);
}
