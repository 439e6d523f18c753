//! The sender of a request, and issued tokens.

use std::sync::{Arc, PoisonError, RwLock};

use http::Extensions;
use kube_test_control_plane_api::setters;

use super::identity::Identity;
use super::token_file::Tokens;

/// The transport's facts about a client. A request without them comes from this process.
///
/// An in-process request acts as the [`Identity`] in its extensions. Without one, and without an
/// `Authorization` header, it acts as the administrator.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Peer {
    /// The user of the client certificate, if any.
    pub certificate: Option<Identity>,
}

impl Peer {
    setters! {
        /// Sets the user of the client certificate.
        certificate: into Option<Identity>,
    }
}

/// The sender of a request, as known to the transport.
#[derive(Clone, Debug)]
pub(crate) enum Sender {
    /// A client of a network connection.
    Peer(Peer),
    /// This process, on behalf of a user.
    Process(Arc<Identity>),
}

impl Sender {
    /// Returns the sender in a request's extensions; the default is this process as `admin`.
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

/// Tokens issued while the server runs.
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
