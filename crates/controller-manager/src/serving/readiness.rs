//! Does this process do its part? It does when it leads and its caches are filled, and when it
//! stands by for another that leads: a standby that is not ready would hold up rollouts of the
//! program's own Deployment, and its disruption budget. It doesn't while it starts, which includes
//! the wait for the right to read the lease, fills its caches, or ends.

use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use super::health::{Health, HealthCheck};

/// What the process is doing.
#[derive(Clone, Default)]
pub(crate) enum Phase {
    /// It waits for an API server that allows what it needs.
    #[default]
    Starting,
    /// It waits for the lease.
    StandingBy,
    /// The controller runs; its caches are filled when this says so.
    Running(Arc<dyn Fn() -> bool + Send + Sync>),
}

/// The phase, as it is now, for checks.
///
/// Upstream: `healthz.NewInformerSyncHealthz` and `NewShutdownHealthz` of kube-apiserver.
#[derive(Clone, Default)]
pub(crate) struct Readiness(Arc<Mutex<Phase>>);

impl Readiness {
    /// Adds the checks of readiness; `stop` ends the process.
    pub(crate) fn add_to(&self, health: &Health, stop: CancellationToken) {
        health.add_readiness(Arc::new(InformerSync(self.clone())));
        health.add_readiness(Arc::new(Shutdown(stop)));
    }

    /// Notes that another phase has begun.
    pub(crate) fn enter(&self, phase: Phase) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = phase;
    }
}

struct InformerSync(Readiness);

impl HealthCheck for InformerSync {
    fn name(&self) -> &'static str {
        "informer-sync"
    }

    fn check(&self) -> Result<(), String> {
        let phase = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*phase {
            Phase::Starting => Err("the API server does not allow the work yet".to_owned()),
            Phase::StandingBy => Ok(()),
            Phase::Running(filled) if filled() => Ok(()),
            Phase::Running(_) => Err("the caches are not filled yet".to_owned()),
        }
    }
}

struct Shutdown(CancellationToken);

impl HealthCheck for Shutdown {
    fn name(&self) -> &'static str {
        "shutdown"
    }

    fn check(&self) -> Result<(), String> {
        if self.0.is_cancelled() {
            return Err("the program is ending".to_owned());
        }
        Ok(())
    }
}

/// A check that always passes: it says that a controller has been started.
///
/// Upstream: `healthz.NamedPingChecker`.
pub(crate) struct Ping(pub(crate) &'static str);

impl HealthCheck for Ping {
    fn name(&self) -> &'static str {
        self.0
    }

    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::serving::fixture::read;
    use crate::serving::health::Endpoint;

    async fn ready(health: &Health) -> (u16, String) {
        read(health.answer(Endpoint::Readyz, "verbose")).await
    }

    #[tokio::test]
    async fn a_process_is_ready_when_it_stands_by_or_works() {
        let health = Health::default();
        let (readiness, stop) = (Readiness::default(), CancellationToken::new());
        readiness.add_to(&health, stop.clone());
        let not_ready = "[-]informer-sync failed: reason withheld\n[+]shutdown ok\n\
                         readyz check failed\n";
        let is_ready = "[+]informer-sync ok\n[+]shutdown ok\nreadyz check passed\n";
        assert_eq!(ready(&health).await, (500, not_ready.to_owned()));
        readiness.enter(Phase::StandingBy);
        assert_eq!(ready(&health).await, (200, is_ready.to_owned()));

        let filled = Arc::new(AtomicBool::new(false));
        let synced = Arc::clone(&filled);
        let running = move || synced.load(Ordering::Relaxed);
        readiness.enter(Phase::Running(Arc::new(running)));
        assert_eq!(ready(&health).await, (500, not_ready.to_owned()));
        filled.store(true, Ordering::Relaxed);
        assert_eq!(ready(&health).await, (200, is_ready.to_owned()));

        health.add(Arc::new(Ping("statefulset-controller")));
        stop.cancel();
        let (code, body) = ready(&health).await;
        let ending = "[+]statefulset-controller ok\n[+]informer-sync ok\n\
                      [-]shutdown failed: reason withheld\nreadyz check failed\n";
        assert_eq!((code, body.as_str()), (500, ending));
        let (code, _) = read(health.answer(Endpoint::Livez, "")).await;
        assert_eq!(code, 200);
    }
}
