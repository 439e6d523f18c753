//! The shipped controller, with the rights of the stock role alone, takes over what the reference
//! left at rest, and writes nothing.

use std::collections::BTreeSet;
use std::path::Path;

use conformance::settled::shapes::Shape;
use integration::recorded::Recorded;
use integration::space::Space;
use serde_json::{Value, json};

use crate::harness::{Api, History, Kind, Plane, Signal, programs, set};

const USER: &str = "system:serviceaccount:kube-system:statefulset-controller";

/// Creates a set in the default namespace and waits until the controller has seen it.
fn until_seen(api: &Api, history: &mut History, name: &str) {
    api.create(Kind::Set, &set(name, 0));
    let seen = |history: &History| {
        let mut sets = history.now(Kind::Set);
        sets.any(|(other, set)| other == name && set["status"]["observedGeneration"] == 1)
    };
    history.until(&format!("{name} to be seen"), seen);
}

/// The writes that the audit log tells of, and their namespaces.
fn writes(audit: &Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(audit).unwrap();
    let events = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let by_controller = events.filter(|event| event["user"]["username"] == USER);
    let write = |event: Value| {
        assert_ne!(event["responseStatus"]["code"], 403, "{event}");
        let verb = event["verb"].as_str().unwrap().to_owned();
        let object = &event["objectRef"];
        let text = |member: &str| object[member].as_str().unwrap_or_default().to_owned();
        let (resource, subresource) = (text("resource"), text("subresource"));
        let what = format!("{verb} {resource} {subresource} {}", text("name"));
        let is_read = ["get", "list", "watch"].contains(&verb.as_str());
        (!is_read).then(|| (text("namespace"), what))
    };
    by_controller.filter_map(write).collect()
}

#[test]
fn sets_that_the_reference_left_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let audit = folder.path().join("audit");
    let flags = ["--actors=", "--audit-log-path", audit.to_str().unwrap()];
    let plane = Plane::start_with(&programs(), &flags);
    let mut namespaces = BTreeSet::new();
    for (number, shape) in Shape::ALL.into_iter().enumerate() {
        for cluster in Recorded::all(shape) {
            let namespace = format!("{}-{number}", cluster.namespace());
            let object = json!({"metadata": {"name": namespace}});
            plane.api.post("/api/v1/namespaces", &object);
            plane.api.with_client(async |client| {
                cluster.load(&Space::new(client, &namespace)).await;
            });
            namespaces.insert(namespace);
        }
    }
    assert_eq!(namespaces.len(), 18 * Shape::ALL.len());

    let controller = plane.controller();
    let mut history = History::begin(&plane.api);
    // Once the first set is seen all caches are full; what comes then waits behind all the others.
    until_seen(&plane.api, &mut history, "first");
    until_seen(&plane.api, &mut history, "second");
    controller.signal(Signal::TERM);
    assert_eq!(controller.wait().code, Some(0));

    let (own, others): (Vec<_>, Vec<_>) = writes(&audit)
        .into_iter()
        .partition(|(namespace, _)| namespace == "default");
    assert_eq!(others, []);
    assert!(own.len() >= 4, "each has a revision and a status: {own:?}");
}
