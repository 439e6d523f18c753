//! The requests of a recreation, step by step.

use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use http::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::observe::{Look, names};
use super::progress::Progress;
use super::record::Record;
use super::standing::{commands, standing, stopped, waiting};
use super::step::{Action, Form, Wait, next};
use crate::cluster::{Cluster, text};
use crate::output::counted;
use crate::report::Outcome;
use crate::server::{STATEFUL_SETS, Server};

/// Pause between two looks.
const PAUSE: Duration = Duration::from_secs(1);
/// Time without changes of owners after which the garbage collector knows all dependents of the set: it
/// deletes those that it learns of too late (kubernetes/kubernetes#131284).
const REST: Duration = Duration::from_secs(5);

/// A recreation under way.
pub(super) struct Drive<'a> {
    pub(super) server: &'a Server,
    pub(super) cluster: &'a Cluster,
    pub(super) record: &'a Record,
    pub(super) goal: Form,
    /// The longest time of waiting.
    pub(super) timeout: Duration,
}

/// The end of a step.
enum Made {
    /// The next look shows its effect.
    Step,
    /// It must be repeated after a pause, for this reason.
    Again(String),
}

impl Drive<'_> {
    /// Makes every step until the set has the form, and owns its objects. Returns the last look.
    ///
    /// # Errors
    ///
    /// A request fails, the time limit passes, or another client interferes. The error names the state
    /// and the commands that end the recreation.
    pub(super) async fn run(&self, progress: &mut Progress<'_>) -> anyhow::Result<Look> {
        let mut last = None;
        let end = self.steps(&mut last, progress).await;
        end.map_err(|error| {
            let set = last.as_ref().map(|look: &Look| look.set.as_ref());
            let state = set.map(|set| format!("; {}", standing(self.record, set)));
            let commands = commands(self.record);
            match error {
                Broken::Final(error) => error,
                Broken::Refused(error) => {
                    anyhow!("{error:#}{}; {commands}", state.unwrap_or_default())
                }
                Broken::Lost(error) => anyhow!(
                    "{error:#}{}, unless the server made the last step; {commands}",
                    state.unwrap_or_default()
                ),
            }
        })
    }

    async fn steps(
        &self,
        last: &mut Option<Look>,
        progress: &mut Progress<'_>,
    ) -> Result<Look, Broken> {
        let begin = Instant::now();
        let mut rest = Rest::default();
        loop {
            let look = Look::take(self.server, self.record).await;
            let look = look.map_err(Broken::Refused)?;
            let observed = look.observed(self.record, rest.lasts(&look));
            let look = last.insert(look);
            let reason = match next(self.goal, &observed) {
                Action::Finish => break,
                Action::Stop(stop) => {
                    return Err(Broken::Final(anyhow!(stopped(self.record, stop))));
                }
                Action::Wait(wait) => {
                    let reason = waiting(self.record, &wait);
                    if wait != Wait::Rest {
                        progress.waits(&reason);
                    }
                    reason
                }
                write => match self.write(&write, look, progress).await? {
                    Made::Step => continue,
                    Made::Again(reason) => reason,
                },
            };
            if begin.elapsed() >= self.timeout {
                let seconds = self.timeout.as_secs();
                return Err(Broken::Refused(anyhow!(
                    "the time limit of {seconds}s has passed: {reason}"
                )));
            }
            sleep(PAUSE).await;
        }
        last.take()
            .context("look at the set")
            .map_err(Broken::Refused)
    }

    async fn write(
        &self,
        action: &Action,
        look: &Look,
        progress: &mut Progress<'_>,
    ) -> Result<Made, Broken> {
        match action {
            Action::Release => self.release(look, progress).await,
            Action::Create => self.create(progress).await,
            Action::Delete {
                uid,
                resource_version,
            } => self.delete(uid, resource_version, progress).await,
            Action::Wait(_) | Action::Finish | Action::Stop(_) => Ok(Made::Step),
        }
    }

    /// Removes the references to former sets, before the garbage collector follows them.
    async fn release(&self, look: &Look, progress: &mut Progress<'_>) -> Result<Made, Broken> {
        let uid = look.set.as_ref().map(|set| set.uid.as_str());
        let is_kept = |owner: &&Value| {
            let is_former = uid != Some(text(owner, "/uid").as_str());
            !(names(owner, &self.record.set) && is_former)
        };
        let mut count = 0;
        for (kind, object) in look.stale(self.record) {
            let owners: Vec<&Value> = object.owner_references.iter().filter(is_kept).collect();
            let patch = json!({"metadata": {
                "uid": object.uid,
                "resourceVersion": object.resource_version,
                "ownerReferences": owners,
            }});
            let collection = kind.resource().path(Some(&self.record.namespace));
            let path = format!("{collection}/{}", object.name);
            let action = || format!("release {} {}", kind.noun(), object.name);
            match self.cluster.send(Method::PATCH, &path, Some(&patch)).await {
                Ok(_) => count += 1,
                // It changed or is gone.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                Err(error) => return Err(Broken::of(error, action())),
            }
        }
        if count == 0 {
            return Ok(Made::Again(
                "the objects of the set keep changing".to_owned(),
            ));
        }
        let text = format!("removed a former owner from {}", counted(count, "object"));
        progress.step(Outcome::Done, &text);
        Ok(Made::Step)
    }

    async fn create(&self, progress: &mut Progress<'_>) -> Result<Made, Broken> {
        let (set, form) = match self.goal {
            Form::New => (&self.record.new, "new"),
            Form::Old => (&self.record.old, "old"),
        };
        let path = STATEFUL_SETS.path(Some(&self.record.namespace));
        let path = format!("{path}?fieldManager=kubectl-sts");
        match self.cluster.send(Method::POST, &path, Some(set)).await {
            Ok(_) => {
                let text = format!("created the {form} StatefulSet {}", self.record.set);
                progress.step(Outcome::Done, &text);
                Ok(Made::Step)
            }
            // The next look shows the set that exists.
            Err(kube::Error::Api(status)) if status.code == 409 => {
                Ok(Made::Again(status.message.clone()))
            }
            // The quota counts the deleted set a little longer.
            Err(kube::Error::Api(status)) if is_quota(status.code, &status.message) => {
                progress.waits(&status.message);
                Ok(Made::Again(status.message.clone()))
            }
            Err(error) => {
                let action = format!("create the {form} StatefulSet {}", self.record.set);
                Err(Broken::of(error, action))
            }
        }
    }

    async fn delete(
        &self,
        uid: &str,
        resource_version: &str,
        progress: &mut Progress<'_>,
    ) -> Result<Made, Broken> {
        let name = &self.record.set;
        let collection = STATEFUL_SETS.path(Some(&self.record.namespace));
        let path = format!("{collection}/{name}");
        let options = orphaning(uid, resource_version);
        match self
            .cluster
            .send(Method::DELETE, &path, Some(&options))
            .await
        {
            Ok(_) => {
                let text = format!("deleted StatefulSet {name} (uid {uid}) without its pods");
                progress.step(Outcome::Done, &text);
                Ok(Made::Step)
            }
            // A status was written, or the set is gone.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {
                Ok(Made::Again(status.message.clone()))
            }
            Err(error) => Err(Broken::of(error, format!("delete StatefulSet {name}"))),
        }
    }
}

/// Options of a deletion of this state alone, which keeps the dependents.
pub(super) fn orphaning(uid: &str, resource_version: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "DeleteOptions",
        "propagationPolicy": "Orphan",
        "preconditions": {"uid": uid, "resourceVersion": resource_version},
    })
}

/// Reports whether a quota refuses a creation.
pub(super) fn is_quota(code: u16, message: &str) -> bool {
    code == 403 && message.contains("exceeded quota")
}

/// The end of a drive before its goal.
enum Broken {
    /// Another client interferes; the error names the remedy.
    Final(anyhow::Error),
    /// Nothing was changed by the last request.
    Refused(anyhow::Error),
    /// The response to a write is lost.
    Lost(anyhow::Error),
}

impl Broken {
    fn of(error: kube::Error, action: String) -> Self {
        match error {
            kube::Error::Api(status) => {
                Self::Refused(anyhow!(status.message.clone()).context(action))
            }
            lost => Self::Lost(anyhow::Error::new(lost).context(action)),
        }
    }
}

/// The time for which the owners of the objects have been the same.
#[derive(Default)]
struct Rest {
    ownership: std::collections::BTreeSet<(String, Vec<String>)>,
    since: Option<Instant>,
}

impl Rest {
    fn lasts(&mut self, look: &Look) -> bool {
        let ownership = look.ownership();
        match self.since {
            Some(since) if ownership == self.ownership => since.elapsed() >= REST,
            _ => {
                self.ownership = ownership;
                self.since = Some(Instant::now());
                false
            }
        }
    }
}

/// Removes the record.
///
/// # Errors
///
/// The server refuses it or doesn't respond.
pub(super) async fn forget(cluster: &Cluster, record: &Record, path: &str) -> anyhow::Result<()> {
    let options = json!({
        "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": record.uid()},
    });
    match cluster.send(Method::DELETE, path, Some(&options)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(kube::Error::Api(status)) => bail!("delete {path}: {}", status.message),
        Err(error) => Err(error).with_context(|| format!("delete {path}")),
    }
}
