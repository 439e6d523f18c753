//! The metrics of the whole process over HTTP.

use std::convert::Infallible;
use std::io;

use hyper::Response;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use prometheus::Registry;
use statefulset_controller::client::metrics::text;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Responds to every request with the registry. Returns only if the port fails.
pub(crate) async fn serve(port: TcpListener, registry: Registry) -> io::Error {
    let mut connections = JoinSet::new();
    loop {
        let stream = match port.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => return error,
        };
        let registry = registry.clone();
        let answer = service_fn(move |_| {
            let metrics = text::encode(&registry.gather());
            async move { Ok::<_, Infallible>(Response::new(metrics)) }
        });
        connections.spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
        while connections.try_join_next().is_some() {}
    }
}
