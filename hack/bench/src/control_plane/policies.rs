//! Creation of objects that admission policies review.

use std::time::Duration;

use anyhow::ensure;
use http::{Method, StatusCode};
use kube_test_control_plane::{ApiServer, TestControlPlane};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::requests::{CREATED, CREATES, create_maps};
use crate::report::{Report, Row};

/// Number of policies.
const POLICIES: usize = 10;

/// Path of the policies' group.
const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

/// Measures the creates.
pub(super) async fn measure(report: &mut Report) -> anyhow::Result<()> {
    let (mut free, mut reviewed, mut passed_by) = (Duration::MAX, Duration::MAX, Duration::MAX);
    for _ in 0..CREATES {
        free = free.min(creates(None).await?);
        reviewed = reviewed.min(creates(Some("configmaps")).await?);
        passed_by = passed_by.min(creates(Some("secrets")).await?);
    }
    let each = |time: Duration| time.as_secs_f64() * 1e6 / CREATED as f64;
    for (what, time, aim) in [
        ("that match", reviewed, "100 µs more"),
        ("for other kinds", passed_by, "10 µs more"),
    ] {
        report.add(Row {
            what: format!(
                "control plane: create a config map of 1 kB with {POLICIES} policies {what} (aim: \
                 {aim})"
            ),
            value: each(time),
            baseline: each(free),
            baseline_name: "without policies",
            unit: "µs",
            bound: None,
        });
    }
    Ok(())
}

/// Creates config maps under policies for a resource, if any.
async fn creates(resource: Option<&str>) -> anyhow::Result<Duration> {
    let plane = TestControlPlane::builder().start().await;
    let server = plane.server();
    for number in 0..resource.map_or(0, |_| POLICIES) {
        let name = format!("policy-{number}");
        let policy = policy(&name, resource.unwrap_or_default());
        post(server, "validatingadmissionpolicies", &policy).await?;
        let spec = json!({"policyName": name, "validationActions": ["Deny"]});
        let binding = json!({"metadata": {"name": name}, "spec": spec});
        post(server, "validatingadmissionpolicybindings", &binding).await?;
    }
    let begun = Instant::now();
    create_maps(server, "map", CREATED).await?;
    let took = begun.elapsed();
    plane.stop().await;
    Ok(took)
}

async fn post(server: &ApiServer, plural: &str, body: &Value) -> anyhow::Result<()> {
    let path = format!("{GROUP}/{plural}");
    let (code, answer) = server.call_json(Method::POST, &path, "bench", body).await;
    ensure!(code == StatusCode::CREATED, "{path}: {code} {answer}");
    Ok(())
}

/// A policy with a condition, a variable and two rules.
fn policy(name: &str, resource: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"],
                "resources": [resource],
            }]},
            "matchConditions": [{
                "name": "not-nobody",
                "expression": "request.userInfo.username != 'nobody'",
            }],
            "variables": [{"name": "text", "expression": "object.data.text"}],
            "validations": [
                {"expression": "size(variables.text) < 2000"},
                {"expression": "object.metadata.labels.all(key, key.size() < 64)"},
            ],
        },
    })
}
