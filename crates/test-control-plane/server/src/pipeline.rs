//! Processing of a request: authentication, fault rules, handler and audit log.

mod dispatch;
pub(crate) mod json;
mod recording;
mod writes;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use http::Request;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::access;
use crate::faults::{self, Interrupted};
use crate::incoming::Incoming;
use crate::reply::{self, BoxError, ConnectionDropped, Reply};
use crate::route::Remarks;
use crate::state::ServerState;
use crate::transport::ResponseEncoder;
use dispatch::dispatch;
use recording::Recording;

/// Responds to a request.
///
/// # Errors
///
/// A fault drops or refuses the connection, or upstream would panic on the request. All
/// other failures are responses.
pub(crate) async fn serve<B>(
    state: &ServerState,
    request: Request<B>,
) -> Result<Reply, ConnectionDropped>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<BoxError>,
{
    let connection = state.faults.outage().connect().ok_or(ConnectionDropped)?;
    tokio::select! {
        biased;
        () = connection.cancelled() => Err(ConnectionDropped),
        answered = read_and_answer(state, request, &connection) => answered,
    }
}

async fn read_and_answer<B>(
    state: &ServerState,
    request: Request<B>,
    connection: &CancellationToken,
) -> Result<Reply, ConnectionDropped>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<BoxError>,
{
    let incoming = Incoming::receive(request, &state.access.admin).await;
    let (method, headers) = (&incoming.method, &incoming.headers);
    let encoder = ResponseEncoder::new(method, headers, &incoming.query, &state.stamps);
    let reply = answer(state, &incoming, &encoder, connection).await?;
    Ok(encoder.stamp(reply, &state.stamps))
}

async fn answer(
    state: &ServerState,
    incoming: &Incoming,
    encoder: &ResponseEncoder,
    connection: &CancellationToken,
) -> Result<Reply, ConnectionDropped> {
    let identity = access::identify(&state.access, incoming);
    let facts = Arc::new(incoming.facts(&identity.user));
    let remarks = Remarks::default();
    let decision = state.faults.decide(&facts, &incoming.body);
    let recording = Recording {
        state,
        incoming,
        identity: &identity,
        facts: &facts,
        remarks: &remarks,
        audit_id: encoder.audit_id(),
        fault: decision.names(),
        received: state.reads.clock().now(),
        begun: Instant::now(),
        is_in_log: AtomicBool::new(false),
    };
    if let Some(code) = decision.code_without_handling() {
        recording.finish(state.reads.store.revision(), code, None);
    }
    // Boxed once here: the futures around it would copy it.
    let handled = Box::pin(async {
        let before = state.reads.store.revision();
        let begun = recording.begun;
        let reply = match dispatch(state, &identity, incoming, &facts, &remarks, begun).await {
            Ok(reply) => {
                recording.finish(before, reply.status().as_u16(), None);
                Ok(reply)
            }
            Err(err) if err.closes_connection() => {
                recording.finish(before, err.code, Some(&err));
                return Err(ConnectionDropped);
            }
            Err(err) => {
                recording.finish(before, err.code, Some(&err));
                Err(err)
            }
        };
        let reply = reply::with_warnings(reply, &remarks.warnings());
        let reply = reply.unwrap_or_else(|err| reply::error(&err));
        Ok(encoder.encode(reply).await)
    });
    let carried_out = decision.carry_out(&facts, handled);
    let result = match incoming.time_limit(&facts) {
        None => carried_out.await,
        Some(limit) => timeout(limit, carried_out).await.unwrap_or_else(|_| {
            recording.give_up();
            Ok(reply::timed_out())
        }),
    };
    match result {
        Ok(reply) => Ok(faults::follow(
            &state.faults,
            &facts,
            connection.clone(),
            reply,
        )),
        Err(Interrupted::Dropped | Interrupted::Failed(ConnectionDropped)) => {
            Err(ConnectionDropped)
        }
    }
}
