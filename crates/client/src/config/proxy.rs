//! Selects the proxy for a server.

use std::fmt;
use std::net::IpAddr;

use http::Uri;
use http::uri::Scheme;
use ipnet::IpNet;

/// Default ports of https servers and SOCKS proxies.
const HTTPS_PORT: u16 = 443;
const SOCKS_PORT: u16 = 1080;

/// The proxy from a process's environment, and the servers that bypass it.
///
/// Upstream: `httpproxy.Config`.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProxyConfig {
    /// The proxy for https servers: a URL, or an HTTP proxy's host and port; empty for none.
    pub https_proxy: String,
    /// Comma-separated names, addresses and networks of servers that bypass the proxy. A name
    /// includes its subdomains, a leading dot restricts it to subdomains, and a port restricts it
    /// to that port. `*` matches every server.
    pub no_proxy: String,
}

/// The problem with a configured proxy. Omits its URL, which may contain a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// The address is not a URL.
    #[error("not a URL")]
    NotAUrl,
    /// The client can't use proxies with this scheme.
    #[error("unsupported scheme {0:?}, must be http, https, or socks5")]
    UnsupportedScheme(String),
}

impl ProxyConfig {
    /// Reads `HTTPS_PROXY` and `NO_PROXY`, in upper or lower case.
    ///
    /// Upstream: `httpproxy.FromEnvironment`.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: [&str; 2]| {
            let mut values = names.into_iter().filter_map(&variable);
            values.find(|value| !value.is_empty()).unwrap_or_default()
        };
        Self {
            https_proxy: first(["HTTPS_PROXY", "https_proxy"]),
            no_proxy: first(["NO_PROXY", "no_proxy"]),
        }
    }

    /// Sets the proxy for https servers: a URL, or an HTTP proxy's host and port; empty for none.
    #[must_use]
    pub fn https_proxy(mut self, https_proxy: impl Into<String>) -> Self {
        self.https_proxy = https_proxy.into();
        self
    }

    /// Sets the servers that bypass the proxy, comma-separated.
    #[must_use]
    pub fn no_proxy(mut self, no_proxy: impl Into<String>) -> Self {
        self.no_proxy = no_proxy.into();
        self
    }

    /// Returns the proxy for this server. Returns none for a loopback or an unencrypted server.
    ///
    /// Upstream: `httpproxy.Config.ProxyFunc`, `http.ProxyFromEnvironment`.
    pub(super) fn proxy_for(&self, server: &Uri) -> Result<Option<Uri>, ProxyError> {
        let is_secure = server.scheme() == Some(&Scheme::HTTPS);
        if !is_secure || self.https_proxy.is_empty() || self.leaves_out(server) {
            return Ok(None);
        }
        let text = &self.https_proxy;
        if text.contains("://") {
            parse(text).map(Some)
        } else {
            parse(&format!("http://{text}")).map(Some)
        }
    }

    /// Returns true if this server bypasses the proxy.
    fn leaves_out(&self, server: &Uri) -> bool {
        let host = server.host().unwrap_or_default();
        let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
        let address = parse_address(&host);
        let is_local = host == "localhost" || address.is_some_and(|address| address.is_loopback());
        let target = Target {
            port: server.port_u16().unwrap_or(HTTPS_PORT),
            host,
            address,
        };
        is_local || self.no_proxy.split(',').any(|entry| target.is_in(entry))
    }
}

impl fmt::Debug for ProxyConfig {
    /// Omits the URL, which may contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyConfig")
            .field("no_proxy", &self.no_proxy)
            .finish_non_exhaustive()
    }
}

/// A server, for matching against `NO_PROXY`.
struct Target {
    /// Without the brackets of an IPv6 address.
    host: String,
    address: Option<IpAddr>,
    port: u16,
}

impl Target {
    fn is_in(&self, entry: &str) -> bool {
        let entry = entry.trim().to_ascii_lowercase();
        if entry == "*" || self.is_in_network(&entry) {
            return true;
        }
        let (name, port) = split_port(&entry);
        if port.is_some_and(|port| port.parse() != Ok(self.port)) {
            return false;
        }
        if let Some(address) = parse_address(name) {
            return self.address == Some(address);
        }
        let name = name.strip_prefix('*').unwrap_or(name);
        match self.host.strip_suffix(name) {
            None => false,
            Some(_) if name.is_empty() => false,
            Some(rest) => name.starts_with('.') || rest.is_empty() || rest.ends_with('.'),
        }
    }

    /// Returns true if the entry is a network that contains this server's address, such as
    /// `10.96.0.0/12`.
    fn is_in_network(&self, entry: &str) -> bool {
        let network = entry.split_once('/').and_then(|(base, bits)| {
            let network = IpNet::new(base.parse().ok()?, bits.parse().ok()?);
            network.ok()
        });
        let pair = network.zip(self.address);
        pair.is_some_and(|(network, address)| network.contains(&address))
    }
}

/// Parses an address into a canonical form.
fn parse_address(text: &str) -> Option<IpAddr> {
    let address: IpAddr = text.parse().ok()?;
    Some(address.to_canonical())
}

/// Splits `host:port` or `[address]:port`. Returns the whole entry if it has no port.
fn split_port(entry: &str) -> (&str, Option<&str>) {
    let split = match entry.strip_prefix('[') {
        Some(rest) => rest.split_once("]:"),
        None => entry
            .rsplit_once(':')
            .filter(|(host, _)| !host.contains(':')),
    };
    match split {
        Some((host, port)) => (host, Some(port).filter(|port| !port.is_empty())),
        None => (entry, None),
    }
}

/// Parses a proxy's URL and adds a port where the connector lacks the right default.
///
/// Upstream: `clientcmd.parseProxyURL`.
pub(super) fn parse(text: &str) -> Result<Uri, ProxyError> {
    let url: Uri = text.parse().map_err(|_| ProxyError::NotAUrl)?;
    let (Some(scheme), Some(authority)) = (url.scheme_str(), url.authority()) else {
        return Err(ProxyError::NotAUrl);
    };
    match scheme {
        _ if authority.host().is_empty() => Err(ProxyError::NotAUrl),
        "http" | "https" => Ok(url),
        "socks5" | "socks5h" if authority.port().is_some() => Ok(url),
        "socks5" | "socks5h" => format!("{scheme}://{authority}:{SOCKS_PORT}")
            .parse()
            .map_err(|_| ProxyError::NotAUrl),
        other => Err(ProxyError::UnsupportedScheme(other.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(https_proxy: &str, no_proxy: &str, server: &str) -> Option<String> {
        let config = ProxyConfig {
            https_proxy: https_proxy.to_owned(),
            no_proxy: no_proxy.to_owned(),
        };
        let proxy = config.proxy_for(&server.parse().unwrap()).unwrap();
        proxy.map(|proxy| proxy.to_string())
    }

    #[test]
    fn remote_https_servers_use_proxy() {
        for (server, expected) in [
            ("https://example.test", true),
            ("https://192.0.2.1:6443", true),
            ("http://example.test", false),
            ("https://localhost:6443", false),
            ("https://127.0.0.1:6443", false),
            ("https://[::1]:6443", false),
        ] {
            let found = through("http://proxy.corp:3128", "", server);
            assert_eq!(found.is_some(), expected, "{server}");
            assert_eq!(through("", "", server), None, "{server}");
        }
    }

    #[test]
    fn no_proxy_servers_bypass_proxy() {
        let cluster = "https://10.96.0.1";
        let ipv6 = "https://[2001:db8::1]:6443";
        let name = "https://kubernetes.default.svc";
        let outside = "https://api.Example.test:6443";
        for (no_proxy, server, expected) in [
            ("10.96.0.1,.svc", cluster, true),
            ("10.96.0.1,.svc", name, true),
            ("10.96.0.1,.svc", outside, false),
            (" , 10.96.0.1 ,", cluster, true),
            ("proxy.corp", cluster, false),
            ("*", cluster, true),
            ("*", name, true),
            ("10.96.0.0/12", cluster, true),
            ("10.96.0.0/12", "https://10.112.0.1", false),
            ("10.96.0.0/12", ipv6, false),
            ("0.0.0.0/0", cluster, true),
            ("10.96.0.0/33", cluster, false),
            ("10.96.0.0/", cluster, false),
            ("2001:db8::/32", ipv6, true),
            ("2001:db9::/32", ipv6, false),
            ("::/0", ipv6, true),
            ("2001:db8:0::1", ipv6, true),
            ("[2001:db8::1]:6443", ipv6, true),
            ("[2001:db8::1]:443", ipv6, false),
            ("10.96.0.1:443", cluster, true),
            ("10.96.0.1:6443", cluster, false),
            ("10.96.0.1:", cluster, true),
            ("::ffff:10.96.0.1", cluster, true),
            ("example.test", outside, true),
            ("EXAMPLE.test:6443", outside, true),
            ("example.test:443", outside, false),
            ("example.test:https", outside, false),
            (".example.test", outside, true),
            ("*.example.test", outside, true),
            ("example.test", "https://example.test", true),
            (".example.test", "https://example.test", false),
            ("*.example.test", "https://example.test", false),
            ("ample.test", outside, false),
            ("api.example.test.", outside, false),
            (":443", cluster, false),
        ] {
            let found = through("http://proxy.corp:3128", no_proxy, server);
            assert_eq!(found.is_none(), expected, "{no_proxy:?} {server}");
        }
    }

    #[test]
    fn proxy_may_be_url_or_host() {
        let server = "https://example.test";
        for (text, expected) in [
            ("http://proxy.corp:3128", "http://proxy.corp:3128/"),
            ("proxy.corp:3128", "http://proxy.corp:3128/"),
            ("u:p@proxy.corp", "http://u:p@proxy.corp/"),
            ("https://proxy.corp", "https://proxy.corp/"),
            ("socks5://proxy.corp", "socks5://proxy.corp:1080/"),
            ("socks5h://u:p@proxy.corp", "socks5h://u:p@proxy.corp:1080/"),
            ("socks5://[::1]", "socks5://[::1]:1080/"),
            ("socks5://proxy.corp:9", "socks5://proxy.corp:9/"),
        ] {
            assert_eq!(
                through(text, "", server).as_deref(),
                Some(expected),
                "{text}"
            );
        }
        for (text, expected) in [
            (
                "ftp://u:secret@proxy.corp",
                ProxyError::UnsupportedScheme("ftp".to_owned()),
            ),
            ("http://u:sec ret@proxy.corp", ProxyError::NotAUrl),
            ("http://", ProxyError::NotAUrl),
            ("/proxy", ProxyError::NotAUrl),
        ] {
            let config = ProxyConfig {
                https_proxy: text.to_owned(),
                no_proxy: String::new(),
            };
            let found = config.proxy_for(&Uri::from_static("https://example.test"));
            assert_eq!(found, Err(expected), "{text}");
        }
    }

    #[test]
    fn environment_variables_work_in_either_case() {
        let config = ProxyConfig::from_environment(|name| match name {
            "HTTPS_PROXY" => Some(String::new()),
            "https_proxy" => Some("http://u:secret@proxy.corp".to_owned()),
            "NO_PROXY" => Some(".svc".to_owned()),
            "no_proxy" => Some(".other".to_owned()),
            _ => None,
        });
        assert_eq!(config.https_proxy, "http://u:secret@proxy.corp");
        assert_eq!(
            format!("{config:?}"),
            r#"ProxyConfig { no_proxy: ".svc", .. }"#
        );
    }
}
