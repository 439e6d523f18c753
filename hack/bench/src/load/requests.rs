//! Counts of the controller's requests.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;
use kube::Client;
use serde::Deserialize;

use super::progress::progress;

/// User agent of the driver, which distinguishes its requests in audit logs from the controller's.
pub(super) const AGENT: &str = "bench-load";

/// Counts by verb and resource, such as `create pods` or `update statefulsets/status`.
pub(crate) type Counts = BTreeMap<String, u64>;

/// The driver's own requests, which a server's metrics count too.
#[derive(Debug, Default)]
pub(crate) struct Own(Mutex<Counts>);

impl Own {
    /// Counts one.
    pub(crate) fn add(&self, call: &str) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(call.to_owned()).or_default() += 1;
    }

    fn counts(&self) -> Counts {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.clone()
    }
}

/// A source of counts since its start or the last [take](Self::take).
pub(crate) enum Requests {
    /// The embedded server's log names the client of each request.
    AuditLog {
        /// Its file.
        path: PathBuf,
        /// Length of the part that was read, in bytes.
        read: u64,
    },
    /// Metrics count the requests of all clients; those of other programs count too.
    Metrics {
        /// Client of the server.
        client: Client,
        /// The last counts.
        before: Counts,
        /// The driver's counts at that time.
        own: Counts,
    },
    /// The server shows no counts.
    Unknown,
}

impl Requests {
    /// Counts of an audit log from its present end on.
    pub(crate) fn of_audit_log(path: PathBuf) -> anyhow::Result<Self> {
        let read = std::fs::metadata(&path)
            .with_context(|| format!("read {}", path.display()))?
            .len();
        Ok(Self::AuditLog { path, read })
    }

    /// Counts of a server's metrics from now on; none if the server refuses to show them.
    pub(crate) async fn of_metrics(client: Client, title: &str) -> anyhow::Result<Self> {
        match metrics(&client).await {
            Ok(before) if before.is_empty() => {
                let text = "requests aren't counted: no apiserver_request_total in /metrics";
                progress(title, text);
                Ok(Self::Unknown)
            }
            Ok(before) => Ok(Self::Metrics {
                client,
                before,
                own: Counts::new(),
            }),
            Err(kube::Error::Api(status)) => {
                let text = format!("requests aren't counted, /metrics: {}", status.message);
                progress(title, &text);
                Ok(Self::Unknown)
            }
            Err(error) => Err(error).context("read the API server's metrics"),
        }
    }

    /// The controller's requests since the last call. Lists and watches of the metrics are left
    /// out, because the driver's are among them.
    pub(crate) async fn take(&mut self, own_now: &Own) -> anyhow::Result<Counts> {
        match self {
            Self::AuditLog { path, read } => {
                let (counts, length) = audited(path, *read)?;
                *read += length;
                Ok(counts)
            }
            Self::Metrics {
                client,
                before,
                own,
            } => {
                let now = metrics(client).await;
                let now = now.context("read the API server's metrics")?;
                let own_now = own_now.counts();
                let mut grown = difference(&now, before);
                grown = difference(&grown, &difference(&own_now, own));
                grown.retain(|call, _| !call.starts_with("list ") && !call.starts_with("watch "));
                (*before, *own) = (now, own_now);
                Ok(grown)
            }
            Self::Unknown => Ok(Counts::new()),
        }
    }
}

fn difference(now: &Counts, before: &Counts) -> Counts {
    now.iter()
        .map(|(call, count)| {
            let before = before.get(call).copied().unwrap_or_default();
            (call.clone(), count.saturating_sub(before))
        })
        .filter(|(_, count)| *count > 0)
        .collect()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AuditEvent {
    stage: String,
    verb: String,
    #[serde(default)]
    user_agent: String,
    object_ref: Option<ObjectRef>,
}

#[derive(Deserialize)]
struct ObjectRef {
    resource: String,
    subresource: Option<String>,
}

/// Counts of the complete lines after the offset, and their length.
fn audited(path: &Path, offset: u64) -> anyhow::Result<(Counts, u64)> {
    let context = || format!("read {}", path.display());
    let mut file = File::open(path).with_context(context)?;
    file.seek(SeekFrom::Start(offset)).with_context(context)?;
    let mut text = Vec::new();
    file.read_to_end(&mut text).with_context(context)?;
    let complete = text.iter().rposition(|byte| *byte == b'\n');
    let length = complete.map_or(0, |end| end + 1);
    let mut counts = Counts::new();
    for line in text[..length].split(|byte| *byte == b'\n') {
        if line.is_empty() {
            continue;
        }
        let event: AuditEvent = serde_json::from_slice(line).with_context(context)?;
        let Some(object) = event.object_ref else {
            continue;
        };
        // A watch has its own line as soon as it has a response.
        let stage = match event.verb.as_str() {
            "watch" => "ResponseStarted",
            _ => "ResponseComplete",
        };
        if event.stage == stage && event.user_agent != AGENT {
            let subresource = object.subresource.unwrap_or_default();
            let call = call(&event.verb, &object.resource, &subresource);
            *counts.entry(call).or_default() += 1;
        }
    }
    Ok((counts, u64::try_from(length)?))
}

fn call(verb: &str, resource: &str, subresource: &str) -> String {
    match subresource {
        "" => format!("{verb} {resource}"),
        _ => format!("{verb} {resource}/{subresource}"),
    }
}

async fn metrics(client: &Client) -> Result<Counts, kube::Error> {
    let request = http::Request::get("/metrics").body(Vec::new());
    let request = request.map_err(kube::Error::HttpError)?;
    Ok(counted(&client.request_text(request).await?))
}

/// Reads `apiserver_request_total` of resources.
fn counted(metrics: &str) -> Counts {
    let mut counts = Counts::new();
    for line in metrics.lines() {
        let Some(sample) = line.strip_prefix("apiserver_request_total{") else {
            continue;
        };
        let Some((labels, value)) = sample.split_once("} ") else {
            continue;
        };
        let label = |name: &str| {
            let mut labels = labels.split(',');
            let label = labels.find_map(|label| label.strip_prefix(name)?.strip_prefix("=\""));
            label
                .map(|label| label.trim_end_matches('"'))
                .unwrap_or_default()
        };
        let (verb, resource) = (label("verb"), label("resource"));
        let Ok(value) = value.trim().parse::<f64>() else {
            continue;
        };
        if !resource.is_empty() {
            let call = call(audit_verb(verb), resource, label("subresource"));
            *counts.entry(call).or_default() += value as u64;
        }
    }
    counts
}

/// The audit log's name of a verb of the metrics.
fn audit_verb(verb: &str) -> &str {
    match verb {
        "POST" => "create",
        "PUT" => "update",
        "PATCH" | "APPLY" => "patch",
        "DELETE" => "delete",
        "DELETECOLLECTION" => "deletecollection",
        "GET" => "get",
        "LIST" => "list",
        "WATCH" => "watch",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn counts<const N: usize>(counts: [(&str, u64); N]) -> Counts {
        counts.map(|(call, count)| (call.to_owned(), count)).into()
    }

    #[test]
    fn metrics_are_summed_by_verb_and_resource() {
        let text = "# HELP x\n\
            apiserver_request_total{code=\"201\",resource=\"pods\",subresource=\"\",verb=\"POST\"} 3\n\
            apiserver_request_total{code=\"409\",resource=\"pods\",subresource=\"\",verb=\"POST\"} 1\n\
            apiserver_request_total{code=\"200\",resource=\"pods\",subresource=\"status\",verb=\"PATCH\"} 2\n\
            apiserver_request_total{code=\"200\",resource=\"\",subresource=\"/healthz\",verb=\"GET\"} 9\n";
        let expected = counts([("create pods", 4), ("patch pods/status", 2)]);
        assert_eq!(counted(text), expected);
    }

    #[test]
    fn audit_log_counts_complete_lines_of_other_agents() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut event = |agent: &str, stage: &str, verb: &str| {
            writeln!(
                file,
                r#"{{"stage":"{stage}","verb":"{verb}","userAgent":"{agent}","objectRef":{{"resource":"pods"}}}}"#
            )
            .unwrap();
        };
        event("x", "ResponseComplete", "create");
        event(AGENT, "ResponseComplete", "create");
        event("x", "ResponseStarted", "watch");
        event("x", "ResponseComplete", "watch");
        write!(file, "{{").unwrap();
        let (read, length) = audited(file.path(), 0).unwrap();
        assert_eq!(read, counts([("create pods", 1), ("watch pods", 1)]));
        assert_eq!(length + 1, file.path().metadata().unwrap().len());
    }

    #[test]
    fn difference_leaves_out_what_did_not_grow() {
        let now = counts([("get pods", 4), ("list pods", 2)]);
        let before = counts([("get pods", 4), ("list pods", 1)]);
        assert_eq!(difference(&now, &before), counts([("list pods", 1)]));
    }
}
