//! What is posted below pods: bindings and evictions.

use http::StatusCode;
use serde_json::{Value, json};

use super::Source;
use crate::kinds;
use crate::object::{Draft, object_mut};
use crate::options::{DeleteOptions, WriteOptions};
use crate::patch::Patch;
use crate::query::Query;
use crate::reply::{self, Reply};
use crate::route::{ResourceRequest, Target};
use crate::server::ApiServer;
use crate::status::{ApiError, ApiResult, details};
use crate::store::Expect;
use kube_apimachinery::selector::{LabelSelector, Selector};

impl ApiServer {
    /// Binds a pod to a node.
    pub(crate) fn bind(&self, request: &ResourceRequest, body: &Value) -> ApiResult<Reply> {
        let kind = request.kind;
        let key = Self::key(request);
        let node = body
            .pointer("/target/name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if node.is_empty() {
            let error = crate::validation::FieldError::required("target.name", "");
            return Err(ApiError::invalid_kind(
                "Binding",
                "",
                &request.name,
                &[error],
            ));
        }
        loop {
            let Some(current) = self.store().get(&key) else {
                return Err(ApiError::not_found(kind, &request.name));
            };
            let mut pod = current.draft();
            Self::check_bindable(request, &pod)?;
            object_mut(&mut pod.value, "spec").insert("nodeName".to_owned(), json!(node));
            self.set_scheduled(&mut pod);
            let expect = Expect::Version(current.resource_version);
            if self.store().put(kind, key.clone(), expect, pod).is_ok() {
                return Ok(reply::success(StatusCode::CREATED));
            }
        }
    }

    fn check_bindable(request: &ResourceRequest, pod: &Draft) -> ApiResult<()> {
        let name = &request.name;
        let conflict = |why: String| ApiError {
            details: Some(details(name, "", "pods/binding")),
            ..ApiError::new(
                409,
                "Conflict",
                format!("Operation cannot be fulfilled on pods/binding \"{name}\": {why}"),
            )
        };
        if pod.metadata().is_deleting() {
            return Err(conflict(format!(
                "pod {name} is being deleted, cannot be assigned to a host"
            )));
        }
        match pod.text("/spec/nodeName") {
            Some(node) if !node.is_empty() => Err(conflict(format!(
                "pod {name} is already assigned to node \"{node}\""
            ))),
            _ => Ok(()),
        }
    }

    fn set_scheduled(&self, pod: &mut Draft) {
        let now = self.now_text();
        let status = object_mut(&mut pod.value, "status");
        let conditions = status.entry("conditions").or_insert(json!([]));
        if let Some(list) = conditions.as_array_mut() {
            list.retain(|c| c.get("type") != Some(&json!("PodScheduled")));
            list.push(json!({
                "type": "PodScheduled",
                "status": "True",
                "lastProbeTime": null,
                "lastTransitionTime": now,
            }));
        }
    }

    /// Evicts a pod: deletes it unless a disruption budget forbids it.
    pub(crate) fn evict(
        &self,
        request: &ResourceRequest,
        query: &Query,
        body: &Value,
    ) -> ApiResult<Reply> {
        let pod = self
            .store()
            .get(&Self::key(request))
            .ok_or_else(|| ApiError::not_found(request.kind, &request.name))?;
        let pod = pod.draft();
        let finished = matches!(
            pod.text("/status/phase"),
            Some("Succeeded" | "Failed" | "Pending")
        );
        if !finished && !pod.metadata().is_deleting() {
            self.check_budgets(request, &pod)?;
        }
        let null = Value::Null;
        let options = body.get("deleteOptions").unwrap_or(&null);
        let options = DeleteOptions::parse(query, options)?;
        let whole = ResourceRequest {
            target: Target::Object,
            ..request.clone()
        };
        if !options.dry_run {
            self.mark_disrupted(&whole)?;
        }
        self.delete(&whole, &options)?;
        Ok(reply::success(StatusCode::CREATED))
    }

    /// Says in the pod's status why it goes.
    fn mark_disrupted(&self, request: &ResourceRequest) -> ApiResult<()> {
        let status = ResourceRequest {
            target: Target::Status,
            ..request.clone()
        };
        let patch = Patch::Strategic(json!({"status": {"conditions": [{
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
            "lastTransitionTime": self.now_text(),
        }]}}));
        let options = WriteOptions::internal();
        self.update(&status, &Source::Patch(patch), &options)
            .map(|_| ())
    }

    fn check_budgets(&self, request: &ResourceRequest, pod: &Draft) -> ApiResult<()> {
        let Some(budgets) = kinds::by_resource("policy", "v1", "poddisruptionbudgets") else {
            return Ok(());
        };
        let empty = serde_json::Map::new();
        let labels = pod
            .value
            .pointer("/metadata/labels")
            .and_then(Value::as_object);
        let labels = labels.unwrap_or(&empty);
        let (_, found) = self.store().list(budgets.storage, &request.namespace);
        for budget in found {
            let budget = budget.value();
            let selector = budget
                .pointer("/spec/selector")
                .and_then(|raw| serde_json::from_value::<LabelSelector>(raw.clone()).ok());
            let selects = Selector::from_label_selector(selector.as_ref())
                .is_ok_and(|selector| selector.matches(labels));
            let allowed = budget
                .pointer("/status/disruptionsAllowed")
                .and_then(Value::as_i64)
                .unwrap_or(0);
            if selects && allowed <= 0 {
                return Err(disruption_budget(&budget));
            }
        }
        Ok(())
    }
}

fn disruption_budget(budget: &Value) -> ApiError {
    let name = budget
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let number = |pointer: &str| budget.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let (desired, healthy) = (
        number("/status/desiredHealthy"),
        number("/status/currentHealthy"),
    );
    ApiError {
        details: Some(json!({
            "causes": [{
                "reason": "DisruptionBudget",
                "message": format!(
                    "The disruption budget {name} needs {desired} healthy pods and has {healthy} \
                     currently"
                ),
            }],
            "retryAfterSeconds": 10,
        })),
        ..ApiError::new(
            429,
            "TooManyRequests",
            "Cannot evict pod as it would violate the pod's disruption budget.",
        )
    }
}
