//! Runs recorded steps and compares the answers.

mod compare;

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use kube_test_control_plane::ApiServer;
use serde_json::{Value, json};

/// The namespace that a case runs in.
const NAMESPACE: &str = "recorded";

/// Cases in which `managedFields` count.
fn compares_managed_fields(case: &str) -> bool {
    case.starts_with("apply-") || case == "field-manager" || case == "patch-owner-adopt"
}

/// Answers by the id of their step.
type Answers = BTreeMap<String, Value>;

/// Runs a case; what is wrong with the first step that goes wrong.
pub(crate) async fn case(server: &ApiServer, case: &Value) -> Result<(), String> {
    let body = json!({"metadata": {"name": NAMESPACE}});
    server
        .call_json(http::Method::POST, "/api/v1/namespaces", "setup", &body)
        .await;
    let managed = compares_managed_fields(case["case"].as_str().unwrap_or_default());
    let mut answers = Answers::new();
    for (i, step) in case["steps"].as_array().into_iter().flatten().enumerate() {
        run(server, step, &mut answers, managed)
            .await
            .map_err(|why| format!("step {i} {} {}: {why}", step["method"], step["path"]))?;
    }
    Ok(())
}

async fn run(
    server: &ApiServer,
    step: &Value,
    answers: &mut Answers,
    managed: bool,
) -> Result<(), String> {
    if step["method"] == "WATCH" {
        return watch(server, step, answers, managed).await;
    }
    let (code, headers, bytes) =
        send(server, step, step["method"].as_str().unwrap(), answers).await;
    let expected = &step["response"];
    let body: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    if let Some(id) = step["id"].as_str() {
        answers.insert(id.to_owned(), body.clone());
    }
    if expected["status"] != json!(code) {
        return Err(format!("code {code}, not {}: {body}", expected["status"]));
    }
    for (member, header) in [("warning", "warning"), ("retry-after", "retry-after")] {
        let found = headers.get(header).and_then(|v| v.to_str().ok());
        if found != expected[member].as_str() {
            return Err(format!("{header} {found:?}, not {}", expected[member]));
        }
    }
    if let Some(text) = expected["text"].as_str() {
        let found = String::from_utf8_lossy(&bytes).into_owned();
        return if found == text {
            Ok(())
        } else {
            Err(format!("text {found:?}"))
        };
    }
    let projected = project(step["project"].as_str(), body);
    let wanted = fill(&expected["body"], answers);
    compare::same(&wanted, &projected, managed)
}

async fn send(
    server: &ApiServer,
    step: &Value,
    method: &str,
    answers: &Answers,
) -> (u16, HeaderMap, Bytes) {
    let path = fill_text(step["path"].as_str().unwrap(), answers);
    let mut request = Request::builder().method(method).uri(path);
    let mut typed = false;
    for (name, value) in step["headers"].as_object().into_iter().flatten() {
        typed |= name.eq_ignore_ascii_case("content-type");
        request = request.header(name, value.as_str().unwrap());
    }
    if !typed {
        request = request.header("Content-Type", "application/json");
    }
    match step.get("token") {
        None => {}
        Some(Value::String(token)) => {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        Some(_) => {
            let peer = kube_test_control_plane::auth::Peer { certificate: None };
            request = request.extension(peer);
        }
    }
    let body = match &step["body"] {
        Value::Null => Bytes::new(),
        Value::String(text) => fill_text(text, answers).into(),
        other => fill(other, answers).to_string().into(),
    };
    let reply = server
        .serve(request.body(Full::new(body)).unwrap())
        .await
        .unwrap();
    let (parts, body) = reply.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    (parts.status.as_u16(), parts.headers, bytes)
}

async fn watch(
    server: &ApiServer,
    step: &Value,
    answers: &mut Answers,
    managed: bool,
) -> Result<(), String> {
    let path = fill_text(step["path"].as_str().unwrap(), answers);
    let request = Request::builder()
        .uri(path)
        .body(Full::new(Bytes::new()))
        .unwrap();
    let reply = server.serve(request).await.unwrap();
    let code = reply.status().as_u16();
    for inner in step["during"].as_array().into_iter().flatten() {
        Box::pin(run(server, inner, answers, managed)).await?;
    }
    let bytes = reply.into_body().collect().await.unwrap().to_bytes();
    let events: Vec<Value> = String::from_utf8_lossy(&bytes)
        .lines()
        .map(|line| summary(&serde_json::from_str(line).unwrap()))
        .collect();
    let found = json!({"status": code, "events": events});
    let wanted = fill(&step["response"], answers);
    compare::same(&wanted, &found, managed)
}

fn summary(event: &Value) -> Value {
    let metadata = &event["object"]["metadata"];
    if event["type"] == "BOOKMARK" || event["type"] == "ERROR" {
        return event.clone();
    }
    json!({
        "type": event["type"],
        "name": metadata["name"],
        "labels": metadata.get("labels").cloned().unwrap_or(Value::Null),
        "terminating": metadata.get("deletionTimestamp").is_some(),
    })
}

fn project(projection: Option<&str>, body: Value) -> Value {
    if body["kind"] == "Status" {
        return body;
    }
    match projection {
        Some("names") => {
            let items = body["items"].as_array().into_iter().flatten();
            let names: Vec<&Value> = items.map(|item| &item["metadata"]["name"]).collect();
            json!({"kind": body["kind"], "names": names})
        }
        Some("keys") => {
            let keys: Vec<&String> = body
                .as_object()
                .into_iter()
                .flatten()
                .map(|(k, _)| k)
                .collect();
            json!({"keys": keys})
        }
        Some("name") => json!({"name": body["metadata"]["name"]}),
        Some("spec.replicas") => json!({"spec.replicas": body["spec"]["replicas"]}),
        Some("table") => {
            let columns = body["columnDefinitions"].as_array().into_iter().flatten();
            let members = ["name", "type", "format", "priority"];
            let columns: Vec<Value> = columns
                .map(|c| {
                    members
                        .iter()
                        .map(|m| ((*m).to_owned(), c[m].clone()))
                        .collect()
                })
                .collect();
            let rows = body["rows"].as_array().into_iter().flatten();
            let rows: Vec<Value> = rows
                .map(|r| json!({"cells": r["cells"], "object": r["object"]["kind"]}))
                .collect();
            json!({"kind": body["kind"], "columns": columns, "rows": rows})
        }
        _ => body,
    }
}

fn fill(value: &Value, answers: &Answers) -> Value {
    match value {
        Value::String(text) => json!(fill_text(text, answers)),
        Value::Array(list) => list.iter().map(|v| fill(v, answers)).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(k, v)| (fill_text(k, answers), fill(v, answers)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

fn fill_text(text: &str, answers: &Answers) -> String {
    let mut text = text.replace("{ns}", NAMESPACE);
    while let Some((before, rest)) = text.split_once("{{") {
        let Some((reference, after)) = rest.split_once("}}") else {
            break;
        };
        let (id, path) = reference.split_once('.').unwrap_or((reference, ""));
        let pointer = format!("/{}", path.replace('.', "/"));
        let value = answers.get(id).and_then(|answer| answer.pointer(&pointer));
        let value = value.and_then(Value::as_str).unwrap_or("missing");
        text = format!("{before}{value}{after}");
    }
    text
}
