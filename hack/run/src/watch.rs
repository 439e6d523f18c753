//! List and watch of sets, pods, claims and warnings, repeated when the watch ends.

use std::{collections::BTreeMap, time::Duration};

use futures::TryStreamExt as _;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, WatchEvent, WatchParams},
};
use tokio::{sync::mpsc, task::JoinSet};

use crate::world::{Change, Key, ObjectChange, claim, pod, set, warning};

/// Maximum queued changes; watches pause beyond that.
const CHANGES_MAX: usize = 1024;

/// Delay after a failed watch.
const PAUSE: Duration = Duration::from_millis(200);

/// Watches the whole cluster in `tasks`.
pub(crate) fn start(client: &Client, tasks: &mut JoinSet<()>) -> mpsc::Receiver<Change> {
    let (sender, receiver) = mpsc::channel(CHANGES_MAX);
    let api = |group, kind| {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
        Api::all_with(client.clone(), &kind)
    };
    let (sets, pods) = (api("apps", "StatefulSet"), api("", "Pod"));
    let (claims, events) = (api("", "PersistentVolumeClaim"), api("", "Event"));
    tasks.spawn(follow(
        sets,
        |object| Some(set(object)),
        Change::Sets,
        sender.clone(),
    ));
    tasks.spawn(follow(
        pods,
        |object| Some(pod(object)),
        Change::Pods,
        sender.clone(),
    ));
    tasks.spawn(follow(
        claims,
        |object| Some(claim(object)),
        Change::Claims,
        sender.clone(),
    ));
    tasks.spawn(follow(events, warning, Change::Warnings, sender));
    receiver
}

/// Watches one kind until the receiver is dropped.
async fn follow<T>(
    api: Api<DynamicObject>,
    cut: fn(&DynamicObject) -> Option<(Key, T)>,
    change: fn(ObjectChange<T>) -> Change,
    sender: mpsc::Sender<Change>,
) {
    while !sender.is_closed() {
        // The session reports the end of the server's process.
        let _ = once(&api, cut, change, &sender).await;
        tokio::time::sleep(PAUSE).await;
    }
}

/// One list and the watch after it.
async fn once<T>(
    api: &Api<DynamicObject>,
    cut: fn(&DynamicObject) -> Option<(Key, T)>,
    change: fn(ObjectChange<T>) -> Change,
    sender: &mpsc::Sender<Change>,
) -> anyhow::Result<()> {
    let list = api.list(&ListParams::default()).await?;
    let version = list.metadata.resource_version.clone().unwrap_or_default();
    let all: BTreeMap<Key, T> = list.items.iter().filter_map(cut).collect();
    sender.send(change(ObjectChange::All(all))).await?;
    let events = api.watch(&WatchParams::default(), &version).await?;
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.try_next().await? {
        let seen = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                cut(&object).map(|(key, object)| ObjectChange::One(key, object))
            }
            WatchEvent::Deleted(object) => cut(&object).map(|(key, _)| ObjectChange::Gone(key)),
            WatchEvent::Bookmark(_) => None,
            WatchEvent::Error(_) => return Ok(()),
        };
        if let Some(seen) = seen {
            sender.send(change(seen)).await?;
        }
    }
    Ok(())
}
