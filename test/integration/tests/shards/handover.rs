//! Hand-over of shards during a rollout: a leader dies, and then the number of shards changes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube_test_control_plane::audit::Settle;
use kube_test_control_plane::auth::Identity;
use kube_test_control_plane::route::Verb;
use kube_test_control_plane::store::Key;
use serde_json::json;
use statefulset_client::clock::TokioClock;
use statefulset_client::leaderelection::LeaseName;
use statefulset_client::recorder::NoopRecorder;
use statefulset_client::shard::Shard;
use statefulset_controller::{LeaderElection, StatefulSetController};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{NAMES, World, run};

/// Number of pods of each set.
const REPLICAS: u32 = 3;
/// Longer than a rollout with two leases that expire.
const QUIET: Duration = Duration::from_secs(60);

/// The instances of all shards, two for each: a leader and a standby.
struct Instances {
    shards: Vec<(Shard, [JoinSet<()>; 2])>,
}

impl Instances {
    fn start(world: &World, count: u32) -> Self {
        let shards = (0..count).map(|index| {
            let shard: Shard = format!("{index}/{count}").parse().expect("a shard");
            let instances = ["a", "b"].map(|name| start(world, shard, name));
            (shard, instances)
        });
        Self {
            shards: shards.collect(),
        }
    }

    /// Kills the leader of a shard, and starts it again under another name.
    fn kill_leader(&mut self, world: &World, nth: usize) {
        let (shard, instances) = self.shards.get_mut(nth).expect("a shard");
        let key = Key::of("leases", "kube-system", &lease(*shard));
        let stored = world.plane.server().store().get(&key).expect("a lease");
        let stored = stored.value();
        let holder = stored["spec"]["holderIdentity"].as_str();
        let leader = usize::from(holder.expect("a leader").ends_with('b'));
        instances[leader] = start(world, *shard, ["a-again", "b-again"][leader]);
    }
}

/// Starts an instance. Its user is named after it. Dropping the result kills it.
fn start(world: &World, shard: Shard, name: &str) -> JoinSet<()> {
    let user = user(shard, name);
    let mut identity = Identity::admin();
    identity.name.clone_from(&user);
    let lease = LeaseName::new("kube-system", lease(shard));
    let election = LeaderElection::new(lease, user).monotonic(Arc::new(TokioClock::new()));
    let controller =
        StatefulSetController::builder_with_kube_client(world.plane.client_as(identity))
            .recorder(Arc::new(NoopRecorder))
            .resync_period(None)
            .leader_election(election)
            .shard(Some(shard))
            .build()
            .expect("the election is valid");
    run(controller)
}

fn lease(shard: Shard) -> String {
    format!("controller-shard-{}-of-{}", shard.index(), shard.count())
}

fn user(shard: Shard, name: &str) -> String {
    format!("{}/{}/{name}", shard.index(), shard.count())
}

#[tokio::test(start_paused = true)]
async fn rollout_survives_the_hand_over_of_shards() {
    integration::embedded_only!("kills instances in paused time");
    for second in (1..=13).step_by(3) {
        let world = World::start(true, REPLICAS).await;
        let mut instances = Instances::start(&world, 2);
        settle(&world).await;
        world.plane.server().audit().clear();

        let image = json!({"spec": {"template": {"metadata": {"annotations": {"rolled": "yes"}}}}});
        world.patch(&image).await;
        let moment = Duration::from_secs(second);
        sleep(moment).await;
        instances.kill_leader(&world, (second % 2) as usize);
        sleep(moment).await;
        drop(instances);
        let _instances = Instances::start(&world, 3);
        settle(&world).await;

        check(&world, second);
    }
}

async fn settle(world: &World) {
    let audit = world.plane.server().audit();
    let settled = audit.settle(&Settle::quiet_for(QUIET)).await;
    settled.expect("the rollout ends");
}

/// Checks that each pod was replaced once, by the shards of its namespace.
fn check(world: &World, second: u64) {
    let changes = world.plane.server().audit();
    let changes = changes.matching(|entry| {
        entry.is_change() && entry.resource != "leases" && entry.user.contains('/')
    });
    let mut replaced: BTreeMap<(String, String), [usize; 2]> = BTreeMap::new();
    for entry in changes {
        let (shard, _) = entry.user.rsplit_once('/').expect("an instance");
        let shard: Shard = shard.parse().expect("a shard");
        let summary = entry.summary();
        assert!(shard.contains(&entry.namespace), "{second}: {summary}");
        if entry.resource == "pods" && entry.subresource.is_empty() {
            let [deleted, created] = replaced.entry((entry.namespace, entry.name)).or_default();
            match entry.verb {
                Verb::Delete => *deleted += 1,
                Verb::Create => *created += 1,
                _ => panic!("{second}: {summary}"),
            }
        }
    }
    let all = NAMES.len() * REPLICAS as usize;
    assert_eq!(replaced.len(), all, "{second}");
    assert!(
        replaced.values().all(|it| *it == [1, 1]),
        "{second}: {replaced:?}"
    );
}
