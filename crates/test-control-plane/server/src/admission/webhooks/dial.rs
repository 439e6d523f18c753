//! TCP connections to webhooks, with Go's messages.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use tokio::net::{TcpStream, lookup_host};

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// An address.
    Socket(SocketAddr),
    /// A host, by name or address, and a port.
    Host(String, u16),
}

/// Opens a connection.
///
/// # Errors
///
/// The host is unknown, or nothing listens.
pub(super) async fn dial(address: &Address) -> Result<TcpStream, String> {
    let addresses: Vec<SocketAddr> = match address {
        Address::Socket(address) => vec![*address],
        Address::Host(host, port) => {
            let found = lookup_host((host.as_str(), *port)).await;
            let found = found.map_err(|_| format!("dial tcp: lookup {host}: no such host"))?;
            found.collect()
        }
    };
    let mut failed = "dial tcp: missing address".to_owned();
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(socket) => {
                // A failure only delays small packets.
                drop(socket.set_nodelay(true));
                return Ok(socket);
            }
            Err(error) => {
                let why = go_text(&error);
                failed = format!("dial tcp {address}: connect: {why}");
            }
        }
    }
    Err(failed)
}

/// Returns the text that Go has for an error of the system.
pub(super) fn go_text(error: &io::Error) -> String {
    let text = match error.kind() {
        ErrorKind::ConnectionRefused => "connection refused",
        ErrorKind::ConnectionReset => "connection reset by peer",
        ErrorKind::HostUnreachable => "no route to host",
        ErrorKind::NetworkUnreachable => "network is unreachable",
        ErrorKind::TimedOut => "connection timed out",
        ErrorKind::BrokenPipe => "broken pipe",
        ErrorKind::UnexpectedEof => "EOF",
        _ => return error.to_string(),
    };
    text.to_owned()
}
