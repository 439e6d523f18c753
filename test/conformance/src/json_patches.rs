//! Replay of JSON patches of one object, against the embedded API server or another.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::apiserver::{self, Against, Server};
use crate::exchange::Credentials;
use crate::files;
use crate::masks::{Masks, mask_quoted};
use crate::report::{Report, Verdict};

/// Path of the collection with the patched object. Messages contain its namespace.
const COLLECTION: &str = "/api/v1/namespaces/default/configmaps";

/// Status of a case in which upstream's handler panics. Any client error passes there.
const PANIC: u16 = 0;

/// A file of cases.
#[derive(Debug, Deserialize)]
struct Recorded {
    /// The object before each patch.
    before: Value,
    cases: Vec<Case>,
}

/// A patch and its result.
#[derive(Debug, Deserialize)]
struct Case {
    id: u64,
    patch: Box<RawValue>,
    status: u16,
    /// The compared parts of the object afterwards.
    object: Option<Value>,
    reason: Option<String>,
    message: Option<String>,
}

/// Runs all cases of all files.
///
/// # Errors
///
/// A file can't be read or has another format, or the server can't be started.
pub fn run(files: &[PathBuf], against: &Against) -> anyhow::Result<Report> {
    let files: Vec<Recorded> = files
        .iter()
        .map(|file| read(file))
        .collect::<anyhow::Result<_>>()?;
    let runtime = apiserver::runtime(against)?;
    let verdicts = runtime.block_on(async {
        let server = Server::start(against).await?;
        let mut verdicts = Vec::new();
        for file in &files {
            for case in &file.cases {
                verdicts.push(judge(&server, &file.before, case).await);
            }
        }
        server.stop().await;
        anyhow::Ok(verdicts)
    })?;
    Ok(verdicts.into_iter().collect())
}

fn read(file: &Path) -> anyhow::Result<Recorded> {
    let recorded: Recorded = files::one(file, "recorded JSON patches")?;
    ensure!(!recorded.cases.is_empty(), "{} has no case", file.display());
    Ok(recorded)
}

async fn judge(server: &Server, before: &Value, case: &Case) -> Verdict {
    let id = format!("{} {}", case.id, case.patch);
    let result = replay(server, before, case).await;
    let deleted = delete(server, before).await;
    match result.and_then(|differences| deleted.map(|()| differences)) {
        Ok(differences) => Verdict {
            id,
            differences,
            deviations: Vec::new(),
        },
        Err(error) => Verdict::broken(id, &error),
    }
}

/// Creates the object, patches it, and compares the response.
async fn replay(server: &Server, before: &Value, case: &Case) -> anyhow::Result<Vec<String>> {
    let body = before.to_string();
    let (status, created) = send(server, Method::POST, COLLECTION, "json", body).await?;
    ensure!(
        status == StatusCode::CREATED,
        "the object isn't created: {status} {created}"
    );
    let patch = case.patch.get().to_owned();
    let path = path_of(before);
    let (status, body) = send(server, Method::PATCH, &path, "json-patch+json", patch).await?;
    let version = &created["metadata"]["resourceVersion"];
    Ok(compare(case, version, status, &body))
}

/// Returns the differences of a response. `version` is the resource version before the patch.
fn compare(case: &Case, version: &Value, status: StatusCode, body: &Value) -> Vec<String> {
    if case.status == PANIC {
        let is_error = status.is_client_error() && body["message"].is_string();
        let difference = format!("expected a client error, is {status}: {body}");
        return if is_error { vec![] } else { vec![difference] };
    }
    let (expected, found) = (case.status, status.as_u16());
    if expected != found {
        return vec![format!("status: expected {expected}, is {found}: {body}")];
    }
    let mut differences = Vec::new();
    if let Some(object) = &case.object {
        let metadata = &body["metadata"];
        for (part, found) in [
            ("labels", &metadata["labels"]),
            ("annotations", &metadata["annotations"]),
            ("finalizers", &metadata["finalizers"]),
            ("data", &body["data"]),
        ] {
            if !are_equal(&object[part], found, version) {
                differences.push(format!("{part}: expected {}, is {found}", object[part]));
            }
        }
    } else {
        let (expected, found) = (json!(case.reason), &body["reason"]);
        if expected != *found {
            differences.push(format!("reason: expected {expected}, is {found}"));
        }
        let expected = mask_quoted(case.message.as_deref().unwrap_or_default());
        let found = body["message"].as_str().unwrap_or_default();
        if !Masks::default().match_text(&expected, found) {
            differences.push(format!("message: expected {expected}, is {found}"));
        }
    }
    differences
}

/// Compares a part of the object. A text may be the resource version, which a patch can copy.
fn are_equal(expected: &Value, found: &Value, version: &Value) -> bool {
    match (expected, found) {
        (Value::String(expected), found) if found == version => {
            Masks::default().match_text("<rv>", expected)
        }
        (Value::Object(expected), Value::Object(found)) => {
            let same = |name: &String, value| {
                let found = found.get(name);
                found.is_some_and(|found| are_equal(value, found, version))
            };
            expected.len() == found.len() && expected.iter().all(|(name, value)| same(name, value))
        }
        _ => expected == found,
    }
}

/// Deletes the object, finalizers first.
async fn delete(server: &Server, before: &Value) -> anyhow::Result<()> {
    let path = path_of(before);
    let release = json!({"metadata": {"finalizers": null}}).to_string();
    send(server, Method::PATCH, &path, "merge-patch+json", release).await?;
    let (status, body) = send(server, Method::DELETE, &path, "json", String::new()).await?;
    let is_gone = status.is_success() || status == StatusCode::NOT_FOUND;
    ensure!(is_gone, "the object isn't deleted: {status} {body}");
    Ok(())
}

fn path_of(before: &Value) -> String {
    let name = before["metadata"]["name"].as_str().unwrap_or_default();
    format!("{COLLECTION}/{name}")
}

/// Sends a request with a body of this subtype of `application`.
async fn send(
    server: &Server,
    method: Method,
    path: &str,
    subtype: &str,
    body: String,
) -> anyhow::Result<(StatusCode, Value)> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(CONTENT_TYPE, format!("application/{subtype}"))
        .body(Full::new(Bytes::from(body)))?;
    let answer = server.send(request, &Credentials::Administrator).await?;
    let text = answer.body.collect().await;
    let text = text
        .map_err(|error| anyhow::anyhow!("{error}"))
        .with_context(|| format!("read the response of {path}"))?
        .to_bytes();
    let body = serde_json::from_slice(&text)
        .unwrap_or_else(|_| Value::from(String::from_utf8_lossy(&text).into_owned()));
    Ok((answer.parts.status, body))
}
