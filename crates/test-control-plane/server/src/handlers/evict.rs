//! Evictions: deletes a pod unless a disruption budget forbids it.

use std::sync::Arc;

use http::StatusCode;
use kube_apimachinery::selector::{LabelSelector, Selector};
use kube_test_control_plane_api::kinds::{self, Kind, Subresource, Target};
use kube_test_control_plane_api::members::object_mut;
use kube_test_control_plane_api::object::{Draft, Object};
use kube_test_control_plane_api::options::{DeleteOptions, WriteOptions};
use kube_test_control_plane_api::query::Query;
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use kube_test_control_plane_store::clock::Clock;
use kube_test_control_plane_store::store::Expect;
use serde_json::{Value, json};

use super::Source;
use super::bind::set_condition;
use super::delete::delete_admitted;
use super::update::update;
use crate::reply::{self, Reply};
use crate::review;
use crate::route::ResourceRequest;
use crate::state::{Reads, Writes, now_text};

/// Limit of unconfirmed evictions per budget.
const DISRUPTED_PODS_MAX: usize = 2000;

/// Retry delay in seconds for a budget that isn't up to date.
const RETRY_SECONDS: u64 = 10;

/// Evicts a pod.
pub(crate) async fn evict(
    writes: &Writes,
    request: &ResourceRequest,
    query: &Query,
    body: &Value,
    options: &WriteOptions,
) -> ApiResult<Reply> {
    let name = body.pointer("/metadata/name").and_then(Value::as_str);
    if name != Some(&request.name) {
        return Err(ApiError::bad_request(
            "name in URL does not match name in Eviction object",
        ));
    }
    review::review_posted(&writes.access, request, body, options).await?;
    let kind = &request.kind;
    let pod = writes.store.get(&request.key());
    let pod = pod.ok_or_else(|| ApiError::not_found(kind, &request.name))?;
    let pod = pod.draft();
    let null = Value::Null;
    let mut deletion = DeleteOptions::parse(query, body.get("deleteOptions").unwrap_or(&null))?;
    deletion.dry_run |= options.dry_run;
    let phase = pod.text("/status/phase");
    let is_unguarded =
        matches!(phase, Some("Succeeded" | "Failed" | "Pending")) || pod.metadata().is_deleting();
    if !is_unguarded {
        spend_budget(writes, request, &pod, deletion.dry_run)?;
    }
    let whole = ResourceRequest {
        target: Target::Object,
        ..request.clone()
    };
    if !deletion.dry_run {
        mark_disrupted(writes, &whole).await?;
    }
    delete_admitted(writes, &whole, &deletion)?;
    Ok(reply::success(StatusCode::CREATED))
}

/// Reports the eviction in the pod's status.
async fn mark_disrupted(writes: &Writes, request: &ResourceRequest) -> ApiResult<()> {
    let status = ResourceRequest {
        target: Target::Part(Subresource::Status),
        ..request.clone()
    };
    loop {
        let pod = writes.store.get(&request.key());
        let pod = pod.ok_or_else(|| ApiError::not_found(&request.kind, &request.name))?;
        let mut draft = pod.draft();
        set_condition(
            writes.reads.clock(),
            &mut draft,
            json!({
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting",
            }),
        );
        let source = Source::Put(draft);
        match update(writes, &status, &source, &WriteOptions::internal()).await {
            Err(err) if err.reason == "Conflict" => {}
            other => return other.map(|_| ()),
        }
    }
}

/// Takes a disruption from the pod's budget, if there is one.
fn spend_budget(
    writes: &Writes,
    request: &ResourceRequest,
    pod: &Draft,
    dry_run: bool,
) -> ApiResult<()> {
    let Some(budgets) = kinds::by_resource("policy", "v1", "poddisruptionbudgets") else {
        return Ok(());
    };
    loop {
        let guarding = budgets_of(&writes.reads, budgets, request, pod);
        let budget = match guarding.as_slice() {
            [] => return Ok(()),
            [budget] => budget,
            _ => {
                return Err(ApiError::internal(
                    "This pod has more than one PodDisruptionBudget, which the eviction \
                     subresource does not support.",
                ));
            }
        };
        let mut draft = budget.draft();
        if may_go_unready(&draft, pod) {
            return Ok(());
        }
        take_disruption(writes.reads.clock(), &mut draft, &request.name)?;
        let expect = Expect::Version(budget.resource_version);
        let key = budget.key.clone();
        if dry_run || writes.store.put(budgets, key, expect, draft).is_ok() {
            return Ok(());
        }
    }
}

fn budgets_of(
    reads: &Reads,
    budgets: &Kind,
    request: &ResourceRequest,
    pod: &Draft,
) -> Vec<Arc<Object>> {
    let empty = serde_json::Map::new();
    let labels = pod.value.pointer("/metadata/labels");
    let labels = labels.and_then(Value::as_object).unwrap_or(&empty);
    let (_, mut found) = reads.store.list(&budgets.storage, &request.namespace);
    found.retain(|budget| {
        let budget = budget.value();
        let selector = budget
            .pointer("/spec/selector")
            .and_then(|raw| serde_json::from_value::<LabelSelector>(raw.clone()).ok());
        Selector::from_label_selector(selector.as_ref())
            .is_ok_and(|selector| selector.matches(labels))
    });
    found
}

/// Upstream: `checkAndDecrement`.
fn take_disruption(clock: &dyn Clock, budget: &mut Draft, pod: &str) -> ApiResult<()> {
    let name = budget.metadata().name().to_owned();
    let number = |member: &str| {
        let value = budget.value.pointer(&format!("/status/{member}"));
        value.and_then(Value::as_i64).unwrap_or(0)
    };
    if number("observedGeneration") < budget.metadata().generation() {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        return Err(violated(&why, Some(RETRY_SECONDS)));
    }
    let forbidden = |why: &str| ApiError {
        details: Some(json!({"name": name, "group": "policy", "kind": "poddisruptionbudget"})),
        ..ApiError::new(
            403,
            "Forbidden",
            format!("poddisruptionbudget.policy \"{name}\" is forbidden: {why}"),
        )
    };
    let allowed = number("disruptionsAllowed");
    if allowed < 0 {
        return Err(forbidden("pdb disruptions allowed is negative"));
    }
    let going = budget.value.pointer("/status/disruptedPods");
    if going
        .and_then(Value::as_object)
        .map_or(0, serde_json::Map::len)
        > DISRUPTED_PODS_MAX
    {
        return Err(forbidden(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        ));
    }
    if allowed == 0 {
        let why = match failed_sync(budget) {
            Some(message) => format!(
                "The disruption budget {name} does not allow evicting pods currently because \
                 it failed sync: {message}"
            ),
            None => format!(
                "The disruption budget {name} needs {} healthy pods and has {} currently",
                number("desiredHealthy"),
                number("currentHealthy")
            ),
        };
        return Err(violated(&why, None));
    }
    let observed = number("observedGeneration");
    let status = object_mut(&mut budget.value, "status");
    status.insert("disruptionsAllowed".to_owned(), json!(allowed - 1));
    let now = now_text(clock);
    status.entry("disruptedPods").or_insert(json!({}))[pod] = json!(now);
    if allowed == 1 {
        forbid_more(status, observed, &now);
    }
    Ok(())
}

/// Reports whether the pod is unready and the budget allows its eviction.
fn may_go_unready(budget: &Draft, pod: &Draft) -> bool {
    let conditions = pod
        .value
        .pointer("/status/conditions")
        .and_then(Value::as_array);
    let is_ready = conditions
        .into_iter()
        .flatten()
        .any(|c| c["type"] == "Ready" && c["status"] == "True");
    if is_ready {
        return false;
    }
    if budget.text("/spec/unhealthyPodEvictionPolicy") == Some("AlwaysAllow") {
        return true;
    }
    let number = |pointer: &str| {
        budget
            .value
            .pointer(pointer)
            .and_then(Value::as_i64)
            .unwrap_or(0)
    };
    let desired = number("/status/desiredHealthy");
    desired > 0 && number("/status/currentHealthy") >= desired
}

/// Returns the controller's error for the budget, if any.
fn failed_sync(budget: &Draft) -> Option<&str> {
    let conditions = budget.value.pointer("/status/conditions")?.as_array()?;
    let condition = conditions
        .iter()
        .find(|c| c["type"] == "DisruptionAllowed")?;
    let failed = condition["status"] == "False" && condition["reason"] == "SyncFailed";
    failed.then(|| condition["message"].as_str()).flatten()
}

/// Sets the budget's status to zero allowed disruptions.
fn forbid_more(status: &mut serde_json::Map<String, Value>, observed: i64, now: &str) {
    let conditions = status.entry("conditions").or_insert(json!([]));
    let Some(list) = conditions.as_array_mut() else {
        return;
    };
    let mut condition = json!({
        "type": "DisruptionAllowed",
        "status": "False",
        "observedGeneration": observed,
        "lastTransitionTime": now,
        "reason": "InsufficientPods",
        "message": "",
    });
    match list.iter_mut().find(|c| c["type"] == condition["type"]) {
        Some(found) => {
            if found["status"] == "False" {
                condition["lastTransitionTime"] = found["lastTransitionTime"].clone();
            }
            *found = condition;
        }
        None => list.push(condition),
    }
}

fn violated(why: &str, retry_after_seconds: Option<u64>) -> ApiError {
    let mut details = json!({
        "causes": [{"reason": "DisruptionBudget", "message": why}],
    });
    if let Some(seconds) = retry_after_seconds {
        details["retryAfterSeconds"] = json!(seconds);
    }
    ApiError {
        details: Some(details),
        ..ApiError::new(
            429,
            "TooManyRequests",
            "Cannot evict pod as it would violate the pod's disruption budget.",
        )
    }
}
