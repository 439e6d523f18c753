//! A cluster with nodes, the shipped controller and one user.

use std::sync::Arc;
use std::time::Duration;

use clap::Parser as _;
use jiff::Timestamp;
use kube_test_control_plane::actors::{ActorsConfig, KubeletConfig, PodBehaviour};
use kube_test_control_plane::admission::{AdmissionRequest, Denial, Operation};
use kube_test_control_plane::auth::Identity;
use kube_test_control_plane::clock::TokioClock;
use kube_test_control_plane::{
    EmulatedVersion, ServerGates, TestControlPlane, TestControlPlaneBuilder,
};
use kubectl_sts::cli::{Cli, Command};
use kubectl_sts::output::Style;
use kubectl_sts::{Session, Verdict, follow};
use serde_json::{Value, json};
use statefulset_client::clock::Clock;
use statefulset_client::feature_gates::{FeatureGates, KubeVersion};
use statefulset_client::rest::RestClient;
use statefulset_controller::StatefulSetController;
use tokio::task::JoinSet;

use crate::kubectl::kubectl;

/// Questions, with the printed commands after each, before a test gives up: the controller's
/// back-off may reach many minutes.
const ROUNDS: usize = 30;
/// Start time of clusters.
const BEGIN: &str = "2026-03-01T12:00:00Z";
/// Duration of each pod stage.
const STEP: Duration = Duration::from_secs(1);

/// The cluster.
pub(crate) struct Stage {
    pub(crate) plane: TestControlPlane,
    clock: TokioClock,
    controllers: JoinSet<()>,
}

impl Stage {
    /// Starts a cluster with a controller.
    pub(crate) async fn start() -> Self {
        let mut stage = Self::without_controller().await;
        stage.start_controller();
        stage
    }

    /// Starts a cluster of 1.37 with the strategy `Recreate`, and a controller.
    pub(crate) async fn with_recreate() -> Self {
        let version = EmulatedVersion::V1_37;
        let gates = ServerGates::at(version).stateful_set_recreate_strategy(true);
        let newer = |plane: TestControlPlaneBuilder| {
            let plane = plane.emulated_version(version);
            plane.feature_gates(gates)
        };
        let mut stage = Self::with_plane(newer).await;
        let gates = FeatureGates::at(KubeVersion::v1(37)).stateful_set_recreate_strategy(true);
        stage.start_controller_with(gates);
        stage
    }

    /// Starts a cluster with a controller like that of a real 1.33, which compares revisions byte by
    /// byte.
    pub(crate) async fn with_controller_of_1_33() -> Self {
        let mut stage = Self::without_controller().await;
        stage.start_controller_with(
            FeatureGates::at(KubeVersion::v1(33)).stateful_set_semantic_revision_comparison(false),
        );
        stage
    }

    /// Starts a cluster with a controller whose sets may opt in to everything.
    pub(crate) async fn with_opt_ins() -> Self {
        let mut stage = Self::without_controller().await;
        stage.start_controller_with(FeatureGates::default().with_opt_ins());
        stage
    }

    /// Starts a cluster without a controller.
    pub(crate) async fn without_controller() -> Self {
        Self::with_plane(|plane| plane).await
    }

    /// Starts a cluster with a controller, whose nodes write no events.
    pub(crate) async fn without_events() -> Self {
        let change = |actors: &mut ActorsConfig| actors.events = false;
        let mut stage = Self::with_plane(|plane| plane.configure_actors(change)).await;
        stage.start_controller();
        stage
    }

    /// Starts a cluster with a controller, whose garbage collector doesn't work.
    pub(crate) async fn without_collector() -> Self {
        let change = |actors: &mut ActorsConfig| actors.garbage_collector = None;
        let mut stage = Self::with_plane(|plane| plane.configure_actors(change)).await;
        stage.start_controller();
        stage
    }

    async fn with_plane(
        change: impl FnOnce(TestControlPlaneBuilder) -> TestControlPlaneBuilder,
    ) -> Self {
        let clock = TokioClock::starting_at(BEGIN.parse().expect("a constant time parses"));
        let pods = PodBehaviour::with_delays(STEP);
        let actors = ActorsConfig::all()
            .kubelet(KubeletConfig::new(pods))
            .events(true);
        let plane = TestControlPlane::builder()
            .clock(Arc::new(clock.clone()))
            .actors(actors);
        let plane = change(plane).start().await;
        Self {
            plane,
            clock,
            controllers: JoinSet::new(),
        }
    }

    /// Starts the shipped controller with only the default role.
    pub(crate) fn start_controller(&mut self) {
        self.start_controller_with(FeatureGates::default());
    }

    /// Starts the shipped controller with these gates.
    pub(crate) fn start_controller_with(&mut self, gates: FeatureGates) {
        let account = Identity::service_account("kube-system", "statefulset-controller");
        let client = RestClient::new(self.plane.client_as(account));
        let controller = StatefulSetController::builder_with_clients(client.clone(), client)
            .clock(Arc::new(self.clock.clone()))
            .feature_gates(gates)
            .resync_period(None)
            .seed(7)
            .build()
            .expect("no election is configured");
        self.controllers.spawn(async move {
            let ended = controller.run(std::future::pending()).await;
            ended.expect("the controller runs until the end");
        });
    }

    /// Ends the controllers at once.
    pub(crate) fn stop_controller(&mut self) {
        self.controllers = JoinSet::new();
    }

    /// Runs the program as this user and returns its output, or its error line.
    pub(crate) async fn sts_as(&self, user: kube::Client, line: &str) -> String {
        let words = std::iter::once("kubectl-sts").chain(line.split_whitespace());
        let cli = Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{error}"));
        let session = Session {
            client: user,
            namespace: cli
                .namespace
                .clone()
                .unwrap_or_else(|| "default".to_owned()),
            now: self.clock.now(),
            style: Style::Plain,
        };
        let is_live = matches!(cli.command, Command::Recreate(_) | Command::Resize(_));
        let mut lines = String::new();
        let mut live = |line: &str| {
            if is_live {
                lines += line;
            }
        };
        match follow(&cli, &session, &mut live).await {
            Ok(mut reply) => {
                reply.text.insert_str(0, &lines);
                for note in reply.notes {
                    reply.text += &[note.as_str(), "\n"].concat();
                }
                if reply.verdict != Verdict::Clear {
                    let code = reply.verdict.exit_code().to_string();
                    reply.text += &["exit code ", &code, "\n"].concat();
                }
                reply.text
            }
            Err(error) => format!("{lines}error: {error:#}\n"),
        }
    }

    /// A user with these verbs for the objects of sets in the namespace `default`.
    pub(crate) async fn reader(&self, name: &str, verbs: &[&str]) -> kube::Client {
        let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
        let resources = [
            "pods",
            "persistentvolumeclaims",
            "statefulsets",
            "controllerrevisions",
        ];
        let rule = json!({"apiGroups": ["", "apps"], "resources": resources, "verbs": verbs});
        let role = json!({"metadata": {"name": name}, "rules": [rule]});
        self.create(&format!("{rbac}/roles"), &role).await;
        let group = "rbac.authorization.k8s.io";
        let binding = json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
            "subjects": [{"apiGroup": group, "kind": "User", "name": name}],
        });
        self.create(&format!("{rbac}/rolebindings"), &binding).await;
        self.plane.client_as(Identity::user(name))
    }

    /// Runs the program as the administrator.
    pub(crate) async fn sts(&self, line: &str) -> String {
        self.sts_as(self.plane.client(), line).await
    }

    /// Sends a request as the administrator.
    pub(crate) async fn ask(&self, method: &str, path: &str, kind: &str, body: &Value) -> Value {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", kind)
            .body(body.to_string().into_bytes())
            .expect("the request is valid");
        let answer = self.plane.client().request_text(request).await;
        let text = answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        serde_json::from_str(&text).expect("the server answers in JSON")
    }

    /// Reads an object.
    pub(crate) async fn get(&self, path: &str) -> Value {
        self.ask("GET", path, "application/json", &Value::Null)
            .await
    }

    /// Creates an object.
    pub(crate) async fn create(&self, collection: &str, object: &Value) -> Value {
        self.ask("POST", collection, "application/json", object)
            .await
    }

    /// Applies a merge patch.
    pub(crate) async fn patch(&self, path: &str, patch: &Value) -> Value {
        let kind = "application/merge-patch+json";
        self.ask("PATCH", path, kind, patch).await
    }

    /// Changes the image of the set `web`.
    pub(crate) async fn set_image(&self, image: &str) {
        let container = json!({"name": "app", "image": image});
        let patch = json!({"spec": {"template": {"spec": {"containers": [container]}}}});
        self.patch(SET, &patch).await;
    }

    /// Denies the creation of the pods of `web` for as long as `reason` returns one.
    pub(crate) fn deny_pods(&self, reason: impl Fn() -> Option<String> + Send + Sync + 'static) {
        let hook = move |request: &mut AdmissionRequest<'_>| {
            let is_pod = request.kind.plural == "pods" && request.operation == Operation::Create;
            match reason().filter(|_| is_pod && request.subresource.is_empty()) {
                Some(reason) => Err(Denial::Forbidden(reason)),
                None => Ok(()),
            }
        };
        self.plane.server().admission().add("limits", hook);
    }

    /// The current time.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Lets virtual time pass.
    pub(crate) async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }
}

/// Path of the sets.
pub(crate) const SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";
/// Path of the set `web`.
pub(crate) const SET: &str = "/apis/apps/v1/namespaces/default/statefulsets/web";

/// A set with this many pods and one claim for each.
pub(crate) fn web(replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "serviceName": "web",
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "app", "image": "app:1"}]},
            },
            "volumeClaimTemplates": [{
                "metadata": {"name": "data"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            }],
        },
    })
}

/// Asks about the set `web`.
pub(crate) async fn why(stage: &Stage) -> Value {
    let text = stage.sts("why web -o json").await;
    let answer: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"));
    answer["sets"][0].clone()
}

/// Checks the cause and its evidence, then runs the printed commands until the set is complete.
pub(crate) async fn resolve(stage: &Stage, cause: &str, evidence: &str) {
    let first = why(stage).await;
    assert_eq!(first["cause"], cause, "{first:#}");
    assert_eq!(first["state"], "stuck", "{first:#}");
    let text = first.to_string();
    assert!(text.contains(evidence), "{first:#}");
    for _ in 0..ROUNDS {
        let answer = why(stage).await;
        if answer["state"] == "settled" {
            break;
        }
        for command in answer["resolve"].as_array().expect("a list") {
            kubectl(stage, command.as_str().expect("a text")).await;
        }
        stage.pass(120).await;
    }
    let set = stage
        .ask("GET", SET, "application/json", &Value::Null)
        .await;
    let (status, wanted) = (&set["status"], &set["spec"]["replicas"]);
    for counter in [
        "replicas",
        "readyReplicas",
        "availableReplicas",
        "updatedReplicas",
    ] {
        assert_eq!(
            status[counter],
            *wanted,
            "{counter} after {first:#}, now {:#}",
            why(stage).await
        );
    }
    assert_eq!(status["observedGeneration"], set["metadata"]["generation"]);
    let end = stage.sts("why web").await;
    assert!(end.contains("settled"), "{end}");
}

/// A cluster with a complete set.
pub(crate) async fn complete() -> Stage {
    let stage = Stage::start().await;
    stage.create(SETS, &web(3)).await;
    stage.pass(60).await;
    stage
}

/// Changes the behaviour of new pods.
pub(crate) async fn behave(stage: &Stage, name: &str, value: Value) {
    let annotations = json!({format!("kubelet.test-control-plane/{name}"): value});
    let patch = json!({"spec": {"template": {"metadata": {"annotations": annotations}}}});
    stage.patch(SET, &patch).await;
    stage.pass(300).await;
}
