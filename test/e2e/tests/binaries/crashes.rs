//! Crash test: the controller is killed repeatedly, and continues each time.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::json;

use crate::harness::{Api, History, Kind, Process, Session, programs};

/// Number of kills during the creation, and again during the rollout.
const KILLS: usize = 20;
/// Enough that work remains after the last kill, even if every controller in between completes a
/// pod.
const REPLICAS: usize = 25;

/// A set that keeps the session open until it is scaled to 0.
const GATE: &str = r"
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: gate}
spec:
  serviceName: web
  selector: {matchLabels: {app: gate}}
  template:
    metadata:
      labels: {app: gate}
      annotations: {kubelet.test-control-plane/outcome: never-ready}
    spec: {containers: [{name: c, image: busybox}]}
";

/// A session of `make run` whose controller can be killed and restarted.
struct Crashing {
    session: Session,
    api: Api,
    history: History,
    restart: String,
    controller: Option<Process>,
}

impl Crashing {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let web = include_str!("../../../../docs/examples/web.yaml");
        assert!(web.contains("replicas: 3\n"));
        let web = web.replace("replicas: 3\n", &format!("replicas: {REPLICAS}\n"));
        let manifest = folder.path().join("web-and-gate.yaml");
        // The gate comes first, so that it is complete before the other set rolls out.
        std::fs::write(&manifest, format!("{GATE}---\n{web}")).unwrap();
        let manifest = manifest.to_str().unwrap();
        let mut session = Session::start(
            &programs(),
            &["--timeout=10m", "--pod-delay=20ms", manifest],
        );
        let pid = session.pid_of("controller");
        let api = session.api();
        let history = History::begin(&api);
        let restart = session.restart_command();
        let mut crashing = Self {
            session,
            api,
            history,
            restart,
            controller: None,
        };
        let is_there = |history: &History| history.counts(Kind::Revision, "web-").len() == 1;
        crashing.history.until("the first revision", is_there);
        crashing.session.crash_controller(pid);
        crashing.restart();
        crashing
    }

    /// Restarts the controller with the command that the session printed.
    fn restart(&mut self) {
        let command = format!("exec {}", self.restart);
        let mut shell = Command::new("/bin/sh");
        let controller = Process::start("controller", shell.args(["-c", &command]));
        self.controller = Some(controller);
    }

    /// Kills the controller `times` times, each time as soon as the server shows another write of
    /// it, and restarts it.
    fn crash(&mut self, times: usize) {
        for _ in 0..times {
            // Writes of its predecessor don't count.
            let (_, before) = self.api.list(Kind::Set);
            self.history.until_controller_writes(before);
            self.controller.take().unwrap().crash();
            self.restart();
        }
        assert!(
            !self.history.is_complete("web"),
            "the rollout was complete before the last kill"
        );
    }

    fn until_complete(&mut self) {
        let complete = |history: &History| history.is_complete("web");
        self.history.until("the set to be complete", complete);
        assert_eq!(self.history.out_of_turn(), [""; 0]);
    }

    /// Checks, per ordinal, how many objects of a kind ever existed, and how many of them were
    /// deleted.
    fn assert_counts(&self, kind: Kind, prefix: &str, expected: impl Fn(usize) -> (usize, usize)) {
        let counts = self.history.counts(kind, prefix);
        let names: Vec<String> = (0..counts.len()).map(|i| format!("{prefix}{i}")).collect();
        let expected: BTreeMap<&str, (usize, usize)> = names
            .iter()
            .enumerate()
            .map(|(i, name)| (name.as_str(), expected(i)))
            .collect();
        assert_eq!(counts, expected);
    }
}

#[test]
fn repeated_controller_kills_lose_nothing() {
    let mut crashing = Crashing::start();
    crashing.crash(KILLS - 1);
    crashing.until_complete();
    assert_eq!(crashing.history.deletions(), [0; 0]);
    for (kind, prefix) in [(Kind::Pod, "web-"), (Kind::Claim, "www-web-")] {
        assert_eq!(crashing.history.counts(kind, prefix).len(), REPLICAS);
        crashing.assert_counts(kind, prefix, |_| (1, 0));
    }
    let revisions = crashing.history.counts(Kind::Revision, "web-");
    assert_eq!(revisions.into_values().collect::<Vec<_>>(), [(1, 0)]);

    // Again, while every pod is replaced and two are added.
    let replicas = REPLICAS + 2;
    let image = json!([{"name": "nginx", "image": "nginx:1.28-alpine"}]);
    let patch = json!({"spec": {
        "replicas": replicas, "template": {"spec": {"containers": image}},
    }});
    crashing.api.merge(Kind::Set, "web", &patch);
    crashing.crash(KILLS);
    crashing.until_complete();
    let downwards: Vec<u32> = (0..u32::try_from(REPLICAS).unwrap()).rev().collect();
    assert_eq!(crashing.history.deletions(), downwards);
    assert_eq!(crashing.history.counts(Kind::Pod, "web-").len(), replicas);
    let replaced = |ordinal| if ordinal < REPLICAS { (2, 1) } else { (1, 0) };
    crashing.assert_counts(Kind::Pod, "web-", replaced);
    crashing.assert_counts(Kind::Claim, "www-web-", |_| (1, 0));
    let revisions = crashing.history.counts(Kind::Revision, "web-");
    assert_eq!(
        revisions.into_values().collect::<Vec<_>>(),
        [(1, 0), (1, 0)]
    );

    // The gate set's pod was never touched; without it the session would have ended.
    crashing.assert_counts(Kind::Pod, "gate-", |_| (1, 0));
    let patch = json!({"spec": {"replicas": 0}});
    crashing.api.merge(Kind::Set, "gate", &patch);
    let finished = crashing.session.wait();
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    let last = finished.stdout.last().unwrap();
    assert!(last.starts_with("complete after "), "{last}");
}
