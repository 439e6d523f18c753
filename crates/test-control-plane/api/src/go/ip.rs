//! IP addresses and networks as Go reads and prints them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The last octet of an IPv4 address and of a part of its text.
const OCTET_MAX: u32 = 255;

/// Parses an address, with leading zeros in IPv4 octets. IPv4-mapped IPv6 addresses are IPv4.
///
/// Upstream: `ParseIPSloppy` of `k8s.io/utils/net`.
pub(crate) fn parse_sloppy(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        let address: Ipv6Addr = text.parse().ok()?;
        return Some(canonical(address));
    }
    let octets: Vec<u32> = text.split('.').map(digits).collect::<Option<_>>()?;
    let [a, b, c, d] = octets[..] else {
        return None;
    };
    let octet = |n: u32| u8::try_from(n).ok().filter(|_| n <= OCTET_MAX);
    let address = Ipv4Addr::new(octet(a)?, octet(b)?, octet(c)?, octet(d)?);
    Some(address.into())
}

fn canonical(address: Ipv6Addr) -> IpAddr {
    match address.to_ipv4_mapped() {
        Some(address) => address.into(),
        None => address.into(),
    }
}

/// Parses a decimal number, with leading zeros.
fn digits(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// Returns true for an address that is IPv6 in its text but IPv4 in its value.
fn is_mapped(text: &str) -> bool {
    text.contains(':') && parse_sloppy(text).is_some_and(|address| address.is_ipv4())
}

fn has_leading_zeros(text: &str) -> bool {
    !text.contains(':') && text.parse::<IpAddr>().is_err()
}

/// Returns the errors of an address.
///
/// Upstream: `IsValidIPForLegacyField`, with `StrictIPCIDRValidation`.
pub(crate) fn errors(text: &str) -> Vec<&'static str> {
    match parse_sloppy(text) {
        None => vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"],
        Some(_) if has_leading_zeros(text) => vec!["must not have leading 0s"],
        Some(_) if is_mapped(text) => vec!["must not be an IPv4-mapped IPv6 address"],
        Some(_) => Vec::new(),
    }
}

/// Returns the errors of an address that must be in canonical form.
///
/// Upstream: `IsValidIP`.
pub(crate) fn canonical_errors(text: &str) -> Vec<String> {
    let found = errors(text);
    match parse_sloppy(text) {
        Some(address) if found.is_empty() && address.to_string() != text => {
            vec![format!("must be in canonical form (\"{address}\")")]
        }
        _ => found.into_iter().map(str::to_owned).collect(),
    }
}

/// Returns the errors of an address with the length of its network.
///
/// Upstream: `IsValidInterfaceAddress`.
pub(crate) fn interface_errors(text: &str) -> Vec<String> {
    let Some(found) = Cidr::parse(text) else {
        let example = "(e.g. 10.9.8.7/24 or 2001:db8::1/64)";
        return vec![format!("must be a valid address in CIDR form, {example}")];
    };
    let canonical = format!("{}/{}", found.address, found.length);
    if canonical == text {
        return Vec::new();
    }
    vec![format!("must be in canonical form (\"{canonical}\")")]
}

/// A network, with the address that its text has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cidr {
    /// The address in the text.
    pub(crate) address: IpAddr,
    /// The length of the prefix, in bits.
    pub(crate) length: u32,
}

impl Cidr {
    /// Parses a network, with leading zeros.
    ///
    /// Upstream: `ParseCIDRSloppy` of `k8s.io/utils/net`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        let bits = if address.contains(':') { 128 } else { 32 };
        let length = digits(length).filter(|length| *length <= bits)?;
        let found = parse_sloppy(address)?;
        // The prefix of an IPv4-mapped address counts the bits of IPv6.
        let is_mapped = bits == 128 && found.is_ipv4();
        Some(Self {
            address: found,
            length: if is_mapped {
                length.saturating_sub(96)
            } else {
                length
            },
        })
    }

    /// Returns the first address of the network.
    pub(crate) fn network(self) -> IpAddr {
        match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - self.length).unwrap_or(0);
                Ipv4Addr::from(u32::from(address) & mask).into()
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - self.length).unwrap_or(0);
                Ipv6Addr::from(u128::from(address) & mask).into()
            }
        }
    }

    /// Returns true if the network contains an address.
    pub(crate) fn contains(self, address: IpAddr) -> bool {
        let other = Self { address, ..self };
        address.is_ipv4() == self.address.is_ipv4() && other.network() == self.network()
    }
}

fn has_leading_zeros_in_cidr(text: &str) -> bool {
    let (address, length) = text.split_once('/').unwrap_or((text, ""));
    has_leading_zeros(address) || length.len() > 1 && length.starts_with('0')
}

fn is_mapped_cidr(text: &str) -> bool {
    is_mapped(text.split('/').next().unwrap_or_default())
}

/// Returns the errors of a network.
///
/// Upstream: `IsValidCIDRForLegacyField`, with `StrictIPCIDRValidation`.
pub(crate) fn cidr_errors(text: &str) -> Vec<&'static str> {
    let detail = match Cidr::parse(text) {
        None => "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
        Some(_) if has_leading_zeros_in_cidr(text) => {
            "must not have leading 0s in IP or prefix length"
        }
        Some(_) if is_mapped_cidr(text) => "must not have an IPv4-mapped IPv6 address",
        Some(cidr) if cidr.network() != cidr.address => {
            "must not have bits set beyond the prefix length"
        }
        Some(_) => return Vec::new(),
    };
    vec![detail]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_sloppily_and_checked_strictly() {
        for text in ["10.0.0.1", "::1", "2001:DB8::1"] {
            assert_eq!(errors(text), [""; 0], "{text}");
        }
        for text in [
            "",
            "10.0.0",
            "10.0.0.256",
            "fe80::1%eth0",
            "1.2.3.4.5",
            "+1.2.3.4",
        ] {
            assert_eq!(parse_sloppy(text), None, "{text}");
        }
        assert_eq!(errors("010.0.0.1"), ["must not have leading 0s"]);
        let mapped = ["must not be an IPv4-mapped IPv6 address"];
        assert_eq!(errors("::ffff:1.2.3.4"), mapped);
        let canonical = ["must be in canonical form (\"2001:db8::1\")"];
        assert_eq!(canonical_errors("2001:DB8::1"), canonical);
    }

    #[test]
    fn networks_are_read_sloppily_and_checked_strictly() {
        for text in ["10.0.0.0/8", "::/0", "0.0.0.0/0"] {
            assert_eq!(cidr_errors(text), [""; 0], "{text}");
        }
        for wrong in ["10.0.0.0", "10.0.0.0/33", "::/129", "x/8", "1.2.3.4/x"] {
            assert!(Cidr::parse(wrong).is_none(), "{wrong}");
        }
        for (text, end) in [
            ("10.0.0.1/8", "beyond the prefix length"),
            ("10.0.0.0/08", "in IP or prefix length"),
            ("::ffff:1.2.3.4/128", "IPv4-mapped IPv6 address"),
        ] {
            assert!(cidr_errors(text)[0].ends_with(end), "{text}");
        }
        let outer = Cidr::parse("10.0.0.0/8").unwrap();
        assert!(outer.contains("10.1.2.3".parse().unwrap()));
        assert!(!outer.contains("11.1.2.3".parse().unwrap()));
    }
}
