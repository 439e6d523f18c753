//! The sender of a request, and the tokens of senders.

use std::sync::{Arc, PoisonError, RwLock};

use http::Extensions;

use super::identity::Identity;
use super::token_file::Tokens;

/// What the transport knows of the client; requests without it come from this process.
///
/// A request of this process acts as the [`Identity`] in its extensions, or as the administrator if
/// there is none and it has no `Authorization` header.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The user of the client certificate, if there was one.
    pub certificate: Option<Identity>,
}

/// Who sends a request, as far as the transport knows.
#[derive(Clone, Debug)]
pub enum Sender {
    /// A client behind a connection.
    Peer(Peer),
    /// This process, for a user.
    Process(Arc<Identity>),
}

impl Sender {
    /// What the extensions of a request say; without them it comes from this process, as `admin`.
    pub(crate) fn of(extensions: &Extensions, admin: &Arc<Identity>) -> Self {
        if let Some(peer) = extensions.get::<Peer>() {
            return Self::Peer(peer.clone());
        }
        match extensions.get::<Identity>() {
            Some(identity) => Self::Process(Arc::new(identity.clone().authenticated())),
            None => Self::Process(Arc::clone(admin)),
        }
    }
}

/// The tokens that were handed out while the server runs.
#[derive(Debug, Default)]
pub(crate) struct IssuedTokens(RwLock<Tokens>);

impl IssuedTokens {
    pub(crate) fn get(&self, token: &str) -> Option<Identity> {
        let tokens = self.0.read().unwrap_or_else(PoisonError::into_inner);
        tokens.get(token).cloned()
    }

    pub(crate) fn insert(&self, token: &str, identity: Identity) {
        let mut tokens = self.0.write().unwrap_or_else(PoisonError::into_inner);
        tokens.insert(token, identity);
    }
}
