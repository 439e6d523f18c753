//! Faults that the control plane itself plays, and their ends.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kube_test_control_plane::UnknownFields;
use kube_test_control_plane::actors::Cause;
use kube_test_control_plane::auth::Identity;
use kube_test_control_plane::faults::{
    Delay, FaultError, RequestMatcher, RuleId, View, ViewRule, WatchAction, WatchRule,
};
use kube_test_control_plane::kinds::{self, Kind};
use kube_test_control_plane::route::Verb;
use kube_test_control_plane::store::Expect;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::time::Instant;

use super::admission::{TEMPLATE_SPEC, set_new_member};
use super::cluster::{Cluster, End};
use super::rivals::Rival;
use super::user::{NAMESPACE, User};
use crate::agent::{self, Process, RIVAL};
use crate::plan::{Fault, PodEnd, Span, WatchFault};

/// Returns the prefix of the user agents of an instance, or of all.
fn agent_prefix(instance: Option<usize>) -> String {
    instance.map_or_else(|| "controller-".to_owned(), agent::of_instance)
}

fn delay(span: Span) -> Delay {
    Delay::between(Duration::from_millis(span.0), Duration::from_millis(span.1))
}

fn watch_action(fault: WatchFault) -> WatchAction {
    match fault {
        WatchFault::Freeze => WatchAction::Freeze,
        WatchFault::Lag { delay: span } => WatchAction::Delay(delay(span)),
        WatchFault::HoldBack { events } => WatchAction::HoldBack { events },
        WatchFault::Cut => WatchAction::Cut,
        WatchFault::Expire => WatchAction::Error(FaultError::Expired),
        WatchFault::NoBookmarks => WatchAction::DropBookmarks,
    }
}

/// The resources that a storm may hit.
const STORAGES: [&str; 4] = [
    "statefulsets",
    "pods",
    "persistentvolumeclaims",
    "controllerrevisions",
];

/// Delays the events of an instance as the settings say.
pub(super) fn add_lag(cluster: &Cluster, instance: usize) {
    let lag = cluster.settings.lag;
    if lag.max() > Duration::ZERO {
        let action = WatchAction::Delay(delay(lag));
        add_watch_rule(cluster, Some(instance), None, action);
    }
}

fn add_watch_rule(
    cluster: &Cluster,
    instance: Option<usize>,
    resource: Option<&str>,
    action: WatchAction,
) -> RuleId {
    let agent = agent_prefix(instance);
    let mut matcher = RequestMatcher::any().verb(Verb::Watch).user_agent(&agent);
    if let Some(resource) = resource {
        matcher = matcher.resource(resource);
    }
    let faults = cluster.plane.server().faults();
    faults.add_watch_rule(WatchRule::new(matcher, action))
}

/// Holds back all events of an instance for this time.
pub(super) fn freeze_watches(cluster: &mut Cluster, instance: usize, time: Duration) {
    let rule = add_watch_rule(cluster, Some(instance), None, WatchAction::Freeze);
    cluster.ends.push((Instant::now() + time, End::Rule(rule)));
}

/// Begins a fault that lasts for this time.
pub(super) fn begin_fault(cluster: &mut Cluster, fault: &Fault, time: Duration) {
    let end = match fault {
        Fault::Watch {
            instance,
            resource,
            watch,
        } => {
            let action = watch_action(*watch);
            End::Rule(add_watch_rule(
                cluster,
                *instance,
                resource.as_deref(),
                action,
            ))
        }
        Fault::Isolate { instance } => {
            let Some(number) = instance.or_else(|| cluster.leader()) else {
                return;
            };
            cluster.faults.isolate(number, time);
            freeze_watches(cluster, number, time);
            return;
        }
        Fault::Suspend { instance } => {
            if let Some(number) = instance.or_else(|| cluster.leader()) {
                suspend(cluster, number, time);
            }
            return;
        }
        Fault::Storm { resource, every } => {
            let Some(storage) = STORAGES.into_iter().find(|it| it == resource) else {
                return;
            };
            let rival = rival(cluster, (*every).into());
            End::Stop(cluster.rivals.spawn(rival.storm(storage)))
        }
        Fault::Meddle { every } => {
            let rival = rival(cluster, (*every).into());
            End::Stop(cluster.rivals.spawn(rival.meddle()))
        }
        Fault::NewDefaults => {
            set_new_defaults(cluster, true);
            End::OldDefaults
        }
        Fault::Outage => {
            cluster.plane.server().faults().outage().begin();
            End::RestoreServer
        }
        Fault::DenyPods => {
            cluster.admission.denies.store(true, Ordering::Relaxed);
            End::AllowPods
        }
        Fault::DenyImage { image } => {
            cluster.admission.deny_image(image);
            End::AllowImages
        }
        Fault::MutatePods => {
            cluster.admission.mutates.store(true, Ordering::Relaxed);
            End::LeavePods
        }
        Fault::FrozenReplica { instance } => {
            let server = cluster.plane.server();
            let matcher = RequestMatcher::any().user_agent(agent_prefix(*instance));
            let view = View::FrozenAt(server.store().revision());
            End::Rule(server.faults().add_view(ViewRule::new(matcher, view)))
        }
        Fault::Quota { pods } => {
            cluster.admission.quota.store(*pods, Ordering::Relaxed);
            End::RemoveQuota
        }
        Fault::Skew { instance, millis } => {
            let Some(it) = cluster.instances.get(*instance) else {
                return;
            };
            it.clock.set_skew(*millis);
            End::CorrectClock(*instance)
        }
        Fault::Compact => {
            cluster.collect();
            let store = cluster.plane.server().store();
            store.compact(store.revision());
            return;
        }
        requests => return cluster.faults.begin(requests.clone(), time),
    };
    cluster.ends.push((Instant::now() + time, end));
}

/// Ends the faults that are due.
pub(super) async fn end_faults(cluster: &mut Cluster, now: Instant) {
    let ends = std::mem::take(&mut cluster.ends);
    let (due, later): (Vec<_>, Vec<_>) = ends.into_iter().partition(|(at, _)| *at <= now);
    cluster.ends = later;
    for (_, end) in due {
        end_fault(cluster, end).await;
    }
}

/// Ends a fault.
pub(super) async fn end_fault(cluster: &Cluster, end: End) {
    let faults = cluster.plane.server().faults();
    match end {
        End::Rule(id) => {
            // A one-time rule may be gone already.
            let _ = faults.remove(id);
        }
        End::AllowPods => cluster.admission.denies.store(false, Ordering::Relaxed),
        End::AllowImages => cluster.admission.deny_image(""),
        End::LeavePods => cluster.admission.mutates.store(false, Ordering::Relaxed),
        End::RemoveQuota => cluster.admission.quota.store(0, Ordering::Relaxed),
        End::CorrectClock(number) => cluster.instances[number].clock.set_skew(0),
        End::RestoreServer => faults.outage().end(),
        End::Stop(task) => task.abort(),
        End::OldDefaults => set_new_defaults(cluster, false),
        End::HealNode(node) => cluster.plane.nodes().heal(&node).await,
    }
}

fn rival(cluster: &mut Cluster, every: Duration) -> Rival {
    Rival {
        server: cluster.plane.service(),
        user: User::new(cluster.plane.service_as(Identity::admin()), RIVAL),
        random: StdRng::seed_from_u64(cluster.random.random()),
        every,
    }
}

/// Stops an instance for this time.
pub(super) fn suspend(cluster: &mut Cluster, number: usize, time: Duration) {
    let Some(instance) = cluster.instances.get(number) else {
        return;
    };
    let process = Process {
        instance: number,
        life: instance.life,
    };
    cluster.recorder.suspended(process, time);
    cluster.faults.suspend(number, time);
    freeze_watches(cluster, number, time);
}

/// Adds the new field to all templates, or removes it, as an API server that is upgraded or
/// rolled back.
fn set_new_defaults(cluster: &Cluster, newer: bool) {
    cluster.admission.newer.store(newer, Ordering::Relaxed);
    let server = cluster.plane.server();
    let before = server.store().revision();
    server.set_unknown_fields(if newer {
        UnknownFields::Keep
    } else {
        UnknownFields::Prune
    });
    let templates = kinds::by_resource("apps", "v1", "statefulsets");
    set_members(cluster, templates, TEMPLATE_SPEC, newer);
    if !newer {
        set_members(
            cluster,
            kinds::by_resource("", "v1", "pods"),
            "/spec",
            false,
        );
    }
    let after = server.store().revision();
    cluster.recorder.upgraded(before + 1..=after);
}

/// Adds the new field to the pod specs in all objects of a kind, or removes it.
fn set_members(cluster: &Cluster, kind: Option<&Arc<Kind>>, pointer: &str, newer: bool) {
    let (Some(kind), store) = (kind, cluster.plane.server().store()) else {
        return;
    };
    for object in store.list(&kind.storage, NAMESPACE).1 {
        let mut draft = object.draft();
        let Some(spec) = draft.value.pointer_mut(pointer) else {
            continue;
        };
        if set_new_member(spec, newer) {
            let expect = Expect::Version(object.resource_version);
            // Nothing else writes within this step.
            let _ = store.put(kind, object.key.clone(), expect, draft);
        }
    }
}

/// Ends a pod.
pub(super) async fn end_pod(cluster: &Cluster, pod: &str, how: PodEnd) {
    let pods = cluster.plane.pods();
    match how {
        PodEnd::Fails => pods.fail(NAMESPACE, pod, Cause::Exited).await,
        PodEnd::Succeeds => pods.succeed(NAMESPACE, pod, Cause::Exited).await,
        // A pod that is gone needs no eviction.
        PodEnd::Evicted => drop(pods.evict(NAMESPACE, pod).await),
    }
}
