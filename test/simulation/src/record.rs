//! The record of a run: requests, syncs, commits.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use kube_test_control_plane::faults::RequestFacts;
use kube_test_control_plane::route::Verb;
use kube_test_control_plane::store::LogEntry;
use serde_json::Value;
use statefulset_controller_util::consistency::Caches;
use statefulset_fence::Policy;
use tokio::time::Instant;

use crate::agent::Process;
use crate::api_servers::FenceChange;

/// Resources whose writes don't concern sets.
const UNRELATED_RESOURCES: [&str; 2] = ["leases", "events"];

/// Part of the note of a process that ended by itself.
pub const ENDS: &str = " ends: ";

/// Part of the note of a process that ended because it lost its lease.
pub const ENDS_WELL: &str = " ends: the lease is lost";

/// Part of the note of a panic.
pub const PANICS: &str = " panics";

/// Namespace and name of a set.
pub type SetKey = (String, String);

/// The versions of the caches when a sync read them; 0 before the first list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    /// StatefulSets.
    pub sets: u64,
    /// Pods.
    pub pods: u64,
    /// PersistentVolumeClaims.
    pub claims: u64,
    /// ControllerRevisions.
    pub revisions: u64,
}

impl Seen {
    /// Reads the versions of caches.
    fn of(caches: &Caches) -> Self {
        let version = |text: Arc<str>| text.parse().unwrap_or_default();
        Self {
            sets: version(caches.sets.last_sync_resource_version()),
            pods: version(caches.pods.last_sync_resource_version()),
            claims: version(caches.claims.last_sync_resource_version()),
            revisions: version(caches.revisions.last_sync_resource_version()),
        }
    }

    /// Returns the newer of each version.
    #[must_use]
    pub fn max_each(self, other: Self) -> Self {
        Self {
            sets: self.sets.max(other.sets),
            pods: self.pods.max(other.pods),
            claims: self.claims.max(other.claims),
            revisions: self.revisions.max(other.revisions),
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            sets,
            pods,
            claims,
            revisions,
        } = self;
        write!(
            f,
            "sets {sets}, pods {pods}, claims {claims}, revisions {revisions}"
        )
    }
}

/// A sync of an instance.
#[derive(Clone, Debug)]
pub struct Sync {
    /// The instance.
    pub process: Process,
    /// The set.
    pub set: SetKey,
    /// Time of its start.
    pub at: Duration,
    /// The versions that it read.
    pub seen: Seen,
}

/// A request of an instance.
#[derive(Clone, Debug)]
pub struct Request {
    /// The sender.
    pub process: Process,
    /// The sync that sent it.
    pub sync: Option<usize>,
    /// The versions of the caches when it was sent.
    pub seen: Seen,
    /// Time when it was sent.
    pub sent: Duration,
    /// Time when its response arrived.
    pub answered: Option<Duration>,
    /// The versions of the caches when its response arrived; none without a response.
    pub seen_after: Option<Seen>,
    /// Status code of the response that arrived.
    pub status: Option<u16>,
    /// Verb; none for paths that name no resource.
    pub verb: Option<Verb>,
    /// Resource.
    pub resource: String,
    /// Subresource.
    pub subresource: String,
    /// Namespace.
    pub namespace: String,
    /// Name; for a creation, the one in the body.
    pub name: String,
    /// Body.
    pub body: Bytes,
    /// Fate in the API server; none if it never got there.
    pub processed: Option<Processed>,
    /// True if the API server responded that it did not process it.
    pub is_unprocessed: bool,
    /// The policy of the fence that denied it.
    pub denied: Option<Policy>,
    /// True if the storage class of a claim forbade it to grow.
    pub is_refused_growth: bool,
}

/// The fate of a request in the API server.
#[derive(Clone, Copy, Debug)]
pub struct Processed {
    /// Time.
    pub at: Duration,
    /// Revision of the store before it.
    pub before: u64,
    /// Revision of the store after it.
    pub after: u64,
    /// Status code.
    pub code: u16,
}

impl Request {
    /// Reports whether the request is a write that concerns a set: no lease, no event.
    pub fn is_write(&self) -> bool {
        is_write(self.verb, &self.resource)
    }

    /// Reports whether the request evicts a pod.
    pub fn evicts(&self) -> bool {
        self.subresource == "eviction"
    }

    /// Reports whether it failed for a cause that may pass: no response, or an error of the server.
    pub fn has_failed(&self) -> bool {
        self.status.is_none_or(|status| status >= 500)
    }

    /// Reports whether the request resizes a pod.
    pub fn resizes(&self) -> bool {
        self.subresource == "resize"
    }

    /// Returns its verb, resource, subresource and name.
    pub fn target(&self) -> (&'static str, &str, &str, &str) {
        let verb = self.verb.map_or("", Verb::name);
        (verb, &self.resource, &self.subresource, &self.name)
    }

    /// Names the request in a message.
    pub fn named(&self) -> String {
        let Self {
            process,
            verb,
            resource,
            subresource,
            name,
            ..
        } = self;
        let verb = verb.map_or("?", Verb::name);
        let slash = if subresource.is_empty() { "" } else { "/" };
        format!("process {process}: {verb} {resource}{slash}{subresource} {name}")
    }

    /// Returns the body as JSON; null if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// Reports whether a request creates or renews a lease.
pub fn is_lease_write(request: &Request) -> bool {
    let writes = [Verb::Create, Verb::Update, Verb::Patch];
    request.resource == "leases" && request.verb.is_some_and(|verb| writes.contains(&verb))
}

/// Reports whether a request writes something that concerns a set.
pub fn is_write(verb: Option<Verb>, resource: &str) -> bool {
    let reads = [Verb::Get, Verb::List, Verb::Watch];
    verb.is_some_and(|verb| !reads.contains(&verb)) && !UNRELATED_RESOURCES.contains(&resource)
}

/// Everything that happened in a run.
#[derive(Debug, Default)]
pub struct Record {
    /// Requests of the instances, in the order of sending.
    pub requests: Vec<Request>,
    /// Syncs, in the order of their start.
    pub syncs: Vec<Sync>,
    /// Number of syncs that were postponed until the caches showed the process's writes.
    pub postponed: usize,
    /// Commits of the API server, in their order.
    pub commits: Vec<Commit>,
    /// The times in which processes were suspended.
    pub suspensions: Vec<(Process, Duration, Duration)>,
    /// Log lines of the run: crashes, steps, ends of processes.
    pub notes: Vec<(Duration, String)>,
    /// Time at which all faults and users stopped.
    pub calm: Duration,
    /// Time after which the instances wrote nothing; none if they never stopped.
    pub quiet: Option<Duration>,
    /// Length of the run.
    pub length: Duration,
    /// Number of requests that the API server got.
    pub requests_served: usize,
    /// Hash of everything that the API server got, with times and versions.
    pub trace: u64,
    /// Violations that the control plane's own judges found.
    pub plane_violations: Vec<String>,
    /// Changes of the fence; none without one.
    pub fence: Vec<FenceChange>,
    /// Ends of an instance's service behind the fence.
    pub falls: Vec<Fall>,
}

/// The end of an instance's service behind the fence: its running syncs are dropped.
#[derive(Clone, Copy, Debug)]
pub struct Fall {
    /// The instance.
    pub process: Process,
    /// Time of the end.
    pub at: Duration,
    /// The reason that its metrics name.
    pub reason: &'static str,
}

/// A commit of the API server.
#[derive(Clone, Debug)]
pub struct Commit {
    /// Time.
    pub at: Duration,
    /// The stored change.
    pub entry: LogEntry,
    /// The request of an instance that caused it.
    pub request: Option<usize>,
    /// User agent of the sender.
    pub agent: Arc<str>,
}

/// Collects what the instances do.
#[derive(Clone)]
pub struct Recorder(Arc<Mutex<Inner>>);

struct Inner {
    began: Instant,
    requests: Vec<Request>,
    syncs: Vec<Sync>,
    /// The latest sync of each set in each process.
    latest: BTreeMap<Process, BTreeMap<SetKey, usize>>,
    /// The caches of each process.
    caches: BTreeMap<Process, Caches>,
    writes: u64,
    /// Number of those that the fence denied to the built-in controller, or a storage class to all.
    futile: u64,
    postponed: usize,
    suspensions: Vec<(Process, Duration, Duration)>,
    falls: Vec<Fall>,
    upgrades: Vec<(Duration, RangeInclusive<u64>)>,
    notes: Vec<(Duration, String)>,
}

impl Recorder {
    /// Creates an empty recorder whose time begins now.
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Inner {
            began: Instant::now(),
            requests: Vec::new(),
            syncs: Vec::new(),
            latest: BTreeMap::new(),
            caches: BTreeMap::new(),
            writes: 0,
            futile: 0,
            postponed: 0,
            suspensions: Vec::new(),
            falls: Vec::new(),
            upgrades: Vec::new(),
            notes: Vec::new(),
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time since the start.
    pub fn now(&self) -> Duration {
        self.lock().began.elapsed()
    }

    /// Records the start of a sync.
    pub fn sync_started(&self, process: Process, set: SetKey, caches: &Caches) {
        let seen = Seen::of(caches);
        let mut inner = self.lock();
        // A namespace that is served again has new caches.
        inner.caches.insert(process, caches.clone());
        let id = inner.syncs.len();
        let at = inner.began.elapsed();
        inner
            .latest
            .entry(process)
            .or_default()
            .insert(set.clone(), id);
        inner.syncs.push(Sync {
            process,
            set,
            at,
            seen,
        });
    }

    /// Records a request. Returns its number, and, for a write, how many writes there were.
    pub fn sent(
        &self,
        process: Process,
        facts: &RequestFacts,
        body: &Bytes,
    ) -> (usize, Option<u64>) {
        let mut inner = self.lock();
        let mut name = facts.name.clone();
        if name.is_empty() && facts.verb == Some(Verb::Create) {
            name = named_in(body);
        }
        let set = inner
            .latest
            .get(&process)
            .and_then(|syncs| sync_of(syncs, &facts.resource, &facts.namespace, &name));
        let seen = inner.caches.get(&process).map(Seen::of);
        let request = Request {
            process,
            sync: set,
            seen: seen.unwrap_or_default(),
            sent: inner.began.elapsed(),
            answered: None,
            seen_after: None,
            status: None,
            verb: facts.verb,
            resource: facts.resource.clone(),
            subresource: facts.subresource.clone(),
            namespace: facts.namespace.clone(),
            name,
            body: body.clone(),
            processed: None,
            is_unprocessed: false,
            denied: None,
            is_refused_growth: false,
        };
        let nth = request.is_write().then(|| {
            inner.writes += 1;
            inner.writes
        });
        inner.requests.push(request);
        (inner.requests.len() - 1, nth)
    }

    /// Records a response that arrived.
    pub fn answered(&self, request: usize, status: u16) {
        let mut inner = self.lock();
        let now = inner.began.elapsed();
        let process = inner.requests.get(request).map(|it| it.process);
        let seen = process.and_then(|it| inner.caches.get(&it).map(Seen::of));
        if let Some(request) = inner.requests.get_mut(request) {
            request.answered = Some(now);
            request.seen_after = seen;
            request.status = Some(status);
        }
    }

    /// Records that the API server did not process a request, and said so.
    pub fn left_unprocessed(&self, request: usize) {
        if let Some(request) = self.lock().requests.get_mut(request) {
            request.is_unprocessed = true;
        }
    }

    /// Records that a policy denied a request.
    pub fn denied(&self, request: usize, policy: Policy) {
        let mut inner = self.lock();
        if let Some(request) = inner.requests.get_mut(request) {
            request.denied = Some(policy);
            let is_futile = policy == Policy::Fence && request.is_write();
            inner.futile += u64::from(is_futile);
        }
    }

    /// Records that the storage class of a claim forbade it to grow.
    pub fn refused_growth(&self, request: usize) {
        let mut inner = self.lock();
        if let Some(request) = inner.requests.get_mut(request) {
            request.is_refused_growth = true;
            inner.futile += 1;
        }
    }

    /// Records a line of the run's log.
    pub fn note(&self, line: impl Into<String>) {
        let mut inner = self.lock();
        let now = inner.began.elapsed();
        inner.notes.push((now, line.into()));
    }

    /// Returns the number of writes so far.
    pub fn writes(&self) -> u64 {
        self.lock().writes
    }

    /// Returns the number of writes so far, without those that the fence denied to the built-in
    /// controller: that one may retry indefinitely what the instances have no reason to do. Claims whose
    /// class forbids them to grow are tried again every ten minutes as well.
    pub fn effective_writes(&self) -> u64 {
        let inner = self.lock();
        inner.writes - inner.futile
    }

    /// Records a sync that waits until the caches show its process's writes.
    pub fn postponed(&self) {
        self.lock().postponed += 1;
    }

    /// Records that a process stops for this time.
    pub fn suspended(&self, process: Process, time: Duration) {
        let mut inner = self.lock();
        let now = inner.began.elapsed();
        inner.suspensions.push((process, now, now + time));
        inner
            .notes
            .push((now, format!("process {process} is suspended for {time:?}")));
    }

    /// Returns the suspensions.
    pub fn suspensions(&self) -> Vec<(Process, Duration, Duration)> {
        self.lock().suspensions.clone()
    }

    /// Records that a process no longer serves the namespace behind the fence, for this reason.
    pub fn fell(&self, process: Process, reason: &'static str) {
        let mut inner = self.lock();
        let at = inner.began.elapsed();
        inner.falls.push(Fall {
            process,
            at,
            reason,
        });
        inner.notes.push((
            at,
            format!("process {process} stops behind the fence: {reason}"),
        ));
    }

    /// Returns the ends of service behind the fence.
    pub fn falls(&self) -> Vec<Fall> {
        self.lock().falls.clone()
    }

    /// Records that the API server changed stored objects by itself, with these revisions.
    pub fn upgraded(&self, revisions: RangeInclusive<u64>) {
        let mut inner = self.lock();
        let now = inner.began.elapsed();
        inner.upgrades.push((now, revisions));
    }

    /// Returns the times and revisions of changes by the API server itself.
    pub fn upgrades(&self) -> Vec<(Duration, RangeInclusive<u64>)> {
        self.lock().upgrades.clone()
    }

    /// Returns the number of postponed syncs.
    pub fn postponed_count(&self) -> usize {
        self.lock().postponed
    }

    /// Takes the records.
    pub fn take(&self) -> (Vec<Request>, Vec<Sync>, Vec<(Duration, String)>) {
        let mut inner = self.lock();
        let inner = &mut *inner;
        (
            std::mem::take(&mut inner.requests),
            std::mem::take(&mut inner.syncs),
            std::mem::take(&mut inner.notes),
        )
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

fn named_in(body: &Bytes) -> String {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let name = body.pointer("/metadata/name").and_then(Value::as_str);
    name.unwrap_or_default().to_owned()
}

/// Finds the sync that a request belongs to, by the name of its object: `web`, `web-3`,
/// `data0-web-3` and `web-7f6d` belong to the set `web`.
fn sync_of(
    syncs: &BTreeMap<SetKey, usize>,
    resource: &str,
    namespace: &str,
    name: &str,
) -> Option<usize> {
    let set = match resource {
        "statefulsets" => name,
        "pods" | "controllerrevisions" | "persistentvolumeclaims" => name.rsplit_once('-')?.0,
        _ => return None,
    };
    let of = |set: &str| syncs.get(&(namespace.to_owned(), set.to_owned())).copied();
    if resource != "persistentvolumeclaims" {
        return of(set);
    }
    // Longer set names first: the name of a claim template may contain dashes as well.
    let starts = set.match_indices('-').map(|(at, _)| at + 1);
    starts.map(|at| &set[at..]).find_map(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_names_lead_to_the_set() {
        let key = |name: &str| ("default".to_owned(), name.to_owned());
        let syncs = BTreeMap::from([(key("web"), 1), (key("b-web"), 2)]);
        let find = |resource, name| sync_of(&syncs, resource, "default", name);
        assert_eq!(find("statefulsets", "web"), Some(1));
        assert_eq!(find("pods", "web-3"), Some(1));
        assert_eq!(find("controllerrevisions", "web-7f6d"), Some(1));
        assert_eq!(find("persistentvolumeclaims", "data0-web-3"), Some(1));
        assert_eq!(find("persistentvolumeclaims", "a-b-web-3"), Some(2));
        assert_eq!(find("leases", "web"), None);
    }
}
