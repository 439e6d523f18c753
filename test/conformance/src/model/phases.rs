//! Main part of a sync: create and repair pods, delete excess pods, replace outdated ones.

use std::collections::BTreeSet;
use std::rc::Rc;

use kube_apimachinery::int_or_string::IntOrString;
use serde_json::Value;

use super::failure::Failure;
use super::object::{is_deleting, label, name, number};
use super::revisions::Chosen;
use super::set::{REVISION, is_created, is_running_and_ready, ordinal, phase};
use super::status::{Progress, Status};
use super::{Step, Sync};

/// Pods by position.
struct Places {
    /// One per replica, existing or planned.
    replicas: Vec<Value>,
    /// Excess pods, highest ordinal first.
    condemned: Vec<Value>,
    /// Index of the first unavailable pod, if it is a condemned one.
    first_unavailable: Option<usize>,
}

impl Sync {
    /// Processes revisions, pods, status and history. Returns the status that was written, or was
    /// already stored.
    pub(super) fn update(
        &mut self,
        pods: &[Value],
        revisions: &[Value],
    ) -> Result<Status, Failure> {
        let chosen = self.choose(revisions);
        let result = match &chosen {
            Ok(chosen) => self.perform(pods, chosen),
            Err(failure) => Err(failure.clone()),
        };
        let truncated = self.truncate(pods, revisions, chosen.as_ref().ok());
        match (result, truncated) {
            (Ok(status), Ok(())) => Ok(status),
            (Err(failure), Ok(())) | (Ok(_), Err(failure)) => Err(failure),
            (Err(first), Err(second)) => {
                Failure::join(vec![first.clone(), second])?;
                Err(first)
            }
        }
    }

    fn perform(&mut self, pods: &[Value], chosen: &Chosen) -> Result<Status, Failure> {
        let current = self.template_of(&chosen.current)?;
        let update = self.template_of(&chosen.update)?;
        self.refuse_recreate()?;
        let mut status = self.new_status(chosen);
        status.count(&self.set, pods, self.now);
        let result = if self.set.is_deleting {
            Ok(())
        } else {
            self.work(pods, chosen, &current, &update, &mut status)
        };
        let written = self.write_status(&mut status);
        result.and(written).map(|()| status)
    }

    fn work(
        &mut self,
        pods: &[Value],
        chosen: &Chosen,
        current: &Value,
        update: &Value,
        status: &mut Status,
    ) -> Result<(), Failure> {
        let set = Rc::clone(&self.set);
        let places = self.places(pods, chosen, current, update);
        let (replicas, condemned) = (&places.replicas, &places.condemned);
        let all: Vec<Value> = replicas.iter().chain(condemned).cloned().collect();
        if self.recreates() {
            let wave = self.delete_old_pods(replicas, condemned, name(&chosen.update));
            if !matches!(wave, Ok(Step::Continue)) {
                status.count(&set, &all, self.now);
                if wave? == Step::Exit {
                    status.set_progress(Progress::Deleting, self.now);
                }
                return Ok(());
            }
            if name(&chosen.current) != name(&chosen.update) {
                status.set_progress(Progress::Waiting, self.now);
            }
        }

        let reduce = |sync: &mut Self| {
            let fix = |sync: &mut Self, at: usize| sync.fix_pod_claims(&condemned[at]);
            if sync.for_all(condemned.len(), fix)? == Step::Exit {
                return Ok(Step::Exit);
            }
            sync.for_all(condemned.len(), |sync, at| {
                sync.process_condemned(&places, at)
            })
        };
        let reduces_first = self.scale_down_first && self.is_burst();
        let stages = |sync: &mut Self| {
            let mut reached = 0;
            let mut reduced = Step::Continue;
            if reduces_first {
                let result = reduce(sync);
                if result.is_err() {
                    sync.release_kept_claims(replicas, condemned).ok();
                }
                reduced = result?;
            }
            let processed = sync.for_all(replicas.len(), |sync, at| {
                reached = reached.max(at + 1);
                sync.process_replica(&replicas[at])
            });
            if !matches!(processed, Ok(Step::Continue)) {
                // The claims of condemned pods that went first follow the policy already.
                let condemned: &[Value] = if reduces_first { &[] } else { condemned };
                let released = sync.release_kept_claims(&replicas[reached..], condemned);
                return processed.and_then(|exit| released.map(|()| exit));
            }
            if reduces_first {
                return Ok(reduced);
            }
            reduce(sync)
        };
        let result = stages(self);
        status.count(&set, &all, self.now);
        if result? == Step::Exit {
            return Ok(());
        }
        self.roll(replicas, name(&chosen.update), status)
    }

    fn places(&self, pods: &[Value], chosen: &Chosen, current: &Value, update: &Value) -> Places {
        let set = &self.set;
        let count = usize::try_from(set.replicas).unwrap_or(0);
        let mut found: Vec<Option<Value>> = vec![None; count];
        let mut condemned = Vec::new();
        for pod in pods {
            if set.is_in_range(pod) {
                let place = usize::try_from(ordinal(pod) - set.start).unwrap_or(0);
                found[place] = Some(pod.clone());
            } else if ordinal(pod) >= 0 {
                condemned.push(pod.clone());
            }
        }
        condemned.sort_by_key(|pod| -ordinal(pod));

        let until = match set.rolling_update() {
            Some(rolling) => number(rolling, "/partition"),
            None if set.strategy() == "RollingUpdate" => {
                number(&set.value, "/status/currentReplicas")
            }
            None => 0,
        };
        let planned = |ordinal: i64| {
            if ordinal < set.start + until {
                self.new_pod(current, name(&chosen.current), ordinal)
            } else {
                self.new_pod(update, name(&chosen.update), ordinal)
            }
        };
        let filled = (set.start..).zip(found);
        let replicas: Vec<Value> = filled
            .map(|(ordinal, pod)| pod.unwrap_or_else(|| planned(ordinal)))
            .collect();
        let is_unavailable = |pod: &Value| set.is_unavailable(pod, self.now);
        let first_unavailable = if replicas.iter().any(is_unavailable) {
            None
        } else {
            condemned.iter().rposition(is_unavailable)
        };
        Places {
            replicas,
            condemned,
            first_unavailable,
        }
    }

    /// Phase A: one replica.
    fn process_replica(&mut self, pod: &Value) -> Result<Step, Failure> {
        let set = Rc::clone(&self.set);
        let is_ordered = !self.is_burst();
        if matches!(phase(pod), "Failed" | "Succeeded") {
            self.take_claims_from(pod)?;
            if !is_deleting(pod) {
                self.delete_pod(pod)?;
            }
            return Ok(Step::Exit);
        }
        if !is_created(pod) {
            if self.has_stale_claim(pod) {
                return Ok(Step::Exit);
            }
            self.create_pod(pod)?;
            if is_ordered {
                return Ok(Step::Exit);
            }
        }
        if phase(pod) == "Pending" {
            self.create_missing_claims(pod)?;
        }
        let is_settled =
            !is_deleting(pod) && is_running_and_ready(pod) && set.is_available(pod, self.now);
        if is_ordered && !is_settled {
            if phase(pod) != "Pending" {
                self.take_claims_from(pod)?;
            }
            return Ok(Step::Exit);
        }
        let is_right =
            set.identity_matches(pod) && set.storage_matches(pod) && self.retention_matches(pod);
        if !is_right {
            self.update_pod(pod)?;
        }
        Ok(Step::Continue)
    }

    /// Keeps retained claims from being deleted with their pods. Runs when the replicas stop the
    /// sync.
    pub(super) fn release_kept_claims(
        &mut self,
        waiting: &[Value],
        condemned: &[Value],
    ) -> Result<(), Failure> {
        let condemned = match self.set.when_scaled.as_str() {
            "Delete" => &[],
            _ => condemned,
        };
        let mut failures = Vec::new();
        for pod in waiting
            .iter()
            .chain(condemned)
            .filter(|pod| is_created(pod))
        {
            failures.extend(self.take_claims_from(pod).err());
        }
        Failure::join(failures)
    }

    /// Phase B: the claims of one condemned pod.
    fn fix_pod_claims(&mut self, pod: &Value) -> Result<Step, Failure> {
        if !self.retention_matches(pod) {
            self.apply_retention(pod)?;
        }
        Ok(Step::Continue)
    }

    /// Phase C: one condemned pod.
    fn process_condemned(&mut self, places: &Places, at: usize) -> Result<Step, Failure> {
        let pod = &places.condemned[at];
        let is_ordered = !self.is_burst();
        if is_deleting(pod) {
            return Ok(if is_ordered {
                Step::Exit
            } else {
                Step::Continue
            });
        }
        let is_fine = is_running_and_ready(pod) && self.set.is_available(pod, self.now);
        if is_ordered && !is_fine && places.first_unavailable != Some(at) {
            return Ok(Step::Exit);
        }
        self.delete_condemned(pod).map(|()| Step::Exit)
    }

    pub(super) fn delete_condemned(&mut self, pod: &Value) -> Result<(), Failure> {
        if self.set.when_scaled == "Delete" && !self.set.claim_templates.is_empty() {
            self.check_live_set(&format!("will not delete pod {} and its claims", name(pod)))?;
        } else {
            self.take_unseen_claims_from(pod)?;
        }
        self.delete_pod(pod)
    }

    /// Phase D: replaces pods of other revisions, from the highest index down.
    fn roll(
        &mut self,
        replicas: &[Value],
        update: &str,
        status: &mut Status,
    ) -> Result<(), Failure> {
        let set = Rc::clone(&self.set);
        if set.strategy() == "OnDelete" || self.recreates() {
            return Ok(());
        }
        let least = set
            .rolling_update()
            .map_or(0, |rolling| number(rolling, "/partition"));
        let least = usize::try_from(least).unwrap_or(0);
        // A pod that waits for the end of an old claim doesn't exist, so nothing names it.
        let is_absent = |pod: &&Value| {
            self.rules.deletions_name_objects && !is_created(pod) && self.has_stale_claim(pod)
        };
        let absent = replicas.iter().filter(is_absent).map(name);
        let absent: BTreeSet<String> = absent.map(str::to_owned).collect();
        let is_old = |pod: &Value| {
            label(pod, REVISION) != update && !is_deleting(pod) && !absent.contains(name(pod))
        };
        let is_unavailable = |pod: &Value, sync: &Self| set.is_unavailable(pod, sync.now);
        if !self.max_unavailable_gate {
            for pod in replicas.iter().skip(least).rev() {
                if is_old(pod) {
                    return self.replace(pod, status);
                }
                if is_unavailable(pod, self) {
                    return Ok(());
                }
            }
            return Ok(());
        }
        let most = self.max_unavailable()?;
        let unavailable = replicas
            .iter()
            .filter(|pod| is_unavailable(pod, self))
            .count();
        let budget = most.saturating_sub(unavailable);
        if self.minor >= 37 && self.is_burst() {
            let old = || replicas.iter().skip(least).rev().filter(|pod| is_old(pod));
            let (now, set) = (self.now, &set);
            for pod in old().filter(|pod| set.is_unavailable(pod, now)) {
                self.replace(pod, status)?;
            }
            let available = old().filter(|pod| !set.is_unavailable(pod, now));
            for pod in available.take(budget) {
                self.replace(pod, status)?;
            }
            return Ok(());
        }
        for pod in replicas
            .iter()
            .skip(least)
            .rev()
            .filter(|pod| is_old(pod))
            .take(budget)
        {
            self.replace(pod, status)?;
        }
        Ok(())
    }

    fn replace(&mut self, pod: &Value, status: &mut Status) -> Result<(), Failure> {
        self.take_unseen_claims_from(pod)?;
        self.delete_pod(pod)?;
        status.current_replicas -= 1;
        if self.rules.counters_not_negative {
            status.current_replicas = status.current_replicas.max(0);
        }
        Ok(())
    }

    /// Maximum number of unavailable replicas during a rolling update.
    pub(super) fn max_unavailable(&self) -> Result<usize, Failure> {
        let Some(rolling) = self.set.rolling_update() else {
            return Ok(1);
        };
        let given = rolling
            .get("maxUnavailable")
            .filter(|given| !given.is_null());
        let given: IntOrString = given
            .map_or(Ok(IntOrString::Int(1)), |given| {
                serde_json::from_value(given.clone())
            })
            .map_err(|error| Failure::new(error.to_string()))?;
        let replicas = i32::try_from(self.set.replicas).unwrap_or(i32::MAX);
        let scaled = given.scaled_value(replicas, false);
        let scaled = scaled.map_err(|error| Failure::new(error.to_string()))?;
        Ok(usize::try_from(scaled).unwrap_or(0).max(1))
    }
}
