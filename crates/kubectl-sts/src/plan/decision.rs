//! The cluster's decision about the change.
//!
//! The cluster's server decides by a dry run. Where it can't be asked, the validation of the
//! embedded server gives a hint.

use anyhow::{Context as _, anyhow, bail};
use serde_json::Value;

use super::change::{self, Part};
use super::outcome::Rejected;
use super::situation::Situation;
use super::virtual_time::in_virtual_time;
use super::world;
use crate::server::{
    CLAIMS, DryRun, DryVerb, JSON, PODS, REVISIONS, STATEFUL_SETS, Server, Verdict, ask,
};

/// The reason if another client created or changed the set.
const CHANGED: &str = "the set changed in the meantime";

/// The changed set as the cluster's server would store it. Where the server can't be asked, as the
/// embedded server stores it.
///
/// # Errors
///
/// The server would refuse the change, or can't be asked and the embedded server's validation
/// objects.
pub(super) async fn changed(
    server: &Server,
    situation: &Situation<'_>,
    parts: &[Part],
) -> anyhow::Result<Value> {
    let mut unknown = None;
    if let [only] = parts {
        let run = DryRun {
            verb: only.verb,
            resource: &STATEFUL_SETS,
            namespace: situation.namespace,
            name: situation.name,
            format: only.format,
            query: only.query,
            body: &only.body,
        };
        match ask(server, &run).await? {
            Verdict::Accepted(set) => return Ok(set),
            Verdict::Refused(message) => bail!("the server would refuse the change: {message}"),
            Verdict::Unknown(reason) => unknown = Some(reason),
            Verdict::Exists => unknown = Some(CHANGED.to_owned()),
        }
    }
    let reason = match whole(server, situation, parts).await? {
        Verdict::Accepted(set) => return Ok(set),
        Verdict::Refused(message) => bail!("the server would refuse the change: {message}"),
        Verdict::Unknown(reason) => unknown.unwrap_or(reason),
        Verdict::Exists => CHANGED.to_owned(),
    };
    server.note(format!("server-side dry run skipped: {reason}"));
    let own = in_virtual_time(|| world::change(situation, parts, true));
    own.map_err(|objection| {
        anyhow!(
            "the server was not asked ({reason}); the validation of this program, which may \
             differ from the server's, objects: {objection:#}"
        )
    })
}

/// The decision about all parts together: the copy combines them without validation.
async fn whole(
    server: &Server,
    situation: &Situation<'_>,
    parts: &[Part],
) -> anyhow::Result<Verdict> {
    let copied = match in_virtual_time(|| world::change(situation, parts, false)) {
        Ok(copied) => copied,
        Err(error) if parts.len() > 1 => {
            let action = "combine the parts of the change; plan them one by one";
            return Err(error.context(action));
        }
        Err(error) => return Ok(Verdict::Unknown(format!("make the change: {error:#}"))),
    };
    let mut asked = Verdict::Unknown("no verb is left".to_owned());
    for (verb, format, body) in wholes(situation, &copied)? {
        let run = DryRun {
            verb,
            resource: &STATEFUL_SETS,
            namespace: situation.namespace,
            name: situation.name,
            format,
            query: "",
            body: &body,
        };
        asked = ask(server, &run).await?;
        if !matches!(asked, Verdict::Unknown(_)) {
            break;
        }
    }
    Ok(asked)
}

/// The requests that make the whole change at once, each with another verb: a user may have the
/// permission for one of them only.
fn wholes(
    situation: &Situation<'_>,
    copied: &Value,
) -> anyhow::Result<Vec<(DryVerb, &'static str, Value)>> {
    let Some(set) = situation.snapshot.set.as_ref() else {
        let set = change::new_set(situation.name, copied);
        return Ok(vec![(DryVerb::Create, JSON, set)]);
    };
    let live: Value = serde_json::from_str(&set.text).context("decode the set")?;
    let whole = change::with_content(live.clone(), copied);
    let patch = change::merge_patch(&live, &whole);
    Ok(vec![
        (DryVerb::Patch, change::MERGE, patch),
        (DryVerb::Update, JSON, whole),
    ])
}

/// The reason for which an object that only the validation of the copy rejects can't be created;
/// none if the cluster's server accepts it.
pub(super) async fn about_rejected(
    server: &Server,
    situation: &Situation<'_>,
    rejected: &Rejected,
) -> anyhow::Result<Option<String>> {
    let (kind, resource) = match rejected.resource.as_str() {
        "pods" => ("pod", &PODS),
        "persistentvolumeclaims" => ("claim", &CLAIMS),
        _ => ("revision", &REVISIONS),
    };
    let (name, own) = (&rejected.name, &rejected.message);
    let run = DryRun {
        verb: DryVerb::Create,
        resource,
        namespace: situation.namespace,
        name,
        format: JSON,
        query: "",
        body: &rejected.body,
    };
    Ok(match ask(server, &run).await? {
        // A conflict with the existing object comes after the validation.
        Verdict::Accepted(_) | Verdict::Exists => None,
        Verdict::Refused(message) => Some(format!(
            "the server would refuse to create {kind} {name}: {message}"
        )),
        Verdict::Unknown(reason) => Some(format!(
            "the validation of this program, which may differ from the server's, objects to \
             {kind} {name}: {own} (the server was not asked: {reason})"
        )),
    })
}
