//! The address of a webhook, as configurations and definitions give it.
//!
//! Upstream: `ClientManager.HookClient`

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use crate::go::url::Url;
use crate::members::text;

/// The port of a service whose configuration gives none.
const HTTPS_PORT: u16 = 443;

/// `clientConfig` of a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClientConfig {
    /// The server.
    pub target: Target,
    /// The cleaned path, which begins with a slash.
    pub path: String,
    /// The certificate authorities as PEM; empty for those of the system.
    pub ca_bundle: Vec<u8>,
}

/// The server of a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// A service of the cluster.
    Service {
        /// The namespace of the service.
        namespace: String,
        /// The name of the service.
        name: String,
        /// The port of the service.
        port: u16,
    },
    /// A host, with its port if the URL gives one.
    Host(String),
}

impl ClientConfig {
    /// Reads a client configuration.
    ///
    /// # Errors
    ///
    /// It has neither a service nor a URL that can be parsed.
    pub fn read(config: &Value) -> Result<Self, String> {
        let bundle = BASE64_STANDARD.decode(text(config, "caBundle"));
        let ca_bundle = bundle.unwrap_or_default();
        if let Some(service) = config.get("service").filter(|it| it.is_object()) {
            let port = service.get("port").and_then(Value::as_u64);
            let port = port.and_then(|port| u16::try_from(port).ok());
            return Ok(Self {
                target: Target::Service {
                    namespace: text(service, "namespace").to_owned(),
                    name: text(service, "name").to_owned(),
                    port: port.filter(|port| *port != 0).unwrap_or(HTTPS_PORT),
                },
                path: clean(text(service, "path")),
                ca_bundle,
            });
        }
        let url = text(config, "url");
        if url.is_empty() {
            return Err("webhook configuration must have either service or URL".to_owned());
        }
        let url = Url::parse(url).map_err(|error| format!("Unparsable URL: {error}"))?;
        Ok(Self {
            target: Target::Host(url.host),
            path: clean(&url.path),
            ca_bundle,
        })
    }

    /// Returns the URL of a call, which tells the webhook its time limit in whole seconds.
    pub fn url(&self, timeout: Duration) -> String {
        let seconds = timeout.as_secs() + u64::from(timeout.subsec_nanos() > 0);
        format!(
            "https://{}{}?timeout={seconds}s",
            self.target.authority(),
            self.path
        )
    }
}

impl Target {
    /// Returns host and port as the URL has them.
    pub fn authority(&self) -> String {
        match self {
            Self::Service { port, .. } => format!("{}:{port}", self.server_name()),
            Self::Host(host) => host.clone(),
        }
    }

    /// Returns the name that the certificate has to be valid for.
    pub fn server_name(&self) -> String {
        match self {
            Self::Service {
                namespace, name, ..
            } => format!("{name}.{namespace}.svc"),
            Self::Host(host) => host_and_port(host).0.to_owned(),
        }
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        match self {
            Self::Service { port, .. } => *port,
            Self::Host(host) => host_and_port(host).1,
        }
    }
}

/// Splits `host`, `host:port` or `[address]:port`.
fn host_and_port(host: &str) -> (&str, u16) {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()),
        _ => (host, None),
    };
    let bare = name.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    (bare.unwrap_or(name), port.unwrap_or(HTTPS_PORT))
}

/// Removes empty and dot segments of a path, and the slash at its end.
///
/// Upstream: `path.Join` of Go
fn clean(path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            other => segments.push(other),
        }
    }
    format!("/{}", segments.join("/"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn url(config: &Value) -> String {
        let config = ClientConfig::read(config).unwrap();
        config.url(Duration::from_millis(9_001))
    }

    #[test]
    fn urls_have_clean_paths_and_whole_seconds() {
        for (sent, expected) in [
            ("https://a", "https://a/?timeout=10s"),
            ("https://a:8443/x//y/", "https://a:8443/x/y?timeout=10s"),
            ("https://[::1]:1/./b/../c", "https://[::1]:1/c?timeout=10s"),
        ] {
            assert_eq!(url(&json!({"url": sent})), expected);
        }
        let service = json!({"namespace": "n", "name": "s", "path": "x"});
        let expected = "https://s.n.svc:443/x?timeout=10s";
        assert_eq!(url(&json!({"service": service})), expected);
    }

    #[test]
    fn hosts_are_split_from_their_ports() {
        for (host, name, port) in [
            ("a", "a", 443),
            ("a:8443", "a", 8443),
            ("[::1]", "::1", 443),
            ("[::1]:8443", "::1", 8443),
        ] {
            let target = Target::Host(host.to_owned());
            assert_eq!((target.server_name().as_str(), target.port()), (name, port));
        }
    }

    #[test]
    fn configurations_without_a_target_are_errors() {
        let error = ClientConfig::read(&json!({})).unwrap_err();
        assert_eq!(
            error,
            "webhook configuration must have either service or URL"
        );
    }
}
