//! File format of a case.

use std::collections::BTreeMap;

use anyhow::{Context, anyhow};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use statefulset_client::fake::{CallError, CallFault};
use statefulset_client::feature_gates::{FeatureGates, KubeVersion};

use crate::outcome::{ClaimVolumes, Outcome, comparable};
use crate::requests;

/// The failure of every live read of a resource that upstream doesn't make.
#[derive(Clone, Copy, Debug)]
pub struct LiveReadFault {
    /// The resource's plural name.
    pub resource: &'static str,
    /// Error of the reads.
    pub error: CallError,
}

/// A recorded sync.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Case {
    /// Id of the case.
    pub id: String,
    /// Current time of the controller.
    pub now: Timestamp,
    /// The emulated version, if it isn't upstream's. Never recorded.
    #[serde(default)]
    pub emulated_version: Option<String>,
    /// Explicitly set feature gates.
    pub feature_gates: BTreeMap<String, bool>,
    /// `namespace/name` of the set.
    pub key: String,
    /// Contents of the caches, the set first; the API has the same objects except for the set.
    pub objects: Vec<Box<RawValue>>,
    /// The API's copy of the set, if it differs.
    #[serde(default)]
    pub live_set: Option<Box<RawValue>>,
    /// True if the set is missing in the API.
    #[serde(default)]
    pub live_set_absent: bool,
    /// Failing calls.
    #[serde(default)]
    pub faults: Vec<CallFault>,
    /// Pods in the API whose names belong to other pods in the cache. Never recorded.
    #[serde(skip)]
    pub live_pods: Vec<Box<RawValue>>,
    /// Failing live reads that upstream doesn't make. Never recorded.
    #[serde(skip)]
    pub live_read_fault: Option<LiveReadFault>,
    /// Behaviour of upstream.
    pub expect: Expect,
}

/// Behaviour of upstream.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Expect {
    /// Error text, if the sync failed.
    #[serde(default)]
    pub error: Option<String>,
    /// Delayed requeue.
    #[serde(default)]
    pub requeue_after: Option<String>,
    /// API calls.
    #[serde(default)]
    pub actions: Vec<Action>,
    /// Events.
    #[serde(default)]
    pub events: Vec<String>,
    /// Objects in the API afterwards.
    #[serde(rename = "final")]
    pub objects: Vec<Box<RawValue>>,
}

/// An API call of upstream.
#[derive(Deserialize)]
pub struct Action {
    /// Verb of the call.
    pub verb: String,
    /// Plural name of the resource.
    pub resource: String,
    /// Subresource, if any.
    #[serde(default)]
    pub subresource: String,
    /// Name of the object.
    #[serde(default)]
    pub name: String,
    /// Object sent; for a status write only its status.
    #[serde(default)]
    pub object: Option<Box<RawValue>>,
    /// Patch sent.
    #[serde(default)]
    pub patch: Value,
}

impl Action {
    /// The call in comparable form.
    fn request(&self, claims: &ClaimVolumes) -> serde_json::Result<Value> {
        let body = match &self.object {
            Some(status) if self.subresource == "status" => serde_json::from_str(status.get())?,
            Some(object) => requests::body(object.get(), claims)?,
            None => self.patch.clone(),
        };
        let (resource, subresource) = (&self.resource, &self.subresource);
        Ok(requests::request(
            &self.verb,
            resource,
            subresource,
            &self.name,
            body,
        ))
    }
}

impl Case {
    /// Parses a case.
    ///
    /// # Errors
    ///
    /// The text is not a case.
    pub fn parse(line: &str) -> serde_json::Result<Self> {
        serde_json::from_str(line)
    }

    /// The cached set.
    ///
    /// # Errors
    ///
    /// The first object is not a JSON object.
    pub fn set(&self) -> anyhow::Result<Value> {
        let set = self.objects.first().context("the case has no objects")?;
        Ok(serde_json::from_str(set.get())?)
    }

    /// Feature gates in the form that the controller takes.
    ///
    /// # Errors
    ///
    /// A gate or the version is unknown.
    pub fn gates(&self) -> anyhow::Result<FeatureGates> {
        let mut gates = FeatureGates::at(self.version()?);
        for (name, value) in &self.feature_gates {
            gates
                .set(name, *value)
                .map_err(|error| anyhow!("{error}"))?;
        }
        Ok(gates)
    }

    /// The emulated version.
    ///
    /// # Errors
    ///
    /// It is not a version.
    pub fn version(&self) -> anyhow::Result<KubeVersion> {
        let version = self.emulated_version.as_deref().map(str::parse).transpose();
        Ok(version?.unwrap_or_default())
    }

    /// Volumes whose order is ignored.
    ///
    /// # Errors
    ///
    /// The first object is not a JSON object.
    pub fn claim_volumes(&self) -> anyhow::Result<ClaimVolumes> {
        let set = self.set()?;
        let templates = set["spec"]["volumeClaimTemplates"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let name = |template: &Value| template["metadata"]["name"].as_str().map(str::to_owned);
        Ok(ClaimVolumes(templates.iter().filter_map(name).collect()))
    }

    /// Returns true if the order of events is defined.
    ///
    /// # Errors
    ///
    /// The first object is not a JSON object.
    pub fn events_are_ordered(&self) -> anyhow::Result<bool> {
        let spec = &self.set()?["spec"];
        // `Recreate` deletes in parallel under either policy.
        let recreates = spec["updateStrategy"]["type"] == "Recreate";
        Ok(spec["podManagementPolicy"] != "Parallel" && !recreates)
    }

    /// Outcome of upstream.
    ///
    /// # Errors
    ///
    /// An expected object is not a JSON object.
    pub fn expected(&self) -> anyhow::Result<Outcome> {
        let claims = self.claim_volumes()?;
        let objects = self
            .expect
            .objects
            .iter()
            .map(|object| comparable(object.get(), &claims));
        let mut events = self.expect.events.clone();
        let actions = self.expect.actions.iter();
        let mut requests = actions
            .map(|action| action.request(&claims))
            .collect::<Result<Vec<_>, _>>()?;
        requests::sort_neighbours(&mut requests);
        if !self.events_are_ordered()? {
            events.sort();
            requests::sort(&mut requests);
        }
        Ok(Outcome {
            failed: self.expect.error.is_some(),
            requeue_after: self.expect.requeue_after.clone(),
            events,
            requests,
            objects: objects.collect::<Result<_, _>>()?,
        })
    }
}

/// Conflict message for a deletion whose UID precondition fails.
pub(crate) fn another_uid(resource: &str, name: &str, wanted: &str, live: &str) -> String {
    format!(
        "Operation cannot be fulfilled on {resource} \"{name}\": Precondition failed: UID in \
         precondition: {wanted}, UID in object meta: {live}"
    )
}
