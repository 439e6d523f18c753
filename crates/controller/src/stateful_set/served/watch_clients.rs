//! The clients of the namespaces' watches.

use std::sync::{Arc, Mutex, PoisonError};

use statefulset_client::config::ConfigError;
use statefulset_client::rest::RestClient;

/// Maximum number of namespaces that share a client. Each needs four streams, and kube-apiserver
/// allows 100 on a connection.
const NAMESPACES_MAX: usize = 20;

/// Creates a client with its own connection.
pub(in crate::stateful_set) type NewClient =
    Arc<dyn Fn() -> Result<RestClient, ConfigError> + Send + Sync>;

/// Clients, each shared by a few namespaces.
#[derive(Clone)]
pub(in crate::stateful_set) struct WatchClients {
    new: NewClient,
    clients: Arc<Mutex<Vec<Shared>>>,
}

struct Shared {
    client: RestClient,
    namespaces: usize,
}

/// A namespace's share of a client.
pub(super) struct Share {
    pub(super) client: RestClient,
    number: usize,
    clients: Arc<Mutex<Vec<Shared>>>,
}

impl WatchClients {
    pub(in crate::stateful_set) fn new(new: NewClient) -> Self {
        Self {
            new,
            clients: Arc::default(),
        }
    }

    /// Returns a client for one more namespace.
    ///
    /// # Errors
    ///
    /// A client can't be created.
    pub(super) fn take(&self) -> Result<Share, ConfigError> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let free = clients.iter().position(|it| it.namespaces < NAMESPACES_MAX);
        let number = if let Some(number) = free {
            number
        } else {
            clients.push(Shared {
                client: (self.new)()?,
                namespaces: 0,
            });
            clients.len() - 1
        };
        let client = match clients.get_mut(number) {
            Some(shared) => {
                shared.namespaces += 1;
                shared.client.clone()
            }
            None => (self.new)()?,
        };
        Ok(Share {
            client,
            number,
            clients: Arc::clone(&self.clients),
        })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = clients.get_mut(self.number) {
            shared.namespaces = shared.namespaces.saturating_sub(1);
        }
    }
}
