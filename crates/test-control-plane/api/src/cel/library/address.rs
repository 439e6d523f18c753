//! Addresses and networks.
//!
//! Upstream: `IP` and `CIDR` of `k8s.io/apiserver/pkg/cel/library`

mod netip;

use std::any::Any;
use std::net::{IpAddr, Ipv4Addr};

use cel::common::types::{CelBool, CelInt, CelString, Type};
use cel::common::value::{StaticVal, Val};
use cel::{DeclarationError, Env, ExecutionError, add_member_overload, add_overload};
use ipnet::IpNet;
use kube_apimachinery::int_or_string::go_quote;

/// An address.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Address(IpAddr);

/// A network: an address, which may have bits behind the prefix, and the length of its prefix.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Network(IpNet);

opaque!(Address, ADDRESS, "net.IP");
opaque!(Network, NETWORK, "net.CIDR");

/// Upstream: `parseIPAddr`
fn read_address(text: &str) -> Result<IpAddr, String> {
    let shown = go_quote(text);
    let parsed = netip::address(text).map_err(|error| {
        format!("IP Address {shown} parse error during conversion from string: {error}")
    })?;
    if parsed.has_zone {
        return Err(format!("IP address {shown} with zone value is not allowed"));
    }
    if is_mapped(parsed.address) {
        return Err(format!("IPv4-mapped IPv6 address {shown} is not allowed"));
    }
    Ok(parsed.address)
}

/// Upstream: `parseCIDR`
fn read_network(text: &str) -> Result<IpNet, String> {
    let network = netip::network(text).map_err(|error| {
        format!("network address parse error during conversion from string: {error}")
    })?;
    if is_mapped(network.addr()) {
        let shown = go_quote(text);
        return Err(format!("IPv4-mapped IPv6 address {shown} is not allowed"));
    }
    Ok(network)
}

/// Returns true for an address of IPv4 in the form of IPv6.
fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(inner) if inner.to_ipv4_mapped().is_some())
}

pub(super) fn add(environment: &mut Env) -> Result<(), DeclarationError> {
    environment.add_type(ADDRESS.to_owned())?;
    environment.add_type(NETWORK.to_owned())?;
    add_overload!(environment, fn ip: (CelString<'_>) -> Result<Address>)?;
    add_overload!(environment, fn is_ip: (CelString<'_>) -> CelBool, name = "isIP")?;
    add_overload!(environment,
        fn is_canonical: (CelString<'_>) -> Result<CelBool>, name = "ip.isCanonical")?;
    add_overload!(environment, fn show_address: (Address) -> CelString<'_>, name = "string")?;
    add_overload!(environment, fn cidr: (CelString<'_>) -> Result<Network>)?;
    add_overload!(environment, fn is_cidr: (CelString<'_>) -> CelBool, name = "isCIDR")?;
    add_overload!(environment, fn show_network: (Network) -> CelString<'_>, name = "string")?;
    of_addresses(environment)?;
    of_networks(environment)
}

fn of_addresses(environment: &mut Env) -> Result<(), DeclarationError> {
    add_member_overload!(environment, fn family: (Address) -> CelInt)?;
    add_member_overload!(environment, fn is_unspecified: (Address) -> CelBool)?;
    add_member_overload!(environment, fn is_loopback: (Address) -> CelBool)?;
    add_member_overload!(environment, fn is_link_local_multicast: (Address) -> CelBool)?;
    add_member_overload!(environment, fn is_link_local_unicast: (Address) -> CelBool)?;
    add_member_overload!(environment, fn is_global_unicast: (Address) -> CelBool)
}

fn of_networks(environment: &mut Env) -> Result<(), DeclarationError> {
    add_member_overload!(environment,
        fn contains_address: (Network, Address) -> CelBool, name = "containsIP")?;
    add_member_overload!(environment,
        fn contains_ip: (Network, CelString<'_>) -> Result<CelBool>, name = "containsIP")?;
    add_member_overload!(environment,
        fn contains_network: (Network, Network) -> CelBool, name = "containsCIDR")?;
    add_member_overload!(environment,
        fn contains_cidr: (Network, CelString<'_>) -> Result<CelBool>, name = "containsCIDR")?;
    add_member_overload!(environment, fn address_of: (Network) -> Address, name = "ip")?;
    add_member_overload!(environment, fn masked: (Network) -> Network)?;
    add_member_overload!(environment, fn prefix_length: (Network) -> CelInt)
}

fn ip(text: &CelString<'_>) -> Result<Address, ExecutionError> {
    read_address(text.inner())
        .map(Address)
        .map_err(|message| ExecutionError::function_error("ip", message))
}

fn is_ip(text: &CelString<'_>) -> CelBool {
    read_address(text.inner()).is_ok().into()
}

fn is_canonical(text: &CelString<'_>) -> Result<CelBool, ExecutionError> {
    let address = ip(text)?.0.to_string();
    Ok((address == text.inner()).into())
}

fn show_address<'v>(address: &Address) -> CelString<'v> {
    CelString::from(address.0.to_string())
}

fn cidr(text: &CelString<'_>) -> Result<Network, ExecutionError> {
    read_network(text.inner()).map(Network).map_err(|error| {
        let message = format!("network address parse error during conversion from string: {error}");
        ExecutionError::function_error("cidr", message)
    })
}

fn is_cidr(text: &CelString<'_>) -> CelBool {
    read_network(text.inner()).is_ok().into()
}

fn show_network<'v>(network: &Network) -> CelString<'v> {
    CelString::from(network.0.to_string())
}

fn family(address: &Address) -> CelInt {
    CelInt::from(if address.0.is_ipv4() { 4 } else { 6 })
}

fn is_unspecified(address: &Address) -> CelBool {
    address.0.is_unspecified().into()
}

fn is_loopback(address: &Address) -> CelBool {
    address.0.is_loopback().into()
}

fn is_link_local_multicast(address: &Address) -> CelBool {
    let is_one = match address.0 {
        IpAddr::V4(address) => address.octets().starts_with(&[224, 0, 0]),
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    };
    is_one.into()
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

fn is_link_local_unicast(address: &Address) -> CelBool {
    is_link_local(address.0).into()
}

/// Upstream: `IsGlobalUnicast` of Go's net/netip
fn is_global_unicast(address: &Address) -> CelBool {
    let address = address.0;
    let is_global = address != IpAddr::V4(Ipv4Addr::BROADCAST)
        && !address.is_unspecified()
        && !address.is_loopback()
        && !address.is_multicast()
        && !is_link_local(address);
    is_global.into()
}

fn contains_address(network: &Network, address: &Address) -> CelBool {
    network.0.contains(&address.0).into()
}

fn contains_ip(network: &Network, text: &CelString<'_>) -> Result<CelBool, ExecutionError> {
    // A wrong text has no address, so upstream finds no overload.
    let address = read_address(text.inner());
    let address =
        address.map_err(|_| ExecutionError::no_such_member_overload("containsIP", Vec::new()))?;
    Ok(contains_address(network, &Address(address)))
}

fn contains_network(network: &Network, other: &Network) -> CelBool {
    network.0.contains(&other.0).into()
}

fn contains_cidr(network: &Network, text: &CelString<'_>) -> Result<CelBool, ExecutionError> {
    Ok(contains_network(network, &cidr(text)?))
}

fn address_of(network: &Network) -> Address {
    Address(network.0.addr())
}

fn masked(network: &Network) -> Network {
    Network(network.0.trunc())
}

fn prefix_length(network: &Network) -> CelInt {
    CelInt::from(i64::from(network.0.prefix_len()))
}
