//! Test of shards on an API server that sends each instance only the objects of its namespaces.

use http::Request;
use integration::manifests;
use integration::poll::Patience;
use serde_json::{Value, json};

use crate::harness::{PATIENCE, Plane, Process, Signal, controller_arguments, programs};

/// Enough namespaces that each of eight shards has some.
const NAMESPACES: usize = 24;

fn namespaces() -> impl Iterator<Item = String> {
    (0..NAMESPACES).map(|index| format!("team-{}", index * 37))
}

/// Starts the instances of all shards.
fn start(plane: &Plane, count: usize) -> Vec<Process> {
    let instances = (0..count).map(|index| {
        let mut arguments = controller_arguments(plane.controller_kubeconfig()).to_vec();
        arguments.push(format!("--shard={index}/{count}"));
        plane.named_controller(&format!("shard-{index}"), &arguments)
    });
    instances.collect()
}

/// Creates a set with one pod in each namespace.
fn create_sets(plane: &Plane, name: &str) {
    for namespace in namespaces() {
        let mut set = manifests::web(1);
        set["metadata"]["name"] = json!(name);
        let sets = format!("/apis/apps/v1/namespaces/{namespace}/statefulsets");
        plane.api.post(&sets, &set);
    }
}

/// Waits until the set of this name is ready in every namespace.
fn until_ready(plane: &Plane, name: &str) {
    let what = format!("a ready pod of {name} in every namespace");
    plane.api.with_client(async |client| {
        let ready = async || {
            let request = Request::get("/apis/apps/v1/statefulsets").body(Vec::new());
            let list: Value = client.request(request.unwrap()).await.unwrap();
            let sets = list["items"].as_array().unwrap().iter();
            let is_ready = |set: &&Value| {
                set["metadata"]["name"] == name && set["status"]["readyReplicas"] == 1
            };
            (sets.filter(is_ready).count() == NAMESPACES).then_some(())
        };
        Patience(PATIENCE).until(&what, ready).await;
    });
}

#[test]
fn every_set_is_served_by_two_and_by_eight_shards() {
    let flags = [
        "--feature-gates=ShardedListAndWatch=true",
        "--start-delay=0s",
        "--ready-delay=0s",
    ];
    let plane = Plane::start_with(&programs(), &flags);
    for namespace in namespaces() {
        let object = json!({"metadata": {"name": namespace}});
        plane.api.post("/api/v1/namespaces", &object);
    }
    for (count, name) in [(2, "web"), (8, "db")] {
        create_sets(&plane, name);
        let instances = start(&plane, count);
        until_ready(&plane, name);
        for instance in &instances {
            instance.signal(Signal::TERM);
        }
        for instance in instances {
            let finished = instance.wait();
            assert_eq!(finished.code, Some(0));
            let log = finished.stderr.join("\n");
            assert!(!log.contains("shard selector"), "{log}");
        }
    }
}
