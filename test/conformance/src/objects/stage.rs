//! Embedded control plane for the replay of cases.

use std::collections::BTreeSet;
use std::io::{self, Write};

use anyhow::{Context as _, anyhow, ensure};
use http::Request;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt as _, Full};
use kube_test_control_plane::TestControlPlane;
use serde::Serialize as _;
use serde_json::ser::Formatter;
use serde_json::value::RawValue;
use serde_json::{Serializer, Value, json};

use super::case::Case;
use super::compare::{Response, compare};
use super::difference::Difference;

/// Namespace of all cases.
const NAMESPACE: &str = "objects";

/// Path of the sets.
const SETS: &str = "/apis/apps/v1/namespaces/objects/statefulsets";

/// Network of the services' addresses on the recorded server.
const SERVICE_RANGE: &str = "10.0.0.0/16";

/// The field manager of the objects before the requests.
const MANAGER: &str = "before";

/// A control plane with the objects that cases expect.
#[derive(Debug)]
pub(super) struct Stage {
    plane: TestControlPlane,
    /// Paths of the objects that cases have before their requests.
    made: BTreeSet<String>,
}

impl Stage {
    /// Starts a control plane without actors, with the namespace and the classes that objects refer
    /// to.
    pub(super) async fn start() -> anyhow::Result<Self> {
        let plane = TestControlPlane::builder()
            .service_cluster_ip_range(SERVICE_RANGE.parse()?)
            .try_start()
            .await?;
        let stage = Self {
            plane,
            made: BTreeSet::new(),
        };
        for (path, object) in [
            (
                "/api/v1/namespaces",
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
            ),
            (
                "/apis/scheduling.k8s.io/v1/priorityclasses",
                json!({
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": "high"},
                    "value": 1000,
                }),
            ),
            (
                "/apis/storage.k8s.io/v1/storageclasses",
                json!({
                    "apiVersion": "storage.k8s.io/v1",
                    "kind": "StorageClass",
                    "metadata": {"name": "fast"},
                    "provisioner": "a.example/p",
                    "allowVolumeExpansion": true,
                }),
            ),
            (
                "/apis/node.k8s.io/v1/runtimeclasses",
                json!({
                    "apiVersion": "node.k8s.io/v1",
                    "kind": "RuntimeClass",
                    "metadata": {"name": "rc"},
                    "handler": "h",
                    "overhead": {"podFixed": {"cpu": "10m"}},
                }),
            ),
        ] {
            stage.create(path, &object).await?;
        }
        Ok(stage)
    }

    /// Sends the request of a case; returns the difference of the response.
    pub(super) async fn replay(&mut self, case: &Case) -> anyhow::Result<Option<Difference>> {
        if let Some(before) = &case.before {
            self.make(case, before).await?;
        }
        let mut sent = match &case.body {
            Some(body) => spaced(body)?,
            None => self.changed(case).await?,
        };
        if sent.contains("{{rv}}") {
            let version = self.stored(case).await?;
            let version = version["metadata"]["resourceVersion"].as_str();
            sent = sent.replace("{{rv}}", version.unwrap_or_default());
        }
        let content_type = case.headers.get("Content-Type");
        let content_type = content_type.map_or("application/json", String::as_str);
        let target = format!("{}?{}", case.path, case.query);
        let response = self.ask(&case.method, &target, content_type, sent);
        Ok(compare(case, &response.await?))
    }

    /// Makes the object before a request, once.
    async fn make(&mut self, case: &Case, before: &Value) -> anyhow::Result<()> {
        let path = object_path(case);
        if !self.made.insert(path.to_owned()) {
            return Ok(());
        }
        if !case.stored {
            let (collection, _) = path.rsplit_once('/').context("a path of an object")?;
            return self.create(collection, before).await;
        }
        let mut object = before.clone();
        let metadata = &mut object["metadata"];
        if path.contains("/namespaces/") {
            metadata["namespace"] = json!(NAMESPACE);
        }
        metadata["generation"] = json!(1);
        metadata["creationTimestamp"] = json!("2020-01-01T00:00:00Z");
        Ok(self.plane.store_raw(&object)?)
    }

    async fn create(&self, collection: &str, object: &Value) -> anyhow::Result<()> {
        let target = format!("{collection}?fieldManager={MANAGER}");
        let body = object.to_string();
        let response = self.ask("POST", &target, "application/json", body).await?;
        let (status, body) = (response.status, &response.body);
        ensure!(status == 201, "create {}: {body}", object["metadata"]);
        Ok(())
    }

    /// The stored object with the changes of a case.
    async fn changed(&self, case: &Case) -> anyhow::Result<String> {
        let mut object = self.stored(case).await?;
        for change in &case.change {
            change.apply(&mut object);
        }
        spaced(&object)
    }

    async fn stored(&self, case: &Case) -> anyhow::Result<Value> {
        let path = object_path(case);
        let response = self.ask("GET", path, "application/json", String::new());
        let response = response.await?;
        ensure!(response.status == 200, "get {path}: {}", response.status);
        Ok(response.body)
    }

    /// Creates a set as a dry run; returns the response's text.
    pub(super) async fn create_set(&self, set: &RawValue) -> anyhow::Result<String> {
        let target = format!("{SETS}?dryRun=All");
        let set = set.get().to_owned();
        let reply = self.send("POST", &target, "application/json", set).await?;
        let (status, text) = (reply.status(), String::from_utf8(reply.into_body())?);
        ensure!(status == 201, "create the set: {status}: {text}");
        Ok(text)
    }

    async fn ask(
        &self,
        method: &str,
        target: &str,
        content_type: &str,
        body: String,
    ) -> anyhow::Result<Response> {
        let reply = self.send(method, target, content_type, body).await?;
        let (parts, body) = reply.into_parts();
        Ok(Response {
            status: parts.status.as_u16(),
            warnings: parts
                .headers
                .get_all("warning")
                .iter()
                .filter_map(|value| std::str::from_utf8(value.as_bytes()).ok())
                .map(str::to_owned)
                .collect(),
            body: serde_json::from_slice(&body).unwrap_or_default(),
        })
    }

    async fn send(
        &self,
        method: &str,
        target: &str,
        content_type: &str,
        body: String,
    ) -> anyhow::Result<http::Response<Vec<u8>>> {
        let request = Request::builder()
            .method(method)
            .uri(target)
            .header(CONTENT_TYPE, content_type)
            .body(Full::from(body))
            .context("make the request")?;
        let reply = self.plane.server().serve(request).await;
        let (parts, body) = reply.context("ask the embedded server")?.into_parts();
        let body = body.collect().await;
        let body = body.map_err(|error| anyhow!("read the response: {error}"))?;
        Ok(http::Response::from_parts(parts, body.to_bytes().into()))
    }
}

/// Formats JSON as the recorder did, with a space after each comma and colon: some errors quote the
/// body.
fn spaced(value: &Value) -> anyhow::Result<String> {
    let mut text = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut text, Spaced);
    value
        .serialize(&mut serializer)
        .context("format the body")?;
    String::from_utf8(text).context("format the body")
}

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: Write + ?Sized>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, to: &mut W) -> io::Result<()> {
        to.write_all(b": ")
    }
}

/// Path of a case's object, without its subresource.
fn object_path(case: &Case) -> &str {
    match case.verb.split_once('-') {
        None => &case.path,
        Some(_) => case.path.rsplit_once('/').map_or("", |(path, _)| path),
    }
}
