//! The policy status controller: checks the types of validating policies' expressions, and warns in
//! their status.
//!
//! Upstream: `pkg/controller/validatingadmissionpolicystatus`

use std::convert::Infallible;

use futures::FutureExt;
use kube_test_control_plane_api::admission::policies::{ExpressionWarning, KnownKinds, type_check};
use kube_test_control_plane_api::kinds;
use kube_test_control_plane_api::object::Key;
use kube_test_control_plane_server::faults::ACTOR_AGENT_PREFIX;
use kube_test_control_plane_server::server::ApiServer;
use kube_test_control_plane_store::store::{Change, LogEntry};
use serde_json::{Value, json};

use crate::runner::{Actor, Agenda, Work};

const POLICIES: &str = "validatingadmissionpolicies";

/// The field manager.
///
/// Upstream: `ControllerName`
const MANAGER: &str = "validatingadmissionpolicy-status";

/// Keeps the status of validating policies up to date.
#[derive(Debug)]
pub(crate) struct PolicyStatusController {
    server: ApiServer,
    agent: String,
}

impl PolicyStatusController {
    pub(crate) fn new(server: &ApiServer, name: &str) -> Self {
        Self {
            server: server.clone(),
            agent: format!("{ACTOR_AGENT_PREFIX}{name}"),
        }
    }

    /// Returns the warnings about a policy.
    fn warnings(&self, policy: &Value) -> Vec<ExpressionWarning> {
        let known = KnownKinds {
            kinds: &self.server.served_kinds(),
            version: self.server.emulated_version().schema(),
            suffix: self.server.clock().now().subsec_nanosecond(),
        };
        type_check(policy, known)
    }
}

/// Returns the applied configuration.
fn configuration(name: &str, generation: i64, warnings: &[ExpressionWarning]) -> Value {
    let mut checks = json!({});
    if !warnings.is_empty() {
        let warnings = warnings.iter();
        let warnings =
            warnings.map(|one| json!({"fieldRef": one.field_ref, "warning": one.warning}));
        checks["expressionWarnings"] = warnings.collect();
    }
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "status": {"observedGeneration": generation, "typeChecking": checks},
    })
}

impl Actor for PolicyStatusController {
    type Order = Infallible;
    type Done = ();

    fn observe(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        let key = &entry.object.key;
        if *key.storage == *POLICIES && entry.change != Change::Deleted {
            agenda.now(key);
        }
    }

    fn act(&mut self, key: &Key, _agenda: &mut Agenda) -> Option<Work<()>> {
        let policy = self.server.store().get(key)?.value();
        let number = |pointer: &str| policy.pointer(pointer).and_then(Value::as_i64);
        let generation = number("/metadata/generation")?;
        if number("/status/observedGeneration").is_some_and(|observed| observed >= generation) {
            return None;
        }
        let kind = kinds::by_storage(POLICIES)?;
        let path = kind.object_path("", &key.name);
        let path = format!("{path}/status?fieldManager={MANAGER}&force=true");
        let body = configuration(&key.name, generation, &self.warnings(&policy));
        let (server, agent) = (self.server.clone(), self.agent.clone());
        let work = async move {
            let (code, _) = server.apply_json(&path, &agent, &body).await;
            (code == 200 || code == 404).then_some(())
        };
        Some(work.boxed())
    }

    fn reset(&mut self) {}
}
