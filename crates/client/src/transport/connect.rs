//! Makes a client for the server of a configuration: proxy, TLS, HTTP/2 with pings, credentials.

use std::io;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderValue, Uri};
use hyper::rt::{Read, Write};
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use hyper_util::client::legacy::{Builder, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt as _};
use kube::config::Config;
use tower::{BoxError, Layer as _, Service, ServiceExt as _, service_fn};

use super::fenced_io::FencedIo;
use crate::leaderelection::Fence;

/// How long a connection may take to be made, with everything that belongs to it.
/// Upstream: the dialer of `rest.TransportFor`.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// How often the kernel probes a silent connection.
const TCP_KEEPALIVE: Duration = Duration::from_secs(30);
/// A connection on which nothing is heard for so long is sent a ping.
/// Upstream: `HTTP2_READ_IDLE_TIMEOUT_SECONDS`.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// How long the answer to a ping may take; then the connection is given up.
/// Upstream: `HTTP2_PING_TIMEOUT_SECONDS`.
const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a connection without requests is kept.
const IDLE_MAX: Duration = Duration::from_secs(90);

/// Makes a client; it connects with its first request. Its connections send nothing while the fence
/// is closed.
///
/// # Errors
///
/// Credentials, certificates or the proxy are of no use.
pub(super) fn connect(config: &Config, fence: Option<&Fence>) -> Result<kube::Client, BoxError> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(TCP_KEEPALIVE));
    let Some(proxy) = &config.proxy_url else {
        return over(config, fence, tcp);
    };
    match proxy.scheme_str() {
        Some("socks5" | "socks5h") => {
            let socks = SocksV5::new(proxy.clone(), tcp);
            match user_info(proxy) {
                Some((user, password)) => over(config, fence, socks.with_auth(user, password)),
                None => over(config, fence, socks),
            }
        }
        Some("http") => over(config, fence, tunnel(proxy, tcp)?),
        Some("https") => {
            let secured = config.rustls_https_connector_with_connector(tcp)?;
            over(config, fence, tunnel(proxy, secured)?)
        }
        scheme => {
            // The rest of the URL may hold a password.
            let (scheme, host) = (scheme.unwrap_or_default(), proxy.host().unwrap_or_default());
            Err(format!("proxy {scheme}://{host} is neither http, https nor socks5").into())
        }
    }
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

/// User and password of a URL, without the escapes of URLs.
fn user_info(url: &Uri) -> Option<(String, String)> {
    let (info, _) = url.authority()?.as_str().rsplit_once('@')?;
    let (user, password) = info.split_once(':').unwrap_or((info, ""));
    Some((unescape(user), unescape(password)))
}

fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = tail.get(..2).filter(|_| *first == b'%');
        let hex = escaped.and_then(|digits| std::str::from_utf8(digits).ok());
        let hex = hex.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        if let Some(byte) = hex.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            bytes.push(byte);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Puts TLS, HTTP and the credentials over a connector.
fn over<C>(config: &Config, fence: Option<&Fence>, connector: C) -> Result<kube::Client, BoxError>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Connection + Read + Write + Send + Unpin + 'static,
    C::Future: Send,
    C::Error: Into<BoxError>,
{
    let mut tls = HttpsConnectorBuilder::new()
        .with_tls_config(config.rustls_client_config()?)
        .https_or_http();
    if let Some(name) = &config.tls_server_name {
        let resolver = FixedServerNameResolver::new(name.clone().try_into()?);
        tls = tls.with_server_name_resolver(resolver);
    }
    let fence = fence.cloned();
    let fenced = connector.map_response(move |io| FencedIo::new(io, fence.clone()));
    let secured = tls.enable_all_versions().wrap_connector(fenced);
    let limited = service_fn(move |uri: Uri| {
        let connecting = secured.clone().oneshot(uri);
        Box::pin(async move {
            let connected = tokio::time::timeout(CONNECT_TIMEOUT, connecting).await;
            connected.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
        })
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
    let namespace = config.default_namespace.clone();
    let addressed = config.base_uri_layer();
    Ok(match config.auth_layer()? {
        Some(credentials) => {
            kube::Client::new(addressed.layer(credentials.layer(named)), namespace)
        }
        None => kube::Client::new(addressed.layer(named), namespace),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_of_a_proxy_are_unescaped() {
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
