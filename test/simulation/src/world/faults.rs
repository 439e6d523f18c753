//! Faults that the control plane itself plays, and their ends.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kube_test_control_plane::actors::Cause;
use kube_test_control_plane::admission::{AdmissionHook, AdmissionRequest, Denial, Operation};
use kube_test_control_plane::auth::Identity;
use kube_test_control_plane::faults::{
    Delay, FaultError, RequestMatcher, RuleId, View, ViewRule, WatchAction, WatchRule,
};
use kube_test_control_plane::kinds::{self, Kind};
use kube_test_control_plane::route::Verb;
use kube_test_control_plane::store::Expect;
use kube_test_control_plane::{ApiServer, UnknownFields};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::rivals::Rival;
use super::user::User;
use super::{Admission, NAMESPACE, World};
use crate::agent::{self, Process, RIVAL};
use crate::plan::{Fault, PodEnd, Span, WatchFault};

/// The end of a fault.
pub(super) enum End {
    /// Removes a rule of the control plane.
    Rule(RuleId),
    /// Connects a node again.
    HealNode(String),
    /// Allows new pods.
    AllowPods,
    /// Allows new pods of all images.
    AllowImages,
    /// Leaves new pods as they are.
    LeavePods,
    /// Removes the limit of pods.
    RemoveQuota,
    /// Corrects the clock of an instance.
    CorrectClock(usize),
    /// Ends an outage of the API server.
    RestoreServer,
    /// Ends a writer that competes with the controllers.
    Stop(AbortHandle),
    /// Makes the API server an older one again.
    OldDefaults,
}

/// The member of pod specs that only the newer API server knows.
pub const NEW_MEMBER: &str = "flavor";

impl World {
    /// Delays the events of an instance as the settings say.
    pub(super) fn add_lag(&self, instance: usize) {
        let lag = self.settings.lag;
        if lag.max() > Duration::ZERO {
            let action = WatchAction::Delay(delay(lag));
            self.add_watch_rule(Some(instance), None, action);
        }
    }

    fn add_watch_rule(
        &self,
        instance: Option<usize>,
        resource: Option<&str>,
        action: WatchAction,
    ) -> RuleId {
        let agent = agent_prefix(instance);
        let mut matcher = RequestMatcher::any().verb(Verb::Watch).user_agent(&agent);
        if let Some(resource) = resource {
            matcher = matcher.resource(resource);
        }
        let faults = self.plane.server().faults();
        faults.add_watch_rule(WatchRule::new(matcher, action))
    }

    /// Holds back all events of an instance for this time.
    pub(super) fn freeze_watches(&mut self, instance: usize, time: Duration) {
        let rule = self.add_watch_rule(Some(instance), None, WatchAction::Freeze);
        self.ends.push((Instant::now() + time, End::Rule(rule)));
    }

    /// Begins a fault that lasts for this time.
    pub(super) fn begin_fault(&mut self, fault: &Fault, time: Duration) {
        let end = match fault {
            Fault::Watch {
                instance,
                resource,
                watch,
            } => {
                let action = watch_action(*watch);
                End::Rule(self.add_watch_rule(*instance, resource.as_deref(), action))
            }
            Fault::Isolate { instance } => {
                let Some(number) = instance.or_else(|| self.leader()) else {
                    return;
                };
                self.faults.isolate(number, time);
                self.freeze_watches(number, time);
                return;
            }
            Fault::Suspend { instance } => {
                if let Some(number) = instance.or_else(|| self.leader()) {
                    self.suspend(number, time);
                }
                return;
            }
            Fault::Storm { resource, every } => {
                let Some(storage) = STORAGES.into_iter().find(|it| it == resource) else {
                    return;
                };
                let rival = self.rival((*every).into());
                End::Stop(self.rivals.spawn(rival.storm(storage)))
            }
            Fault::Meddle { every } => {
                let rival = self.rival((*every).into());
                End::Stop(self.rivals.spawn(rival.meddle()))
            }
            Fault::NewDefaults => {
                self.set_new_defaults(true);
                End::OldDefaults
            }
            Fault::Outage => {
                self.plane.server().faults().outage().begin();
                End::RestoreServer
            }
            Fault::DenyPods => {
                self.admission.denies.store(true, Ordering::Relaxed);
                End::AllowPods
            }
            Fault::DenyImage { image } => {
                self.admission.deny_image(image);
                End::AllowImages
            }
            Fault::MutatePods => {
                self.admission.mutates.store(true, Ordering::Relaxed);
                End::LeavePods
            }
            Fault::FrozenReplica { instance } => {
                let server = self.plane.server();
                let matcher = RequestMatcher::any().user_agent(&agent_prefix(*instance));
                let view = View::FrozenAt(server.store().revision());
                End::Rule(server.faults().add_view(ViewRule::new(matcher, view)))
            }
            Fault::Quota { pods } => {
                self.admission.quota.store(*pods, Ordering::Relaxed);
                End::RemoveQuota
            }
            Fault::Skew { instance, millis } => {
                let Some(it) = self.instances.get(*instance) else {
                    return;
                };
                it.clock.set_skew(*millis);
                End::CorrectClock(*instance)
            }
            Fault::Compact => {
                self.collect();
                let store = self.plane.server().store();
                store.compact(store.revision());
                return;
            }
            requests => return self.faults.begin(requests.clone(), time),
        };
        self.ends.push((Instant::now() + time, end));
    }

    /// Ends the faults that are due.
    pub(super) async fn end_faults(&mut self, now: Instant) {
        let ends = std::mem::take(&mut self.ends);
        let (due, later): (Vec<_>, Vec<_>) = ends.into_iter().partition(|(at, _)| *at <= now);
        self.ends = later;
        for (_, end) in due {
            self.end_fault(end).await;
        }
    }

    /// Ends a fault.
    pub(super) async fn end_fault(&self, end: End) {
        let faults = self.plane.server().faults();
        match end {
            End::Rule(id) => {
                // A one-time rule may be gone already.
                let _ = faults.remove(id);
            }
            End::AllowPods => self.admission.denies.store(false, Ordering::Relaxed),
            End::AllowImages => self.admission.deny_image(""),
            End::LeavePods => self.admission.mutates.store(false, Ordering::Relaxed),
            End::RemoveQuota => self.admission.quota.store(0, Ordering::Relaxed),
            End::CorrectClock(number) => self.instances[number].clock.set_skew(0),
            End::RestoreServer => faults.outage().end(),
            End::Stop(task) => task.abort(),
            End::OldDefaults => self.set_new_defaults(false),
            End::HealNode(node) => self.plane.nodes().heal(&node).await,
        }
    }

    fn rival(&mut self, every: Duration) -> Rival {
        Rival {
            server: self.plane.service(),
            user: User::new(self.plane.service_as(Identity::admin()), RIVAL),
            random: StdRng::seed_from_u64(self.random.random()),
            every,
        }
    }

    /// Stops an instance for this time.
    pub(super) fn suspend(&mut self, number: usize, time: Duration) {
        let Some(instance) = self.instances.get(number) else {
            return;
        };
        let process = Process {
            instance: number,
            life: instance.life,
        };
        self.recorder.suspended(process, time);
        self.faults.suspend(number, time);
        self.freeze_watches(number, time);
    }

    /// Adds the new member to all templates, or removes it, as an API server that is upgraded or
    /// rolled back.
    fn set_new_defaults(&self, newer: bool) {
        self.admission.newer.store(newer, Ordering::Relaxed);
        let server = self.plane.server();
        let before = server.store().revision();
        server.set_unknown_fields(if newer {
            UnknownFields::Keep
        } else {
            UnknownFields::Prune
        });
        let templates = kinds::by_resource("apps", "v1", "statefulsets");
        self.set_members(templates, TEMPLATE_SPEC, newer);
        if !newer {
            self.set_members(kinds::by_resource("", "v1", "pods"), "/spec", false);
        }
        let after = server.store().revision();
        self.recorder.upgraded(before + 1..=after);
    }

    /// Adds the new member to the pod specs in all objects of a kind, or removes it.
    fn set_members(&self, kind: Option<&Arc<Kind>>, pointer: &str, newer: bool) {
        let (Some(kind), store) = (kind, self.plane.server().store()) else {
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
    pub(super) async fn end_pod(&self, pod: &str, how: PodEnd) {
        let pods = self.plane.pods();
        match how {
            PodEnd::Fails => pods.fail(NAMESPACE, pod, Cause::Exited).await,
            PodEnd::Succeeds => pods.succeed(NAMESPACE, pod, Cause::Exited).await,
            // A pod that is gone needs no eviction.
            PodEnd::Evicted => drop(pods.evict(NAMESPACE, pod).await),
        }
    }
}

/// Returns the prefix of the user agents of an instance, or of all.
fn agent_prefix(instance: Option<usize>) -> String {
    instance.map_or_else(|| "controller-".to_owned(), agent::of_instance)
}

fn delay(span: Span) -> Delay {
    Delay::Between {
        min: Duration::from_millis(span.0),
        max: Duration::from_millis(span.1),
    }
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

/// Denies new pods while a fault says so, with the messages of webhooks and quotas.
pub(super) fn pod_limits(
    admission: Arc<Admission>,
    server: ApiServer,
) -> impl AdmissionHook + 'static {
    move |request: &mut AdmissionRequest<'_>| {
        let creates = request.operation == Operation::Create && request.subresource.is_empty();
        if !creates || &*request.kind.storage != "pods" {
            return Ok(());
        }
        if admission.denies.load(Ordering::Relaxed) {
            return Err(Denial::Webhook("no pods now".to_owned()));
        }
        let quota = admission.quota.load(Ordering::Relaxed);
        if quota > 0 && server.store().list("pods", request.namespace).1.len() >= quota {
            return Err(Denial::Forbidden("exceeded quota: pods".to_owned()));
        }
        Ok(())
    }
}

/// Denies new pods of an image, and changes others as injectors of sidecars do.
pub(super) fn pod_images(admission: Arc<Admission>) -> impl AdmissionHook + 'static {
    move |request: &mut AdmissionRequest<'_>| {
        let creates = request.operation == Operation::Create && request.subresource.is_empty();
        if !creates || &*request.kind.storage != "pods" {
            return Ok(());
        }
        let image = request.object.pointer("/spec/containers/0/image");
        let image = image.and_then(Value::as_str).unwrap_or_default();
        let denied = admission.denied_image.lock();
        if denied.is_ok_and(|denied| !denied.is_empty() && *denied == image) {
            return Err(Denial::Webhook(format!("image {image} is not allowed")));
        }
        if admission.mutates.load(Ordering::Relaxed) {
            let additions = [
                (
                    "/spec/containers",
                    json!({"name": "proxy", "image": "proxy"}),
                ),
                ("/spec/tolerations", json!({"operator": "Exists"})),
            ];
            for (pointer, addition) in additions {
                if let Some(Value::Array(list)) = request.object.pointer_mut(pointer) {
                    list.push(addition);
                }
            }
        }
        Ok(())
    }
}

/// JSON pointer of the spec in a pod template.
const TEMPLATE_SPEC: &str = "/spec/template/spec";

/// The resources that a storm may hit.
const STORAGES: [&str; 4] = [
    "statefulsets",
    "pods",
    "persistentvolumeclaims",
    "controllerrevisions",
];

/// Adds the new member to a pod spec, or removes it. Returns true if that changed the spec.
fn set_new_member(spec: &mut Value, newer: bool) -> bool {
    let Some(spec) = spec.as_object_mut() else {
        return false;
    };
    let has = spec.contains_key(NEW_MEMBER);
    if newer {
        spec.entry(NEW_MEMBER).or_insert_with(|| json!("plain"));
    } else {
        spec.remove(NEW_MEMBER);
    }
    has != newer
}

/// Sets the new member in the templates of sets while the API server knows it.
pub(super) fn new_defaults(admission: Arc<Admission>) -> impl AdmissionHook + 'static {
    move |request: &mut AdmissionRequest<'_>| {
        let is_newer = admission.newer.load(Ordering::Relaxed);
        if is_newer
            && *request.kind.storage == *"statefulsets"
            && let Some(spec) = request.object.pointer_mut(TEMPLATE_SPEC)
        {
            set_new_member(spec, true);
        }
        Ok(())
    }
}
