//! Syncs that create and delete pods, over an API that responds to every write.

use std::hint::black_box;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use serde_json::json;
use statefulset_client::fake::Verb;
use statefulset_client::resource::PODS;
use statefulset_controller_util::pod::Pod;
use tokio::runtime::Runtime;

use super::message::PodMessage;
use super::settings::{OTHERS, runtime};
use crate::cluster::{Recorded, SyncedSet};

/// Pods of the set.
const OWN: usize = 3;
/// Name of the revision of the changed template.
const CHANGED: &str = "changed";

type Repeated = Box<dyn FnMut() -> bool>;

/// Returns the creation of a missing pod, and the decoding of its event.
pub(super) fn created() -> anyhow::Result<Repeated> {
    let cluster = Cluster::new(|| SyncedSet::of(&Recorded::read()?, OWN, OTHERS))?;
    cluster.world.pods.delete(&*cluster.pod()?);
    cluster.checked(|cluster| {
        cluster.sync(Verb::Create)?;
        cluster.world.pods.delete(&*cluster.pod()?);
        Ok(())
    })
}

/// Returns the deletion and the creation of a pod with an outdated template, and the decoding of both
/// events.
pub(super) fn rolled() -> anyhow::Result<Repeated> {
    let cluster = Cluster::new(|| {
        let recorded = Recorded::read()?;
        let changed = Recorded::read()?.with_template(|template| {
            template["spec"]["containers"][0]["image"] = json!("changed");
        })?;
        let world = SyncedSet::of(&changed, OWN, OTHERS)?;
        world.revisions.add(recorded.revision_of("", 1)?);
        world.revisions.add(changed.revision_of(CHANGED, 2)?);
        Ok(world)
    })?;
    cluster.checked(|cluster| {
        cluster.sync(Verb::Delete)?;
        cluster.sync(Verb::Create)
    })
}

/// A set whose highest pod comes and goes.
struct Cluster {
    runtime: Runtime,
    world: SyncedSet,
    /// The pod as its events show it.
    pod: PodMessage,
    /// True if each sync must make exactly the expected request.
    is_checked: bool,
}

impl Cluster {
    fn new(world: impl FnOnce() -> anyhow::Result<SyncedSet>) -> anyhow::Result<Self> {
        let runtime = runtime()?;
        let world = {
            let _guard = runtime.enter();
            world()?
        };
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
        Ok(Self {
            runtime,
            world,
            pod: PodMessage::new(&pod)?,
            is_checked: false,
        })
    }

    fn pod(&self) -> anyhow::Result<Arc<Pod>> {
        Ok(Arc::new(self.pod.decode()?))
    }

    /// Runs a sync that sends this request for the pod, and applies the pod's event to the cache.
    fn sync(&self, verb: Verb) -> anyhow::Result<()> {
        self.world.api.clear_actions();
        self.runtime
            .block_on(self.world.syncer.sync(&self.world.key))?;
        let pod = black_box(self.pod()?);
        if verb == Verb::Create {
            self.world.pods.add(pod);
        } else {
            self.world.pods.delete(&pod);
        }
        if self.is_checked {
            let actions = self.world.api.actions();
            let of_pods: Vec<Verb> = actions
                .iter()
                .filter(|action| &*action.resource == PODS.plural)
                .map(|action| action.verb)
                .collect();
            ensure!(
                of_pods == [verb],
                "the sync made other requests: {actions:?}"
            );
        }
        Ok(())
    }

    /// Checks the requests of the first repetitions.
    fn checked(
        mut self,
        repeat: impl Fn(&Self) -> anyhow::Result<()> + 'static,
    ) -> anyhow::Result<Repeated> {
        self.is_checked = true;
        for _ in 0..2 {
            repeat(&self)?;
        }
        self.is_checked = false;
        Ok(Box::new(move || repeat(&self).is_ok()))
    }
}
