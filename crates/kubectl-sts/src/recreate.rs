//! Recreation of a set in place, to change its immutable fields while its pods run.
//!
//! A recreation shows its effects ([`preview`]), asks the server about them ([`judge`]) and stores a
//! [`record`]. Then it deletes the set without its pods, creates the new one, and waits until its
//! controller has adopted them: each look at the cluster ([`observe`]) decides about one request
//! ([`step`], [`drive`]). At the end it compares the objects with those before ([`verify`]). A command
//! that is interrupted anywhere leaves a state from which `--continue` and `--restore` go on.

mod check;
mod drive;
mod field;
mod form;
mod judge;
mod observe;
mod preview;
mod progress;
mod record;
mod rivals;
mod standing;
mod step;
mod verify;

use anyhow::{Context as _, anyhow, bail, ensure};
use http::Method;
use serde::Serialize;
use serde_json::{Value, json};

use crate::Session;
use crate::cli::{PlanArguments, RecreateArguments};
use crate::cluster::{Cluster, name, text};
use crate::plan::{self, Subject};
use crate::report::{Outcome, Report};
use crate::server::{STATEFUL_SETS, Server};
use check::{Case, LAST_APPLIED};
use drive::Drive;
use preview::{Kept, Preview};
use progress::Progress;
use record::{Record, object_name};
use step::Form;

/// The end of a recreation.
#[derive(Serialize)]
pub(crate) struct Recreated {
    #[serde(skip_serializing_if = "Option::is_none")]
    preview: Option<Preview>,
    #[serde(flatten)]
    report: Report,
}

impl Recreated {
    /// True if an object isn't as before, or the previewed recreation is dangerous.
    pub(crate) fn has_findings(&self) -> bool {
        let is_dangerous = self.preview.as_ref().is_some_and(Preview::is_dangerous);
        is_dangerous || self.report.has_findings()
    }

    /// The conclusion for people, who have seen the steps.
    pub(crate) fn text(&self) -> String {
        self.report.conclusion()
    }
}

/// Recreates a set, or ends an interrupted recreation. `live` gets the effects and each step.
///
/// # Errors
///
/// The recreation is refused before anything is written, or it is interrupted: then the error names
/// the state and the commands that end it.
pub(crate) async fn recreate(
    server: &Server,
    session: &Session,
    arguments: &RecreateArguments,
    live: &mut dyn FnMut(&str),
) -> anyhow::Result<Recreated> {
    let cluster = Cluster::new(session.client.clone());
    let mut progress = Progress::new(live, session.style);
    if arguments.end.goes_on || arguments.end.restore {
        let goal = if arguments.end.restore {
            Form::Old
        } else {
            Form::New
        };
        let set = arguments.name.as_deref().unwrap_or_default();
        let namespace = &session.namespace;
        if let Some(record) = stored(&cluster, namespace, set).await? {
            finish(server, &cluster, &record, goal, arguments, &mut progress).await?;
        } else {
            let found = server.get(&STATEFUL_SETS, Some(namespace), set).await?;
            ensure!(
                found.is_some(),
                "StatefulSet {set} doesn't exist in namespace {namespace}, and no recreation of it \
                 is recorded"
            );
            let conclusion = format!("no recreation of StatefulSet {set} is under way");
            progress.report.conclude(conclusion);
        }
        let report = progress.report;
        return Ok(Recreated {
            preview: None,
            report,
        });
    }
    let subject = read(server, session, arguments).await;
    if let (Err(_), Some(name)) = (&subject, &arguments.name) {
        // An interrupted recreation may have left no set of this name.
        refuse_second(&cluster, &session.namespace, name).await?;
    }
    let subject = subject?;
    let (record, preview) = planned(server, &cluster, &subject, arguments).await?;
    progress.text(&preview.text(session.style));
    if arguments.dry_run {
        progress.report.conclude("nothing was written");
    } else {
        confirm(&preview, arguments)?;
        let record = save(&cluster, &record, &mut progress).await?;
        finish(
            server,
            &cluster,
            &record,
            Form::New,
            arguments,
            &mut progress,
        )
        .await?;
    }
    Ok(Recreated {
        preview: Some(preview),
        report: progress.report,
    })
}

/// Reads the set and the manifest.
async fn read(
    server: &Server,
    session: &Session,
    arguments: &RecreateArguments,
) -> anyhow::Result<Subject> {
    let RecreateArguments { name, file, .. } = arguments;
    let plan = PlanArguments {
        name: name.clone().filter(|_| file.is_none()),
        file: file.clone(),
        ..PlanArguments::default()
    };
    let subject = Subject::read(server, session, plan).await?;
    if let Some(name) = name {
        let found = &subject.name;
        ensure!(
            name == found,
            "the manifest is for StatefulSet {found}, not {name}: a recreation keeps the name, \
             because pods and claims are named after it"
        );
    }
    Ok(subject)
}

/// Plans the recreation.
async fn planned(
    server: &Server,
    cluster: &Cluster,
    subject: &Subject,
    arguments: &RecreateArguments,
) -> anyhow::Result<(Record, Preview)> {
    let Subject {
        namespace,
        snapshot,
        ..
    } = subject;
    refuse_second(cluster, namespace, &subject.name).await?;
    let mut combined = plan::combined(subject)?;
    for assignment in &arguments.set {
        field::assign(&mut combined, assignment)?;
    }
    let set = snapshot.set.as_ref().context("read the set")?;
    let old: Value = serde_json::from_str(&set.text).context("decode the set")?;
    let new = with_last_applied(record::manifest(&combined), subject.file.as_ref());
    let new = judge::creation(server, subject, &new).await?;
    let case = Case {
        old: &old,
        new: &new,
        set: &set.object,
        snapshot,
    };
    check::check(&case)?;
    rivals::check(server, namespace, &set.object, snapshot).await?;
    judge::deletion(cluster, namespace, &old).await?;
    let recreation = plan::recreation(server, subject, &new).await?;
    let preview = Preview {
        changes: crate::diff::changes(&record::manifest(&old), &record::manifest(&new)),
        kept: Kept {
            pods: snapshot.pods_of(&set.object).count()
                - recreation.restarts.len()
                - recreation.removals.len(),
            // The plan may also delete a claim that it made.
            claims: snapshot
                .claims()
                .count()
                .saturating_sub(recreation.plan.claims_deleted()),
            revisions: snapshot.revisions_of(&set.object).len(),
        },
        recreation,
        notes: check::notes(&case),
    };
    let record = Record::new(namespace, &old, &new, snapshot, preview.disturbed());
    Ok((record, preview))
}

/// The new set with the manifest as the last applied one, if `kubectl apply` made the old set.
fn with_last_applied(mut new: Value, file: Option<&Value>) -> Value {
    let applied = new.pointer_mut("/metadata/annotations");
    let applied = applied.and_then(|annotations| annotations.get_mut(LAST_APPLIED));
    if let (Some(applied), Some(file)) = (applied, file) {
        *applied = json!(format!("{file}\n"));
    }
    new
}

/// Checks that the user accepts the effects.
fn confirm(preview: &Preview, arguments: &RecreateArguments) -> anyhow::Result<()> {
    ensure!(
        !preview.is_dangerous(),
        "the recreation would lose data or make no pod ready at some point; change the set without \
         this first"
    );
    let disturbed = preview.disturbed();
    ensure!(
        disturbed.is_empty() || arguments.allow_restarts,
        "the recreation would restart or remove {}; accept this with --allow-restarts",
        disturbed.join(", ")
    );
    Ok(())
}

/// Stores the record, and returns it as stored.
async fn save(
    cluster: &Cluster,
    record: &Record,
    progress: &mut Progress<'_>,
) -> anyhow::Result<Record> {
    let path = collection(&record.namespace);
    let object_name = object_name(&record.set);
    let saved = cluster
        .send(Method::POST, &path, Some(&record.object()?))
        .await;
    let saved = match saved {
        Ok(saved) => saved,
        Err(kube::Error::Api(status)) if status.code == 409 => bail!(
            "another command has begun to recreate StatefulSet {}; {}",
            record.set,
            standing::commands(record)
        ),
        Err(kube::Error::Api(status)) => {
            bail!("create ConfigMap {object_name}: {}", status.message)
        }
        Err(error) => {
            let action = format!(
                "create ConfigMap {object_name}; StatefulSet {} stands as before; {}",
                record.set,
                standing::commands(record)
            );
            return Err(anyhow!("{error}").context(action));
        }
    };
    let text = format!(
        "saved the old and the new StatefulSet {} in ConfigMap {object_name}; after an \
         interruption, {}",
        record.set,
        standing::commands(record)
    );
    progress.step(Outcome::Done, &text);
    Record::of(&record.namespace, &saved)
}

/// Leads the set to its form, compares its objects, and removes the record.
async fn finish(
    server: &Server,
    cluster: &Cluster,
    record: &Record,
    goal: Form,
    arguments: &RecreateArguments,
    progress: &mut Progress<'_>,
) -> anyhow::Result<()> {
    let drive = Drive {
        server,
        cluster,
        record,
        goal,
        timeout: arguments.timeout,
    };
    let look = drive.run(progress).await?;
    for (outcome, text) in verify::compare(record, &look) {
        progress.step(outcome, &text);
    }
    let end = match goal {
        Form::New => format!("StatefulSet {} is recreated", record.set),
        Form::Old => format!("StatefulSet {} has its old form", record.set),
    };
    let path = format!(
        "{}/{}",
        collection(&record.namespace),
        object_name(&record.set)
    );
    let forgotten = drive::forget(cluster, record, &path).await;
    forgotten.with_context(|| {
        let commands = standing::commands(record);
        format!("{end}, but its record remains; {commands}")
    })?;
    let restarts = &record.objects.restarts;
    if goal == Form::New && !restarts.is_empty() {
        let pods = restarts.join(", ");
        progress.report.conclude(format!(
            "{end}; its controller goes on to restart or remove {pods}"
        ));
    } else {
        progress.report.conclude(end);
    }
    Ok(())
}

/// Refuses a recreation while another one of the set is under way.
async fn refuse_second(cluster: &Cluster, namespace: &str, set: &str) -> anyhow::Result<()> {
    if let Some(record) = stored(cluster, namespace, set).await? {
        bail!("{}", standing::under_way(&record));
    }
    Ok(())
}

/// The recreations of these sets that have begun and not ended, in words, each with the commands that
/// end it. Without the permission to read records, none.
pub(crate) async fn under_way(session: &Session, sets: &[&str]) -> Vec<String> {
    let cluster = Cluster::new(session.client.clone());
    let mut texts = Vec::new();
    for set in sets {
        let record = stored(&cluster, &session.namespace, set).await;
        texts.extend(record.ok().flatten().as_ref().map(standing::under_way));
    }
    texts
}

/// The recreations of all sets of a namespace, or of all namespaces, that have begun and not ended.
///
/// # Errors
///
/// The permission to list `ConfigMap`s is missing, or the server doesn't respond.
pub(crate) async fn all_under_way(
    session: &Session,
    namespace: Option<&str>,
) -> anyhow::Result<Vec<String>> {
    let cluster = Cluster::new(session.client.clone());
    let records = cluster.list(&record::path_of_all(namespace)).await?;
    let records = records.iter().filter_map(|object| {
        let namespace = text(object, "/metadata/namespace");
        let record = Record::of(&namespace, object).ok()?;
        // A copy of a record, or something else with its label, ends no recreation.
        (object_name(&record.set) == name(object)).then_some(record)
    });
    Ok(records.map(|record| standing::under_way(&record)).collect())
}

/// Reads the record of a set; none if no recreation is under way.
async fn stored(cluster: &Cluster, namespace: &str, set: &str) -> anyhow::Result<Option<Record>> {
    let path = format!("{}/{}", collection(namespace), object_name(set));
    let object = cluster.get(&path).await?;
    let record = object
        .map(|object| Record::of(namespace, &object))
        .transpose()?;
    if let Some(record) = &record {
        ensure!(
            record.set == set,
            "ConfigMap {} is about StatefulSet {}, not {set}: delete it if nothing needs it",
            object_name(set),
            record.set
        );
    }
    Ok(record)
}

/// Path of the records.
fn collection(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}
