//! List and watch of sets, pods, claims and warnings, repeated when the watch ends.

use std::{collections::BTreeMap, fmt::Debug, time::Duration};

use futures::TryStreamExt as _;
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{Event, PersistentVolumeClaim, Pod},
};
use kube::{
    Api, Client, Resource,
    api::{ListParams, WatchEvent, WatchParams},
};
use serde::de::DeserializeOwned;
use tokio::{sync::mpsc, task::JoinSet};

use crate::world::{Change, Key, Member, Seen, Set, claim_phase, warning};

/// Maximum queued changes; watches pause beyond that.
const CHANGES_MAX: usize = 1024;

/// Delay after a failed watch.
const PAUSE: Duration = Duration::from_millis(200);

/// Watches the whole cluster in `tasks`.
pub(crate) fn start(client: &Client, tasks: &mut JoinSet<()>) -> mpsc::Receiver<Change> {
    let (sender, receiver) = mpsc::channel(CHANGES_MAX);
    let sets = |set: StatefulSet| Some((Key::of(&set.metadata), Set::from(set)));
    let pods = |pod: Pod| Some((Key::of(&pod.metadata), Member::from(pod)));
    let claims =
        |claim: PersistentVolumeClaim| Some((Key::of(&claim.metadata), claim_phase(claim)));
    tasks.spawn(follow(client.clone(), sets, Change::Sets, sender.clone()));
    tasks.spawn(follow(client.clone(), pods, Change::Pods, sender.clone()));
    tasks.spawn(follow(
        client.clone(),
        claims,
        Change::Claims,
        sender.clone(),
    ));
    tasks.spawn(follow::<Event, _>(
        client.clone(),
        warning,
        Change::Warnings,
        sender,
    ));
    receiver
}

/// Watches one kind until the receiver is dropped.
async fn follow<K, T>(
    client: Client,
    cut: impl Fn(K) -> Option<(Key, T)>,
    change: impl Fn(Seen<T>) -> Change,
    sender: mpsc::Sender<Change>,
) where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + 'static,
{
    let api = Api::<K>::all(client);
    while !sender.is_closed() {
        // The session reports the end of the server's process.
        let _ = once(&api, &cut, &change, &sender).await;
        tokio::time::sleep(PAUSE).await;
    }
}

/// One list and the watch after it.
async fn once<K, T>(
    api: &Api<K>,
    cut: &impl Fn(K) -> Option<(Key, T)>,
    change: &impl Fn(Seen<T>) -> Change,
    sender: &mpsc::Sender<Change>,
) -> anyhow::Result<()>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + 'static,
{
    let list = api.list(&ListParams::default()).await?;
    let version = list.metadata.resource_version.clone().unwrap_or_default();
    let all: BTreeMap<Key, T> = list.items.into_iter().filter_map(cut).collect();
    sender.send(change(Seen::All(all))).await?;
    let events = api.watch(&WatchParams::default(), &version).await?;
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.try_next().await? {
        let seen = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                cut(object).map(|(key, object)| Seen::One(key, object))
            }
            WatchEvent::Deleted(object) => cut(object).map(|(key, _)| Seen::Gone(key)),
            WatchEvent::Bookmark(_) => None,
            WatchEvent::Error(_) => return Ok(()),
        };
        if let Some(seen) = seen {
            sender.send(change(seen)).await?;
        }
    }
    Ok(())
}
