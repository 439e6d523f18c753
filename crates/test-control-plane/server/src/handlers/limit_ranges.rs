//! The check of a resized pod against the limit ranges of its namespace.
//!
//! Upstream: `PodValidateLimitFunc` of the admission plugin `LimitRanger`

use std::collections::BTreeMap;

use kube_apimachinery::quantity::Quantity;
use kube_test_control_plane_api::kinds::Kind;
use kube_test_control_plane_api::members::{list, list_at, text};
use kube_test_control_plane_api::object::Draft;
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use serde_json::Value;

use crate::state::Reads;

/// Amounts of resources by name.
type Amounts = BTreeMap<String, Quantity>;

/// The requests and limits of a container or a pod.
#[derive(Debug, Default)]
struct Usage {
    requests: Amounts,
    limits: Amounts,
}

/// Rejects a pod that breaks a limit range.
///
/// # Errors
///
/// 403 with all constraints of the first limit range that the pod breaks.
pub(crate) fn admit_limits(reads: &Reads, kind: &Kind, pod: &Draft) -> ApiResult<()> {
    let metadata = pod.metadata();
    for range in reads
        .store
        .list("limitranges", metadata.text("namespace"))
        .1
    {
        let mut broken = Vec::new();
        for limit in list_at(&range.value(), "/spec/limits") {
            broken.extend(broken_by(limit, &pod.value));
        }
        let why = match broken.as_slice() {
            [] => continue,
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        return Err(ApiError::forbidden(kind, metadata.name(), &why));
    }
    Ok(())
}

fn broken_by(limit: &Value, pod: &Value) -> Vec<String> {
    let subject = text(limit, "type");
    let usages: Vec<Usage> = match subject {
        "Container" => containers(pod).map(Usage::of).collect(),
        "Pod" => vec![Usage::of_pod(pod)],
        _ => Vec::new(),
    };
    let mut broken = Vec::new();
    for usage in &usages {
        for (name, least) in amounts(limit, "min") {
            broken.extend(usage.below(&name, subject, &least));
        }
        for (name, most) in amounts(limit, "max") {
            broken.extend(usage.above(&name, subject, &most));
        }
        for (name, ratio) in amounts(limit, "maxLimitRequestRatio") {
            broken.extend(usage.beyond_ratio(&name, subject, &ratio));
        }
    }
    broken
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    list_at(pod, "/spec/containers").chain(list_at(pod, "/spec/initContainers"))
}

fn amounts(of: &Value, member: &str) -> Amounts {
    let found = of.get(member).and_then(Value::as_object);
    let read = found.into_iter().flatten().filter_map(|(name, amount)| {
        let amount = amount.as_str()?.parse().ok()?;
        Some((name.clone(), amount))
    });
    read.collect()
}

impl Usage {
    fn of(container: &Value) -> Self {
        let resources = container.get("resources").unwrap_or(&Value::Null);
        Self {
            requests: amounts(resources, "requests"),
            limits: amounts(resources, "limits"),
        }
    }

    /// Returns the sums of the containers, or the largest of the init containers.
    fn of_pod(pod: &Value) -> Self {
        let mut sum = Self::default();
        let spec = pod.get("spec").unwrap_or(&Value::Null);
        for container in list(spec, "containers") {
            let usage = Self::of(container);
            add(&mut sum.requests, usage.requests);
            add(&mut sum.limits, usage.limits);
        }
        for container in list(spec, "initContainers") {
            let usage = Self::of(container);
            if text(container, "restartPolicy") == "Always" {
                add(&mut sum.requests, usage.requests);
                add(&mut sum.limits, usage.limits);
            } else {
                raise(&mut sum.requests, usage.requests);
                raise(&mut sum.limits, usage.limits);
            }
        }
        sum
    }

    fn below(&self, name: &str, subject: &str, least: &Quantity) -> Option<String> {
        let head = format!("minimum {name} usage per {subject} is {least}");
        match (self.requests.get(name), self.limits.get(name)) {
            (None, _) => Some(format!("{head}.  No request is specified")),
            (Some(request), _) if request < least => {
                Some(format!("{head}, but request is {request}"))
            }
            (_, Some(limit)) if limit < least => Some(format!("{head}, but limit is {limit}")),
            _ => None,
        }
    }

    fn above(&self, name: &str, subject: &str, most: &Quantity) -> Option<String> {
        let head = format!("maximum {name} usage per {subject} is {most}");
        match (self.limits.get(name), self.requests.get(name)) {
            (None, _) => Some(format!("{head}.  No limit is specified")),
            (Some(limit), _) if limit > most => Some(format!("{head}, but limit is {limit}")),
            (_, Some(request)) if request > most => {
                Some(format!("{head}, but request is {request}"))
            }
            _ => None,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "upstream divides floats")]
    fn beyond_ratio(&self, name: &str, subject: &str, most: &Quantity) -> Option<String> {
        let head = format!("{name} max limit to request ratio per {subject} is {most}");
        let given = |amounts: &Amounts| amounts.get(name).map_or(0, Quantity::milli_value);
        let (request, limit) = (given(&self.requests), given(&self.limits));
        if request == 0 {
            return Some(format!(
                "{head}, but no request is specified or request is 0"
            ));
        }
        if limit == 0 {
            return Some(format!("{head}, but no limit is specified or limit is 0"));
        }
        let ratio = limit as f64 / request as f64;
        let is_beyond = ratio * 1000.0 > most.milli_value() as f64;
        is_beyond.then(|| format!("{head}, but provided ratio is {ratio:.6}"))
    }
}

fn add(sum: &mut Amounts, more: Amounts) {
    for (name, amount) in more {
        let before = sum.get(&name);
        let total = before.and_then(|before| before.checked_add(&amount));
        sum.insert(name, total.unwrap_or(amount));
    }
}

fn raise(most: &mut Amounts, other: Amounts) {
    for (name, amount) in other {
        if most.get(&name).is_none_or(|most| *most < amount) {
            most.insert(name, amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn containers_and_pods_stay_within_the_limits() {
        let container = json!({"resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}}});
        let pod = json!({"spec": {"containers": [container, container]}});
        let broken = |limit: Value| broken_by(&limit, &pod);
        assert_eq!(
            broken(json!({"type": "Container", "max": {"cpu": "1"}})),
            [""; 0]
        );
        assert_eq!(
            broken(json!({"type": "Pod", "max": {"cpu": "1"}})),
            ["maximum cpu usage per Pod is 1, but limit is 2"]
        );
        assert_eq!(
            broken(json!({"type": "Pod", "min": {"cpu": "250m"}})),
            ["minimum cpu usage per Pod is 250m, but request is 200m"]
        );
        assert_eq!(
            broken(json!({"type": "Pod", "maxLimitRequestRatio": {"cpu": "2"}})),
            ["cpu max limit to request ratio per Pod is 2, but provided ratio is 10.000000"]
        );
        let unset = broken(json!({"type": "Container", "max": {"memory": "1Gi"}}));
        assert_eq!(
            unset,
            ["maximum memory usage per Container is 1Gi.  No limit is specified"; 2]
        );
    }
}
