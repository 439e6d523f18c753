//! `kubectl sts plan` against the writes that then happen, on the API server selected by the
//! environment.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use clap::Parser as _;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use integration::World;
use integration::manifests;
use integration::space::{Patch, Space};
use kube::client::Body;
use kube_test_control_plane::actors::{ActorsConfig, KubeletConfig, PodBehaviour};
use kubectl_sts::cli::Cli;
use kubectl_sts::output::Style;
use kubectl_sts::{Session, run};
use serde_json::{Value, json};
use statefulset_client::resource::STATEFUL_SETS;
use statefulset_client::rest::RestClient;
use tower::{BoxError, service_fn};

/// Duration of each pod stage.
const STEP: Duration = Duration::from_millis(500);
/// Time without writes after which the sets count as settled: longer than any pod stage, and than
/// any `minReadySeconds` here.
const QUIET: Duration = Duration::from_secs(5);

/// The accepted writes of a controller, with their namespaces, in the order in which they were
/// sent.
#[derive(Clone, Default)]
struct Writes(Arc<Mutex<Vec<(String, String)>>>);

impl Writes {
    /// A client that records the writes of sets' objects.
    fn recorded(&self, client: kube::Client) -> RestClient {
        let writes = self.clone();
        RestClient::from_service(service_fn(move |request: Request<Body>| {
            let (client, writes) = (client.clone(), writes.clone());
            async move {
                let (head, body) = request.into_parts();
                let bytes = body.collect().await?.to_bytes();
                let object: Value = serde_json::from_slice(&bytes).unwrap_or_default();
                let write = line(&head.method, head.uri.path(), &object);
                let slot = write.map(|write| writes.push(write));
                let request = Request::from_parts(head, Body::from(bytes));
                let answer = client.send(request).await?;
                if let Some(slot) = slot.filter(|_| !answer.status().is_success()) {
                    writes.refused(slot);
                }
                Ok::<_, BoxError>(answer)
            }
        }))
    }

    fn push(&self, write: (String, String)) -> usize {
        let mut writes = self.0.lock().unwrap();
        writes.push(write);
        writes.len() - 1
    }

    /// Forgets a write.
    fn refused(&self, slot: usize) {
        self.0.lock().unwrap()[slot] = Default::default();
    }

    fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// Waits until no write has come for a while.
    async fn settle(&self) {
        loop {
            let before = self.count();
            tokio::time::sleep(QUIET).await;
            if self.count() == before {
                return;
            }
        }
    }

    /// The writes in a namespace from a position on.
    fn since(&self, position: usize, namespace: &str) -> Vec<String> {
        let writes = self.0.lock().unwrap();
        let own = writes[position..].iter().filter(|it| it.0 == namespace);
        own.map(|it| it.1.clone()).collect()
    }
}

/// The namespace of a write that a plan shows, and a line such as `create pods web-0`.
fn line(method: &Method, path: &str, object: &Value) -> Option<(String, String)> {
    let (_, rest) = path.split_once("/namespaces/")?;
    let mut parts = rest.split('/');
    let (namespace, resource, name) = (parts.next()?, parts.next()?, parts.next());
    let verb = match *method {
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => return None,
    };
    let is_status = parts.next().is_some();
    if is_status || resource == "events" {
        return None;
    }
    let name = name.or(object["metadata"]["name"].as_str())?;
    Some((namespace.to_owned(), format!("{verb} {resource} {name}")))
}

/// A set and a change of it, as a strategic merge patch.
struct Case {
    set: Value,
    patch: Value,
    space: Space,
}

/// The image of the changed template.
fn image() -> Value {
    let container = json!({"name": "web", "image": "registry.example/web:2"});
    json!({"spec": {"containers": [container]}})
}

/// Sets, by their pods and further fields of the spec, and the changes of their specs.
fn changes() -> [(u32, Value, Value); 12] {
    let parallel = json!({"podManagementPolicy": "Parallel"});
    let deleting = json!({"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}});
    let partition = json!({"updateStrategy": {"rollingUpdate": {"partition": 1}}});
    [
        (1, json!({}), json!({"replicas": 3})),
        (3, json!({}), json!({"replicas": 1})),
        (2, json!({}), json!({"replicas": 0})),
        (1, parallel.clone(), json!({"replicas": 4})),
        (4, parallel.clone(), json!({"replicas": 1})),
        (2, json!({}), json!({"template": image()})),
        (3, partition, json!({"template": image()})),
        (2, parallel, json!({"template": image()})),
        (
            2,
            json!({"updateStrategy": {"type": "OnDelete"}}),
            json!({"template": image()}),
        ),
        (3, deleting, json!({"replicas": 1})),
        (2, json!({}), json!({"ordinals": {"start": 2}})),
        (
            2,
            json!({"minReadySeconds": 1}),
            json!({"replicas": 3, "template": image()}),
        ),
    ]
}

/// A set with claims.
fn set(replicas: u32, members: &Value) -> Value {
    let mut set = manifests::web(replicas);
    for (member, value) in members.as_object().unwrap() {
        set["spec"][member] = value.clone();
    }
    set
}

/// The planned writes.
async fn plan(world: &World, case: &Case) -> Vec<String> {
    let question = format!("kubectl-sts plan web -o json --patch {}", case.patch);
    let cli = Cli::try_parse_from(question.split(' ')).unwrap();
    let session = Session {
        client: world.client(),
        namespace: case.space.name().to_owned(),
        now: world.now(),
        style: Style::Plain,
    };
    let reply = run(&cli, &session).await.unwrap();
    let plan: Value = serde_json::from_str(&reply.text).unwrap();
    let steps = plan["steps"].as_array().unwrap().iter();
    let line =
        |step: &Value| ["verb", "resource", "name"].map(|it| step[it].as_str().unwrap().to_owned());
    steps.map(|step| line(step).join(" ")).collect()
}

/// Lines in the order of sending; of parallel sets, whose requests overtake each other, sorted.
fn comparable(case: &Case, mut lines: Vec<String>) -> Vec<String> {
    if case.set["spec"]["podManagementPolicy"] == "Parallel" {
        lines.sort();
    }
    lines
}

#[tokio::test(start_paused = true)]
async fn controller_writes_match_the_plan() {
    let pods = PodBehaviour::with_delays(STEP);
    let actors = ActorsConfig::all().kubelet(KubeletConfig::new(pods));
    let mut world = World::nodes(actors).await;
    let writes = Writes::default();
    world.start_controller(writes.recorded(world.controller_client()));
    let mut cases = Vec::new();
    for (replicas, members, spec) in changes() {
        let space = world.namespace("plans").await;
        let set = set(replicas, &members);
        space.create(&STATEFUL_SETS, &set).await;
        let patch = json!({"spec": spec});
        cases.push(Case { set, patch, space });
    }
    writes.settle().await;
    let mut planned = Vec::new();
    for case in &cases {
        planned.push(plan(&world, case).await);
    }
    let before = writes.count();
    for case in &cases {
        let patched = case
            .space
            .patch(&STATEFUL_SETS, "web", "", Patch::Strategic, &case.patch);
        patched.await;
    }
    writes.settle().await;
    for (case, planned) in cases.iter().zip(planned) {
        let written = writes.since(before, case.space.name());
        let [planned, written] = [planned, written].map(|lines| comparable(case, lines));
        assert!(!planned.is_empty(), "{} changes nothing", case.patch);
        assert_eq!(planned, written, "{}\n{}", case.set, case.patch);
    }
}
