//! Tests of two controller instances whose leader is killed, paused and restarted.

use std::collections::BTreeMap;
use std::time::Duration;

use e2e::deploy::{build, collection, kustomization};
use serde_json::json;

use crate::harness::{
    Audit, Entry, Finished, History, Kind, PATIENCE, Plane, Process, Signal, programs, set,
};

/// Lease duration in the flags below.
const LEASE: Duration = Duration::from_secs(3);
/// Time without writes that counts as quiet after a takeover.
const QUIET: Duration = Duration::from_secs(1);
/// Maximum number of instances over time.
const INSTANCES_MAX: usize = 2000;

/// The group of all instances.
const GROUP: &str = "instances";

/// Failure of a leader, or its graceful end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeaderFailure {
    /// It is killed.
    Killed,
    /// Paused for longer than its lease, and resumed when the other instance leads.
    Paused,
    /// Stopped gracefully.
    Ended,
}

/// A control plane with sets that roll out, and two instances.
struct ElectionCluster {
    plane: Plane,
    history: History,
    audit: Audit,
    instances: BTreeMap<String, Process>,
    started: usize,
    sets: Vec<String>,
    replicas: usize,
    gates: &'static str,
    rounds: usize,
}

impl ElectionCluster {
    /// Creates the sets with two instances.
    fn start(sets: usize, replicas: usize, gates: &'static str) -> Self {
        let tokens: Vec<String> = (1..=INSTANCES_MAX)
            .map(|n| format!("token-{n},instance-{n},{n},{GROUP}"))
            .collect();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens");
        std::fs::write(&file, tokens.join("\n")).unwrap();
        let flags = [
            "--start-delay=20ms",
            "--ready-delay=20ms",
            "--audit-log-path=-",
            &format!("--token-auth-file={}", file.display()),
        ];
        let plane = Plane::start_with(&programs(), &flags);
        grant_shipped_rights(&plane);
        let history = History::begin(&plane.api);
        let mut election = Self {
            plane,
            history,
            audit: Audit::default(),
            instances: BTreeMap::new(),
            started: 0,
            sets: (0..sets).map(|n| format!("set{n}")).collect(),
            replicas,
            gates,
            rounds: 0,
        };
        for name in &election.sets {
            let mut object = set(name, replicas);
            // Rounds count from 1.
            object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("busybox:0");
            election.plane.api.create(Kind::Set, &object);
        }
        election.start_instance();
        election.leader();
        election.start_instance();
        election.until_complete();
        election
    }

    /// Starts another instance under a new user name.
    fn start_instance(&mut self) {
        self.started += 1;
        let token = json!({"token": format!("token-{}", self.started)});
        let kubeconfig = self.plane.kubeconfig_of(&token);
        let arguments = [
            &format!("--kubeconfig={}", kubeconfig.display()),
            "--leader-elect-resource-name=statefulset-controller-manager",
            "--leader-elect-lease-duration=3s",
            "--leader-elect-renew-deadline=2s",
            "--leader-elect-retry-period=300ms",
            "--kube-api-qps=-1",
            "--secure-port=0",
            &format!("--feature-gates={}", self.gates),
        ]
        .map(str::to_owned);
        let name = format!("instance-{}", self.started);
        let process = self.plane.named_controller(&name, &arguments);
        self.instances.insert(name, process);
    }

    /// Processes the next audit entry of the instances. Returns false on timeout.
    fn listen(&mut self, patience: Duration) -> bool {
        let Some(line) = self.plane.next_line(patience) else {
            return false;
        };
        if let Some(entry) = Entry::parse(&line)
            && entry.user.starts_with("instance-")
        {
            self.audit.take(entry, LEASE);
        }
        true
    }

    /// Processes all pending audit entries.
    fn catch_up(&mut self) {
        while self.listen(Duration::ZERO) {}
    }

    /// Waits until a running instance holds the lease.
    fn leader(&mut self) -> String {
        self.catch_up();
        loop {
            if let Some(holder) = self.audit.holder()
                && self.instances.contains_key(holder)
            {
                return holder.to_owned();
            }
            assert!(self.listen(PATIENCE), "no instance takes the lease");
            self.replace_the_lost();
        }
    }

    /// Replaces instances that have lost their lease and exited correctly, which can happen on a
    /// busy machine.
    fn replace_the_lost(&mut self) {
        let ended =
            |(name, process): (&String, &mut Process)| process.has_ended().then(|| name.clone());
        let ended: Vec<String> = self.instances.iter_mut().filter_map(ended).collect();
        for name in ended {
            assert_lost(&self.instances.remove(&name).unwrap().wait());
            self.start_instance();
        }
    }

    fn until_complete(&mut self) {
        let sets = self.sets.clone();
        loop {
            let complete = |history: &History| sets.iter().all(|set| history.is_complete(set));
            if complete(&self.history) {
                break;
            }
            let deletions = self.history.deletions().len();
            let further =
                |history: &History| complete(history) || history.deletions().len() > deletions;
            self.history.until("the sets to be complete", further);
            self.replace_the_lost();
        }
        self.catch_up();
        assert_eq!(self.audit.violations(), [""; 0]);
        assert_eq!(self.history.out_of_turn(), [""; 0]);
        for set in &self.sets {
            let pods = self.history.counts(Kind::Pod, &format!("{set}-"));
            let expected = (self.rounds + 1, self.rounds);
            assert_eq!(
                pods.into_values().collect::<Vec<_>>(),
                vec![expected; self.replicas]
            );
        }
    }

    /// Rolls out all sets, and lets the leader fail meanwhile.
    fn round(&mut self, failure: LeaderFailure) {
        self.rounds += 1;
        let before = self.history.deletions().len();
        let image = format!("busybox:{}", self.rounds);
        let containers = json!([{"name": "c", "image": image}]);
        let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
        for set in &self.sets {
            let patched = self.plane.api.merge(Kind::Set, set, &patch);
            let generation = patched["metadata"]["generation"].as_i64().unwrap();
            let seen = |history: &History| history.generation(set) == generation;
            self.history.until("the change", seen);
        }
        let some = self.sets.len() * self.replicas / 4;
        let under_way = |history: &History| history.deletions().len() > before + some;
        self.history
            .until("the first pods to be replaced", under_way);
        let leader = self.leader();
        self.fail_leader(&leader, failure);
        self.until_complete();
    }

    fn fail_leader(&mut self, leader: &str, failure: LeaderFailure) {
        let process = self.instances.remove(leader).unwrap();
        match failure {
            LeaderFailure::Killed => process.crash(),
            LeaderFailure::Ended => {
                process.signal(Signal::TERM);
                let finished = process.wait();
                assert_eq!(finished.code, Some(0), "{finished:#?}");
            }
            LeaderFailure::Paused => {
                process.signal(Signal::STOP);
                let next = self.leader();
                assert_ne!(next, leader);
                // Resume it while the other instance is busy.
                let begun = self.audit.writes().len();
                while self.audit.writes().len() == begun {
                    assert!(self.listen(PATIENCE), "{next} does nothing");
                }
                process.signal(Signal::CONT);
                assert_lost(&process.wait());
            }
        }
        self.start_instance();
    }

    /// Replaces the leader while the sets are settled: the next leader must write nothing.
    fn take_over_the_settled(&mut self, failure: LeaderFailure) {
        let leader = self.leader();
        let before = self.until_quiet();
        assert_ne!(
            failure,
            LeaderFailure::Paused,
            "it wakes up when another one writes"
        );
        self.fail_leader(&leader, failure);
        let next = self.leader();
        assert_ne!(next, leader);
        self.instances
            .get_mut(&next)
            .unwrap()
            .logged("ready: caches are filled");
        self.listen_for(QUIET);
        let writes = &self.audit.writes()[before..];
        assert!(writes.is_empty(), "{writes:#?}");
        assert_eq!(self.audit.violations(), [""; 0]);
    }

    /// Waits until nothing has been written for a while; returns the number of earlier writes.
    fn until_quiet(&mut self) -> usize {
        loop {
            let before = self.audit.writes().len();
            self.listen_for(QUIET);
            if self.audit.writes().len() == before {
                return before;
            }
        }
    }

    /// Processes audit entries for the given time.
    fn listen_for(&mut self, duration: Duration) {
        let begin = now();
        while begin.elapsed() < duration {
            self.listen(duration.saturating_sub(begin.elapsed()));
        }
    }
}

/// Grants all instances the permissions that the shipped manifests grant the controller's account.
fn grant_shipped_rights(plane: &Plane) {
    let mut bound = 0;
    for mut object in build(&kustomization("overlays/self-managed")) {
        if let Some(subjects) = object.get_mut("subjects") {
            let group = json!({
                "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": GROUP,
            });
            *subjects = json!([group]);
            bound += 1;
        } else if object["kind"] != "Role" {
            continue;
        }
        plane.api.post(&collection(&object), &object);
    }
    assert!(bound >= 2, "the default role and the lease");
}

/// Checks that a process exited because it lost its lease.
fn assert_lost(finished: &Finished) {
    assert_eq!(finished.code, Some(1), "{finished:#?}");
    let last = finished.stderr.last().unwrap();
    assert!(last.starts_with("Error: leaderelection lost: "), "{last}");
    let (_, log) = finished.stderr.split_last().unwrap();
    let logged = log.iter().any(|line| line.contains("leaderelection lost"));
    assert!(logged, "{finished:#?}");
}

#[expect(clippy::disallowed_methods, reason = "process quiet time is real time")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

#[test]
fn next_leader_continues_after_kill_or_pause() {
    let gates = "ControllerManagerReleaseLeaderElectionLockOnExit=true";
    let mut election = ElectionCluster::start(3, 3, gates);
    election.round(LeaderFailure::Killed);
    election.round(LeaderFailure::Paused);
    election.take_over_the_settled(LeaderFailure::Ended);
}

/// The same with more sets, repeated for `SOAK_SECONDS`.
#[cfg(feature = "soak")]
#[test]
fn soak() {
    let seconds = std::env::var("SOAK_SECONDS").unwrap_or_else(|_| "300".to_owned());
    let seconds = seconds
        .parse()
        .expect("SOAK_SECONDS is a number of seconds");
    let begin = now();
    let mut election = ElectionCluster::start(20, 3, "");
    while begin.elapsed() < Duration::from_secs(seconds) {
        for failure in [
            LeaderFailure::Killed,
            LeaderFailure::Paused,
            LeaderFailure::Ended,
        ] {
            election.round(failure);
        }
        election.take_over_the_settled(LeaderFailure::Killed);
        election.take_over_the_settled(LeaderFailure::Ended);
        report(&election, begin.elapsed());
    }
}

#[cfg(feature = "soak")]
#[expect(clippy::print_stderr, reason = "a person watches the progress")]
fn report(election: &ElectionCluster, elapsed: Duration) {
    eprintln!(
        "{} s: {} roll-outs, {} instances, {} writes, never two writers",
        elapsed.as_secs(),
        election.rounds,
        election.started,
        election.audit.writes().len(),
    );
}
