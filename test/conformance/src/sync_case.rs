//! The form of a recorded sync.

use std::collections::BTreeMap;

use anyhow::{Context, anyhow};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use statefulset_client::fake::{FaultError, FaultRule};
use statefulset_client::feature_gates::FeatureGates;

use crate::outcome::{ClaimVolumes, Outcome, comparable};
use crate::requests;

/// The failure of every live read of a resource that the reference doesn't make.
#[derive(Clone, Copy, Debug)]
pub struct LiveReadFault {
    /// The resource's plural name.
    pub resource: &'static str,
    /// How the reads fail.
    pub error: FaultError,
}

/// A recorded sync.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Case {
    /// Names the case.
    pub id: String,
    /// The controller's clock.
    pub now: Timestamp,
    /// Gates that differ from, or equal, their defaults.
    pub feature_gates: BTreeMap<String, bool>,
    /// `namespace/name` of the set.
    pub key: String,
    /// What the caches hold, the set first; the API holds the same but for the set.
    pub objects: Vec<Box<RawValue>>,
    /// The API's copy of the set, where it differs.
    #[serde(default)]
    pub live_set: Option<Box<RawValue>>,
    /// Whether the API has no such set.
    #[serde(default)]
    pub live_set_absent: bool,
    /// Calls that fail.
    #[serde(default)]
    pub faults: Vec<FaultRule>,
    /// Pods that the API holds where the cache shows others of their names. Never recorded.
    #[serde(skip)]
    pub live_pods: Vec<Box<RawValue>>,
    /// Live reads that fail though the reference doesn't make them. Never recorded.
    #[serde(skip)]
    pub live_read_fault: Option<LiveReadFault>,
    /// What the reference did.
    pub expect: Expect,
}

/// What the reference did.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Expect {
    /// The error's text, if the sync failed.
    #[serde(default)]
    pub error: Option<String>,
    /// The delayed add.
    #[serde(default)]
    pub requeue_after: Option<String>,
    /// The API calls.
    #[serde(default)]
    pub actions: Vec<Action>,
    /// The events.
    #[serde(default)]
    pub events: Vec<String>,
    /// What the API then holds.
    #[serde(rename = "final")]
    pub objects: Vec<Box<RawValue>>,
}

/// An API call of the reference.
#[derive(Deserialize)]
pub struct Action {
    /// The verb.
    pub verb: String,
    /// The resource's plural name.
    pub resource: String,
    /// The subresource, if any.
    #[serde(default)]
    pub subresource: String,
    /// The object's name.
    #[serde(default)]
    pub name: String,
    /// The object sent; of a status the status alone.
    #[serde(default)]
    pub object: Option<Box<RawValue>>,
    /// The patch sent.
    #[serde(default)]
    pub patch: Value,
}

impl Action {
    /// The call in the form in which it is compared.
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
    /// Reads a case.
    ///
    /// # Errors
    ///
    /// The text is no case.
    pub fn parse(line: &str) -> serde_json::Result<Self> {
        serde_json::from_str(line)
    }

    /// The cached set.
    ///
    /// # Errors
    ///
    /// The first object is no JSON object.
    pub fn set(&self) -> anyhow::Result<Value> {
        let set = self.objects.first().context("the case has no objects")?;
        Ok(serde_json::from_str(set.get())?)
    }

    /// The gates as the controller takes them.
    ///
    /// # Errors
    ///
    /// A gate is unknown.
    pub fn gates(&self) -> anyhow::Result<FeatureGates> {
        let mut gates = FeatureGates::default();
        for (name, value) in &self.feature_gates {
            gates
                .set(name, *value)
                .map_err(|error| anyhow!("{error}"))?;
        }
        Ok(gates)
    }

    /// The volumes whose order doesn't count.
    ///
    /// # Errors
    ///
    /// The first object is no JSON object.
    pub fn claim_volumes(&self) -> anyhow::Result<ClaimVolumes> {
        let set = self.set()?;
        let templates = set["spec"]["volumeClaimTemplates"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let name = |template: &Value| template["metadata"]["name"].as_str().map(str::to_owned);
        Ok(ClaimVolumes(templates.iter().filter_map(name).collect()))
    }

    /// Whether the order of events counts.
    ///
    /// # Errors
    ///
    /// The first object is no JSON object.
    pub fn events_are_ordered(&self) -> anyhow::Result<bool> {
        Ok(self.set()?["spec"]["podManagementPolicy"] != "Parallel")
    }

    /// What the reference left behind.
    ///
    /// # Errors
    ///
    /// An expected object is no JSON object.
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

/// An API server's answer to a deletion that means an object of another uid.
pub(crate) fn another_uid(resource: &str, name: &str, wanted: &str, live: &str) -> String {
    format!(
        "Operation cannot be fulfilled on {resource} \"{name}\": Precondition failed: UID in \
         precondition: {wanted}, UID in object meta: {live}"
    )
}
