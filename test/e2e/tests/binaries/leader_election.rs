//! Two instances of the controller, of which the leader is killed, paused and restarted.

use std::collections::BTreeMap;
use std::time::Duration;

use e2e::deploy::{build, collection, kustomization};
use serde_json::json;

use crate::harness::{
    Audit, Entry, Finished, History, Kind, PATIENCE, Plane, Process, Signal, programs, set,
};

/// How long the lease lasts, as the flags below have it.
const LEASE: Duration = Duration::from_secs(3);
/// How long the control plane must be quiet after a takeover.
const QUIET: Duration = Duration::from_secs(1);
/// How many instances there can be one after the other.
const INSTANCES_MAX: usize = 2000;

/// The group of all instances.
const GROUP: &str = "instances";

/// What becomes of a leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It is killed.
    Killed,
    /// It stands still for longer than its lease, and wakes up when another one leads.
    Paused,
    /// It is asked to end.
    Ended,
}

/// A control plane with sets that roll out, and two instances.
struct Contest {
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

impl Contest {
    /// Brings the sets up with two instances.
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
        grant_what_is_shipped(&plane);
        let history = History::begin(&plane.api);
        let mut contest = Self {
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
        for name in &contest.sets {
            let mut object = set(name, replicas);
            // Rounds count from 1.
            object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("busybox:0");
            contest.plane.api.create(Kind::Set, &object);
        }
        contest.start_instance();
        contest.leader();
        contest.start_instance();
        contest.until_complete();
        contest
    }

    /// Starts one more instance, which the control plane knows by a name of its own.
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

    /// Takes in what the control plane tells of the instances next. Returns false if it tells
    /// nothing for so long.
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

    /// Takes in what the control plane has told so far.
    fn catch_up(&mut self) {
        while self.listen(Duration::ZERO) {}
    }

    /// Waits until the lease is held by an instance that is there.
    fn leader(&mut self) -> String {
        self.catch_up();
        loop {
            if let Some(holder) = self.audit.holder()
                && self.instances.contains_key(holder)
            {
                return holder.to_owned();
            }
            assert!(self.listen(PATIENCE), "nobody takes the lease");
            self.replace_the_lost();
        }
    }

    /// A busy machine may cost an instance its lease: it ends as it should, and another one takes
    /// its place.
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

    /// Rolls all sets out, and lets the leader meet its fate meanwhile.
    fn round(&mut self, fate: Fate) {
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
        self.meet(&leader, fate);
        self.until_complete();
    }

    fn meet(&mut self, leader: &str, fate: Fate) {
        let process = self.instances.remove(leader).unwrap();
        match fate {
            Fate::Killed => process.crash(),
            Fate::Ended => {
                process.signal(Signal::TERM);
                let finished = process.wait();
                assert_eq!(finished.code, Some(0), "{finished:#?}");
            }
            Fate::Paused => {
                process.signal(Signal::STOP);
                let next = self.leader();
                assert_ne!(next, leader);
                // It is in the middle of its work when the other one wakes up.
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

    /// The sets are settled: another leader finds nothing to do.
    fn take_over_the_settled(&mut self, fate: Fate) {
        let leader = self.leader();
        let before = self.until_quiet();
        assert_ne!(fate, Fate::Paused, "it wakes up when another one writes");
        self.meet(&leader, fate);
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

    /// Waits until nothing has been written for a while; returns how much was before.
    fn until_quiet(&mut self) -> usize {
        loop {
            let before = self.audit.writes().len();
            self.listen_for(QUIET);
            if self.audit.writes().len() == before {
                return before;
            }
        }
    }

    /// Listens for so long, whatever comes.
    fn listen_for(&mut self, duration: Duration) {
        let begin = now();
        while begin.elapsed() < duration {
            self.listen(duration.saturating_sub(begin.elapsed()));
        }
    }
}

/// Gives all instances the rights that the shipped manifests give the controller's account.
fn grant_what_is_shipped(plane: &Plane) {
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
    assert!(bound >= 2, "the stock role and the lease");
}

/// Checks that a process ended as one that has lost its lease.
fn assert_lost(finished: &Finished) {
    assert_eq!(finished.code, Some(1), "{finished:#?}");
    let last = finished.stderr.last().unwrap();
    assert!(last.starts_with("Error: leaderelection lost: "), "{last}");
    let (_, log) = finished.stderr.split_last().unwrap();
    let told = log.iter().any(|line| line.contains("leaderelection lost"));
    assert!(told, "{finished:#?}");
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long processes are quiet is a matter of real time"
)]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

#[test]
fn the_next_leader_goes_on_where_the_last_one_was_killed_or_stood_still() {
    let gates = "ControllerManagerReleaseLeaderElectionLockOnExit=true";
    let mut contest = Contest::start(3, 3, gates);
    contest.round(Fate::Killed);
    contest.round(Fate::Paused);
    contest.take_over_the_settled(Fate::Ended);
}

/// The same with more sets and over and over.
#[cfg(feature = "soak")]
#[test]
fn soak() {
    let seconds = std::env::var("SOAK_SECONDS").unwrap_or_else(|_| "300".to_owned());
    let seconds = seconds
        .parse()
        .expect("SOAK_SECONDS is a number of seconds");
    let begin = now();
    let mut contest = Contest::start(20, 3, "");
    while begin.elapsed() < Duration::from_secs(seconds) {
        for fate in [Fate::Killed, Fate::Paused, Fate::Ended] {
            contest.round(fate);
        }
        contest.take_over_the_settled(Fate::Killed);
        contest.take_over_the_settled(Fate::Ended);
        report(&contest, begin.elapsed());
    }
}

#[cfg(feature = "soak")]
#[expect(clippy::print_stderr, reason = "somebody looks on for minutes")]
fn report(contest: &Contest, elapsed: Duration) {
    eprintln!(
        "{} s: {} roll-outs, {} instances, {} writes, never two writers",
        elapsed.as_secs(),
        contest.rounds,
        contest.started,
        contest.audit.writes().len(),
    );
}
