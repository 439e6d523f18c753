//! Dry runs: the server's decision about a write, which it doesn't store.

use anyhow::Context as _;
use http::{Method, Request};
use serde_json::Value;

use super::{Resource, Server};

/// Format of whole objects.
pub(crate) const JSON: &str = "application/json";

/// A write to decide about.
#[derive(Clone, Debug)]
pub(crate) struct DryRun<'a> {
    pub(crate) verb: DryVerb,
    pub(crate) resource: &'a Resource,
    pub(crate) namespace: &'a str,
    /// Name of the object to change.
    pub(crate) name: &'a str,
    /// Format of the body.
    pub(crate) format: &'a str,
    /// More of the query, such as `force=true`.
    pub(crate) query: &'a str,
    pub(crate) body: &'a Value,
}

/// The verb of a dry run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DryVerb {
    /// Creates the object.
    Create,
    /// Replaces the object.
    Update,
    /// Patches the object.
    Patch,
}

/// The server's decision about a write.
#[derive(Clone, Debug)]
pub(crate) enum Verdict {
    /// It would store this state.
    Accepted(Value),
    /// It would refuse the write, for this reason.
    Refused(String),
    /// An object of this name exists, or has another version: the write is valid otherwise.
    Exists,
    /// It can't be asked, for this reason.
    Unknown(String),
}

impl DryVerb {
    /// The verb as RBAC rules spell it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
        }
    }

    fn method(self) -> Method {
        match self {
            Self::Create => Method::POST,
            Self::Update => Method::PUT,
            Self::Patch => Method::PATCH,
        }
    }
}

/// Asks the server about a write.
///
/// # Errors
///
/// The server can't be reached, or its response can't be decoded.
pub(crate) async fn ask(server: &Server, run: &DryRun<'_>) -> anyhow::Result<Verdict> {
    let collection = run.resource.path(Some(run.namespace));
    let path = match run.verb {
        DryVerb::Create => collection,
        DryVerb::Update | DryVerb::Patch => format!("{collection}/{}", run.name),
    };
    let query = match run.query {
        "" => String::new(),
        query => format!("&{query}"),
    };
    let request = Request::builder()
        .method(run.verb.method())
        .uri(format!("{path}?dryRun=All{query}"))
        .header("content-type", run.format)
        .body(run.body.to_string().into_bytes())?;
    match server.client.request_text(request).await {
        Ok(text) => serde_json::from_str(&text)
            .map(Verdict::Accepted)
            .context("decode the response to the dry run"),
        Err(kube::Error::Api(status)) => {
            let place = run.resource.place(Some(run.namespace));
            Ok(judged(run.verb, &place, status.code, &status.message))
        }
        Err(error) => Err(anyhow::Error::new(error).context("check the change")),
    }
}

/// The decision in an error response. Missing permissions, a conflict, an overloaded server
/// and a webhook without dry runs say nothing about the write.
fn judged(verb: DryVerb, place: &str, code: u16, message: &str) -> Verdict {
    let is_creation = matches!(verb, DryVerb::Create);
    let verb = verb.as_str();
    let lacks_permission = code == 403 && message.contains(&format!("cannot {verb} resource"));
    let is_webhook_down = code == 500 && message.contains("failed calling webhook");
    match code {
        _ if lacks_permission => Verdict::Unknown(format!("needs permission to {verb} {place}")),
        400 if message.contains("does not support dry run") => Verdict::Unknown(message.to_owned()),
        // Only the namespace of a new object can be missing.
        404 if is_creation => Verdict::Refused(message.to_owned()),
        404 => Verdict::Unknown(format!("the object doesn't exist: {message}")),
        409 => Verdict::Exists,
        401 | 429 | 500.. if !is_webhook_down => {
            Verdict::Unknown(format!("the server responds with {code}: {message}"))
        }
        _ => Verdict::Refused(message.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_decisions_about_the_write_refuse_it() {
        let rbac = "statefulsets.apps \"web\" is forbidden: User \"jane\" cannot patch resource \
                    \"statefulsets\" in API group \"apps\" in the namespace \"db\"";
        let cases = [
            (403, rbac, false),
            (403, "exceeded quota: small, requested: count/sets=1", true),
            (
                403,
                "admission webhook denied: you cannot patch on Fridays",
                true,
            ),
            (422, "StatefulSet.apps \"web\" is invalid", true),
            (
                400,
                "admission webhook \"a\" does not support dry run",
                false,
            ),
            (400, "strict decoding error", true),
            (409, "the object has been modified", false),
            (429, "too many requests", false),
            (
                500,
                "failed calling webhook \"a\": connection refused",
                true,
            ),
            (500, "etcdserver: request timed out", false),
            (
                503,
                "the server is currently unable to handle the request",
                false,
            ),
        ];
        for (code, message, is_refused) in cases {
            let verdict = judged(
                DryVerb::Patch,
                "statefulsets in namespace db",
                code,
                message,
            );
            let refuses = matches!(verdict, Verdict::Refused(_));
            assert_eq!(refuses, is_refused, "{code} {message}: {verdict:?}");
        }
    }
}
