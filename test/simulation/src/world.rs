//! The world of a run: the control plane, the instances, the users, and the faults.

mod faults;
mod rivals;
mod user;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::actors::{
    ActorsConfig, Delay, GarbageCollectorConfig, KubeletConfig, Outcome, PodBehaviour,
};
use kube_test_control_plane::auth::Identity;
use kube_test_control_plane::clock::TokioClock;
use kube_test_control_plane::config::{FeatureGates, ServerConfig};
use kube_test_control_plane::store::LogEntry;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::agent::{Process, USER};
use crate::clock::SkewedClock;
use crate::instance;
use crate::network::{Faults, Network, Signal};
use crate::plan::{Action, Fault, RestoredOwner, Settings, Span};
use crate::record::{ENDS, Recorder};
use crate::seed;
pub use faults::NEW_MEMBER;
use user::User;

/// Namespace of all sets.
pub const NAMESPACE: &str = "default";

/// Beginning of the uid of a restored owner that no longer exists.
pub const FORMER: &str = "former-";

/// Start of the cluster's clock.
pub const BEGIN: &str = "2026-03-01T12:00:00Z";

/// Size of the API server's log: more than a run writes.
const LOG_WINDOW: usize = 1 << 22;

/// An instance and its current process.
struct Instance {
    life: u32,
    clock: SkewedClock,
    tasks: JoinSet<()>,
    /// Start of the next process; none while one runs.
    restart: Option<Instant>,
}

impl Instance {
    /// Kills the current process.
    fn stop(&mut self) {
        // Dropped tasks stop at once, between two of their steps.
        self.tasks = JoinSet::new();
        self.life += 1;
    }
}

/// Limits of new pods, read by an admission hook.
#[derive(Default)]
struct Admission {
    denies: AtomicBool,
    /// Image of the pods that are denied; none if empty.
    denied_image: Mutex<String>,
    /// True if new pods get a further container and toleration.
    mutates: AtomicBool,
    /// True if the API server knows and sets a further member of templates.
    newer: AtomicBool,
    /// Number of pods that may exist; no limit if zero.
    quota: AtomicUsize,
}

impl Admission {
    /// Denies pods of this image; of none if empty.
    fn deny_image(&self, image: &str) {
        let denied = self.denied_image.lock();
        image.clone_into(&mut denied.unwrap_or_else(PoisonError::into_inner));
    }
}

/// The world of a run.
pub struct World {
    plane: TestControlPlane,
    settings: Settings,
    seed: u64,
    user: User,
    /// Other writers of the sets' objects.
    rivals: JoinSet<()>,
    faults: Faults,
    recorder: Recorder,
    signals: mpsc::UnboundedSender<Signal>,
    instances: Vec<Instance>,
    random: StdRng,
    admission: Arc<Admission>,
    /// True if images that begin with `bad` never become ready.
    bad_images: Arc<AtomicBool>,
    /// Faults to end at a time.
    ends: Vec<(Instant, faults::End)>,
    commits: Vec<LogEntry>,
    collected: u64,
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
        let plane = TestControlPlane::builder()
            .server_config(ServerConfig {
                log_window: LOG_WINDOW,
                audit_limit: LOG_WINDOW,
                audit_bodies_max: 0,
                bookmark_interval: Duration::from_secs(settings.bookmarks),
                seed: seed::derived(seed, "server"),
                feature_gates: FeatureGates {
                    max_unavailable_stateful_set: settings.max_unavailable,
                    ..FeatureGates::default()
                },
                ..ServerConfig::default()
            })
            .actors(actors(&settings, &bad_images))
            .clock(Arc::new(clock.clone()))
            .start()
            .await;
        let admission = Arc::new(Admission::default());
        let (hook, server) = (Arc::clone(&admission), plane.service());
        let hooks = plane.server().admission();
        hooks.add("quota", faults::pod_limits(hook, server));
        hooks.add("images", faults::pod_images(Arc::clone(&admission)));
        hooks.add("defaults", faults::new_defaults(Arc::clone(&admission)));
        let (signals, received) = mpsc::unbounded_channel();
        let mut world = Self {
            user: User::new(plane.service_as(Identity::admin()), USER),
            rivals: JoinSet::new(),
            faults: Faults::new(seed, settings.latency),
            plane,
            seed,
            recorder,
            signals,
            instances: Vec::new(),
            random: seed::stream(seed, "world"),
            admission,
            bad_images,
            ends: Vec::new(),
            commits: Vec::new(),
            collected: 1,
            settings,
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
        for number in 0..world.settings.instances {
            world.add_lag(number);
            world.instances.push(Instance {
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
        let account = Identity::service_account("kube-system", "statefulset-controller");
        let instance = &mut self.instances[number];
        let process = Process {
            instance: number,
            life: instance.life,
        };
        let network = Network {
            server: self.plane.service_as(account),
            leases: self.plane.service_as(Identity::admin()),
            process,
            faults: self.faults.clone(),
            recorder: self.recorder.clone(),
            signals: self.signals.clone(),
        };
        self.recorder.note(format!("process {process} starts"));
        instance.restart = None;
        instance.tasks =
            instance::start(network, instance.clock.clone(), &self.settings, self.seed);
    }

    /// Kills the current process of an instance, which starts again later.
    fn kill(&mut self, number: usize) {
        let delay = self.settings.restart.draw(&mut self.random);
        let instance = &mut self.instances[number];
        if instance.restart.is_none() {
            instance.stop();
            instance.restart = Some(Instant::now() + delay);
        }
    }

    /// Reacts to a signal.
    pub fn receive(&mut self, signal: Signal) {
        let (process, line) = match signal {
            Signal::Isolate(process, time) => {
                self.recorder
                    .note(format!("process {process} is cut off for {time:?}"));
                self.freeze_watches(process.instance, time);
                return;
            }
            Signal::Suspend(process, time) => {
                self.suspend(process.instance, time);
                return;
            }
            Signal::Crash(process) => (process, format!("process {process} crashes")),
            Signal::Ended(process, why) => (process, format!("process {process}{ENDS}{why}")),
        };
        let is_current = self
            .instances
            .get(process.instance)
            .is_some_and(|instance| instance.life == process.life);
        if is_current {
            self.recorder.note(line);
            self.kill(process.instance);
        }
    }

    /// Returns the next time at which [`World::wake`] has something to do.
    pub fn next_wake(&self) -> Option<Instant> {
        let restarts = self.instances.iter().filter_map(|it| it.restart);
        restarts.chain(self.ends.iter().map(|(at, _)| *at)).min()
    }

    /// Restarts instances and ends faults that are due.
    pub async fn wake(&mut self) {
        let now = Instant::now();
        self.end_faults(now).await;
        for number in 0..self.instances.len() {
            if self.instances[number].restart.is_some_and(|at| at <= now) {
                self.start_process(number);
            }
        }
        self.collect();
    }

    /// Takes a step.
    pub async fn act(&mut self, action: &Action) {
        self.recorder.note(action.to_string());
        match action {
            Action::Crash { instance } => {
                let number = instance.or_else(|| self.leader()).unwrap_or_default();
                if number < self.instances.len() {
                    self.recorder.note(format!("instance {number} crashes"));
                    self.kill(number);
                }
            }
            Action::Fault { fault, time } => self.begin_fault(fault, (*time).into()),
            Action::End { pod, how } => self.end_pod(pod, *how).await,
            Action::Ready { pod, ready } => {
                self.plane.pods().set_ready(NAMESPACE, pod, *ready).await;
            }
            Action::LoseNode { node, time } => {
                let name = format!("node-{node}");
                self.plane.nodes().lose(&name).await;
                let end = faults::End::HealNode(name);
                self.ends
                    .push((Instant::now() + Duration::from(*time), end));
            }
            Action::TakeClaim { claim } => self.add_owner(claim, true).await,
            Action::ShareClaim { claim } => self.add_owner(claim, false).await,
            Action::RestoreOwners { claim, owners } => self.restore_owners(claim, owners).await,
            by_user => self.user.act(by_user).await,
        }
    }

    /// Makes the backup an owner of a claim.
    async fn add_owner(&self, claim: &str, controller: bool) {
        let owner = rivals::backup(self.plane.server(), controller);
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
                    let stored = self.stored(storage, NAMESPACE, name)?;
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
        self.faults.inject_at_write(nth, fault, time);
    }

    /// Returns the instance that holds the lease.
    fn leader(&self) -> Option<usize> {
        let lease = self.stored("leases", instance::LEASE_NAMESPACE, instance::LEASE)?;
        let holder = lease.pointer("/spec/holderIdentity")?.as_str()?;
        let (instance, _) = holder.strip_prefix("controller-")?.split_once('.')?;
        instance.parse().ok()
    }

    fn stored(&self, storage: &str, namespace: &str, name: &str) -> Option<Value> {
        let key = kube_test_control_plane::object::Key::of(storage, namespace, name);
        Some(self.plane.server().store().get(&key)?.value())
    }

    /// Ends all faults, repairs the damage of users, and starts stopped processes.
    pub async fn calm(&mut self) {
        self.faults.clear();
        self.bad_images.store(false, Ordering::Relaxed);
        self.admission.denies.store(false, Ordering::Relaxed);
        self.admission.quota.store(0, Ordering::Relaxed);
        self.admission.deny_image("");
        self.admission.mutates.store(false, Ordering::Relaxed);
        for instance in &self.instances {
            instance.clock.set_skew(0);
        }
        let ends = std::mem::take(&mut self.ends);
        for (_, end) in ends {
            self.end_fault(end).await;
        }
        for resource in ["pods", "persistentvolumeclaims"] {
            for object in self.plane.server().store().list(resource, NAMESPACE).1 {
                if object.value().to_string().contains(user::HOLD) {
                    let action = Action::hold(resource, &object.key.name, false);
                    self.user.act(&action).await;
                }
            }
        }
        let pods = self.plane.pods();
        pods.refresh().await;
        let (_, stored) = self.plane.server().store().list("pods", NAMESPACE);
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
        // The others only compete for the lease.
        let stays = self.leader().unwrap_or_default();
        self.recorder.note("calm");
        for (number, instance) in self.instances.iter_mut().enumerate() {
            if number != stays {
                instance.stop();
                instance.restart = None;
            }
        }
        if self.instances[stays].restart.is_some() {
            self.start_process(stays);
        }
    }

    /// Takes the commits so far from the API server's log.
    pub fn collect(&mut self) {
        let store = self.plane.server().store();
        // The log is longer than any run, and compaction collects first.
        if let Ok((until, entries)) = store.events_after(self.collected, usize::MAX) {
            self.commits.extend(entries);
            self.collected = until;
        }
    }

    /// The control plane.
    pub fn plane(&self) -> &TestControlPlane {
        &self.plane
    }

    /// Stops the instances and returns all commits.
    pub fn finish(mut self) -> (TestControlPlane, Vec<LogEntry>) {
        self.collect();
        self.instances.clear();
        (self.plane, self.commits)
    }
}

fn actors(settings: &Settings, bad_images: &Arc<AtomicBool>) -> ActorsConfig {
    let delay = |span: Span| {
        let millis = Duration::from_millis;
        Delay::between(millis(span.0), millis(span.1))
    };
    let good = PodBehaviour {
        start_delay: delay(settings.pod_start),
        ready_delay: delay(settings.pod_ready),
        stop_delay: delay(settings.pod_stop),
        ..PodBehaviour::default()
    };
    let bad = PodBehaviour {
        outcome: Outcome::NeverReady,
        ..good.clone()
    };
    let bad_images = Arc::clone(bad_images);
    let kubelet = KubeletConfig::new(good).rule(move |pod| {
        let image = pod.pointer("/spec/containers/0/image")?.as_str()?;
        let is_bad = image.starts_with("bad") && bad_images.load(Ordering::Relaxed);
        is_bad.then(|| bad.clone())
    });
    ActorsConfig {
        kubelet: Some(kubelet),
        garbage_collector: Some(GarbageCollectorConfig {
            delay: settings.collector_delay.into(),
        }),
        // The sets need none of them, and the histories of the seeds stay.
        controllers: BTreeSet::new(),
        ..ActorsConfig::all()
    }
}
