//! Replay of a case's steps, with comparison of the responses.

use std::time::Duration;

use anyhow::{Context as _, anyhow};
use http::header::CONTENT_TYPE;
use http::uri::Authority;
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout, timeout_at};

use super::case::{Case, Recorded, Step};
use super::projection::project;
use super::received::{compare, hide_administrator};
use super::references::{References, uids};
use super::server::Server;
use super::webhooks::Webhooks;
use crate::diff::{Rule, diff_by};
use crate::exchange::{Answer, Credentials};
use crate::masks::Masks;
use crate::remote::Remote;

/// Default time limit of the client.
const PATIENCE: Duration = Duration::from_secs(60);

/// Headers that a response has only if the recorded one does.
const COUNTED_HEADERS: [&str; 2] = ["warning", "retry-after"];

/// Path of the server's own address in discovery, which differs from the recorded server's.
const SERVER_ADDRESS: &str = "serverAddressByClientCIDRs[0].serverAddress";

/// Namespace of a case with its own server.
const NAMESPACE: &str = "recorded";

/// A replay in progress.
struct Replay<'a> {
    server: &'a Server,
    webhooks: Option<Webhooks>,
    references: References,
    rule: Masked,
    differences: Vec<String>,
}

/// Comparison rule: masked texts match, numbers are compared by value, field ownership is compared
/// on request, and the server's own address is ignored.
struct Masked {
    masks: Masks,
    managed_fields: bool,
}

impl Rule for Masked {
    fn equal(&self, path: &str, expected: &Value, actual: &Value) -> bool {
        match (expected, actual) {
            (Value::String(_), Value::String(address)) if path.ends_with(SERVER_ADDRESS) => {
                let parsed = address.parse::<Authority>();
                parsed.is_ok_and(|authority| authority.port().is_some())
            }
            (Value::String(masked), Value::String(text)) => self.masks.match_text(masked, text),
            (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
            _ => expected == actual,
        }
    }

    fn ignores(&self, member: &str) -> bool {
        member == "managedFields" && !self.managed_fields
    }
}

impl<'a> Replay<'a> {
    /// Runs a case in a namespace; returns the differences of all steps.
    ///
    /// # Errors
    ///
    /// The case's webhooks could not be started.
    async fn run(server: &'a Server, namespace: &str, case: &Case) -> anyhow::Result<Vec<String>> {
        let webhooks = match &case.webhooks {
            Some(responses) => Some(Webhooks::start(responses).await?),
            None => None,
        };
        let mut replay = Self {
            server,
            references: References::new(namespace, webhooks.as_ref()),
            webhooks,
            rule: Masked {
                masks: Masks::default(),
                managed_fields: case.compares_managed_fields(),
            },
            differences: Vec::new(),
        };
        for (index, step) in case.steps.iter().enumerate() {
            replay.step(&format!("step {}", index + 1), step).await;
        }
        Ok(replay.differences)
    }

    async fn step(&mut self, number: &str, step: &Step) {
        let place = format!("{number}, {} {}", step.method, step.path);
        if let Some(webhooks) = &self.webhooks {
            webhooks.replace(&step.webhooks);
        }
        let result = if step.method == "WATCH" {
            Box::pin(self.watch(number, step)).await
        } else {
            self.exchange(step).await
        };
        let result = result.and_then(|mut lines| {
            lines.extend(self.received(step)?);
            Ok(lines)
        });
        let differences = result.unwrap_or_else(|error| vec![format!("{error:#}")]);
        self.differences.extend(
            differences
                .into_iter()
                .map(|line| format!("{place}: {line}")),
        );
    }

    /// Differences in the calls of webhooks since the last step.
    fn received(&self, step: &Step) -> anyhow::Result<Vec<String>> {
        let Some(webhooks) = &self.webhooks else {
            return Ok(Vec::new());
        };
        let expected = step.received.iter().map(|call| self.references.fill(call));
        let expected: Vec<Value> = expected.collect::<anyhow::Result<_>>()?;
        let mut actual = webhooks.take_calls();
        if step.is_administrators() {
            actual.iter_mut().for_each(hide_administrator);
        }
        Ok(compare(&self.rule, &expected, actual))
    }

    async fn exchange(&mut self, step: &Step) -> anyhow::Result<Vec<String>> {
        let patience = step.timeout.map_or(PATIENCE, Duration::from_secs_f64);
        let exchange = async {
            let answer = self.send(step, &step.method).await?;
            let body = answer.body.collect().await;
            let body = body.map_err(|error| anyhow!("read the answer: {error}"))?;
            anyhow::Ok((answer.parts, body.to_bytes()))
        };
        let (parts, bytes) = timeout(patience, exchange)
            .await
            .with_context(|| format!("no answer within {} s", patience.as_secs_f64()))??;
        let body: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        if let Some(id) = &step.id {
            self.references.keep(id, &body);
        }
        let recorded = &step.response;
        let status = parts.status.as_u16();
        if recorded.status != status {
            let text = String::from_utf8_lossy(&bytes);
            return Ok(vec![format!(
                "status: expected {}, is {status}: {text}",
                recorded.status
            )]);
        }
        let mut lines = self.head(recorded, &parts.headers);
        if let Some(text) = &recorded.text {
            let expected = Value::from(self.references.fill_text(text)?);
            let actual = Value::from(String::from_utf8_lossy(&bytes));
            lines.extend(diff_by(&self.rule, &expected, &actual));
            return Ok(lines);
        }
        let expected = self.references.fill(&recorded.body)?;
        let actual = match &step.project {
            Some(how) => project(how, &body, &expected)?,
            None => body,
        };
        lines.extend(diff_by(&self.rule, &expected, &actual));
        Ok(lines)
    }

    /// Differences in the headers.
    fn head(&self, recorded: &Recorded, headers: &HeaderMap) -> Vec<String> {
        let mut lines = Vec::new();
        let found = header(headers, CONTENT_TYPE.as_str());
        let essence = found.split(';').next().unwrap_or_default().trim();
        if let Some(expected) = &recorded.content_type
            && expected != essence
        {
            lines.push(format!("content type: expected {expected:?}, is {found:?}"));
        }
        let unrecorded = COUNTED_HEADERS
            .into_iter()
            .filter(|name| !recorded.headers.contains_key(*name));
        let expected = recorded
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str().unwrap_or_default()))
            .chain(unrecorded.map(|name| (name, "")));
        for (name, expected) in expected {
            let found = header(headers, name);
            if !self.rule.masks.match_text(expected, &found) {
                lines.push(format!("{name}: expected {expected:?}, is {found:?}"));
            }
        }
        lines
    }

    async fn watch(&mut self, number: &str, step: &Step) -> anyhow::Result<Vec<String>> {
        let seconds = step.seconds.map_or(PATIENCE, Duration::from_secs_f64);
        let end = Instant::now() + seconds;
        let answer = timeout_at(end, self.send(step, "GET"));
        let answer = answer.await.context("no answer")??;
        let (status, headers) = (answer.parts.status.as_u16(), &answer.parts.headers);
        for (index, inner) in step.during.iter().enumerate() {
            self.step(&format!("{number}.{}", index + 1), inner).await;
        }
        let mut text = Vec::new();
        let mut body = answer.body;
        // The server closes the stream or the client stops; events received by then count.
        while let Ok(Some(frame)) = timeout_at(end, body.frame()).await {
            let frame = frame.map_err(|error| anyhow!("read the stream: {error}"))?;
            text.extend(frame.into_data().iter().flatten());
        }
        let mut events = Vec::new();
        for line in String::from_utf8_lossy(&text).lines() {
            let event = serde_json::from_str(line);
            events.push(summary(
                &event.with_context(|| format!("no event: {line}"))?,
            ));
        }
        let recorded = &step.response;
        let mut lines = self.head(recorded, headers);
        let expected = json!({"status": recorded.status, "events": recorded.events});
        let expected = self.references.fill(&expected)?;
        let actual = json!({"status": status, "events": events});
        lines.extend(diff_by(&self.rule, &expected, &actual));
        Ok(lines)
    }

    async fn send(&mut self, step: &Step, method: &str) -> anyhow::Result<Answer> {
        let mut request = Request::builder()
            .method(method)
            .uri(self.references.fill_text(&step.path)?);
        for (name, value) in &step.headers {
            request = request.header(name, self.references.fill_text(value)?);
        }
        if !request
            .headers_ref()
            .is_some_and(|headers| headers.contains_key(CONTENT_TYPE))
        {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let body = match &step.body {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => self.references.fill_text(text)?,
            Some(other) => {
                let body = self.references.fill(other)?;
                uids(&body, &mut self.rule.masks.sent_uids);
                body.to_string()
            }
        };
        let request = request.body(body.into()).context("make the request")?;
        self.server.send(request, &step.token).await
    }
}

/// Values of a header, joined; empty without the header.
fn header(headers: &HeaderMap, name: &str) -> String {
    let values = headers.get_all(name).iter();
    let values: Vec<_> = values
        .map(|value| String::from_utf8_lossy(value.as_bytes()))
        .collect();
    values.join(", ")
}

/// Reduces an event like recordings do: bookmarks and errors are kept whole, objects by identity.
fn summary(event: &Value) -> Value {
    if event["type"] == "BOOKMARK" || event["type"] == "ERROR" {
        return event.clone();
    }
    let metadata = &event["object"]["metadata"];
    json!({
        "type": event["type"],
        "name": metadata["name"],
        "labels": metadata["labels"],
        "terminating": metadata.get("deletionTimestamp").is_some(),
    })
}

/// Runs a case against its own server.
pub(super) async fn in_process(case: &Case) -> anyhow::Result<Vec<String>> {
    let server = Server::embedded().await?;
    server.create_namespace(NAMESPACE).await?;
    let differences = Replay::run(&server, NAMESPACE, case).await;
    server.stop().await;
    differences
}

/// Runs a case against a shared server; deletes its namespace afterwards.
pub(super) async fn over_the_wire(
    case: &Case,
    index: usize,
    remote: &Remote,
) -> anyhow::Result<Vec<String>> {
    let namespace = format!("conformance-{}-{}", remote.run, index + 1);
    let server = Server::Remote(remote.clone());
    let created = server.create_namespace(&namespace).await;
    created.with_context(|| format!("create the namespace {namespace}"))?;
    let differences = Replay::run(&server, &namespace, case).await;
    let request = Request::builder()
        .method(Method::DELETE)
        .uri(format!("/api/v1/namespaces/{namespace}"))
        .body(Full::default())?;
    let deleted = server.send(request, &Credentials::Administrator).await;
    deleted.with_context(|| format!("delete the namespace {namespace}"))?;
    differences
}
