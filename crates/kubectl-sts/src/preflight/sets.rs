//! The first step of this controller on every set, and the memory that it needs.

use jiff::Timestamp;

use super::check::{Check, Verdict};
use crate::decide::{Decision, Write, decide};
use crate::model::Set;
use crate::objects::{Snapshot, read};
use crate::output::counted;
use crate::server::Server;

const SETS: &str = "sets";
const SIZE: &str = "memory";
/// Memory of the program without objects, and for each pod with its share of claims and revisions.
const EMPTY_BYTES: usize = 22 << 20;
const POD_BYTES: usize = 2 << 10;
/// The memory limit of the shipped manifests.
const LIMIT_BYTES: usize = 1 << 30;
const MEBIBYTE: usize = 1 << 20;

/// The facts about all sets.
#[derive(Debug, Default)]
struct Found {
    sets: usize,
    unsettled: usize,
    pods: usize,
    /// Size of the sets and their revisions.
    bytes: usize,
    /// Settled sets of which a pod would be created or deleted.
    restarted: Vec<String>,
    /// Sets whose every sync fails.
    failing: Vec<String>,
    /// Settled sets with another write, and pods that only the built-in controller accepts.
    differing: Vec<String>,
}

/// Lets the shipped controller decide about every set.
pub(super) async fn check(server: &Server, now: Timestamp) -> [Check; 2] {
    match read(server, now).await {
        Ok(found) => [judge(&found), judge_size(&found)],
        Err(error) => [SETS, SIZE].map(|name| Check::unread(name, &error)),
    }
}

async fn read(server: &Server, now: Timestamp) -> anyhow::Result<Found> {
    let mut found = Found::default();
    let sets = read::all(server).await?;
    for sets in read::by_namespace(sets) {
        // Events and nodes explain a set; the decision needs neither.
        let namespace = read::namespace(server, sets, now, &mut Vec::new()).await?;
        found.pods += namespace.pod_count();
        for snapshot in namespace.into_snapshots() {
            let Some(set) = &snapshot.set else {
                continue;
            };
            let objects = snapshot.objects(set);
            let revisions = objects.revisions.iter().map(|text| text.len());
            found.bytes += set.text.len() + revisions.sum::<usize>();
            let decision = decide(&objects, now, snapshot.gates).await;
            found.add(&snapshot, &set.object, decision);
        }
    }
    Ok(found)
}

impl Found {
    fn add(&mut self, snapshot: &Snapshot, object: &Set, decision: anyhow::Result<Decision>) {
        let key = format!("{}/{}", snapshot.namespace, object.metadata.name);
        self.sets += 1;
        if let Some(unreadable) = snapshot.unreadable(object) {
            return self.failing.push(format!("{key}: {unreadable}"));
        }
        let strangers = snapshot.pods_of(object).filter(|pod| {
            let name = &pod.metadata.name;
            object.ordinal(name).is_none()
        });
        for pod in strangers {
            let pod = &pod.metadata.name;
            let text = format!("{key}: pod {pod} would be ignored, as its name has no ordinal");
            self.differing.push(text);
        }
        let decision = match decision {
            Ok(decision) => decision,
            Err(error) => return self.failing.push(format!("{key}: {error:#}")),
        };
        if let Some(error) = decision.error {
            return self.failing.push(format!("{key}: {error}"));
        }
        if !object.is_settled() {
            self.unsettled += 1;
            return;
        }
        let Some(first) = decision.writes.first() else {
            return;
        };
        let of_pods = |write: &&Write| write.resource == "pods" && write.verb != "update";
        match decision.writes.iter().find(of_pods) {
            Some(write) => self.restarted.push(line(&key, write)),
            None => self.differing.push(line(&key, first)),
        }
    }
}

fn line(key: &str, write: &Write) -> String {
    format!("{key}: {} {} {}", write.verb, write.resource, write.name)
}

fn judge(found: &Found) -> Check {
    let (sets, unsettled) = (counted(found.sets, "set"), found.unsettled);
    if !found.restarted.is_empty() {
        let count = found.restarted.len();
        let text = format!("the controller would create or delete a pod in {count} of {sets}");
        return Check::new(SETS, Verdict::Stop, text).with(found.restarted.clone());
    }
    if !found.failing.is_empty() {
        let count = found.failing.len();
        let text = format!("the controller would fail on {count} of {sets}");
        return Check::new(SETS, Verdict::Todo, text).with(found.failing.clone());
    }
    let unsettled = match unsettled {
        0 => String::new(),
        count => format!("; unsettled sets: {count}"),
    };
    let text = match found.differing.len() {
        0 => format!("the controller would change none of {sets}{unsettled}"),
        count => {
            format!(
                "the controller would create and delete no pod of {sets}; \
                 other differences: {count}{unsettled}"
            )
        }
    };
    Check::new(SETS, Verdict::Ok, text).with(found.differing.clone())
}

fn judge_size(found: &Found) -> Check {
    // A cached set or revision takes 1.2 times its text at most.
    let needed = EMPTY_BYTES + found.pods * POD_BYTES + found.bytes + found.bytes / 5;
    let (needed_mib, limit) = (needed / MEBIBYTE, LIMIT_BYTES / MEBIBYTE);
    let text = format!(
        "about {needed_mib} MiB for {} and {}; the shipped limit is {limit} MiB",
        counted(found.sets, "set"),
        counted(found.pods, "pod")
    );
    if needed > LIMIT_BYTES / 4 * 3 {
        return Check::new(
            SIZE,
            Verdict::Todo,
            format!("raise the memory limit: {text}"),
        );
    }
    Check::new(SIZE, Verdict::Ok, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restarts_stop_the_switch_and_failures_delay_it() {
        let calm = Found {
            sets: 3,
            unsettled: 1,
            ..Found::default()
        };
        let text = "the controller would change none of 3 sets; unsettled sets: 1";
        assert_eq!(judge(&calm).text, text);
        let failing = Found {
            failing: vec!["ns/a: the selector is invalid".to_owned()],
            ..Found::default()
        };
        assert_eq!(judge(&failing).verdict, Verdict::Todo);
        let restarted = Found {
            restarted: vec!["ns/a: delete pods a-0".to_owned()],
            ..failing
        };
        assert_eq!(judge(&restarted).verdict, Verdict::Stop);
        assert_eq!(judge(&restarted).details, ["ns/a: delete pods a-0"]);
    }

    #[test]
    fn memory_grows_with_pods_and_templates() {
        let found = |pods, bytes| Found {
            pods,
            bytes,
            ..Found::default()
        };
        let small = judge_size(&found(1_000, 0));
        assert!(small.text.starts_with("about 23 MiB"), "{}", small.text);
        assert!(small.is_passed());
        let large = judge_size(&found(20_000, 700 << 20));
        assert_eq!(large.verdict, Verdict::Todo);
    }
}
