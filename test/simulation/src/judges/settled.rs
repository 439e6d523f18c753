//! Tasks left for a set.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use kube_test_control_plane::route::Verb;

use super::case::{Case, belongs, update_revision};
use super::opt_ins;
use crate::agent::Process;
use crate::record::{Seen, SetKey, Sync};
use crate::views::{Claim, Owner, Pod, Revision, Set, Status, is_named_as};

/// A set and its objects at the versions of some caches.
pub(super) struct Scene<'a> {
    case: &'a Case<'a>,
    namespace: &'a str,
    pub(super) set: &'a Arc<Set>,
    /// The versions.
    seen: Seen,
    /// The earliest time that a clock can have shown.
    now: Timestamp,
    /// The process that works on it.
    process: Process,
    /// The pods that belong to the set, or that it adopts.
    members: Vec<&'a Arc<Pod>>,
}

/// A task left to do: the rule that it breaks at the end, and a sentence.
pub(super) type PendingTask = (&'static str, String);

impl<'a> Scene<'a> {
    /// Returns a set as these versions show it; none if they don't know it.
    pub(super) fn of(
        case: &'a Case<'a>,
        key: &'a SetKey,
        seen: Seen,
        now: Timestamp,
        process: Process,
    ) -> Option<Self> {
        let set = case.history.sets.at(key, seen.sets)?;
        let pods = case.history.pods.all_at(&key.0, seen.pods);
        let members = pods.filter(|pod| belongs(set, pod) && pod.ordinal(&set.name).is_some());
        Some(Self {
            case,
            namespace: &key.0,
            set,
            seen,
            now,
            process,
            members: members.collect(),
        })
    }

    /// Returns all that is left to do.
    pub(super) fn pending_tasks(&self) -> Vec<PendingTask> {
        let mut tasks = Vec::new();
        self.pending_pods(&mut tasks);
        self.pending_ownership(&mut tasks);
        self.pending_revisions(&mut tasks);
        self.pending_claims(&mut tasks);
        tasks
    }

    /// L-1 and I-1: the pods are the desired ones, all available, with their identity.
    fn pending_pods(&self, tasks: &mut Vec<PendingTask>) {
        let set = self.set;
        let found: BTreeSet<u32> = self
            .members
            .iter()
            .filter_map(|pod| pod.ordinal(&set.name))
            .collect();
        let condemned = found.iter().any(|it| !set.range().contains(it));
        if condemned || !set.range().all(|it| found.contains(&it)) {
            tasks.push((
                "L-1",
                format!("pods {found:?} instead of {:?}", set.range()),
            ));
        }
        for pod in &self.members {
            let waits = pod.claims.iter().any(|claim| self.misses_unnoticed(claim));
            if !pod.is_healthy(set.min_ready_seconds, self.now) && !waits {
                tasks.push(("L-1", format!("pod {} is not available", pod.name)));
            }
            let ordinal = pod.ordinal(&set.name).unwrap_or_default();
            let claims = set.claims_of(ordinal).all(|it| pod.claims.contains(&it));
            if pod.name_label != pod.name || !claims {
                tasks.push(("I-1", format!("pod {} has a wrong identity", pod.name)));
            }
        }
    }

    /// G-1 and G-2: nothing is to be adopted or released.
    fn pending_ownership(&self, tasks: &mut Vec<PendingTask>) {
        let set = self.set;
        let orphans = self.members.iter().filter(|pod| !pod.is_of(&set.uid));
        tasks.extend(orphans.map(|pod| ("G-1", format!("pod {} is an orphan", pod.name))));
        let pods = self
            .case
            .history
            .pods
            .all_at(self.namespace, self.seen.pods);
        let strangers = pods.filter(|pod| pod.is_of(&set.uid) && pod.app != set.app);
        tasks.extend(strangers.map(|pod| ("G-2", format!("pod {} is not released", pod.name))));
        let orphans = self
            .revisions()
            .filter(|it| it.controller.is_none() && it.app == set.app)
            .filter(|it| !self.orphaned_unnoticed(it));
        tasks.extend(orphans.map(|it| ("G-1", format!("revision {} is an orphan", it.name))));
    }

    fn revisions(&self) -> impl Iterator<Item = &'a Arc<Revision>> {
        let revisions = &self.case.history.revisions;
        revisions.all_at(self.namespace, self.seen.revisions)
    }

    /// Reports whether a delayed creation stored a revision after all syncs of the set, whose process no
    /// longer waits for the response.
    fn is_created_late(&self, revision: &Revision) -> bool {
        let key = (self.namespace.to_owned(), self.set.name.clone());
        let syncs = self.case.record.syncs.iter().filter(|it| it.set == key);
        let known = syncs.map(|it| it.seen.revisions).max();
        let mut requests = self.case.record.requests.iter();
        requests.any(|it| {
            let is_creation = it.verb == Some(Verb::Create) && it.resource == "controllerrevisions";
            let stored = it.processed.filter(|it| it.code < 300);
            let is_late = stored.is_some_and(|it| known <= Some(it.before));
            is_creation && is_late && it.name == revision.name && it.status.is_none()
        })
    }

    /// L-1, R-2, R-5, R-7, T-2: pods have the revisions that the update wants, the status says so,
    /// a complete update is recorded as such, and old revisions are gone.
    fn pending_revisions(&self, tasks: &mut Vec<PendingTask>) {
        let set = self.set;
        let owned: Vec<_> = self.revisions().filter(|it| it.is_of(&set.uid)).collect();
        let Some(update) = update_revision(set, &owned, self.case.minor(self.process)) else {
            if !self.lost_unnoticed() {
                let why = "no revision of its own has its template".to_owned();
                tasks.push(("R-7", why));
            }
            return;
        };
        let members = self.members.iter().copied();
        let partition = opt_ins::partition(
            self.case,
            self.process,
            set,
            members,
            Some(update.name.as_str()),
        );
        let claims = (self.namespace, self.seen.claims);
        tasks.extend(opt_ins::pending(
            self.case,
            self.process,
            set,
            &self.members,
            (&update.name, claims),
        ));
        tasks.extend(opt_ins::pending_growth(
            self.case,
            self.process,
            set,
            claims,
        ));
        let mut newer = owned.iter().filter(|it| it.order() > update.order());
        if newer.any(|it| !self.is_created_late(it)) {
            let why = format!("update revision {} is not the newest", update.name);
            tasks.push(("R-2", why));
        }
        for pod in &self.members {
            let index = pod
                .ordinal(&set.name)
                .map(|it| it.saturating_sub(set.start));
            let wanted = pod
                .ordinal(&set.name)
                .is_some_and(|it| set.range().contains(&it));
            let updates = wanted && !set.is_on_delete() && index.is_some_and(|it| it >= partition);
            if updates && pod.revision != update.name {
                tasks.push((
                    "L-1",
                    format!("pod {} has revision {}", pod.name, pod.revision),
                ));
            }
        }
        let expected = self.status(&owned, &update.name);
        if set.status != expected {
            tasks.push(("T-2", format!("status {:?}, but {expected:?}", set.status)));
        }
        let live: BTreeSet<&str> = self
            .members
            .iter()
            .map(|pod| pod.revision.as_str())
            .chain([set.status.current_revision.as_str(), update.name.as_str()])
            .collect();
        let dead = owned.iter().filter(|it| !live.contains(it.name.as_str()));
        let dead = i64::try_from(dead.count()).unwrap_or(i64::MAX);
        if set.history_limit >= 0 && dead > set.history_limit {
            let why = format!("{dead} old revisions, limit {}", set.history_limit);
            tasks.push(("R-5", why));
        }
    }

    /// Returns the status that the pods and revisions demand.
    fn status(&self, owned: &[&Arc<Revision>], update: &str) -> Status {
        let set = self.set;
        let count = |wanted: &dyn Fn(&Pod) -> bool| {
            let matching = self.members.iter().filter(|pod| wanted(pod)).count();
            i64::try_from(matching).unwrap_or(i64::MAX)
        };
        let updated = count(&|pod| pod.revision == update);
        let ready = count(&Pod::is_ready);
        let replicas = count(&|_| true);
        let recorded = &set.status.current_revision;
        let known = owned.iter().any(|it| it.name == *recorded);
        let is_complete = [updated, ready, replicas] == [i64::from(set.replicas); 3];
        let completes = is_complete && self.case.completes(self.process, set);
        let current = if known && !completes {
            recorded.clone()
        } else {
            update.to_owned()
        };
        Status {
            observed_generation: set.generation,
            replicas,
            ready,
            available: count(&|pod| pod.is_available(set.min_ready_seconds, self.now)),
            current: count(&|pod| pod.revision == current),
            updated,
            current_revision: current,
            update_revision: update.to_owned(),
        }
    }

    /// V-2 and V-7: every desired pod has its claims, and their owners follow the retention.
    fn pending_claims(&self, tasks: &mut Vec<PendingTask>) {
        let set = self.set;
        for name in set.range().flat_map(|ordinal| set.claims_of(ordinal)) {
            let claim = self.case.claim(self.namespace, &name, self.seen.claims);
            let wrong = self.wrong_claim(&name, claim);
            // The last sync left this to do as well.
            let noticed = || {
                let claim = self.claim_at_last_sync(&name);
                self.wrong_claim(&name, claim).is_some()
                    && !claim.is_some_and(|it| self.is_left_to_collector(it))
            };
            tasks.extend(wrong.filter(|_| !self.is_at_end() || noticed()));
        }
    }

    /// Returns the task that a desired pod's claim in this state is.
    fn wrong_claim(&self, name: &str, claim: Option<&Arc<Claim>>) -> Option<PendingTask> {
        let Some(claim) = claim else {
            return Some(("V-7", format!("claim {name} is missing")));
        };
        let why = || format!("claim {name} has the owners {:?}", claim.owners);
        (!self.has_right_owners(claim)).then(|| ("V-2", why()))
    }

    /// Reports whether a desired pod's claim has the owners that the retention policy requires. If
    /// another controller owns the claim, the set must not be an owner; otherwise the set controls it. At the end, a terminating
    /// claim also passes.
    fn has_right_owners(&self, claim: &Claim) -> bool {
        if self.is_at_end() && claim.terminating {
            return true;
        }
        let set = self.set;
        let owners = || claim.owners.iter();
        let foreign = owners().any(|it| it.controller && it.uid != set.uid && it.kind != "Pod");
        let owned = owners().any(|it| it.uid == set.uid);
        let as_controller = owners().all(|it| it.uid != set.uid || it.controller);
        let pods = owners().any(|it| it.kind == "Pod");
        owned == (set.deletes_claims_with_set() && !foreign) && as_controller && !pods
    }

    /// Reports whether a sync leaves a desired pod's claim alone because the garbage collector is
    /// to remove a former set or pod from its owners first, as in upstream. With a living owner
    /// that the policy doesn't want, the claim would go, so a sync repairs it.
    fn is_left_to_collector(&self, claim: &Claim) -> bool {
        let set = self.set;
        let ordinal = set.ordinal_of_claim(&claim.name);
        let mut pods = self.members.iter();
        let Some(pod) = pods.find(|it| it.ordinal(&set.name) == ordinal) else {
            return false;
        };
        let ours = claim.owners.iter().filter(|it| is_named_as(it, pod, set));
        let (living, former): (Vec<_>, Vec<_>) =
            ours.partition(|it| it.uid == set.uid || it.uid == pod.uid);
        let is_wanted = |owner: &Owner| owner.uid == set.uid && set.deletes_claims_with_set();
        !former.is_empty() && living.into_iter().all(is_wanted)
    }

    /// Reports whether a claim is missing at the end and the last sync knew it.
    fn misses_unnoticed(&self, claim: &str) -> bool {
        let stored = self.case.claim(self.namespace, claim, self.seen.claims);
        self.is_at_end() && stored.is_none() && self.claim_at_last_sync(claim).is_some()
    }

    /// Reports whether the set uses a revision of an earlier set of its name that was collected after
    /// the last sync, at the end.
    fn lost_unnoticed(&self) -> bool {
        let name = self.set.status.update_revision.clone();
        let key = (self.namespace.to_owned(), name);
        let synced = self
            .last_sync()
            .map(|(_, sync)| self.case.revision_at(sync.at));
        let used = synced.and_then(|at| self.case.history.revisions.at(&key, at));
        self.is_at_end() && used.is_some_and(|used| !used.is_of(&self.set.uid))
    }

    /// Reports whether a revision became an orphan after the last sync, at the end.
    fn orphaned_unnoticed(&self, revision: &Revision) -> bool {
        let key = (self.namespace.to_owned(), revision.name.clone());
        let seen = self.last_sync().map(|(_, sync)| sync.seen.revisions);
        let seen = seen.and_then(|seen| self.case.history.revisions.at(&key, seen));
        self.is_at_end() && seen.is_none_or(|seen| seen.controller.is_some())
    }

    fn is_at_end(&self) -> bool {
        self.seen.claims >= self.case.history.newest
    }

    /// Returns a claim as the last sync of the set left it: as its cache showed it, or as its
    /// process last wrote it.
    ///
    /// At the end, a claim that became wrong later is not left to do, and neither is such a
    /// revision: their events wake no set, as in upstream. The next event or resync does.
    fn claim_at_last_sync(&self, name: &str) -> Option<&'a Arc<Claim>> {
        let (number, sync) = self.last_sync()?;
        let requests = self.case.requests_of(number);
        let of_claim = requests
            .filter(|it| it.resource == "persistentvolumeclaims" && it.name == name)
            .filter(|it| it.is_write() && it.status.is_some_and(|status| status < 300));
        let written = of_claim.filter_map(|it| it.processed).map(|it| it.after);
        let version = written.max().unwrap_or_default().max(sync.seen.claims);
        self.case.claim(self.namespace, name, version)
    }

    /// Returns the last sync of the set by the controller that may write, and its number.
    fn last_sync(&self) -> Option<(usize, &'a Sync)> {
        let key = (self.namespace, self.set.name.as_str());
        let syncs = self.case.record.syncs.iter().enumerate().rev();
        let mut syncs = syncs.filter(|(_, sync)| self.case.acts_at_end(sync.process));
        syncs.find(|(_, sync)| (sync.set.0.as_str(), sync.set.1.as_str()) == key)
    }
}
