//! Connects to a configuration's server: proxy, TLS, HTTP/2 with pings, credentials.

use std::borrow::Cow;
use std::io;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt as _;
use http::{HeaderValue, Uri};
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::{Builder, Client};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use kube::client::{Body, ConfigExt as _};
use kube::config::Config;
use tokio::net::TcpStream;
use tower::util::{BoxCloneSyncService, option_layer};
use tower::{BoxError, Layer as _, Service, ServiceExt as _, service_fn};

use super::fenced_io::FencedIo;
use crate::fence::Fence;
use crate::rest::{RequestService, boxed_service};

/// Time limit for opening a connection, including proxy and TLS.
/// Upstream: the dialer of `rest.TransportFor`.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Interval of the kernel's probes on a silent connection.
const TCP_KEEPALIVE: Duration = Duration::from_secs(30);
/// Minimum time that the kernel may take to deliver bytes; 0 would select its own limit.
#[cfg(target_os = "linux")]
const TRANSIT_MIN: Duration = Duration::from_millis(1);
/// Silence on a connection after which a ping is sent.
/// Upstream: `HTTP2_READ_IDLE_TIMEOUT_SECONDS`.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// Time limit for the response to a ping, after which the connection is closed.
/// Upstream: `HTTP2_PING_TIMEOUT_SECONDS`.
const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// Time after which a connection without requests is closed.
const IDLE_MAX: Duration = Duration::from_secs(90);

/// Creates a client, which connects with its first request. Its connections send nothing while the
/// fence is closed.
///
/// # Errors
///
/// Fails if the credentials, the certificates or the proxy are invalid.
pub(super) fn connect(config: &Config, fence: Option<&Fence>) -> Result<RequestService, BoxError> {
    let config = &*without_unused_authorities(config);
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(TCP_KEEPALIVE));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(fence.map(|fence| fence.transit_max().max(TRANSIT_MIN)));
    let fence = fence.cloned();
    let tcp = tcp.map_response(move |io| fenced(io, fence.clone()));
    let Some(proxy) = &config.proxy_url else {
        return over(config, plain(tcp));
    };
    let connector = match proxy.scheme_str() {
        Some("socks5" | "socks5h") => {
            let socks = SocksV5::new(proxy.clone(), tcp);
            match user_info(proxy) {
                Some((user, password)) => plain(socks.with_auth(user, password)),
                None => plain(socks),
            }
        }
        Some("http") => plain(tunnel(proxy, tcp)?),
        Some("https") => {
            let secured = config.rustls_https_connector_with_connector(tcp)?;
            boxed(tunnel(proxy, secured)?)
        }
        scheme => {
            // The rest of the URL may contain a password.
            let (scheme, host) = (scheme.unwrap_or_default(), proxy.host().unwrap_or_default());
            let problem = format!("proxy {scheme}://{host} is neither http, https nor socks5");
            return Err(problem.into());
        }
    };
    over(config, connector)
}

/// A TCP connection.
type Tcp = FencedIo<TokioIo<TcpStream>>;

/// Connects to the server or to a proxy in front of it. One type for all of them, so that there is
/// one copy of the code above it: TLS, HTTP and credentials.
type Connector = BoxCloneSyncService<Uri, MaybeHttpsStream<Tcp>, BoxError>;

/// Boxes a connector that doesn't use TLS to the proxy.
fn plain<C>(connector: C) -> Connector
where
    C: Service<Uri, Response = Tcp, Future: Send> + Clone + Send + Sync + 'static,
    C::Error: Into<BoxError>,
{
    boxed(connector.map_response(MaybeHttpsStream::Http))
}

fn boxed<C>(connector: C) -> Connector
where
    C: Service<Uri, Response = MaybeHttpsStream<Tcp>, Future: Send> + Clone + Send + Sync + 'static,
    C::Error: Into<BoxError>,
{
    BoxCloneSyncService::new(connector.map_err(Into::into))
}

/// Adds a fence to a connection. Closing such a connection for any reason makes the kernel drop
/// undelivered bytes; every write with a response was delivered.
fn fenced(io: TokioIo<TcpStream>, fence: Option<Fence>) -> Tcp {
    if fence.is_some()
        && let Err(error) = io.inner().set_zero_linger()
    {
        tracing::warn!(%error, "cannot make a connection drop undelivered bytes on close");
    }
    FencedIo::new(io, fence)
}

fn tunnel<C>(proxy: &Uri, connector: C) -> Result<Tunnel<C>, BoxError> {
    let tunnel = Tunnel::new(proxy.clone(), connector);
    let Some((user, password)) = user_info(proxy) else {
        return Ok(tunnel);
    };
    let credentials = STANDARD.encode(format!("{user}:{password}"));
    let header = HeaderValue::try_from(format!("Basic {credentials}"))?;
    Ok(tunnel.with_auth(header))
}

/// Returns a URL's user and password, unescaped.
fn user_info(url: &Uri) -> Option<(String, String)> {
    let (info, _) = url.authority()?.as_str().rsplit_once('@')?;
    let (user, password) = info.split_once(':').unwrap_or((info, ""));
    Some((unescape(user), unescape(password)))
}

fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = tail.split_at_checked(2).filter(|_| *first == b'%');
        let byte = escaped.and_then(|(digits, rest)| Some((hex_byte(digits)?, rest)));
        if let Some((byte, after)) = byte {
            bytes.push(byte);
            rest = after;
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex_byte(digits: &[u8]) -> Option<u8> {
    let digits = std::str::from_utf8(digits).ok()?;
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let byte = u8::from_str_radix(digits, 16).ok();
    byte.filter(|_| is_hex)
}

/// Replaces the system's CAs by none if the configuration verifies no certificate: neither the
/// server's nor the proxy's. An image need not contain any.
fn without_unused_authorities(config: &Config) -> Cow<'_, Config> {
    let is_https = |url: &Uri| url.scheme_str() == Some("https");
    let has_tls = is_https(&config.cluster_url) || config.proxy_url.as_ref().is_some_and(is_https);
    let verifies = has_tls && !config.accept_invalid_certs;
    if verifies || config.root_cert.is_some() {
        return Cow::Borrowed(config);
    }
    let mut config = config.clone();
    config.root_cert = Some(Vec::new());
    Cow::Owned(config)
}

/// Adds TLS, HTTP and credentials to a connector.
fn over(config: &Config, connector: Connector) -> Result<RequestService, BoxError> {
    let mut tls = HttpsConnectorBuilder::new()
        .with_tls_config(config.rustls_client_config()?)
        .https_or_http();
    if let Some(name) = &config.tls_server_name {
        let resolver = FixedServerNameResolver::new(name.clone().try_into()?);
        tls = tls.with_server_name_resolver(resolver);
    }
    let secured = tls.enable_all_versions().wrap_connector(connector);
    let limited = service_fn(move |uri: Uri| {
        let connecting = secured.clone().oneshot(uri);
        let connecting = tokio::time::timeout(CONNECT_TIMEOUT, connecting);
        let timed_out = |_| Err(io::Error::from(io::ErrorKind::TimedOut).into());
        connecting
            .map(move |end| end.unwrap_or_else(timed_out))
            .boxed()
    });
    let client: Client<_, Body> = Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_MAX)
        .http2_keep_alive_interval(PING_INTERVAL)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .http2_keep_alive_while_idle(true)
        .build(limited);
    let named = config
        .extra_headers_layer()?
        .layer(client.map_err(BoxError::from));
    let authorized = option_layer(config.auth_layer()?).layer(named);
    Ok(boxed_service(config.base_uri_layer().layer(authorized)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Poll;

    use http::Request;
    use tokio::io::{AsyncReadExt as _, AsyncWrite as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::clock::{MonotonicClock as _, TokioClock};

    fn open_fence() -> Fence {
        let clock = TokioClock::new();
        let fence = Fence::new(Arc::new(clock));
        fence.open_until(clock.elapsed() + Duration::from_secs(3600));
        fence
    }

    /// Reads until a connection ends; returns the number of bytes and the final result.
    async fn drain(mut peer: TcpStream) -> (usize, io::Result<usize>) {
        let mut bytes = Vec::new();
        let ended = peer.read_to_end(&mut bytes).await;
        (bytes.len(), ended)
    }

    #[tokio::test]
    async fn kernel_drops_undelivered_bytes_with_the_lease() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap());
        let (ours, peer) = tokio::join!(ours, listener.accept());
        let (ours, (peer, _)) = (ours.unwrap(), peer.unwrap());
        ours.writable().await.unwrap();
        let fence = open_fence();
        let mut connection = TokioIo::new(fenced(TokioIo::new(ours), Some(fence.clone())));
        let chunk = vec![b'x'; 64 * 1024];
        let mut written = 0;
        std::future::poll_fn(|context| {
            // The peer reads nothing, so the buffers fill up.
            while let Poll::Ready(sent) =
                std::pin::Pin::new(&mut connection).poll_write(context, &chunk)
            {
                written += sent.unwrap();
            }
            Poll::Ready(())
        })
        .await;
        fence.close();
        assert!(connection.read_u8().await.is_err());
        drop(connection);
        let (arrived, ended) = drain(peer).await;
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
        assert!(arrived < written, "{arrived} of {written} bytes arrived");
    }

    #[tokio::test]
    async fn lost_lease_resets_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let fence = open_fence();
        let config = Config::new(server.parse().unwrap());
        let client = connect(&config, Some(&fence)).unwrap();
        let body = Body::from(vec![b'x'; 64 << 20]);
        let request = Request::post("/").body(body).unwrap();
        let losing = async {
            let (peer, _) = listener.accept().await.unwrap();
            peer.readable().await.unwrap();
            fence.close();
            peer
        };
        let (sent, peer) = tokio::join!(client.oneshot(request), losing);
        assert!(sent.is_err());
        let (_, ended) = drain(peer).await;
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn undelivered_bytes_end_connection_in_time() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let fence = open_fence().with_transit_max(Duration::from_millis(300));
        let config = Config::new(server.parse().unwrap());
        let client = connect(&config, Some(&fence)).unwrap();
        let request = Request::post("/")
            .body(Body::from(vec![b'x'; 64 << 20]))
            .unwrap();
        let (sent, peer) = tokio::join!(client.oneshot(request), listener.accept());
        let error = sent.unwrap_err();
        let is_timeout = crate::causes::causes(&*error).any(|cause| {
            let error = cause.downcast_ref::<io::Error>();
            error.is_some_and(|error| error.kind() == io::ErrorKind::TimedOut)
        });
        assert!(is_timeout, "{error:?}");
        // The peer has read nothing so far.
        drop(peer);
    }

    #[test]
    fn proxy_credentials_are_unescaped() {
        for (url, expected) in [
            ("http://proxy.test:3128", None),
            (
                "http://jane:p%40ss%3a@proxy.test:3128",
                Some(("jane", "p@ss:")),
            ),
            ("socks5://jane@proxy.test", Some(("jane", ""))),
            ("http://a%2:50%+1@proxy.test", Some(("a%2", "50%+1"))),
        ] {
            let found = user_info(&url.parse().unwrap());
            let found = found
                .as_ref()
                .map(|(user, word)| (user.as_str(), word.as_str()));
            assert_eq!(found, expected, "{url}");
        }
    }
}
