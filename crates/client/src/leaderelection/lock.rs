//! The lease on the server, changed only by compare-and-swap.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::config::LeaderElectionConfig;
use super::record::LeaderElectionRecord;
use crate::error::Error;
use crate::recorder::{EventRecorder, EventType, ObjectReference};
use crate::resource::LEASES;
use crate::rest::RestClient;

/// The reason of all election events.
const EVENT_REASON: &str = "LeaderElection";

/// The lease's namespace and name. Formats as `namespace/name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseName {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl LeaseName {
    /// Creates a name.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for LeaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// One candidate's access to the lease.
///
/// Upstream: `resourcelock.LeaseLock`.
pub struct LeaseLock {
    client: RestClient,
    at: LeaseName,
    identity: String,
    recorder: Arc<dyn EventRecorder>,
    /// Time limit of each call, including waits and retries.
    call_timeout: Duration,
    /// The fields of the lease as last received. An update replaces only the spec, so it keeps the
    /// version and loses no field.
    received: Option<BTreeMap<String, Box<RawValue>>>,
}

impl LeaseLock {
    /// Creates a lock for a candidate with this identity. The client should have its own rate limit
    /// and no [`Fence`](crate::fence::Fence). Calls time out after
    /// [`LeaderElectionConfig::request_timeout`], regardless of the client's timeout. Events go to
    /// the recorder.
    pub fn new(
        client: RestClient,
        at: LeaseName,
        identity: String,
        recorder: Arc<dyn EventRecorder>,
    ) -> Self {
        Self {
            client,
            at,
            identity,
            recorder,
            call_timeout: LeaderElectionConfig::default().request_timeout(),
            received: None,
        }
    }

    /// Changes the time limit of each call.
    pub(super) fn with_call_timeout(self, call_timeout: Duration) -> Self {
        Self {
            call_timeout,
            ..self
        }
    }

    /// Returns the candidate's identity.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Returns the lease's namespace and name.
    pub fn at(&self) -> &LeaseName {
        &self.at
    }

    /// Reads the lease.
    ///
    /// Upstream: `LeaseLock.Get`.
    pub(super) async fn get(&mut self) -> Result<LeaderElectionRecord, Error> {
        let LeaseName { namespace, name } = &self.at;
        let call = self.client.get(&LEASES, namespace, name);
        let text = self.in_time("GET", call).await?;
        let members = self.parse("GET", &text)?;
        let record = match members.get("spec") {
            Some(spec) => LeaderElectionRecord::from_spec(spec.get()),
            None => Ok(LeaderElectionRecord::default()),
        };
        let record = record.map_err(|source| self.unreadable("GET", source))?;
        self.received = Some(members);
        Ok(record)
    }

    /// Creates the lease.
    ///
    /// Upstream: `LeaseLock.Create`.
    pub(super) async fn create(&mut self, record: &LeaderElectionRecord) -> Result<(), Error> {
        let spec = record.to_spec().and_then(RawValue::from_string);
        let body = spec.and_then(|spec| {
            serde_json::to_string(&serde_json::json!({
                "apiVersion": LEASES.api_version(),
                "kind": LEASES.kind,
                "metadata": {"name": self.at.name, "namespace": self.at.namespace},
                "spec": spec,
            }))
        });
        let body = body.map_err(|source| self.unreadable("POST", source))?;
        let call = self.client.create(&LEASES, &self.at.namespace, body);
        let text = self.in_time("POST", call).await?;
        self.received = Some(self.parse("POST", &text)?);
        Ok(())
    }

    /// Replaces the spec of the last received lease, if the server still has the same version.
    ///
    /// Upstream: `LeaseLock.Update`.
    pub(super) async fn update(&mut self, record: &LeaderElectionRecord) -> Result<(), Error> {
        let Some(received) = &self.received else {
            let text = "lease not initialized, call get or create first";
            return Err(Error::InvalidRequest(text.to_owned()));
        };
        let mut members = received.clone();
        let spec = record.to_spec().and_then(RawValue::from_string);
        let body = spec.and_then(|spec| {
            members.insert("spec".to_owned(), spec);
            serde_json::to_string(&members)
        });
        let body = body.map_err(|source| self.unreadable("PUT", source))?;
        let LeaseName { namespace, name } = &self.at;
        let call = self.client.replace(&LEASES, namespace, name, body);
        let text = self.in_time("PUT", call).await?;
        self.received = Some(self.parse("PUT", &text)?);
        Ok(())
    }

    /// Records an event about the lease: `{identity} {what}`.
    ///
    /// Upstream: `LeaseLock.RecordEvent`.
    pub(super) fn record_event(&self, what: &str) {
        let metadata = self.received.as_ref().and_then(|members| {
            let metadata = members.get("metadata")?;
            serde_json::from_str::<Metadata>(metadata.get()).ok()
        });
        let metadata = metadata.unwrap_or_default();
        let lease = ObjectReference {
            kind: LEASES.kind.to_owned(),
            namespace: self.at.namespace.clone(),
            name: self.at.name.clone(),
            uid: metadata.uid,
            api_version: LEASES.api_version(),
            resource_version: metadata.resource_version,
        };
        let message = format!("{} {what}", self.identity);
        self.recorder
            .event(&lease, EventType::Normal, EVENT_REASON, &message);
    }

    /// Runs a call with a time limit. The client limits each attempt, but not the waits that the
    /// server requests between them.
    async fn in_time(
        &self,
        verb: &str,
        call: impl Future<Output = Result<String, Error>>,
    ) -> Result<String, Error> {
        let after = self.call_timeout;
        let given_up = |_| {
            let action = self.action(verb);
            Err(Error::Timeout { action, after })
        };
        timeout(after, call).await.unwrap_or_else(given_up)
    }

    fn action(&self, verb: &str) -> String {
        format!("{verb} lease {}", self.at)
    }

    fn parse(&self, verb: &str, text: &str) -> Result<BTreeMap<String, Box<RawValue>>, Error> {
        serde_json::from_str(text).map_err(|source| self.unreadable(verb, source))
    }

    fn unreadable(&self, verb: &str, source: serde_json::Error) -> Error {
        let action = self.action(verb);
        Error::Decode { action, source }
    }
}

/// The metadata that events need.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    uid: String,
    resource_version: String,
}
