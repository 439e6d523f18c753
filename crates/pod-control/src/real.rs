//! The pod control of production: decisions over an object manager, told in events.

use std::fmt::Display;
use std::sync::Arc;

use async_trait::async_trait;
use statefulset_client::backoff::{DEFAULT_BACKOFF, Jitter};
use statefulset_client::error::Error as ApiError;
use statefulset_client::recorder::{EventRecorder, EventType};
use statefulset_controller_util::live::Live;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::{ClaimRetentionPolicyType, StatefulSet};

use crate::error::Error;
use crate::identity::{identity_matches, update_identity};
use crate::live_set_check::LiveSetCheck;
use crate::new_pod::NewPod;
use crate::object_manager::ObjectManager;
use crate::slot::PodSlot;
use crate::stateful_pod_control::StatefulPodControl;
use crate::storage::{storage_matches, update_storage};

#[cfg(test)]
mod tests;

/// Pod control over an object manager.
///
/// Upstream: `StatefulPodControl`.
pub struct RealStatefulPodControl {
    pub(crate) objects: Arc<dyn ObjectManager>,
    pub(crate) recorder: Arc<dyn EventRecorder>,
    jitter: Arc<dyn Jitter>,
    pub(crate) lower_case_events: bool,
}

/// What was done to a pod, in the words of its event.
#[derive(Clone, Copy)]
enum Verb {
    Create,
    Update,
    Delete,
}

impl Verb {
    /// The verb as it stands in the event's reason.
    fn text(self) -> &'static str {
        match self {
            Self::Create => "Create",
            Self::Update => "Update",
            Self::Delete => "Delete",
        }
    }

    /// The verb as it begins the event's message.
    fn first_word(self, lower_case: bool) -> &'static str {
        match self {
            Self::Create if lower_case => "create",
            Self::Update if lower_case => "update",
            Self::Delete if lower_case => "delete",
            _ => self.text(),
        }
    }
}

impl RealStatefulPodControl {
    /// Makes a pod control; `jitter` spreads its retries.
    ///
    /// Upstream: `NewStatefulPodControlFromManager`.
    pub fn new(
        objects: Arc<dyn ObjectManager>,
        recorder: Arc<dyn EventRecorder>,
        jitter: Arc<dyn Jitter>,
    ) -> Self {
        Self {
            objects,
            recorder,
            jitter,
            lower_case_events: false,
        }
    }

    /// Lets the messages of events begin in lower case, as versions before 1.35 wrote them.
    #[must_use]
    pub fn with_lower_case_events(mut self, lower_case: bool) -> Self {
        self.lower_case_events = lower_case;
        self
    }

    /// Upstream: `recordPodEvent`.
    fn record_pod_event(
        &self,
        verb: Verb,
        set: &StatefulSet,
        pod: &str,
        error: Option<&dyn Display>,
    ) {
        let first = verb.first_word(self.lower_case_events);
        let (verb, set_name) = (verb.text(), set.name());
        let (event_type, reason, message) = match error {
            None => (
                EventType::Normal,
                format!("Successful{verb}"),
                format!("{first} Pod {pod} in StatefulSet {set_name} successful"),
            ),
            Some(error) => (
                EventType::Warning,
                format!("Failed{verb}"),
                format!("{first} Pod {pod} in StatefulSet {set_name} failed error: {error}"),
            ),
        };
        self.recorder
            .event(&set.object_reference(), event_type, &reason, &message);
    }

    /// Deletes the pod. One that this sync has created bears no uid yet: it is looked up.
    async fn delete_pod(&self, set: &StatefulSet, pod: &Pod) -> Result<(), ApiError> {
        if !pod.uid.is_empty() {
            return self.objects.delete_pod(set, pod).await;
        }
        let live = self.objects.read_pod(&pod.namespace, &pod.name).await?;
        if !is_controlled_by(set, &live.object) {
            return Err(another_pod(&pod.name));
        }
        self.objects.delete_pod(set, &live.object).await
    }

    /// Records a failure and hands it on.
    fn failed(&self, verb: Verb, set: &StatefulSet, pod: &str, error: Error) -> Error {
        self.record_pod_event(verb, set, pod, Some(&error));
        error
    }

    /// One attempt to repair a pod.
    async fn try_update(
        &self,
        set: &StatefulSet,
        slot: &PodSlot,
        live_set: &LiveSetCheck,
        progress: &mut Progress,
    ) -> Result<(), Error> {
        let failed = |error| self.failed(Verb::Update, set, slot.name(), error);
        let cached = slot
            .existing()
            .map(|pod| Repair::of(set, slot, pod))
            .unwrap_or_default();
        if cached.storage && !progress.claims_created {
            self.create_claims(set, slot).await.map_err(failed)?;
            progress.claims_created = true;
        }
        let claims_match = self
            .claims_match_retention_policy(set, slot)
            .map_err(failed)?;
        if !claims_match {
            self.apply_retention(set, slot, live_set)
                .await
                .map_err(failed)?;
        }
        if claims_match && !cached.is_due() {
            return Ok(());
        }

        let live = self.objects.read_pod(slot.namespace(), slot.name()).await;
        let mut live = live.inspect_err(|_| progress.wrote = true)?;
        if !is_same_pod(set, slot, &live.object) {
            progress.wrote = true;
            return Err(another_pod(slot.name()).into());
        }
        let repair = Repair::of(set, slot, &live.object);
        if claims_match && !repair.is_due() {
            return Ok(());
        }
        repair.apply(set, slot, &mut live);
        *progress = Progress {
            wrote: true,
            claims_created: false,
        };
        Ok(self.objects.update_pod(set, live).await?)
    }
}

/// What the attempts to repair a pod have done so far.
#[derive(Default)]
struct Progress {
    /// A write of the pod was tried.
    wrote: bool,
    /// The pod's claims were created since the pod was last written, though the cache may not
    /// show them yet.
    claims_created: bool,
}

/// What of a pod is to be repaired.
#[derive(Clone, Copy, Default)]
struct Repair {
    identity: bool,
    storage: bool,
}

impl Repair {
    fn of(set: &StatefulSet, slot: &PodSlot, pod: &Pod) -> Self {
        Self {
            identity: !identity_matches(set, pod),
            storage: !storage_matches(set, slot.ordinal(), pod),
        }
    }

    fn is_due(self) -> bool {
        self.identity || self.storage
    }

    fn apply(self, set: &StatefulSet, slot: &PodSlot, live: &mut Live<Pod>) {
        if self.identity {
            update_identity(&mut live.json, set, slot.name(), slot.ordinal());
        }
        if self.storage {
            update_storage(set, slot.ordinal(), &mut live.json);
        }
    }
}

/// Whether the live pod is the one that was decided on: the one of the cache, or, where none was
/// there a moment ago, one that the set controls.
fn is_same_pod(set: &StatefulSet, slot: &PodSlot, live: &Pod) -> bool {
    match slot {
        PodSlot::Existing(_, pod) => pod.uid == live.uid,
        PodSlot::Missing(_) => is_controlled_by(set, live),
    }
}

fn is_controlled_by(set: &StatefulSet, pod: &Pod) -> bool {
    let controller = pod.controller.as_ref();
    controller.is_some_and(|owner| *owner.uid == *set.uid())
}

fn another_pod(name: &str) -> ApiError {
    let message = format!(
        "Operation cannot be fulfilled on pods {name:?}: it is another pod than the one that was seen; please apply your changes to the latest version and try again"
    );
    ApiError::api(409, "Conflict", message)
}

#[async_trait]
impl StatefulPodControl for RealStatefulPodControl {
    async fn create_stateful_pod(
        &self,
        set: &StatefulSet,
        pod: &NewPod,
        live_set: &LiveSetCheck,
    ) -> Result<(), Error> {
        if pod.ordinal.is_past_largest() {
            let ordinal = pod.ordinal;
            let error = Error::OrdinalPastLargest { ordinal };
            return Err(self.failed(Verb::Create, set, &pod.name, error));
        }
        let slot = PodSlot::Missing(pod.clone());
        self.create_claims(set, &slot)
            .await
            .map_err(|error| self.failed(Verb::Create, set, &pod.name, error))?;
        let created = self.objects.create_pod(set, pod).await;
        if created.as_ref().is_err_and(ApiError::is_already_exists) {
            return Ok(created?);
        }
        // The claims get their owners although the pod may have failed, as upstream does it.
        self.apply_retention(set, &slot, live_set)
            .await
            .map_err(|error| self.failed(Verb::Update, set, &pod.name, error))?;
        let error = created.as_ref().err().map(|error| error as &dyn Display);
        self.record_pod_event(Verb::Create, set, &pod.name, error);
        Ok(created?)
    }

    async fn update_stateful_pod(
        &self,
        set: &StatefulSet,
        pod: &PodSlot,
        live_set: &LiveSetCheck,
    ) -> Result<(), Error> {
        let mut progress = Progress::default();
        let mut delays = DEFAULT_BACKOFF.delays(&*self.jitter);
        let result = loop {
            match self.try_update(set, pod, live_set, &mut progress).await {
                Err(error) if error.is_conflict() => match delays.next() {
                    Some(delay) => tokio::time::sleep(delay).await,
                    None => break Err(error),
                },
                other => break other,
            }
        };
        if progress.wrote {
            let error = result.as_ref().err().map(|error| error as &dyn Display);
            self.record_pod_event(Verb::Update, set, pod.name(), error);
        }
        result
    }

    async fn delete_stateful_pod(&self, set: &StatefulSet, pod: &Pod) -> Result<(), Error> {
        let deleted = match self.delete_pod(set, pod).await {
            Err(error) if error.is_not_found() => Ok(()),
            other => other,
        };
        let error = deleted.as_ref().err().map(|error| error as &dyn Display);
        self.record_pod_event(Verb::Delete, set, &pod.name, error);
        Ok(deleted?)
    }

    async fn delete_condemned_pod(
        &self,
        set: &StatefulSet,
        pod: &Pod,
        live_set: &LiveSetCheck,
    ) -> Result<(), Error> {
        let takes_claims =
            set.spec.claim_retention_policy.when_scaled == ClaimRetentionPolicyType::Delete;
        let _turn = if takes_claims {
            let passed = live_set.passes(&*self.objects, set).await;
            Some(passed.map_err(|reason| Error::DeleteWithClaims {
                pod: pod.name.to_string(),
                reason,
            })?)
        } else {
            None
        };
        self.delete_stateful_pod(set, pod).await
    }

    async fn release_claims(&self, set: &StatefulSet, pod: &PodSlot) -> Result<(), Error> {
        self.remove_from_owners(set, pod)
            .await
            .map_err(|error| self.failed(Verb::Update, set, pod.name(), error))
    }

    fn claims_match_retention_policy(
        &self,
        set: &StatefulSet,
        pod: &PodSlot,
    ) -> Result<bool, Error> {
        self.claims_match(set, pod)
    }

    async fn update_pod_claim_for_retention_policy(
        &self,
        set: &StatefulSet,
        pod: &PodSlot,
        live_set: &LiveSetCheck,
    ) -> Result<(), Error> {
        self.apply_retention(set, pod, live_set).await
    }

    fn stale_claim(&self, set: &StatefulSet, pod: &PodSlot) -> Result<Option<String>, Error> {
        self.find_stale_claim(set, pod)
    }

    async fn create_missing_persistent_volume_claims(
        &self,
        set: &StatefulSet,
        pod: &PodSlot,
        live_set: &LiveSetCheck,
    ) -> Result<(), Error> {
        self.create_claims(set, pod).await?;
        self.apply_retention(set, pod, live_set)
            .await
            .map_err(|error| self.failed(Verb::Update, set, pod.name(), error))
    }
}
