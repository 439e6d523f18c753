//! Controllers of other crates that run as actors of the control plane.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::header::USER_AGENT;
use http::{HeaderValue, Request};
use kube::client::Body;
use kube_test_control_plane_server::config::ServerConfig;
use kube_test_control_plane_server::faults::ACTOR_AGENT_PREFIX;
use kube_test_control_plane_server::server::ApiServer;
use kube_test_control_plane_store::clock::Clock;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

/// The surroundings of an actor from another crate.
#[derive(Clone)]
#[non_exhaustive]
pub struct ActorContext {
    /// A client without sockets. Its requests count as an actor's.
    pub client: kube::Client,
    /// The control plane's clock.
    pub clock: Arc<dyn Clock>,
    /// The server's configuration: emulated version, feature gates and seed.
    pub config: ServerConfig,
    /// True if actors write events.
    pub events: bool,
    /// Cancelled when the control plane stops.
    pub stopping: CancellationToken,
}

impl fmt::Debug for ActorContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The client has no `Debug`.
        f.debug_struct("ActorContext")
            .field("clock", &self.clock)
            .field("config", &self.config)
            .field("events", &self.events)
            .finish_non_exhaustive()
    }
}

type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// An actor from another crate. [`TestControlPlaneBuilder::actor`] runs it.
///
/// [`TestControlPlaneBuilder::actor`]: super::TestControlPlaneBuilder::actor
#[derive(Clone)]
pub struct ForeignActor {
    pub(super) name: &'static str,
    run: Arc<dyn Fn(ActorContext) -> Running + Send + Sync>,
}

impl fmt::Debug for ForeignActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForeignActor")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl ForeignActor {
    /// Names a controller, which `run` starts. It ends when [`ActorContext::stopping`] is
    /// cancelled.
    pub fn new<W>(
        name: &'static str,
        run: impl Fn(ActorContext) -> W + Send + Sync + 'static,
    ) -> Self
    where
        W: Future<Output = ()> + Send + 'static,
    {
        Self {
            name,
            run: Arc::new(move |context| Box::pin(run(context))),
        }
    }

    /// Runs the actor on a server until it stops.
    pub(super) fn run(&self, server: &ApiServer, events: bool) -> Running {
        let agent = HeaderValue::from_str(&format!("{ACTOR_AGENT_PREFIX}{}", self.name));
        let agent = agent.unwrap_or(HeaderValue::from_static(ACTOR_AGENT_PREFIX));
        let service = server
            .clone()
            .map_request(move |mut request: Request<Body>| {
                request.headers_mut().insert(USER_AGENT, agent.clone());
                request
            });
        (self.run)(ActorContext {
            client: kube::Client::new(service, "default"),
            clock: Arc::clone(server.clock()),
            config: server.config().clone(),
            events,
            stopping: server.stopping(),
        })
    }
}
