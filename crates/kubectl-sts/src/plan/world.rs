//! The embedded control plane with a copy of a set's objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube_test_control_plane::actors::{
    ActorsConfig, GarbageCollectorConfig, KubeletConfig, NodeConfig, NodesConfig, Outcome, Pattern,
    PodBehaviour, PodMatcher, SchedulerConfig, VolumeBinderConfig,
};
use kube_test_control_plane::audit::{AuditEntry, AuditMark};
use kube_test_control_plane::auth::Identity;
use kube_test_control_plane::clock::{Clock as _, TokioClock};
use kube_test_control_plane::{
    EmulatedVersion, FeatureGates as ServerGates, TestControlPlane, TestControlPlaneBuilder,
};
use serde_json::{Value, json};
use statefulset_client::clock::Clock;
use statefulset_client::feature_gates::{FeatureGates, KubeVersion};
use statefulset_client::rest::RestClient;
use statefulset_controller::StatefulSetController;
use tokio::task::JoinSet;

use super::change::{self, JSON, text};
use super::steps::Step;
use super::{DeletedClaim, Plan, PlannedBudget, is_complete};
use crate::Session;
use crate::cli::PlanArguments;
use crate::model::{Pod, Set, median_start};
use crate::objects::Snapshot;
use crate::output::Style;
use crate::server::{STATEFUL_SETS, Server};

/// Seed of new uids, which must not be those of the copied objects.
const SEED: u64 = 0x706c_616e;
/// Time in which a pod becomes ready if no existing pod shows it.
const READY_DEFAULT: Duration = Duration::from_secs(10);
/// Time in which a deleted pod stops.
const STOP: Duration = Duration::from_secs(1);
/// Seconds after which an unready pod counts as broken.
const BROKEN_SECONDS: i64 = 120;
/// Least time without writes after which nothing more is expected.
const QUIET_MIN: Duration = Duration::from_secs(60);
/// Longest planned time.
const PLAN_MAX: Duration = Duration::from_secs(24 * 3600);
/// First version with the strategy `Recreate`.
const RECREATE_SINCE: KubeVersion = KubeVersion::v1(37);
/// Nodes beyond those of the existing pods.
const SPARE_NODES: usize = 3;

/// A question about a change.
pub(super) struct Situation<'a> {
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    pub(super) snapshot: &'a Snapshot,
    pub(super) now: Timestamp,
    pub(super) arguments: &'a PlanArguments,
    pub(super) file: Option<&'a Value>,
}

/// Clock of the control plane, in the form that the controller takes.
struct SharedClock(TokioClock);

impl Clock for SharedClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
}

/// The events after the change.
struct Observed {
    entries: Vec<AuditEntry>,
    ready: usize,
    least_ready: usize,
    all_at_once: bool,
    end: Timestamp,
}

/// A control plane of the server's version. The server's gates are unknown, so a strategy that
/// needs one is accepted: the dry run on the server decides.
fn plane(situation: &Situation<'_>) -> TestControlPlaneBuilder {
    let builder = TestControlPlane::builder().seed(SEED);
    if situation.snapshot.gates.emulation_version < RECREATE_SINCE {
        return builder;
    }
    let version = EmulatedVersion::V1_37;
    let gates = ServerGates {
        stateful_set_recreate_strategy: Some(true),
        ..ServerGates::at(version)
    };
    builder.emulated_version(version).feature_gates(gates)
}

/// The gates of the cluster's controller: a server that accepts the strategy `Recreate` has its
/// gate enabled, and so has the controller.
fn gates(situation: &Situation<'_>, changed: &Value) -> FeatureGates {
    let gates = situation.snapshot.gates;
    let is_recreate = text(changed, "/spec/updateStrategy/type") == "Recreate";
    FeatureGates {
        stateful_set_recreate_strategy: is_recreate && gates.emulation_version >= RECREATE_SINCE,
        ..gates
    }
}

/// Makes the change on a copy, and returns the changed set.
pub(super) async fn change(situation: &Situation<'_>) -> anyhow::Result<Value> {
    let clock = TokioClock::starting_at(situation.now);
    let plane = plane(situation).clock(Arc::new(clock)).start().await;
    load(&plane, situation).await?;
    change::make(&plane.client(), situation).await
}

/// Stores the changed set.
async fn store(client: &Client, situation: &Situation<'_>, changed: &Value) -> anyhow::Result<()> {
    let Situation {
        namespace, name, ..
    } = situation;
    let sets = format!("/apis/apps/v1/namespaces/{namespace}/statefulsets");
    if situation.snapshot.set.is_none() {
        let set = change::new_set(name, changed);
        change::send(client, "POST", &sets, JSON, &set).await?;
        return Ok(());
    }
    let path = format!("{sets}/{name}");
    let live = change::send(client, "GET", &path, JSON, &Value::Null).await?;
    let set = change::with_content(live, changed);
    change::send(client, "PUT", &path, JSON, &set).await?;
    Ok(())
}

/// Runs the controller on a copy with the changed set. Needs paused time.
pub(super) async fn run(situation: &Situation<'_>, changed: &Value) -> anyhow::Result<Plan> {
    let clock = TokioClock::starting_at(situation.now);
    let seconds_to_ready = seconds_to_ready(situation);
    let estimate = seconds_to_ready
        .and_then(|seconds| u64::try_from(seconds).ok())
        .map_or(READY_DEFAULT, Duration::from_secs);
    let plane = plane(situation)
        .clock(Arc::new(clock.clone()))
        .actors(actors(situation, estimate))
        .start()
        .await;
    let client = plane.client();
    load(&plane, situation).await?;
    store(&client, situation, changed).await?;
    let mark = plane.server().audit().mark();
    let mut controllers = JoinSet::new();
    let gates = gates(situation, changed);
    start_controller(&plane, &clock, gates, &mut controllers);
    let observed = observe(&plane, &clock, situation, estimate, mark).await?;
    controllers.shutdown().await;

    let server = Server::new(client.clone()).with_gates(gates);
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
    let steps = observed
        .entries
        .iter()
        .filter_map(|entry| Step::of(entry, begin));
    Ok(Plan {
        namespace: situation.namespace.to_owned(),
        set: situation.name.to_owned(),
        steps: steps.collect(),
        claims_deleted: claims_deleted(situation, &observed.entries),
        ready: observed.ready,
        least_ready: observed.least_ready,
        budgets: budgets(situation, &observed),
        all_at_once: observed.all_at_once,
        is_complete,
        ends_with: why.reason_unless_settled(),
        seconds: observed.end.duration_since(begin).as_secs(),
        seconds_to_ready,
    })
}

/// Median of the seconds that the existing pods took to become ready.
fn seconds_to_ready(situation: &Situation<'_>) -> Option<i64> {
    let set = situation.snapshot.set.as_ref()?;
    median_start(situation.snapshot.pods_of(&set.object))
}

/// Nodes with ample room, and pods that behave like the existing ones.
fn actors(situation: &Situation<'_>, estimate: Duration) -> ActorsConfig {
    let behaviour = PodBehaviour {
        start_delay: estimate.into(),
        stop_delay: STOP.into(),
        ..PodBehaviour::default()
    };
    let mut kubelet = KubeletConfig::new(behaviour.clone());
    let set = situation.snapshot.set.as_ref().map(|set| &set.object);
    let pods = set
        .into_iter()
        .flat_map(|set| situation.snapshot.pods_of(set));
    for pod in pods {
        let of_pod = |first: Option<u32>| PodMatcher {
            namespace: Some(Pattern::new(situation.namespace)),
            name: Some(Pattern::new(&pod.metadata.name)),
            first,
            ..PodMatcher::default()
        };
        if is_broken(pod, situation.now) {
            let broken = PodBehaviour {
                outcome: Outcome::NeverReady,
                ..behaviour.clone()
            };
            kubelet = kubelet.when(of_pod(Some(1)), broken);
        } else if let Some(seconds) = pod.start_seconds().and_then(|it| u64::try_from(it).ok()) {
            let own = PodBehaviour {
                start_delay: Duration::from_secs(seconds).into(),
                ..behaviour.clone()
            };
            kubelet = kubelet.when(of_pod(None), own);
        }
    }
    ActorsConfig {
        nodes: NodesConfig {
            nodes: nodes(situation),
        },
        kubelet: Some(kubelet),
        scheduler: Some(SchedulerConfig::default()),
        volume_binder: Some(VolumeBinderConfig::default()),
        garbage_collector: Some(GarbageCollectorConfig::default()),
        ..ActorsConfig::default()
    }
}

fn is_broken(pod: &Pod, now: Timestamp) -> bool {
    let since = pod
        .condition("Ready")
        .and_then(|ready| ready.last_transition_time);
    let since = since.or(pod.metadata.creation_timestamp);
    let age = since.map_or(0, |since| now.duration_since(since).as_secs());
    !pod.is_ready() && age >= BROKEN_SECONDS
}

/// The nodes of the existing pods, and spare ones with the labels that the pods select.
fn nodes(situation: &Situation<'_>) -> Vec<NodeConfig> {
    let set = situation.snapshot.set.as_ref().map(|set| &set.object);
    let pods = || {
        set.into_iter()
            .flat_map(|set| situation.snapshot.pods_of(set))
    };
    let mut names: BTreeSet<String> = pods()
        .map(|pod| pod.spec.node_name.clone())
        .filter(|name| !name.is_empty())
        .collect();
    let wanted = set.map_or(0, |set| usize::try_from(set.replicas()).unwrap_or_default());
    let wanted = wanted.min(100) + SPARE_NODES;
    names.extend((0..wanted).map(|number| format!("planned-node-{number}")));
    let labels: BTreeMap<String, String> = pods()
        .flat_map(|pod| pod.spec.node_selector.clone())
        .collect();
    let node = |name: &String| NodeConfig {
        labels: labels.clone(),
        ..NodeConfig::new(name)
    };
    names.iter().map(node).collect()
}

/// Copies the objects into the control plane, owners first.
async fn load(plane: &TestControlPlane, situation: &Situation<'_>) -> anyhow::Result<()> {
    let namespace = json!({"metadata": {"name": situation.namespace}});
    if situation.namespace != "default" {
        let path = "/api/v1/namespaces";
        change::send(&plane.client(), "POST", path, JSON, &namespace).await?;
    }
    let Some(set) = situation.snapshot.set.as_ref() else {
        return Ok(());
    };
    let objects = situation.snapshot.objects(set);
    let store = |version: &str, kind: &str, text: &str| {
        let text = typed(version, kind, text)?;
        let stored = plane.server().store_as_is(text.as_bytes());
        stored.with_context(|| format!("copy a {kind}"))
    };
    let mut own: Value = serde_json::from_str(&set.text).context("decode the set")?;
    // The collector would miss an owner that isn't copied.
    if let Some(metadata) = own.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("ownerReferences");
    }
    store("apps/v1", "StatefulSet", &own.to_string())?;
    for revision in objects.revisions {
        store("apps/v1", "ControllerRevision", revision)?;
    }
    for claim in objects.claims {
        if let Some(volume) = volume_of(claim) {
            store("v1", "PersistentVolume", &volume.to_string())?;
        }
        store("v1", "PersistentVolumeClaim", claim)?;
    }
    for pod in objects.pods {
        store("v1", "Pod", pod)?;
    }
    Ok(())
}

/// The object with its type, which items of lists lack, and otherwise the same bytes.
fn typed(version: &str, kind: &str, text: &str) -> anyhow::Result<String> {
    let object: Value = serde_json::from_str(text).with_context(|| format!("decode a {kind}"))?;
    let rest = text.trim_start().strip_prefix('{');
    match rest {
        Some(rest) if object.get("kind").is_none() => Ok(format!(
            r#"{{"apiVersion":"{version}","kind":"{kind}",{rest}"#
        )),
        _ => Ok(text.to_owned()),
    }
}

/// The volume of a bound claim.
fn volume_of(claim: &str) -> Option<Value> {
    let claim: Value = serde_json::from_str(claim).ok()?;
    let volume = text(&claim, "/spec/volumeName");
    if volume.is_empty() {
        return None;
    }
    let capacity = claim.pointer("/status/capacity");
    let capacity = capacity.or_else(|| claim.pointer("/spec/resources/requests"));
    Some(json!({
        "metadata": {"name": volume, "uid": format!("volume-of-{}", text(&claim, "/metadata/uid"))},
        "spec": {
            "accessModes": claim.pointer("/spec/accessModes"),
            "capacity": capacity,
            "claimRef": {
                "namespace": text(&claim, "/metadata/namespace"),
                "name": text(&claim, "/metadata/name"),
                "uid": text(&claim, "/metadata/uid"),
            },
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": text(&claim, "/spec/storageClassName"),
        },
        "status": {"phase": "Bound"},
    }))
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
        .clock(Arc::new(SharedClock(clock.clone())))
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

/// Waits until the writes have ended.
async fn observe(
    plane: &TestControlPlane,
    clock: &TokioClock,
    situation: &Situation<'_>,
    estimate: Duration,
    mut mark: AuditMark,
) -> anyhow::Result<Observed> {
    let set = Server::new(plane.client())
        .get_existing::<Set>(&STATEFUL_SETS, situation.namespace, situation.name)
        .await?;
    let min_ready = u64::try_from(set.spec.min_ready_seconds).unwrap_or_default();
    let quiet = (QUIET_MIN + estimate * 2 + Duration::from_secs(min_ready)).min(PLAN_MAX);
    let pause = (quiet / 600).max(Duration::from_secs(1));
    let now_ready = situation.snapshot.set.as_ref().map_or(0, |set| {
        situation
            .snapshot
            .pods_of(&set.object)
            .filter(|pod| pod.is_ready())
            .count()
    });
    let may_be_down = now_ready < 2 || set.replicas() == 0;
    let begin = clock.now();
    let (audit, mut end, mut least_ready) = (plane.server().audit(), begin, now_ready);
    let mut entries = Vec::new();
    let elapsed = |since: Timestamp| clock.now().duration_since(since);
    let limit = |limit: Duration| SignedDuration::try_from(limit).unwrap_or(SignedDuration::MAX);
    while elapsed(end) < limit(quiet) && elapsed(begin) < limit(PLAN_MAX) {
        tokio::time::sleep(pause).await;
        let next = audit.mark();
        let fresh = audit
            .since(mark, AuditEntry::is_change)
            .context("follow the simulation")?;
        mark = next;
        let is_own = |entry: &AuditEntry| entry.namespace == situation.namespace;
        let last = fresh
            .iter()
            .filter(|entry| is_own(entry))
            .map(|entry| entry.received)
            .max();
        if let Some(last) = last {
            end = end.max(last);
            least_ready = least_ready.min(ready(plane, situation.namespace));
        }
        entries.extend(fresh);
    }
    Ok(Observed {
        entries,
        ready: now_ready,
        least_ready,
        all_at_once: !may_be_down && least_ready == 0,
        end,
    })
}

/// The budgets that select the set's pods.
fn budgets(situation: &Situation<'_>, observed: &Observed) -> Vec<PlannedBudget> {
    let set = situation.snapshot.set.as_ref().map(|set| &set.object);
    let budgets = set
        .into_iter()
        .flat_map(|set| situation.snapshot.budgets_of(set));
    budgets
        .map(|budget| {
            let required = budget.status.desired_healthy;
            PlannedBudget {
                name: budget.metadata.name.clone(),
                required,
                is_broken: usize::try_from(required).is_ok_and(|it| observed.least_ready < it),
            }
        })
        .collect()
}

/// Number of ready pods.
fn ready(plane: &TestControlPlane, namespace: &str) -> usize {
    let (_, pods) = plane.server().store().list("pods", namespace);
    let is_ready = |pod: &Value| {
        let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|it| it["type"] == "Ready" && it["status"] == "True")
    };
    pods.iter().filter(|pod| is_ready(&pod.value())).count()
}

/// The existing claims that a request deleted.
fn claims_deleted(situation: &Situation<'_>, entries: &[AuditEntry]) -> Vec<DeletedClaim> {
    let Some(set) = situation.snapshot.set.as_ref() else {
        return Vec::new();
    };
    let deleted: BTreeSet<&str> = entries
        .iter()
        .filter(|entry| entry.resource == "persistentvolumeclaims" && entry.verb.name() == "delete")
        .map(|entry| entry.name.as_str())
        .collect();
    let claims = situation.snapshot.objects(set).claims.into_iter();
    let claims = claims.filter_map(|claim| serde_json::from_str::<Value>(claim).ok());
    claims
        .filter(|claim| deleted.contains(text(claim, "/metadata/name")))
        .map(|claim| DeletedClaim {
            name: text(&claim, "/metadata/name").to_owned(),
            size: text(&claim, "/spec/resources/requests/storage").to_owned(),
            storage_class: text(&claim, "/spec/storageClassName").to_owned(),
        })
        .collect()
}
