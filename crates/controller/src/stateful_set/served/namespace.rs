//! The life of one namespace: proof, caches, syncs, and their end.

use std::sync::Arc;
use std::time::Duration;

use kube_apimachinery::hash::fnv1a_64;
use statefulset_controller_util::consistency::ConsistencyStore;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::super::handlers::{ClaimHandler, PodHandler, SetHandler};
use super::super::sync::{SetSyncer, SyncerParts, consistency_store};
use super::context::Context;
use super::fence_watch::Standing;
use super::label_watch::{LabelState, LabelWatch};
use super::own_writes::OwnWrites;
use super::proof::{Unproved, prove};
use super::registry::ServedNamespace;
use super::report::Fall;
use super::suspects::{Suspects, suspects};
use crate::error::RunError;
use crate::informers::{InformerScope, InformerSettings, Informers};
use crate::tasks::{join_all, unless_panicked};

/// Time that an API server may take to apply a changed policy, binding or label: it looks for
/// changes once a second.
const PROPAGATION: Duration = Duration::from_millis(1_200);
/// First pause after a failed proof; each pause doubles.
const PROOF_PAUSE_MIN: Duration = Duration::from_secs(1);
/// Longest pause after a failed proof.
const PROOF_PAUSE_MAX: Duration = Duration::from_secs(30);
/// Time between two proofs of a served namespace, besides those after changes. Two dry runs each:
/// 500 namespaces make less than two requests a second.
const PROOF_PERIOD: Duration = Duration::from_secs(600);
/// Pause after a write of another controller; it doubles if there is another one soon.
const FOREIGN_PAUSE_MIN: Duration = Duration::from_secs(60);
/// Longest pause after a write of another controller.
const FOREIGN_PAUSE_MAX: Duration = Duration::from_secs(1_800);

/// Runs a task for each namespace that gets the label.
///
/// # Errors
///
/// A task panicked, or a client can't be created.
pub(super) async fn run_all(
    context: &Arc<Context>,
    labels: &mut LabelWatch,
    namespaces: &mut JoinSet<()>,
    stop: &CancellationToken,
) -> Result<(), RunError> {
    loop {
        let new_namespace = unless_panicked(namespaces, labels.next()).await?;
        let (context, stop) = (Arc::clone(context), stop.clone());
        namespaces.spawn(async move {
            let namespace = Namespace {
                name: new_namespace.namespace,
                context,
            };
            let life = Box::pin(namespace.live(new_namespace.label));
            stop.run_until_cancelled(life).await;
        });
    }
}

/// A namespace that has, or had, the label.
struct Namespace {
    name: Box<str>,
    context: Arc<Context>,
}

impl Namespace {
    async fn live(&self, mut label: watch::Receiver<LabelState>) {
        let report = &self.context.report;
        let mut pause = FOREIGN_PAUSE_MIN;
        loop {
            let Ok(now) = label.wait_for(|label| label.is_served).await.map(|it| *it) else {
                return;
            };
            report.joined(&self.name);
            let mut changed = label.clone();
            let changed = async {
                let _ = changed.wait_for(|label| *label != now).await;
            };
            let proof = tokio::select! {
                biased;
                () = changed => None,
                proof = self.proved() => Some(proof),
            };
            let Some(proof) = proof else {
                report.left(&self.name);
                continue;
            };
            let began = Instant::now();
            let fall = Box::pin(self.serve(proof, now, label.clone())).await;
            report.fell(&self.name, &fall);
            if matches!(fall, Fall::Foreign(_)) {
                if began.elapsed() > pause * 4 {
                    pause = FOREIGN_PAUSE_MIN;
                }
                self.wait_after_foreign_write(pause, now, label.clone())
                    .await;
                pause = (pause * 2).min(FOREIGN_PAUSE_MAX);
            }
        }
    }

    /// Waits until the fence stands as shipped and is in force. Returns its number.
    async fn proved(&self) -> u64 {
        let report = &self.context.report;
        let mut standing = self.context.fence.standing.clone();
        let mut pause = PROOF_PAUSE_MIN;
        loop {
            let found = standing.borrow_and_update().clone();
            let number = match found {
                Standing::Stands(number) => number,
                other => {
                    if let Standing::Gap(gap) = other {
                        report.waiting(&self.name, &gap);
                    }
                    changed(&mut standing).await;
                    continue;
                }
            };
            sleep(PROPAGATION).await;
            let proved = self.prove().await;
            if *standing.borrow() != Standing::Stands(number) {
                continue;
            }
            match proved {
                Ok(()) => return number,
                Err(unproved) => report.waiting(&self.name, &unproved.to_string()),
            }
            tokio::select! {
                () = sleep(pause) => {}
                () = changed(&mut standing) => {}
            }
            pause = (pause * 2).min(PROOF_PAUSE_MAX);
        }
    }

    async fn prove(&self) -> Result<(), Unproved> {
        let Context {
            writes, settings, ..
        } = &*self.context;
        prove(writes, &self.name, &*settings.metrics.fence).await
    }

    /// Serves the namespace until the proof no longer holds.
    async fn serve(
        &self,
        proof: u64,
        label: LabelState,
        labels: watch::Receiver<LabelState>,
    ) -> Fall {
        let context = &self.context;
        let settings = &context.settings;
        let share = match context.clients.take() {
            Ok(share) => share,
            Err(error) => return Fall::NotInForce(error.to_string()),
        };
        let seed = settings.seed ^ fnv1a_64(&self.name);
        let informer_settings = InformerSettings {
            scope: InformerScope {
                namespace: self.name.to_string(),
                shard: None,
                resync_period: settings.resync_period,
            },
            page_size: settings.page_size,
            seed,
        };
        let mut informers = Informers::new(&share.client, informer_settings, &settings.metrics);
        let (own, served) = self.served(&informers);
        let mut suspects = self.add_handlers(&mut informers, &served);
        let filled = informers.has_synced();
        let stop = CancellationToken::new();
        let mut tasks = informers.start(&stop);
        let fall = {
            let serving = async {
                filled.wait().await;
                context.registry.insert(&self.name, Arc::clone(&served));
                context.report.served(&self.name);
                // The keys of the first lists came before the namespace was served.
                for set in served.syncer.caches().sets.list() {
                    settings.queue.add(set.key());
                }
                std::future::pending::<()>().await;
            };
            let ended = self.ended(proof, label, labels, &served, &mut suspects, &own);
            let ended = async {
                tokio::select! {
                    biased;
                    fall = ended => fall,
                    () = serving => Fall::Left,
                }
            };
            unless_panicked(&mut tasks, Box::pin(ended)).await
        };
        context.registry.remove(&self.name).await;
        stop.cancel();
        let informers_ended = join_all(&mut tasks).await;
        match fall.and_then(|fall| informers_ended.map(|()| fall)) {
            Ok(fall) => fall,
            // The panic ends the controller, like that of any informer.
            Err(error) => std::panic::resume_unwind(Box::new(error.to_string())),
        }
    }

    /// Creates the syncer of the namespace, and the record of its writes.
    fn served(&self, informers: &Informers) -> (Arc<OwnWrites>, Arc<ServedNamespace>) {
        let settings = &self.context.settings;
        let caches = informers.caches();
        let own = Arc::new(OwnWrites::new(consistency_store(
            &caches,
            settings.rules.gates,
        )));
        let mut parts = SyncerParts::with_consistency(
            caches,
            &self.context.writes,
            Arc::clone(&settings.recorder),
            Arc::clone(&settings.clock),
            Arc::clone(&settings.jitter),
            settings.rules.clone(),
            Arc::clone(&own) as Arc<dyn ConsistencyStore>,
        );
        parts.metrics = Arc::clone(&settings.metrics.sets);
        let served = ServedNamespace::new(Arc::new(SetSyncer::new(parts)));
        (own, Arc::new(served))
    }

    fn add_handlers(&self, informers: &mut Informers, served: &ServedNamespace) -> Suspects {
        let settings = &self.context.settings;
        let queue = &settings.queue;
        informers.sets.add_handler(Arc::new(SetHandler {
            queue: queue.clone(),
        }));
        informers.pods.add_handler(Arc::new(PodHandler {
            queue: queue.clone(),
            sets: informers.sets.indexer(),
        }));
        informers.claims.add_handler(Arc::new(ClaimHandler {
            queue: queue.clone(),
            waits: Arc::clone(served.syncer.claim_waits()),
        }));
        let (handler, suspects) = suspects(settings.clock.now());
        informers.sets.add_handler(Arc::new(handler.clone()));
        informers.pods.add_handler(Arc::new(handler.clone()));
        informers.revisions.add_handler(Arc::new(handler));
        suspects
    }

    /// Waits until the namespace may no longer be served.
    async fn ended(
        &self,
        proof: u64,
        label: LabelState,
        mut labels: watch::Receiver<LabelState>,
        served: &ServedNamespace,
        suspects: &mut Suspects,
        own: &OwnWrites,
    ) -> Fall {
        let context = &self.context;
        let mut standing = context.fence.standing.clone();
        tokio::select! {
            biased;
            changed = labels.wait_for(|now| *now != label) => match changed {
                Ok(now) if now.is_served => Fall::LabelChanged,
                _ => Fall::Left,
            },
            changed = standing.wait_for(|now| *now != Standing::Stands(proof)) => {
                match changed.as_deref() {
                    Ok(Standing::Gap(gap)) => Fall::PolicyChanged(Some(gap.clone())),
                    _ => Fall::PolicyChanged(None),
                }
            }
            () = served.denied.notified() => Fall::Denied,
            foreign = suspects.foreign(&context.writes, own) => Fall::Foreign(foreign),
            problem = self.not_in_force() => Fall::NotInForce(problem),
        }
    }

    /// Tries the probes from time to time, until one passes.
    async fn not_in_force(&self) -> String {
        loop {
            let fraction = self.context.settings.jitter.fraction();
            sleep(PROOF_PERIOD.mul_f64(0.5 + fraction)).await;
            match self.prove().await {
                Err(unproved @ Unproved::NotInForce(_)) => return unproved.to_string(),
                // An unreachable server accepts no write either.
                Ok(()) | Err(Unproved::Unclear(_)) => {}
            }
        }
    }

    /// Waits, unless the label or the fence changes.
    async fn wait_after_foreign_write(
        &self,
        pause: Duration,
        label: LabelState,
        mut labels: watch::Receiver<LabelState>,
    ) {
        let mut standing = self.context.fence.standing.clone();
        standing.mark_unchanged();
        tokio::select! {
            () = sleep(pause) => {}
            _ = labels.wait_for(|now| *now != label) => {}
            () = changed(&mut standing) => {}
        }
    }
}

/// Waits for a change, or forever if the fence is no longer watched.
async fn changed(standing: &mut watch::Receiver<Standing>) {
    if standing.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}
