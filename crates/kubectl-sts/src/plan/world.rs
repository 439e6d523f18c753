//! The embedded control plane with a copy of a set's objects.

mod actors;
mod copy;
mod observe;

use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use kube::Client;
use kube_test_control_plane::auth::Identity;
use kube_test_control_plane::clock::{Clock as _, TokioClock};
use kube_test_control_plane::{
    EmulatedVersion, ServerConfig, ServerGates, TestControlPlane, TestControlPlaneBuilder,
    UnknownFields,
};
use serde_json::{Value, json};
use statefulset_client::feature_gates::{FeatureGates, KubeVersion};
use statefulset_client::rest::RestClient;
use statefulset_controller::StatefulSetController;
use tokio::task::JoinSet;

use super::change::{self, Part, text};
use super::loss::Ending;
use super::outcome::{Plan, Rejected, is_complete};
use super::situation::Situation;
use super::steps::{Step, reasons};

use crate::Session;
use crate::model::Set;
use crate::output::Style;
use crate::server::{JSON, STATEFUL_SETS, Server};
use actors::{actors, seconds_to_ready};
use copy::load;
use observe::{budgets, observe};

/// Seed of new uids, which must not be those of the copied objects.
const SEED: u64 = 0x706c_616e;
/// Time in which a pod becomes ready if no existing pod shows it.
const READY_DEFAULT: Duration = Duration::from_secs(10);
/// Seconds after which the copy's garbage collector has certainly let go of all dependents.
const ORPHANING_SECONDS_MAX: usize = 600;
/// First version with the strategy `Recreate`.
const RECREATE_SINCE: KubeVersion = KubeVersion::v1(37);

/// The course of a plan.
pub(super) struct Course {
    pub(super) plan: Plan,
    /// The set at the end.
    pub(super) set: Set,
    pub(super) ending: Ending,
    /// An object that only the validation here rejects.
    pub(super) rejected: Option<Rejected>,
}

/// The start of a course.
#[derive(Clone, Copy)]
pub(super) enum Start<'a> {
    /// The set has this state.
    Changed(&'a Value),
    /// The set is deleted without its dependents, and this one created.
    Recreated(&'a Value),
}

impl<'a> Start<'a> {
    fn set(self) -> &'a Value {
        match self {
            Self::Changed(set) | Self::Recreated(set) => set,
        }
    }
}

/// A control plane of the server's version. The server's gates are unknown, so a strategy that
/// needs one is accepted: the dry run on the server decides.
///
/// The copy keeps fields that are unknown to it, and may store objects without validation: another
/// server accepts them.
fn plane(situation: &Situation<'_>, validates: bool) -> TestControlPlaneBuilder {
    let config = ServerConfig::default()
        .unknown_fields(UnknownFields::Keep)
        .validates(validates);
    let builder = TestControlPlane::builder().server_config(config).seed(SEED);
    if situation.snapshot.gates.emulation_version < RECREATE_SINCE {
        return builder;
    }
    let version = EmulatedVersion::V1_37;
    let gates = ServerGates::at(version).stateful_set_recreate_strategy(true);
    builder.emulated_version(version).feature_gates(gates)
}

/// The gates of the cluster's controller: a server that accepts the strategy `Recreate` has its
/// gate enabled, and so has the controller.
fn gates(situation: &Situation<'_>, changed: &Value) -> FeatureGates {
    let gates = situation.snapshot.gates_of_controller();
    let is_recreate = text(changed, "/spec/updateStrategy/type") == "Recreate";
    gates.stateful_set_recreate_strategy(is_recreate && gates.emulation_version >= RECREATE_SINCE)
}

/// Makes the change on a copy, and returns the changed set.
pub(super) async fn change(
    situation: &Situation<'_>,
    parts: &[Part],
    validates: bool,
) -> anyhow::Result<Value> {
    let clock = TokioClock::starting_at(situation.now);
    let plane = plane(situation, validates);
    let plane = plane.clock(Arc::new(clock)).start().await;
    load(&plane, situation).await?;
    change::make(&plane.client(), situation, parts).await
}

/// Creates a set on an empty control plane, and returns it as stored.
pub(super) async fn created(situation: &Situation<'_>, set: &Value) -> anyhow::Result<Value> {
    let clock = TokioClock::starting_at(situation.now);
    let plane = plane(situation, true);
    let plane = plane.clock(Arc::new(clock)).start().await;
    // The default namespace exists on every server, and the stored content doesn't depend on it.
    let path = "/apis/apps/v1/namespaces/default/statefulsets";
    change::send(&plane.client(), "POST", path, JSON, set).await
}

/// Stores the changed set, as the cluster's server would.
fn store(
    plane: &TestControlPlane,
    situation: &Situation<'_>,
    changed: &Value,
) -> anyhow::Result<()> {
    let mut set = changed.clone();
    // A new set has its namespace from the path of the request.
    if let Some(metadata) = set.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("namespace".to_owned(), json!(situation.namespace));
        let uid = metadata.entry("uid").or_insert_with(|| json!("planned"));
        if uid.as_str().is_none_or(str::is_empty) {
            *uid = json!("planned");
        }
    }
    copy::put_set(plane, set)
}

/// Runs the controller on a copy, from this start. Needs paused time. Without `validates` the copy
/// stores all pods and claims that the controller creates.
pub(super) async fn run(
    situation: &Situation<'_>,
    start: Start<'_>,
    validates: bool,
) -> anyhow::Result<Course> {
    let clock = TokioClock::starting_at(situation.now);
    let seconds_to_ready = seconds_to_ready(situation);
    let estimate = seconds_to_ready
        .and_then(|seconds| u64::try_from(seconds).ok())
        .map_or(READY_DEFAULT, Duration::from_secs);
    let plane = plane(situation, validates)
        .clock(Arc::new(clock.clone()))
        .actors(actors(situation, estimate))
        .start()
        .await;
    let client = plane.client();
    load(&plane, situation).await?;
    if let Start::Changed(set) = start {
        store(&plane, situation, set)?;
    }
    let gates = gates(situation, start.set());
    if gates.stateful_set_in_place_update {
        permit_resizes(&client).await?;
    }
    let mark = plane.server().audit().mark();
    let mut controllers = JoinSet::new();
    start_controller(&plane, &clock, gates, &mut controllers);
    if let Start::Recreated(set) = start {
        orphan(&client, situation).await?;
        store(&plane, situation, set)?;
    }
    let server = Server::new(client.clone()).with_gates(gates);
    let set: Set = server
        .get_existing(&STATEFUL_SETS, situation.namespace, situation.name)
        .await?;
    let observed = observe(&plane, &clock, situation, &set, estimate, mark).await?;
    controllers.shutdown().await;

    let set: Set = server
        .get_existing(&STATEFUL_SETS, situation.namespace, situation.name)
        .await?;
    let is_complete = is_complete(&set);
    let session = Session {
        client,
        namespace: situation.namespace.to_owned(),
        now: clock.now(),
        style: Style::Plain,
    };
    let names = [situation.name.to_owned()];
    let why = crate::why::why(&server, &session, &names, false).await?;
    let begin = situation.now;
    let reasons = reasons(&observed.entries);
    let steps = observed.entries.iter();
    let steps = steps.filter_map(|entry| Step::of(entry, begin, &reasons));
    let ending = observe::ending(&plane, situation.namespace);
    let rejected = observe::rejected(&plane, situation.namespace);
    let plan = Plan {
        namespace: situation.namespace.to_owned(),
        set: situation.name.to_owned(),
        steps: steps.collect(),
        claims_deleted: Vec::new(),
        claims_at_risk: Vec::new(),
        ready: observed.ready,
        least_ready: observed.least_ready,
        budgets: budgets(situation, &observed),
        all_at_once: observed.all_at_once,
        is_complete,
        ends_with: why.reason_unless_settled(),
        seconds: observed.end.duration_since(begin).as_secs(),
        seconds_to_ready,
    };
    Ok(Course {
        plan,
        set,
        ending,
        rejected,
    })
}

/// Lets the controller resize pods, which its default role doesn't: the rights in the cluster are
/// unknown.
async fn permit_resizes(client: &Client) -> anyhow::Result<()> {
    let group = "rbac.authorization.k8s.io";
    let name = "statefulset-controller:resizes";
    let metadata = json!({"name": name});
    let role = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": metadata,
        "rules": [{"apiGroups": [""], "resources": ["pods/resize"], "verbs": ["patch"]}],
    });
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": [{
            "kind": "ServiceAccount", "namespace": "kube-system", "name": "statefulset-controller",
        }],
    });
    for (plural, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let path = format!("/apis/{group}/v1/{plural}");
        change::send(client, "POST", &path, JSON, &object).await?;
    }
    Ok(())
}

/// Deletes the set without its dependents.
async fn orphan(client: &Client, situation: &Situation<'_>) -> anyhow::Result<()> {
    let Situation {
        namespace, name, ..
    } = situation;
    let path = format!("/apis/apps/v1/namespaces/{namespace}/statefulsets/{name}");
    let options = json!({"propagationPolicy": "Orphan"});
    change::send(client, "DELETE", &path, JSON, &options).await?;
    let copy = Server::new(client.clone());
    for _ in 0..ORPHANING_SECONDS_MAX {
        let set = copy.get(&STATEFUL_SETS, Some(namespace), name).await?;
        if set.is_none() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    bail!("the set outlives its deletion in the simulation; report this as a bug")
}

fn start_controller(
    plane: &TestControlPlane,
    clock: &TokioClock,
    gates: FeatureGates,
    tasks: &mut JoinSet<()>,
) {
    let account = Identity::service_account("kube-system", "statefulset-controller");
    let client = RestClient::new(plane.client_as(account));
    let builder = StatefulSetController::builder_with_clients(client.clone(), client)
        .clock(Arc::new(clock.clone()))
        .feature_gates(gates)
        .resync_period(None)
        .seed(0);
    // Only an election makes building fail, and none is configured.
    if let Ok(controller) = builder.build() {
        tasks.spawn(async move {
            // The simulation ends before the controller does.
            let _ = controller.run(std::future::pending()).await;
        });
    }
}
