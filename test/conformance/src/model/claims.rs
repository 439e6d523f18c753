//! Claims: creation for pods, and ownership by set or pod according to the retention policy.

use std::rc::Rc;

use kube_apimachinery::schema::{UnknownMembers, normalize};
use serde_json::Value;

use super::Sync;
use super::cluster::Kind;
use super::failure::Failure;
use super::object::{is_deleting, name, number, set_or_remove, uid};
use super::owners::{
    has_unexpected_controller, is_lost_with_an_owner, is_of_earlier_pod, is_of_pod, is_up_to_date,
    rewritten, without_owner,
};
use super::set::{ordinal, phase};

impl Sync {
    /// Claims of the pod with their names; empty for a pod without a valid ordinal.
    fn claims_of(&self, pod: &Value) -> Vec<(String, Value)> {
        let set = &self.set;
        let named = |template: &Value| (set.claim_name(template, ordinal(pod)), template.clone());
        set.claim_templates.iter().map(named).collect()
    }

    /// Treatment of members unknown to the schema.
    pub(super) fn unknown(&self) -> UnknownMembers {
        if self.rules.unknown_members {
            UnknownMembers::Keep
        } else {
            UnknownMembers::Drop
        }
    }

    fn new_claim(&self, template: &Value, name: &str) -> Value {
        let typed = normalize("PersistentVolumeClaim", template, self.unknown(), "");
        let mut claim = typed.unwrap_or_else(|_| template.clone());
        claim["apiVersion"] = Value::from("v1");
        claim["kind"] = Value::from("PersistentVolumeClaim");
        let metadata = &mut claim["metadata"];
        metadata["name"] = Value::from(name);
        metadata["namespace"] = Value::from(self.set.namespace.as_str());
        let mut labels = metadata["labels"].as_object().cloned().unwrap_or_default();
        labels.extend(self.set.match_labels());
        set_or_remove(metadata, "labels", labels.is_empty(), labels.into());
        claim
    }

    /// Creates the pod's missing claims.
    pub(super) fn create_claims(&mut self, pod: &Value) -> Result<(), Failure> {
        let mut failures = Vec::new();
        for (claim, template) in self.claims_of(pod) {
            match self.claims.get(&claim) {
                Some(cached) if is_deleting(cached) => {
                    failures.push(Failure::new(format!("pvc {claim} is being deleted")));
                }
                Some(_) => {}
                None => {
                    let created = self
                        .api
                        .create(Kind::Claim, self.new_claim(&template, &claim));
                    self.claim_event(&claim, pod, &created);
                    let failed = format!("failed to create PVC {claim}");
                    failures.extend(created.err().map(|failure| failure.while_doing(&failed)));
                }
            }
        }
        Failure::join(failures)
    }

    fn claim_event(&mut self, claim: &str, pod: &Value, result: &Result<(), Failure>) {
        let (pod, set) = (name(pod), self.set.name.clone());
        match result {
            Ok(()) => {
                let text = format!("Create Claim {claim} Pod {pod} in StatefulSet {set} success");
                self.event(Ok(()), "Create", &text);
            }
            Err(failure) if failure.is_already_exists() => {}
            Err(failure) => {
                let text =
                    format!("Create Claim {claim} for Pod {pod} in StatefulSet {set} failed");
                self.event(Err(failure.text()), "Create", &text);
            }
        }
    }

    /// Creates missing claims of a pending pod, and updates the owners of all.
    pub(super) fn create_missing_claims(&mut self, pod: &Value) -> Result<(), Failure> {
        self.create_claims(pod)?;
        let applied = self.apply_retention(pod);
        if let Err(failure) = &applied {
            self.pod_event("Update", name(pod), Err(failure));
        }
        applied
    }

    /// Returns true if the owners of all the pod's claims match the policy.
    pub(super) fn retention_matches(&self, pod: &Value) -> bool {
        self.claims_of(pod)
            .iter()
            .filter_map(|(claim, _)| self.claims.get(claim))
            .all(|claim| self.may_keep_owners(claim, pod))
    }

    /// Returns true if the claim's owners need no write.
    fn may_keep_owners(&self, claim: &Value, pod: &Value) -> bool {
        let is_lost = || is_lost_with_an_owner(claim, &self.set, pod);
        is_up_to_date(claim, &self.set, pod) && !(self.rules.release_stale_owners && is_lost())
    }

    /// Returns true if a claim will be deleted with an earlier pod of the same name.
    pub(super) fn has_stale_claim(&self, pod: &Value) -> bool {
        self.set.when_scaled != "Retain"
            && self
                .claims_of(pod)
                .iter()
                .filter_map(|(claim, _)| self.claims.get(claim))
                .any(|claim| is_of_earlier_pod(claim, pod))
    }

    /// Sets the owners of the pod's claims according to the policy.
    pub(super) fn apply_retention(&mut self, pod: &Value) -> Result<(), Failure> {
        let set = Rc::clone(&self.set);
        for (claim, _) in self.claims_of(pod) {
            let Some(cached) = self.claims.get(&claim).cloned() else {
                continue;
            };
            if has_unexpected_controller(&cached, &set, pod) {
                self.events.push(format!(
                    "Warning ConflictingController PersistentVolumeClaim {claim} has a \
                     conflicting OwnerReference that acts as a manging controller, the retention \
                     policy is ignored for this claim"
                ));
            }
            if self.may_keep_owners(&cached, pod) {
                continue;
            }
            let failed = format!("could not update claim {claim} for delete policy ownerRefs");
            let looked = self.api.look(Kind::Claim, &claim);
            looked.map_err(|failure| failure.while_doing(&failed))?;
            let (changed, adds_owner) = rewritten(&cached, &set, pod);
            if adds_owner {
                self.check_live_set(&format!(
                    "will not add an owner that would cause the deletion of claim {claim}"
                ))?;
            }
            let put = self.api.put(Kind::Claim, "", changed);
            put.map_err(|failure| failure.while_doing(&failed))?;
        }
        Ok(())
    }

    /// Removes the pod from the owners of its claims. A claim may have an owner that the cache lacks,
    /// so the claims of an ended pod, which is deleted next, are read in the API.
    pub(super) fn take_claims_from(&mut self, pod: &Value) -> Result<(), Failure> {
        let is_deleted = matches!(phase(pod), "Failed" | "Succeeded");
        self.take_claims(pod, |is_owner| is_owner || is_deleted)
    }

    /// Does the same before the deletion of another pod, for the owners that the cache lacks.
    pub(super) fn take_unseen_claims_from(&mut self, pod: &Value) -> Result<(), Failure> {
        self.take_claims(pod, |is_owner| !is_owner)
    }

    fn take_claims(&mut self, pod: &Value, reads: impl Fn(bool) -> bool) -> Result<(), Failure> {
        if !self.rules.take_claims_from_wanted {
            return Ok(());
        }
        for (claim, _) in self.claims_of(pod) {
            let cached = self.claims.get(&claim).cloned();
            if reads(cached.as_ref().is_some_and(|it| is_of_pod(it, pod))) {
                self.take_claim(&claim, cached.as_ref(), pod)?;
            }
        }
        Ok(())
    }

    /// The fake API returns the claim as it was before the sync.
    fn take_claim(
        &mut self,
        claim: &str,
        cached: Option<&Value>,
        pod: &Value,
    ) -> Result<(), Failure> {
        let looked = match self.api.look(Kind::Claim, claim) {
            Err(failure) if failure.is_not_found() => return Ok(()),
            looked => looked,
        };
        let set = Rc::clone(&self.set);
        let stale_of = self.rules.release_stale_owners.then_some(&*set);
        let changed = cached.and_then(|cached| without_owner(cached, pod, stale_of));
        let put = looked.and_then(|()| match changed {
            Some(changed) => self.api.put(Kind::Claim, "", changed),
            None => Ok(()),
        });
        put.map_err(|failure| {
            let failed = format!("could not update claim {claim} for delete policy ownerRefs");
            let failure = failure.while_doing(&failed);
            self.pod_event("Update", name(pod), Err(&failure));
            failure
        })
    }

    /// Checks that the live set is the one that the sync is based on.
    pub(super) fn check_live_set(&self, refusal: &str) -> Result<(), Failure> {
        if !self.rules.live_set_before_dooming {
            return Ok(());
        }
        self.compare_live_set()
            .map_err(|reason| Failure::new(format!("{refusal}: {reason}")))
    }

    fn compare_live_set(&self) -> Result<(), String> {
        let set = &self.set;
        let key = format!("{}/{}", set.namespace, set.name);
        let looked = self.api.look(Kind::Set, &set.name);
        let live = looked.and_then(|()| self.api.peek(Kind::Set, &set.name));
        let live =
            live.map_err(|failure| format!("can't read StatefulSet {key}: {}", failure.text()))?;
        let (live_uid, wanted) = (uid(live), &set.uid);
        if live_uid != wanted {
            return Err(format!(
                "StatefulSet {key} was recreated: uid {live_uid} instead of {wanted}"
            ));
        }
        if is_deleting(live) {
            return Err(format!("StatefulSet {key} is being deleted"));
        }
        let generation = |set: &Value| number(set, "/metadata/generation");
        let (got, wanted) = (generation(live), generation(&set.value));
        if got != wanted {
            return Err(format!(
                "StatefulSet {key} changed: generation {got} instead of {wanted}"
            ));
        }
        Ok(())
    }
}
