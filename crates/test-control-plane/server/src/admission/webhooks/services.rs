//! The services behind which webhooks run, as a test gives them.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tower::util::BoxCloneSyncService;
use tower::{Service, ServiceExt};

use crate::reply::BoxError;

/// A handler of webhooks in this process, in its common form.
pub(super) type Handler = BoxCloneSyncService<Request<Full<Bytes>>, Response<Bytes>, BoxError>;

/// A handler of webhooks in this process: every `tower::Service` of HTTP, such as an `axum::Router`.
pub trait WebhookHandler {
    /// Returns the handler in its common form.
    #[doc(hidden)]
    fn into_handler(self) -> Handler;
}

impl<S, B> WebhookHandler for S
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    fn into_handler(self) -> Handler {
        let handler = self.map_err(Into::into).and_then(collect);
        BoxCloneSyncService::new(handler)
    }
}

/// The place of a service.
#[derive(Clone)]
pub(super) enum Place {
    /// A port with TLS.
    Address(SocketAddr),
    /// A handler in this process.
    Handler(Handler),
}

/// The services that webhook configurations and definitions may name, by namespace and name. Nothing
/// else runs behind a service. Clones share their state.
///
/// A service runs in this process, or at an address with a certificate for `NAME.NAMESPACE.svc`.
#[derive(Clone, Default)]
pub struct WebhookServices(Arc<RwLock<BTreeMap<(String, String), Place>>>);

impl fmt::Debug for WebhookServices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = self.0.read().unwrap_or_else(PoisonError::into_inner);
        f.debug_set().entries(places.keys()).finish()
    }
}

impl WebhookServices {
    /// Calls a handler in this process for the webhooks of a service. It needs no certificate and no
    /// socket, so that it works in paused time.
    pub fn serve(&self, namespace: &str, name: &str, handler: impl WebhookHandler) {
        self.insert(namespace, name, Place::Handler(handler.into_handler()));
    }

    /// Calls the webhooks of a service at an address, with TLS.
    pub fn resolve(&self, namespace: &str, name: &str, address: SocketAddr) {
        self.insert(namespace, name, Place::Address(address));
    }

    /// Adds the services of others, which replace those of the same names.
    pub fn add_all(&self, others: &Self) {
        let others = others.0.read().unwrap_or_else(PoisonError::into_inner);
        let others = others.clone();
        let mut places = self.0.write().unwrap_or_else(PoisonError::into_inner);
        places.extend(others);
    }

    /// Removes a service, whose webhooks can't be called from now on. Returns true if there was one.
    pub fn remove(&self, namespace: &str, name: &str) -> bool {
        let mut places = self.0.write().unwrap_or_else(PoisonError::into_inner);
        places
            .remove(&(namespace.to_owned(), name.to_owned()))
            .is_some()
    }

    fn insert(&self, namespace: &str, name: &str, place: Place) {
        let mut places = self.0.write().unwrap_or_else(PoisonError::into_inner);
        places.insert((namespace.to_owned(), name.to_owned()), place);
    }

    pub(super) fn find(&self, namespace: &str, name: &str) -> Option<Place> {
        let places = self.0.read().unwrap_or_else(PoisonError::into_inner);
        places
            .get(&(namespace.to_owned(), name.to_owned()))
            .cloned()
    }
}

/// Reads the whole body of a response.
async fn collect<B>(response: Response<B>) -> Result<Response<Bytes>, BoxError>
where
    B: http_body::Body,
    B::Error: Into<BoxError>,
{
    let (parts, body) = response.into_parts();
    let body = body.collect().await.map_err(Into::into)?.to_bytes();
    Ok(Response::from_parts(parts, body))
}
