//! The world of a run: the control plane, the instances, the users, and the faults.

mod admission;
mod cluster;
mod faults;
mod fence;
mod opt_ins;
mod pods;
mod rivals;
mod user;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::auth::Identity;
use kube_test_control_plane::clock::TokioClock;
use kube_test_control_plane::store::LogEntry;
use kube_test_control_plane::{ServerConfig, ServerGates};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::agent::{Process, USER};
use crate::api_servers::{ApiServers, FenceChange};
use crate::clock::SkewedClock;
use crate::instance;
use crate::network::{Faults, Network, Signal};
use crate::plan::{Action, Fault, RestoredOwner, Settings};
use crate::record::{ENDS, Recorder};
use crate::seed;
use admission::Admission;
pub use admission::NEW_MEMBER;
use cluster::{Cluster, End, Instance};
use fence::Fence;
pub use user::NAMESPACE;
use user::User;

/// Beginning of the uid of a restored owner that no longer exists.
pub const FORMER: &str = "former-";

/// Start of the cluster's clock.
pub const BEGIN: &str = "2026-03-01T12:00:00Z";

/// Size of the API server's log: more than a run writes.
const LOG_WINDOW: usize = 1 << 22;

/// Finalizer of an object that waits for the end of its dependents.
const FOREGROUND: &str = "foregroundDeletion";

/// The world of a run.
pub struct World {
    cluster: Cluster,
    seed: u64,
    user: User,
    signals: mpsc::UnboundedSender<Signal>,
    /// True if images that begin with `bad` never become ready.
    bad_images: Arc<AtomicBool>,
    /// The fence between the instances and the built-in controller.
    fence: Option<Fence>,
}

impl World {
    /// Starts the control plane and the instances. Returns the world and its signals.
    pub async fn start(
        seed: u64,
        settings: Settings,
        recorder: Recorder,
    ) -> (Self, mpsc::UnboundedReceiver<Signal>) {
        let bad_images = Arc::new(AtomicBool::new(true));
        let clock = TokioClock::starting_at(BEGIN.parse().unwrap_or_default());
        let gates = ServerGates::default().max_unavailable_stateful_set(settings.max_unavailable);
        let config = ServerConfig::default()
            .log_window(LOG_WINDOW)
            .audit_limit(LOG_WINDOW)
            .audit_bodies_max(0)
            .bookmark_interval(Duration::from_secs(settings.bookmarks))
            .seed(seed::derived(seed, "server"))
            .feature_gates(gates);
        let plane = TestControlPlane::builder()
            .server_config(config)
            .actors(pods::actors(&settings, &bad_images))
            .clock(Arc::new(clock.clone()))
            .start()
            .await;
        let admission = Arc::new(Admission::default());
        let (hook, server) = (Arc::clone(&admission), plane.service());
        let hooks = plane.server().admission();
        hooks.add("quota", admission::pod_limits(hook, server));
        hooks.add("images", admission::pod_images(Arc::clone(&admission)));
        hooks.add("defaults", admission::new_defaults(Arc::clone(&admission)));
        let (signals, received) = mpsc::unbounded_channel();
        let fence = settings
            .fence
            .map(|fence| Fence::new(ApiServers::new(seed, fence.lag)));
        let mut world = Self {
            user: User::new(plane.service_as(Identity::admin()), USER),
            cluster: Cluster {
                rivals: JoinSet::new(),
                faults: Faults::new(seed, settings.latency),
                plane,
                recorder,
                instances: Vec::new(),
                random: seed::stream(seed, "world"),
                admission,
                ends: Vec::new(),
                commits: Vec::new(),
                collected: 1,
                settings,
            },
            seed,
            signals,
            bad_images,
            fence,
        };
        let backup = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": rivals::BACKUP},
        });
        let resource = "configmaps".to_owned();
        let create = Action::CreateObject {
            resource,
            object: backup,
        };
        world.user.act(&create).await;
        if let Some(fence) = &world.fence {
            fence.install(&world.user).await;
        }
        if let Some(opt_ins) = &world.cluster.settings.opt_ins {
            opt_ins::create_classes(&world.user).await;
            if opt_ins.may_evict {
                opt_ins::permit_evictions(&world.user).await;
            }
        }
        for number in 0..world.cluster.settings.processes() {
            faults::add_lag(&world.cluster, number);
            world.cluster.instances.push(Instance {
                life: 0,
                clock: SkewedClock::new(clock.clone()),
                tasks: JoinSet::new(),
                restart: None,
            });
            world.start_process(number);
        }
        (world, received)
    }

    fn start_process(&mut self, number: usize) {
        let fenced = self
            .fence
            .as_ref()
            .map(|fence| fence.of(number, &self.cluster));
        let account = match &fenced {
            // The fence's rights have their own tests.
            Some(_) => Identity::admin(),
            None => Identity::service_account("kube-system", "statefulset-controller"),
        };
        let instance = &mut self.cluster.instances[number];
        let process = Process {
            instance: number,
            life: instance.life,
        };
        let network = Network {
            server: self.cluster.plane.service_as(account),
            leases: self.cluster.plane.service_as(Identity::admin()),
            process,
            faults: self.cluster.faults.clone(),
            recorder: self.cluster.recorder.clone(),
            signals: self.signals.clone(),
            fenced,
        };
        self.cluster
            .recorder
            .note(format!("process {process} starts"));
        instance.restart = None;
        instance.tasks = instance::start(
            network,
            instance.clock.clone(),
            &self.cluster.settings,
            self.seed,
        );
    }

    /// Kills the current process of an instance, which starts again later.
    fn kill(&mut self, number: usize) {
        let delay = self.cluster.settings.restart.draw(&mut self.cluster.random);
        let instance = &mut self.cluster.instances[number];
        if instance.restart.is_none() {
            instance.stop();
            instance.restart = Some(Instant::now() + delay);
        }
    }

    /// Reacts to a signal.
    pub fn receive(&mut self, signal: Signal) {
        let (process, line) = match signal {
            Signal::Isolate(process, time) => {
                self.cluster
                    .recorder
                    .note(format!("process {process} is cut off for {time:?}"));
                faults::freeze_watches(&mut self.cluster, process.instance, time);
                return;
            }
            Signal::Suspend(process, time) => {
                faults::suspend(&mut self.cluster, process.instance, time);
                return;
            }
            Signal::Crash(process) => (process, format!("process {process} crashes")),
            Signal::Ended(process, why) => (process, format!("process {process}{ENDS}{why}")),
        };
        let is_current = self
            .cluster
            .instances
            .get(process.instance)
            .is_some_and(|instance| instance.life == process.life);
        if is_current {
            self.cluster.recorder.note(line);
            self.kill(process.instance);
        }
    }

    /// Returns the next time at which [`World::wake`] has something to do.
    pub fn next_wake(&self) -> Option<Instant> {
        let restarts = self.cluster.instances.iter().filter_map(|it| it.restart);
        restarts
            .chain(self.cluster.ends.iter().map(|(at, _)| *at))
            .min()
    }

    /// Restarts instances and ends faults that are due.
    pub async fn wake(&mut self) {
        let now = Instant::now();
        faults::end_faults(&mut self.cluster, now).await;
        for number in 0..self.cluster.instances.len() {
            if self.cluster.instances[number]
                .restart
                .is_some_and(|at| at <= now)
            {
                self.start_process(number);
            }
        }
        self.collect();
    }

    /// Takes a step.
    pub async fn act(&mut self, action: &Action) {
        self.cluster.recorder.note(action.to_string());
        match action {
            Action::Crash { instance } => {
                let number = instance
                    .or_else(|| self.cluster.leader())
                    .unwrap_or_default();
                if number < self.cluster.instances.len() {
                    self.cluster
                        .recorder
                        .note(format!("instance {number} crashes"));
                    self.kill(number);
                }
            }
            Action::Fault { fault, time } => {
                faults::begin_fault(&mut self.cluster, fault, (*time).into());
            }
            Action::End { pod, how } => faults::end_pod(&self.cluster, pod, *how).await,
            Action::Ready { pod, ready } => {
                self.cluster
                    .plane
                    .pods()
                    .set_ready(NAMESPACE, pod, *ready)
                    .await;
            }
            Action::LoseNode { node, time } => {
                let name = format!("node-{node}");
                self.cluster.plane.nodes().lose(&name).await;
                let end = End::HealNode(name);
                self.cluster
                    .ends
                    .push((Instant::now() + Duration::from(*time), end));
            }
            Action::TakeClaim { claim } => self.add_owner(claim, true).await,
            Action::ShareClaim { claim } => self.add_owner(claim, false).await,
            Action::RestoreOwners { claim, owners } => self.restore_owners(claim, owners).await,
            Action::Label { served } => {
                if let Some(fence) = &self.fence {
                    fence.label(&self.user, *served).await;
                }
            }
            Action::Part { part, state } => {
                if let Some(fence) = &self.fence {
                    fence.set(&self.user, *part, *state).await;
                }
            }
            by_user => self.user.act(by_user).await,
        }
    }

    /// Makes the backup an owner of a claim.
    async fn add_owner(&self, claim: &str, controller: bool) {
        let owner = rivals::backup(self.cluster.plane.server(), controller);
        let change = json!({"metadata": {"ownerReferences": [owner]}});
        let resource = "persistentvolumeclaims";
        self.user.patch(resource, claim, &change).await;
    }

    /// Replaces the owners of a claim. Owners that don't exist are left out.
    async fn restore_owners(&self, claim: &str, owners: &[RestoredOwner]) {
        // Such as `data0-web-1`.
        let Some((set, pod)) = claim.split_once('-').and_then(|(_, pod)| {
            let (set, _) = pod.rsplit_once('-')?;
            Some((set, pod))
        }) else {
            return;
        };
        let reference = |owner: &RestoredOwner| {
            let (storage, api, kind, name) = match owner {
                RestoredOwner::Set | RestoredOwner::FormerSet => {
                    ("statefulsets", "apps/v1", "StatefulSet", set)
                }
                RestoredOwner::Pod | RestoredOwner::FormerPod => ("pods", "v1", "Pod", pod),
            };
            let uid = match owner {
                RestoredOwner::Set | RestoredOwner::Pod => {
                    let stored = self.cluster.stored(storage, NAMESPACE, name)?;
                    stored.pointer("/metadata/uid")?.as_str()?.to_owned()
                }
                RestoredOwner::FormerSet | RestoredOwner::FormerPod => format!("{FORMER}{name}"),
            };
            Some(json!({"apiVersion": api, "kind": kind, "name": name, "uid": uid}))
        };
        let owners: Vec<Value> = owners.iter().filter_map(reference).collect();
        let change = json!({"metadata": {"ownerReferences": owners}});
        let action = Action::edit("persistentvolumeclaims", claim, change);
        self.user.act(&action).await;
    }

    /// Hits the `nth` write of the instances with this fault.
    pub fn inject_at_write(&self, nth: u64, fault: Fault, time: Duration) {
        self.cluster.faults.inject_at_write(nth, fault, time);
    }

    /// Ends all faults, repairs the damage of users, and starts stopped processes.
    pub async fn calm(&mut self) {
        self.cluster.faults.clear();
        self.bad_images.store(false, Ordering::Relaxed);
        self.cluster
            .admission
            .denies
            .store(false, Ordering::Relaxed);
        self.cluster.admission.quota.store(0, Ordering::Relaxed);
        self.cluster.admission.deny_image("");
        self.cluster
            .admission
            .mutates
            .store(false, Ordering::Relaxed);
        for instance in &self.cluster.instances {
            instance.clock.set_skew(0);
        }
        let ends = std::mem::take(&mut self.cluster.ends);
        for (_, end) in ends {
            faults::end_fault(&self.cluster, end).await;
        }
        for resource in ["pods", "persistentvolumeclaims"] {
            for object in self
                .cluster
                .plane
                .server()
                .store()
                .list(resource, NAMESPACE)
                .1
            {
                if object.value().to_string().contains(user::HOLD) {
                    let action = Action::hold(resource, &object.key.name, false);
                    self.user.act(&action).await;
                }
            }
        }
        if self.fence.is_some() {
            self.free_pods().await;
        }
        let pods = self.cluster.plane.pods();
        pods.refresh().await;
        let (_, stored) = self.cluster.plane.server().store().list("pods", NAMESPACE);
        for pod in stored {
            pods.set_ready(NAMESPACE, &pod.key.name, true).await;
            // A pod without an owner may hold a name that a set needs, and so does one that its set
            // is about to release.
            if pod.owners.is_empty() {
                self.user.delete_pod(&pod.key.name).await;
            } else if pod.labels.get("app") == Some(user::OTHER) {
                let pod = pod.key.name.to_string();
                let matches = true;
                self.user.act(&Action::Relabel { pod, matches }).await;
            }
        }
        if let Some(fence) = &self.fence {
            fence.install(&self.user).await;
        }
        if self.cluster.settings.opt_ins.is_some() {
            opt_ins::calm(&self.user, self.cluster.plane.server()).await;
        }
        // The others only compete for the lease.
        let stays = self.cluster.leader().unwrap_or_default();
        self.cluster.recorder.note("calm");
        let built_in = |number| self.cluster.settings.is_built_in(number);
        for (number, instance) in self.cluster.instances.iter_mut().enumerate() {
            if number != stays && !built_in(number) {
                instance.stop();
                instance.restart = None;
            }
        }
        for number in 0..self.cluster.instances.len() {
            if self.cluster.instances[number].restart.is_some() {
                self.start_process(number);
            }
        }
    }

    /// Frees the pods that a foreground deletion keeps until their claims are gone, which in turn are
    /// protected while the pods exist. Nothing in a cluster ends that. It takes a fence that falls between
    /// the owner of a claim and the deletion of its pod, and then a foreground deletion.
    async fn free_pods(&self) {
        let (_, stored) = self.cluster.plane.server().store().list("pods", NAMESPACE);
        let waits = |pod: &Value| pod.to_string().contains(FOREGROUND);
        for pod in stored.iter().filter(|pod| waits(&pod.value())) {
            let change = json!({"metadata": {"finalizers": null}});
            self.user
                .act(&Action::edit("pods", &pod.key.name, change))
                .await;
        }
    }

    /// Takes the commits so far from the API server's log.
    pub fn collect(&mut self) {
        self.cluster.collect();
    }

    /// The control plane.
    pub fn plane(&self) -> &TestControlPlane {
        &self.cluster.plane
    }

    /// Returns the changes of the fence.
    pub fn fence_changes(&self) -> Vec<FenceChange> {
        let fence = self.fence.as_ref();
        fence
            .map(|fence| fence.servers.changes())
            .unwrap_or_default()
    }

    /// Stops the instances and returns all commits.
    pub fn finish(mut self) -> (TestControlPlane, Vec<LogEntry>) {
        self.collect();
        self.cluster.instances.clear();
        (self.cluster.plane, self.cluster.commits)
    }
}
