//! Watches the objects of the fence.

use std::sync::Arc;

use statefulset_client::cache::indexer::{CachedObject as _, Indexer};
use statefulset_client::cache::informer::{EventHandler, Informer, InformerConfig};
use statefulset_client::resource::{
    VALIDATING_ADMISSION_POLICIES, VALIDATING_ADMISSION_POLICY_BINDINGS,
};
use statefulset_client::rest::{RestClient, Selectors};
use statefulset_fence::names::{FENCE, MIRROR};
use statefulset_fence::{FencePolicies, PartKind, StoredPart, gap};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Whether the fence stands as shipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Not all of its objects have been listed.
    Unknown,
    /// It doesn't, for this reason.
    Gap(String),
    /// It does. Each change of an object gives another number.
    Stands(u64),
}

/// The informers of the fence's objects, each of one object.
pub(super) struct FenceWatch {
    parts: Vec<(PartKind, &'static str, Informer<StoredPart>)>,
    policies: FencePolicies,
    changed: Arc<Notify>,
    standing: watch::Sender<Standing>,
    listed: watch::Sender<bool>,
}

impl FenceWatch {
    pub(super) fn new(client: &RestClient, policies: FencePolicies, seed: u64) -> Self {
        let changed: Arc<Notify> = Arc::default();
        let names = [
            (PartKind::Policy, FENCE),
            (PartKind::Binding, FENCE),
            (PartKind::Policy, MIRROR),
            (PartKind::Binding, MIRROR),
        ];
        let parts = (11..).zip(names).map(|(stream, (kind, name))| {
            let resource = match kind {
                PartKind::Policy => VALIDATING_ADMISSION_POLICIES,
                PartKind::Binding => VALIDATING_ADMISSION_POLICY_BINDINGS,
            };
            let named = Selectors::default().fields(format!("metadata.name={name}"));
            let config = InformerConfig::default()
                .selectors(named)
                .seed(seed.wrapping_add(stream));
            let mut informer = Informer::new(client.clone(), resource, &config);
            informer.add_handler(Arc::new(PartHandler(Arc::clone(&changed))));
            (kind, name, informer)
        });
        Self {
            parts: parts.collect(),
            policies,
            changed,
            standing: watch::Sender::new(Standing::Unknown),
            listed: watch::Sender::new(false),
        }
    }

    /// Becomes true when all objects have been listed.
    pub(super) fn has_synced(&self) -> watch::Receiver<bool> {
        self.listed.subscribe()
    }

    pub(super) fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }

    /// Watches until `cancelled`.
    pub(super) fn start(self, tasks: &mut JoinSet<()>, cancelled: &CancellationToken) {
        let (mut caches, mut synced) = (Vec::new(), Vec::new());
        for (kind, name, informer) in self.parts {
            caches.push((kind, name, informer.indexer()));
            synced.push(informer.has_synced());
            tasks.spawn(informer.run(cancelled.clone()));
        }
        let (policies, changed) = (self.policies, self.changed);
        let (standing, listed) = (self.standing, self.listed);
        tasks.spawn(async move {
            for mut synced in synced {
                if synced.wait_for(|synced| *synced).await.is_err() {
                    return;
                }
            }
            let mut versions = Versions::default();
            loop {
                let change = changed.notified();
                standing.send_if_modified(|last| {
                    let found = versions.standing(&policies, &caches);
                    let is_new = *last != found;
                    *last = found;
                    is_new
                });
                listed.send_replace(true);
                change.await;
            }
        });
    }
}

/// The versions of the objects, and the number of their changes.
#[derive(Default)]
struct Versions {
    last: Vec<Option<(Box<str>, i64)>>,
    changes: u64,
}

impl Versions {
    fn standing(
        &mut self,
        policies: &FencePolicies,
        caches: &[(PartKind, &str, Arc<Indexer<StoredPart>>)],
    ) -> Standing {
        let parts = caches.iter().map(|(kind, name, cache)| {
            let part = cache.get("", name);
            (*kind, *name, part)
        });
        let parts: Vec<(PartKind, &str, Option<Arc<StoredPart>>)> = parts.collect();
        let version = |part: &StoredPart| (part.uid().into(), part.generation);
        let versions = parts.iter().map(|(.., part)| part.as_deref().map(version));
        let versions: Vec<_> = versions.collect();
        if versions != self.last {
            self.last = versions;
            self.changes += 1;
        }
        let stored = |kind: PartKind, name: &str| {
            let mut found = parts.iter();
            let found = found.find(|(of, called, _)| *of == kind && *called == name);
            found.and_then(|(.., part)| part.as_deref())
        };
        match gap(policies, stored) {
            Some(gap) => Standing::Gap(gap.to_string()),
            None => Standing::Stands(self.changes),
        }
    }
}

/// Reports every change of an object.
struct PartHandler(Arc<Notify>);

impl EventHandler<StoredPart> for PartHandler {
    fn on_add(&self, _part: &Arc<StoredPart>, _in_initial_list: bool) {
        self.0.notify_one();
    }

    fn on_update(&self, _old: &Arc<StoredPart>, _new: &Arc<StoredPart>) {
        self.0.notify_one();
    }

    fn on_delete(&self, _part: &Arc<StoredPart>, _final_state_unknown: bool) {
        self.0.notify_one();
    }
}
