//! Growth of a set's claims: shows the plan, writes the annotations, follows the claims.

mod claims;
mod sizes;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde::Serialize;
use serde_json::{Value, json};
use statefulset_controller::opt_ins::{CLAIMS_RESIZED, Carrier, ClaimState};
use tokio::time::{Instant, sleep};

use super::progress::Progress;
use super::{carried, write};
use crate::Session;
use crate::cli::ResizeArguments;
use crate::cluster::{Cluster, text};
use crate::output::{counted, printable, table};
use crate::server::{STATEFUL_SETS, Server};
use crate::session::Verdict;
use claims::{Planned, planned};
use sizes::Sizes;

/// Time between two looks at the claims.
const LOOK: Duration = Duration::from_secs(2);

/// Time after which a controller with the gate has written the condition.
const CONDITION_MAX: Duration = Duration::from_secs(15);

/// The end of a resize.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Resized {
    annotations: BTreeMap<&'static str, Option<String>>,
    claims: Vec<Planned>,
    is_written: bool,
    /// The end in one sentence.
    conclusion: String,
    #[serde(skip)]
    verdict: Verdict,
}

impl Resized {
    /// The result for scripts.
    pub(crate) fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// The end for people, who have seen the plan and the steps.
    pub(crate) fn text(&self) -> String {
        printable(&self.conclusion) + "\n"
    }
}

/// Lets the claims of a set grow. `live` gets the plan and each change of a claim's state.
///
/// # Errors
///
/// The set can't be read, a size is refused before anything is written, or the set changed in the
/// meantime.
pub(crate) async fn resize(
    server: &Server,
    session: &Session,
    arguments: &ResizeArguments,
    live: &mut dyn FnMut(&str),
) -> anyhow::Result<Resized> {
    let (namespace, name) = (&session.namespace, &arguments.name);
    let set: Value = server.get_existing(&STATEFUL_SETS, namespace, name).await?;
    let progress = Progress::read(server, session, name).await?;
    ensure!(
        !progress.is_built_in,
        "the built-in controller serves StatefulSet {name} and ignores the annotations; run this \
         project's controller with the feature gate {}",
        Carrier::ClaimSize.gate()
    );
    let sizes = Sizes::of(&set, &arguments.sizes)?;
    let cluster = Cluster::new(session.client.clone());
    let resize = arguments.with_pod.then_some("with-pod");
    let resize = resize.or_else(|| carried(&set, Carrier::ClaimResize));
    let resize = resize.map(str::to_owned);
    let restarts = resize.as_deref() == Some("with-pod");
    let claims = planned(&cluster, namespace, (&set, restarts), &sizes).await?;
    live(&rows(&claims));
    let larger = claims
        .iter()
        .find(|it| it.state == ClaimState::ShrinkRefused.reason());
    if let Some(larger) = larger {
        let Planned {
            claim,
            request,
            wanted,
            ..
        } = larger;
        bail!("claim {claim} requests {request}, more than {wanted}, and claims never shrink");
    }
    let annotations = BTreeMap::from([
        (Carrier::ClaimSize.annotation(), Some(sizes.to_string())),
        (Carrier::ClaimResize.annotation(), resize),
    ]);
    let mut resized = Resized {
        annotations,
        claims,
        is_written: false,
        conclusion: "nothing was written".to_owned(),
        verdict: Verdict::Clear,
    };
    try_out(&cluster, session, &set, &resized.annotations).await?;
    if arguments.dry_run {
        return Ok(resized);
    }
    write(session, &set, json!(resized.annotations)).await?;
    resized.is_written = true;
    for (annotation, value) in &resized.annotations {
        if let Some(value) = value {
            live(&format!("wrote {annotation}={value}\n"));
        }
    }
    let told = resized.claims.iter();
    let mut follow = Follow {
        told: told.map(|it| (it.claim.clone(), it.note())).collect(),
        restarts,
        cluster,
        session,
        name,
        sizes,
    };
    (resized.verdict, resized.conclusion) = follow.until_done(arguments.timeout, live).await?;
    Ok(resized)
}

/// Asks the server about the annotations, without a change.
async fn try_out(
    cluster: &Cluster,
    session: &Session,
    set: &Value,
    annotations: &BTreeMap<&'static str, Option<String>>,
) -> anyhow::Result<()> {
    let (namespace, name) = (&session.namespace, crate::cluster::name(set));
    let path = format!("/apis/apps/v1/namespaces/{namespace}/statefulsets/{name}?dryRun=All");
    let patch = json!({"metadata": {"annotations": annotations}});
    cluster.patch(&path, &patch).await.map(drop)
}

/// The claims as a table.
fn rows(claims: &[Planned]) -> String {
    let titles = ["CLAIM", "REQUEST", "CAPACITY", "WANTED", "CLASS", "STATE"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    rows.extend(claims.iter().map(|it| {
        let cells = [&it.claim, &it.request, &it.capacity, &it.wanted, &it.class];
        let mut cells: Vec<String> = cells.map(|cell| printable(cell)).to_vec();
        cells.push(it.note());
        cells
    }));
    table(&rows)
}

/// The claims of a set that grows.
struct Follow<'a> {
    cluster: Cluster,
    session: &'a Session,
    name: &'a str,
    sizes: Sizes,
    /// True if the set asks for restarts of pods.
    restarts: bool,
    /// The last reported state of each claim.
    told: BTreeMap<String, String>,
}

impl Follow<'_> {
    /// Reports each change of a claim's state until all have the size, none can go on, or the time is
    /// over.
    async fn until_done(
        &mut self,
        limit: Duration,
        live: &mut dyn FnMut(&str),
    ) -> anyhow::Result<(Verdict, String)> {
        let begin = Instant::now();
        let namespace = &self.session.namespace;
        let path = format!(
            "/apis/apps/v1/namespaces/{namespace}/statefulsets/{}",
            self.name
        );
        let mut is_warned = false;
        loop {
            let set = self.cluster.get(&path).await?;
            let set = set.with_context(|| format!("StatefulSet {} was deleted", self.name))?;
            let set_and_restarts = (&set, self.restarts);
            let claims = planned(&self.cluster, namespace, set_and_restarts, &self.sizes).await?;
            for claim in &claims {
                let note = claim.note();
                let told = self.told.insert(claim.claim.clone(), note.clone());
                if told.as_deref() != Some(&*note) {
                    live(&format!("claim {}: {note}\n", claim.claim));
                }
            }
            let is_done = |it: &Planned| it.state == ClaimState::Resized.reason();
            if claims.iter().all(is_done) {
                let count = counted(claims.len(), "claim");
                return Ok((Verdict::Clear, format!("{count} have the size")));
            }
            let condition = condition(&set);
            let waited = begin.elapsed();
            if condition.is_none() && waited >= CONDITION_MAX && !is_warned {
                is_warned = true;
                live(&format!(
                    "the controller reports nothing: does it run with the feature gate {}?\n",
                    Carrier::ClaimSize.gate()
                ));
            }
            // The condition names the gravest state: others may still go on.
            let mut states = claims.iter().filter(|it| !is_done(it)).map(|it| it.state);
            let goes_on = states.any(|state| ClaimState::of_reason(state).is_some_and(goes_on));
            if let Some((reason, message)) = condition.as_ref().filter(|_| !goes_on)
                && ClaimState::of_reason(reason).is_some_and(|state| !state.passes())
            {
                return Ok((Verdict::Findings, format!("{reason}: {message}")));
            }
            if waited >= limit {
                let done = claims.iter().filter(|it| is_done(it)).count();
                let count = claims.len();
                let text = format!("{done} of {count} claims have the size at the time limit");
                let why = condition.map(|(reason, message)| format!("; {reason}: {message}"));
                return Ok((Verdict::Late, text + &why.unwrap_or_default()));
            }
            sleep(LOOK.min(limit.saturating_sub(waited))).await;
        }
    }
}

/// Returns true for the states of claims that the controller has asked to grow, also if the storage provider
/// tries again.
fn goes_on(state: ClaimState) -> bool {
    use ClaimState::{Growing, PodRestart, ProviderError};
    matches!(state, Growing | PodRestart | ProviderError)
}

/// Returns the reason and the message of the condition, if the controller wrote it.
fn condition(set: &Value) -> Option<(String, String)> {
    let conditions = set.pointer("/status/conditions")?.as_array()?;
    let found = conditions.iter().find(|it| it["type"] == CLAIMS_RESIZED)?;
    Some((text(found, "/reason"), text(found, "/message")))
}
