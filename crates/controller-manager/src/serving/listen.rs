//! The listening socket.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use anyhow::{Context as _, anyhow};
use tokio::net::{TcpListener, TcpSocket};

/// Maximum number of connections waiting to be accepted.
const BACKLOG: u32 = 1024;

/// Address to listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address {
    /// IP address; an unspecified one means all interfaces, IPv4 and IPv6.
    pub(crate) ip: IpAddr,
    /// TCP port.
    pub(crate) port: u16,
    /// True if other processes may share the port.
    pub(crate) shared: bool,
}

/// Opens the port.
///
/// # Errors
///
/// The port is taken, or can't be bound.
///
/// Upstream: `CreateListener`.
pub(crate) fn listen(address: Address) -> anyhow::Result<TcpListener> {
    let Address { ip, port, shared } = address;
    let opened = if ip.is_unspecified() {
        // Without IPv6, fall back to IPv4.
        let all = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        open(all, port, shared).or_else(|error| match error.kind() {
            io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied => Err(error),
            _ => open(ip, port, shared),
        })
    } else {
        open(ip, port, shared)
    };
    let listener = opened.map_err(|error| {
        let address = SocketAddr::new(ip, port);
        let advice = match error.kind() {
            io::ErrorKind::AddrInUse => {
                "; another program has the port: choose another --secure-port, or 0 for none"
            }
            io::ErrorKind::AddrNotAvailable => "; check --bind-address",
            _ => "",
        };
        anyhow!("cannot listen on {address}: {error}{advice}")
    });
    listener.context("open the secure port")
}

fn open(ip: IpAddr, port: u16, shared: bool) -> io::Result<TcpListener> {
    let socket = match ip {
        IpAddr::V4(_) => TcpSocket::new_v4()?,
        IpAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // Lingering sockets of an earlier process must not block the port; Go sets this too.
    socket.set_reuseaddr(true)?;
    #[cfg(unix)]
    if shared {
        socket.set_reuseport(true)?;
    }
    #[cfg(not(unix))]
    let _ = shared;
    socket.bind(SocketAddr::new(ip, port))?;
    socket.listen(BACKLOG)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::net::TcpStream;

    use super::*;
    use kube_apimachinery::error_line::error_line;

    const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn address(ip: IpAddr, port: u16, shared: bool) -> Address {
        Address { ip, port, shared }
    }

    #[tokio::test]
    async fn taken_port_is_reported_in_one_line() {
        let first = listen(address(LOCAL, 0, false)).unwrap();
        let port = first.local_addr().unwrap().port();
        let error = listen(address(LOCAL, port, false)).unwrap_err();
        assert_eq!(
            error_line(error.as_ref()),
            format!(
                "open the secure port: cannot listen on 127.0.0.1:{port}: Address already in use \
                 (os error 98); another program has the port: choose another --secure-port, or 0 \
                 for none"
            )
        );
    }

    #[tokio::test]
    async fn port_can_be_shared() {
        let first = listen(address(LOCAL, 0, true)).unwrap();
        let port = first.local_addr().unwrap().port();
        let second = listen(address(LOCAL, port, true)).unwrap();
        assert_eq!(second.local_addr().unwrap().port(), port);
    }

    #[tokio::test]
    async fn unspecified_address_listens_on_all_interfaces() {
        let all = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let listener = listen(address(all, 0, false)).unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(TcpStream::connect((LOCAL, port)).await.is_ok());
    }
}
