//! Controllers built from a kube client, with upstream's defaults.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use kube_test_control_plane::faults::{Gate, RequestMatcher};
use kube_test_control_plane::route::Verb;
use serde_json::{Value, json};
use statefulset_client::clock::TokioClock;
use statefulset_client::config::{self, ClientOptions};
use statefulset_client::fence::Fence;
use statefulset_client::leaderelection::{LeaderElectionConfig, LeaseName};
use statefulset_client::shard::Shard;
use statefulset_controller::{BuildError, LeaderElection, RunError, StatefulSetController};
use statefulset_fence::NamespaceSelector;
use tokio::time::{Instant, timeout};

use crate::{PODS, SETS, World};

/// Another resync period than that of the test.
const HOUR: Duration = Duration::from_secs(3600);
const EVENTS: &str = "/api/v1/namespaces/default/events";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/embedder";

fn election() -> LeaderElection {
    let lease = LeaseName::new("default", "embedder");
    LeaderElection::new(lease, "me")
}

#[tokio::test(start_paused = true)]
async fn default_controller_creates_pods_and_sends_events() {
    let mut world = World::new().await;
    world.create_set("web", 1).await;
    let controller = StatefulSetController::builder_with_kube_client(world.plane.client());
    world.run_this(controller.build().unwrap());
    world.rest().await;
    world.end().await;
    assert_eq!(world.pods().await, ["web-0"]);
    let events = world.ask(Method::GET, EVENTS, &Value::Null).await;
    let event = &events["items"][0];
    assert_eq!(event["reason"], "SuccessfulCreate");
    assert_eq!(event["source"]["component"], "statefulset-controller");
}

/// A controller with two events to send. The server holds the first, which blocks the second.
async fn with_held_events() -> (World, Gate) {
    let mut world = World::new().await;
    world.create_set("web", 2).await;
    let events = RequestMatcher::any().resource("events");
    let gate = world.plane.server().faults().gate(events);
    let controller = StatefulSetController::builder_with_kube_client(world.plane.client());
    world.run_this(controller.build().unwrap());
    world.rest().await;
    assert_eq!(gate.waiting().len(), 1);
    (world, gate)
}

#[tokio::test(start_paused = true)]
async fn queued_events_are_sent_at_shutdown() {
    let (mut world, gate) = with_held_events().await;
    world.cancelled.cancel();
    tokio::time::sleep(Duration::from_secs(2)).await;
    gate.open();
    world.end().await;
    let events = world.ask(Method::GET, EVENTS, &Value::Null).await;
    assert_eq!(events["items"].as_array().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn unanswered_events_delay_shutdown_by_three_seconds() {
    let (mut world, _gate) = with_held_events().await;
    let began = Instant::now();
    world.end().await;
    assert_eq!(began.elapsed().as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn elected_controller_ends_when_it_loses_its_lease() {
    let world = World::new().await;
    world.create_set("web", 1).await;
    let controller = StatefulSetController::builder_with_kube_client(world.plane.client())
        .leader_election(election())
        .build()
        .unwrap();
    let health = controller.leader_health().unwrap();
    let taking = async {
        world.rest().await;
        assert!(health.is_leader());
        assert_eq!(world.pods().await, ["web-0"]);
        let mut lease = world.ask(Method::GET, LEASE, &Value::Null).await;
        assert_eq!(lease["spec"]["holderIdentity"], "me");
        lease["spec"]["holderIdentity"] = "another".into();
        world.ask(Method::PUT, LEASE, &lease).await;
    };
    let (ended, ()) = tokio::join!(controller.run(std::future::pending()), taking);
    let lost = r#"the lease is lost: "another" has taken it"#;
    assert!(matches!(&ended, Err(RunError::LeaseLost(_))));
    assert_eq!(ended.unwrap_err().to_string(), lost);
}

#[tokio::test]
async fn builder_refuses_a_second_fence() {
    let world = World::new().await;
    let fence = Fence::new(Arc::new(TokioClock::new()));
    let fenced = ClientOptions::default().fence(fence);
    let builder = || StatefulSetController::builder_with_kube_client(world.plane.client());
    let both = builder()
        .client_options(fenced.clone())
        .leader_election(election());
    let error = both.build().err().unwrap();
    assert!(matches!(error, BuildError::FenceWithElection), "{error}");
    // Either alone is a choice.
    builder().client_options(fenced).build().unwrap();
    let options = ClientOptions::default();
    let elected = builder()
        .client_options(options)
        .leader_election(election());
    elected.build().unwrap();
}

#[tokio::test]
async fn builder_refuses_informer_clients_without_a_selector() {
    let world = World::new().await;
    let client = config::around(world.plane.client(), &ClientOptions::default());
    let builder = || {
        let client = client.clone();
        world.builder().informer_clients(move || Ok(client.clone()))
    };
    let error = builder().build().err().unwrap();
    let is_refused = matches!(error, BuildError::InformerClientsWithoutSelector);
    assert!(is_refused, "{error}");
    let selected = builder().namespace_selector(NamespaceSelector::default());
    selected.build().unwrap();
}

#[tokio::test]
async fn builder_refuses_informers_of_another_scope() {
    let world = World::new().await;
    let ours = || world.builder().namespace("default");
    let shard = |text: &str| Some(text.parse::<Shard>().unwrap());
    for (builder, setting) in [
        (world.builder(), "namespace"),
        (world.builder().namespace("other"), "namespace"),
        (ours().shard(shard("1/2")), "shard"),
        (ours().resync_period(Some(HOUR)), "resync period"),
    ] {
        let mut informers = builder.make_informers().unwrap();
        let error = ours().build_with_informers(&mut informers).err().unwrap();
        let text = format!(
            "the informers have another {setting} than this builder; \
             make them with make_informers of a builder with the same settings"
        );
        assert_eq!(error.to_string(), text);
    }
    // A page has no effect on what the controller sees, nor has the seed.
    let same = ours().page_size(7).seed(9);
    let mut informers = same.make_informers().unwrap();
    ours().build_with_informers(&mut informers).unwrap();
}

#[tokio::test(start_paused = true)]
async fn elected_controller_sends_events_about_its_lease() {
    let mut world = World::new().await;
    let controller = StatefulSetController::builder_with_kube_client(world.plane.client())
        .leader_election(election())
        .build();
    world.run_this(controller.unwrap());
    world.rest().await;
    world.end().await;
    let events = world.ask(Method::GET, EVENTS, &Value::Null).await;
    let events = events["items"].as_array().unwrap().iter();
    let mut events: Vec<[&str; 4]> = events
        .map(|event| {
            assert_eq!(event["source"]["component"], "statefulset-controller");
            let object = &event["involvedObject"];
            [
                &object["kind"],
                &object["name"],
                &event["reason"],
                &event["message"],
            ]
            .map(|text| text.as_str().unwrap())
        })
        .collect();
    events.sort_unstable();
    assert_eq!(
        events,
        [
            ["Lease", "embedder", "LeaderElection", "me became leader"],
            ["Lease", "embedder", "LeaderElection", "me stopped leading"],
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn shutdown_timeout_aborts_a_hanging_sync() {
    let world = World::new().await;
    world.create_set("web", 1).await;
    let creations = RequestMatcher::any().verb(Verb::Create).resource("pods");
    let gate = world.plane.server().faults().gate(creations);
    let builder = world
        .builder()
        .shutdown_timeout(Some(Duration::from_secs(7)));
    let controller = builder.build().unwrap();
    let stopping = async {
        gate.arrived(1).await;
        world.cancelled.cancel();
        Instant::now()
    };
    let running = async { tokio::join!(controller.run(world.cancelled.cancelled()), stopping) };
    let bounded = timeout(Duration::from_secs(60), running).await;
    let (ended, begin) = bounded.expect("the timeout ends the controller");
    assert!(matches!(ended, Err(RunError::ShutdownTimeout)), "{ended:?}");
    assert_eq!(begin.elapsed().as_secs(), 7);
}

#[tokio::test]
async fn builder_rejects_invalid_elections() {
    let world = World::new().await;
    let builder = StatefulSetController::builder_with_kube_client(world.plane.client());
    let invalid = election().config(LeaderElectionConfig::default().lease_duration(Duration::ZERO));
    let error = builder.leader_election(invalid).build().err().unwrap();
    assert!(matches!(error, BuildError::LeaderElection(_)), "{error}");

    let error = world.builder().leader_election(election()).build();
    let error = error.err().unwrap();
    assert!(matches!(error, BuildError::ElectionOfReadyClients));
    let options = ClientOptions::default();
    let error = world.builder().client_options(options).build();
    let error = error.err().unwrap();
    assert!(matches!(error, BuildError::OptionsOfReadyClients));
    let mut config = kube::Config::new("https://127.0.0.1:1".parse().unwrap());
    config.auth_info.client_certificate_data = Some("no certificate".to_owned());
    let error = StatefulSetController::builder(config).build();
    let error = error.err().unwrap();
    assert!(matches!(error, BuildError::Client(_)), "{error}");
}

#[tokio::test(start_paused = true)]
async fn controller_of_a_namespace_leaves_others_alone() {
    let mut world = World::new().await;
    let namespace = json!({"metadata": {"name": "other"}});
    world
        .ask(Method::POST, "/api/v1/namespaces", &namespace)
        .await;
    world.create_set("web", 1).await;
    let set = world
        .ask(Method::GET, &format!("{SETS}/web"), &Value::Null)
        .await;
    let copy = json!({"metadata": {"name": "web"}, "spec": set["spec"]});
    let others = SETS.replace("default", "other");
    world.ask(Method::POST, &others, &copy).await;
    let builder = world.builder();
    world.run_built_by(builder.namespace("other"));
    world.rest().await;
    assert_eq!(world.pods().await, [""; 0]);
    let pods = PODS.replace("default", "other");
    let pods = world.ask(Method::GET, &pods, &Value::Null).await;
    assert_eq!(pods["items"].as_array().unwrap().len(), 1);
    assert!(world.tasks.try_join_next().is_none());
    world.end().await;
}
