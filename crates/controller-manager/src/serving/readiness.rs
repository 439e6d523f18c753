//! Readiness of the process.
//!
//! It is ready when it leads and its caches are filled, and when it stands by for another leader:
//! an unready standby would block rollouts of the program's own Deployment, and its disruption
//! budget. It is not ready while it starts, including the wait for the permission to read the
//! lease, while it fills its caches, and while it shuts down.

use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use super::health::{Health, HealthCheck};

/// Phase of the process.
#[derive(Clone, Default)]
pub(crate) enum Phase {
    /// Waiting for an API server that grants the needed permissions.
    #[default]
    Starting,
    /// Waiting for the lease.
    StandingBy,
    /// Running the controller; the function reports whether its caches are filled.
    Running(Arc<dyn Fn() -> bool + Send + Sync>),
}

/// The current phase, shared with the checks.
///
/// Upstream: `healthz.NewInformerSyncHealthz` and `NewShutdownHealthz` of kube-apiserver.
#[derive(Clone, Default)]
pub(crate) struct Readiness(Arc<Mutex<Phase>>);

impl Readiness {
    /// Adds the readiness checks; `stop` ends the process.
    pub(crate) fn add_to(&self, health: &Health, stop: CancellationToken) {
        health.add_readiness(Arc::new(InformerSync(self.clone())));
        health.add_readiness(Arc::new(Shutdown(stop)));
    }

    /// Records a new phase.
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
            Phase::Starting => Err("still waiting for the API server to grant access".to_owned()),
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
            return Err("the process is shutting down".to_owned());
        }
        Ok(())
    }
}

/// A check that always passes and shows that a controller was started.
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
    async fn process_is_ready_when_leading_or_standing_by() {
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
