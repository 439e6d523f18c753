//! The effects of an upgrade on the sets that the built-in controller manages.
//!
//! The shipped controller decides about every set with the gates of each release on the way, as the
//! built-in controller of that release would.

use jiff::Timestamp;
use statefulset_client::feature_gates::FeatureGates;

use super::check::{Check, Verdict};
use super::{controller, differences};
use crate::decide::{Decision, Write, decide};
use crate::objects::{Snapshot, read};
use crate::output::counted;
use crate::release::{NEWEST, NEXT, OLDEST, Release};
use crate::server::Server;

const VERSIONS: &str = "versions";
const CONTROLLER: &str = "controller";
const RESTARTS: &str = "restarts";
const BEHAVIOUR: &str = "behaviour";
const EVENTS: &str = "events";

/// The effects of an upgrade.
#[derive(Debug, Default)]
struct Effects {
    sets: usize,
    /// Sets in the middle of a change: the next steps are compared, not the restarts.
    unsettled: usize,
    /// Sets whose pods restart.
    restarts: Vec<String>,
    /// Sets whose pods restart in early patches on the way alone.
    early: Vec<String>,
    /// Sets that the controller treats otherwise.
    differing: Vec<String>,
}

/// The releases of an upgrade.
struct Path {
    from: Release,
    to: Release,
    /// The gates in the flags of the built-in controller, which stay.
    flags: Vec<(String, bool)>,
}

impl Path {
    /// The gates of a release with the flags.
    fn gates(&self, release: Release) -> FeatureGates {
        let mut gates = release.gates();
        for (name, value) in &self.flags {
            // A gate that the release doesn't know, or that is locked, has no effect here.
            let _ = gates.set(name, *value);
        }
        gates
    }

    /// The releases after the first, one for each minor version.
    fn steps(&self) -> Vec<Release> {
        let between = (self.from.minor + 1)..self.to.minor;
        let mut steps: Vec<Release> = between.map(Release::latest).collect();
        steps.push(self.to);
        steps
    }

    /// Early patches that the upgrade may pass through, with another behaviour than the later ones.
    fn early_patches(&self) -> Vec<Release> {
        let unnamed = self.steps().into_iter().filter(|step| step.patch.is_none());
        let early = unnamed.filter(|step| step.minor == 34);
        early
            .map(|step| Release {
                patch: Some(0),
                ..step
            })
            .collect()
    }
}

/// Checks an upgrade.
pub(super) async fn checks(server: &Server, now: Timestamp, to: Release) -> Vec<Check> {
    let from = match server.version().await {
        Ok(version) => Release::of_server(&version),
        Err(error) => return vec![Check::unread(VERSIONS, &error)],
    };
    let Some(from) = from else {
        let text = "the server's version is not a Kubernetes version";
        return vec![Check::new(VERSIONS, Verdict::Stop, text)];
    };
    let (leader, flags) = match controller::at_work(server, now).await {
        Ok(found) => found,
        Err(error) => {
            server.note_unread(&format!("{error:#}; default feature gates are assumed"));
            (None, Vec::new())
        }
    };
    let path = Path { from, to, flags };
    let mut checks = vec![judge_versions(&path)];
    if checks.iter().any(|it| it.verdict == Verdict::Stop) {
        return checks;
    }
    if let Some(leader) = leader {
        let text = format!(
            "this controller leads ({leader}): an upgrade of the servers leaves its behaviour, \
             which follows --emulated-version"
        );
        checks.push(Check::new(CONTROLLER, Verdict::Ok, text));
        return checks;
    }
    match read(server, now, &path).await {
        Ok(effects) => checks.extend([
            judge_restarts(&effects),
            judge_behaviour(&effects),
            judge_events(&path),
        ]),
        Err(error) => {
            let names = [RESTARTS, BEHAVIOUR].into_iter();
            checks.extend(names.map(|name| Check::unread(name, &error)));
        }
    }
    checks
}

async fn read(server: &Server, now: Timestamp, path: &Path) -> anyhow::Result<Effects> {
    let mut effects = Effects::default();
    for sets in read::by_namespace(read::all(server).await?) {
        // Events and nodes explain a set; the decision needs neither.
        let namespace = read::namespace(server, sets, now, &mut Vec::new()).await?;
        for snapshot in namespace.into_snapshots() {
            effects.add(path, &snapshot).await;
        }
    }
    Ok(effects)
}

impl Effects {
    async fn add(&mut self, path: &Path, snapshot: &Snapshot) {
        let Some(set) = &snapshot.set else {
            return;
        };
        let key = format!("{}/{}", snapshot.namespace, set.object.metadata.name);
        self.sets += 1;
        let (from, to) = (path.gates(path.from), path.gates(path.to));
        for difference in differences::of(&set.object, from, to) {
            self.differing.push(format!("{key}: {difference}"));
        }
        let Ok(before) = decide(&snapshot.objects(set), snapshot.now, from).await else {
            let text = format!("{key}: an object can't be decoded, so its next step is unknown");
            return self.differing.push(text);
        };
        let is_settled = set.object.is_settled();
        self.unsettled += usize::from(!is_settled);
        let mut seen: Option<(Release, Write)> = None;
        for step in path.steps() {
            let after = decide(&snapshot.objects(set), snapshot.now, path.gates(step)).await;
            let change = after.ok().and_then(|after| change(&before, &after));
            seen = seen.or(change.map(|write| (step, write)));
        }
        if let Some((step, write)) = seen {
            let text = format!("{key}: {step} would {}", words(&write));
            if is_settled {
                self.restarts.push(text);
            } else {
                self.differing.push(text);
            }
            return;
        }
        for early in path.early_patches() {
            let after = decide(&snapshot.objects(set), snapshot.now, path.gates(early)).await;
            let change = after.ok().and_then(|after| change(&before, &after));
            self.early
                .extend(change.filter(|_| is_settled).map(|_| key.clone()));
        }
    }
}

/// The first write of a pod or a revision that only the later release sends.
fn change(before: &Decision, after: &Decision) -> Option<Write> {
    let counts = |write: &&Write| {
        let is_restart = write.resource == "pods" && write.verb != "update";
        is_restart || write.resource == "controllerrevisions" && write.verb == "create"
    };
    // The deletion of a pod says more than the revision before it.
    let mut new: Vec<&Write> = after.writes.iter().filter(counts).collect();
    new.retain(|write| !before.writes.contains(write));
    let pod = new.iter().find(|write| write.resource == "pods");
    pod.or(new.first()).map(|write| (*write).clone())
}

fn words(write: &Write) -> String {
    let kind = match write.resource {
        "pods" => "pod",
        _ => "revision",
    };
    format!("{} {kind} {}", write.verb, write.name)
}

fn judge_versions(path: &Path) -> Check {
    let Path { from, to, .. } = path;
    let check = |verdict, text: String| Check::new(VERSIONS, verdict, text);
    if (to.minor, to.patch.unwrap_or(u32::MAX)) < (from.minor, from.patch.unwrap_or(0)) {
        let text = format!("{to} is older than the server's {from}: only upgrades are checked");
        return check(Verdict::Stop, text);
    }
    if to.minor > NEXT {
        let text = format!("the behaviour of {to} is unknown; v1.{NEXT} is the newest known one");
        return check(Verdict::Stop, text);
    }
    if from.minor < OLDEST {
        let text = format!(
            "{from} to {to}: changes before v1.{OLDEST} are unknown; upgrade to v1.{OLDEST} first"
        );
        return check(Verdict::Todo, text);
    }
    if to.minor > NEWEST {
        let text = format!("{from} to {to}: only changes announced for v1.{NEXT} are known so far");
        return check(Verdict::Todo, text);
    }
    if to.minor > from.minor + 1 {
        let steps: Vec<String> = path.steps().iter().map(ToString::to_string).collect();
        let text = format!(
            "{from} to {to}: upgrade one minor version at a time: {}",
            steps.join(", ")
        );
        return check(Verdict::Todo, text);
    }
    check(Verdict::Ok, format!("{from} to {to}"))
}

fn judge_restarts(effects: &Effects) -> Check {
    let sets = counted(effects.sets, "set");
    let unsettled = match effects.unsettled {
        0 => String::new(),
        count => format!("; unsettled sets: {count}"),
    };
    if !effects.restarts.is_empty() {
        let count = effects.restarts.len();
        let text = format!("the upgrade would restart pods of {count} of {sets}{unsettled}");
        return Check::new(RESTARTS, Verdict::Stop, text).with(effects.restarts.clone());
    }
    let text = format!("the upgrade would restart no pod of {sets}{unsettled}");
    if effects.early.is_empty() {
        return Check::new(RESTARTS, Verdict::Ok, text);
    }
    let count = effects.early.len();
    let text = format!(
        "{text}, but v1.34.0 and v1.34.1 would restart those of {count}: use v1.34.2 or later"
    );
    Check::new(RESTARTS, Verdict::Todo, text).with(effects.early.clone())
}

fn judge_behaviour(effects: &Effects) -> Check {
    let sets = counted(effects.sets, "set");
    if effects.differing.is_empty() {
        let text = format!("none of {sets} would behave otherwise");
        return Check::new(BEHAVIOUR, Verdict::Ok, text);
    }
    let keys = effects.differing.iter();
    let keys = keys.filter_map(|text| text.split_once(": ").map(|(key, _)| key));
    let count = keys.collect::<std::collections::BTreeSet<_>>().len();
    let text = format!("{count} of {sets} would behave otherwise");
    Check::new(BEHAVIOUR, Verdict::Todo, text).with(effects.differing.clone())
}

/// Changes of events, which concern tools, not sets.
fn judge_events(path: &Path) -> Check {
    let is_lower = |release: Release| release.gates().events_begin_in_lower_case();
    let text = if is_lower(path.from) && !is_lower(path.to) {
        "event messages begin with \"Create Pod\" instead of \"create Pod\", likewise for updates \
         and deletions: check the tools that match them"
    } else {
        "event messages stay the same"
    };
    let verdict = if text.ends_with("same") {
        Verdict::Ok
    } else {
        Verdict::Todo
    };
    Check::new(EVENTS, verdict, text)
}
