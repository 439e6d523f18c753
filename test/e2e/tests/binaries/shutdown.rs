//! A controller that is asked to end finishes the syncs that it is in, and nothing else.

use serde_json::{Value, json};

use crate::harness::{History, Kind, Plane, Signal, programs, set_with_claims};

const REPLICAS: usize = 6;

/// Starts a controller, asks it to end after its first write, and checks that it ends well.
fn end_after_a_write(plane: &Plane, history: &mut History) {
    // What its predecessor wrote last is not its own.
    let (_, before) = plane.api.list(Kind::Set);
    let controller = plane.controller();
    history.until_controller_writes(before);
    controller.signal(Signal::TERM);
    let finished = controller.wait();
    assert_eq!(finished.code, Some(0), "{finished:#?}");
}

/// What follows the prefix in each name.
fn names(objects: &[Value], prefix: &str) -> Vec<String> {
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap().to_owned();
    let names = objects.iter().map(name);
    names
        .map(|name| name.strip_prefix(prefix).unwrap().to_owned())
        .collect()
}

#[test]
fn a_controller_that_is_told_to_end_in_a_roll_out_leaves_nothing_half_done() {
    let plane = Plane::start(&programs(), "20ms");
    let mut history = History::begin(&plane.api);
    plane
        .api
        .create(Kind::Set, &set_with_claims("web", REPLICAS));
    let complete = |history: &History| history.is_complete("web");
    for _ in 0..REPLICAS {
        end_after_a_write(&plane, &mut history);
        // A sync makes a pod's claims first, and was not left in between.
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
