//! Syncs that create and delete pods, over an API that answers every write.

use std::hint::black_box;
use std::rc::Rc;

use anyhow::{Context as _, ensure};
use serde_json::json;
use statefulset_client::cache::indexer::CachedObject as _;
use statefulset_client::fake::Verb;
use statefulset_client::resource::PODS;
use statefulset_controller_util::pod::Pod;
use tokio::runtime::Runtime;

use super::work::{OTHERS, runtime};
use crate::cluster::{Recorded, SyncedSet};

/// Pods of the set.
const OWN: usize = 3;
/// Name of the revision of the changed template.
const CHANGED: &str = "changed";

type Repeated = Box<dyn FnMut() -> bool>;

/// Returns the creation of a missing pod, and the decoding of its event.
pub(super) fn created() -> anyhow::Result<Repeated> {
    let runtime = Rc::new(runtime()?);
    creation(&runtime, || SyncedSet::of(&Recorded::read()?, OWN, OTHERS))
}

/// Returns the deletion and the creation of a pod with an outdated template, and the decoding of both
/// events.
pub(super) fn rolled() -> anyhow::Result<Repeated> {
    let runtime = Rc::new(runtime()?);
    let world = || -> anyhow::Result<SyncedSet> {
        let recorded = Recorded::read()?;
        let changed = Recorded::read()?.with_template(|template| {
            template["spec"]["containers"][0]["image"] = json!("changed");
        })?;
        let world = SyncedSet::of(&changed, OWN, OTHERS)?;
        world.revisions.add(recorded.revision_of("", 1)?);
        world.revisions.add(changed.revision_of(CHANGED, 2)?);
        Ok(world)
    };
    let deletion = {
        let _guard = runtime.enter();
        world()?
    };
    let mut deletion = writing(deletion, &runtime, (Verb::Delete, PODS.plural))?;
    let mut creation = creation(&runtime, world)?;
    Ok(Box::new(move || deletion() && creation()))
}

fn creation(
    runtime: &Rc<Runtime>,
    world: impl FnOnce() -> anyhow::Result<SyncedSet>,
) -> anyhow::Result<Repeated> {
    let world = {
        let _guard = runtime.enter();
        world()?
    };
    let name = format!("{}-{}", world.set.name(), OWN - 1);
    let removed = world.pods.remove(world.set.namespace(), &name);
    ensure!(removed.is_some(), "the set has no pod {name}");
    writing(world, runtime, (Verb::Create, PODS.plural))
}

/// Returns a sync that makes this request each time, and the decoding of its pod's event.
fn writing(
    world: SyncedSet,
    runtime: &Rc<Runtime>,
    expected: (Verb, &str),
) -> anyhow::Result<Repeated> {
    let name = format!("{}-{}", world.set.name(), OWN - 1);
    let pod = world.api.object(&PODS, world.set.namespace(), &name);
    let pod = pod.context("the API has no such pod")?.to_string();
    let set = world.set.with_status(&world.set.status)?;
    for (verb, answer) in [
        (Verb::Create, &pod),
        (Verb::Update, &set),
        (Verb::Delete, &pod),
    ] {
        let answer = answer.clone();
        world
            .api
            .react(verb, "*", move |_| Some(Ok(answer.clone())));
    }
    let runtime = Rc::clone(runtime);
    let api = world.api.clone();
    let repeated = move || {
        world.api.clear_actions();
        let synced = runtime.block_on(world.syncer.sync(&world.key));
        synced.is_ok() && black_box(Pod::decode(&pod)).is_ok()
    };
    for _ in 0..2 {
        ensure!(repeated(), "the sync fails");
        let actions = api.actions();
        let is_expected = |action: &statefulset_client::fake::Action| {
            (action.verb, &*action.resource) == expected
        };
        ensure!(
            actions.iter().filter(|action| is_expected(action)).count() == 1,
            "the sync made other requests: {actions:?}"
        );
    }
    Ok(Box::new(repeated))
}
