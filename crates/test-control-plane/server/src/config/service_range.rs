//! The range of service addresses.

use std::net::Ipv4Addr;
use std::str::FromStr;

use ipnet::Ipv4Net;

/// The longest and the shortest prefix of a range: 8 to 1,048,576 addresses.
const BITS_MAX: u8 = 29;
const BITS_MIN: u8 = 12;

/// Upstream: `calculateRangeOffset`
const RESERVED_MIN: u32 = 16;
const RESERVED_MAX: u32 = 256;
const RESERVED_SHARE: u32 = 16;

/// The IPv4 network from which services get their addresses; 10.96.0.0/12 by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceRange(Ipv4Net);

/// An error for text that is not a range of service addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot use {0:?} as service range, use an IPv4 network from /{BITS_MIN} to /{BITS_MAX}")]
pub struct ServiceRangeError(String);

impl Default for ServiceRange {
    fn default() -> Self {
        Self(Ipv4Net::new_assert(Ipv4Addr::new(10, 96, 0, 0), BITS_MIN))
    }
}

impl FromStr for ServiceRange {
    type Err = ServiceRangeError;

    /// Parses an address with a prefix length, such as `10.0.0.0/16`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let network: Option<Ipv4Net> = text.parse().ok();
        let network = network.filter(|it| (BITS_MIN..=BITS_MAX).contains(&it.prefix_len()));
        let network = network.ok_or_else(|| ServiceRangeError(text.to_owned()))?;
        Ok(Self(network.trunc()))
    }
}

impl std::fmt::Display for ServiceRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl ServiceRange {
    /// Returns the network's own address, which dry runs show instead of a free one.
    pub(crate) fn network(self) -> Ipv4Addr {
        self.0.network()
    }

    /// Returns the first address, that of the API server's own service.
    pub fn first(self) -> Ipv4Addr {
        self.after_network(1)
    }

    /// Returns true if a service may have this address.
    pub(crate) fn contains(self, address: Ipv4Addr) -> bool {
        (self.first()..self.0.broadcast()).contains(&address)
    }

    /// Returns all addresses in the order in which services get them, the `turn`th first. Those
    /// at the start of the range come last: clients may ask for them.
    pub(crate) fn candidates(self, turn: u32) -> impl Iterator<Item = Ipv4Addr> {
        let size = 1 << (32 - u32::from(self.0.prefix_len()));
        let reserved = if size <= RESERVED_MIN {
            0
        } else {
            (size / RESERVED_SHARE).clamp(RESERVED_MIN, RESERVED_MAX)
        };
        let shared = size - 2 - reserved;
        let free = (0..shared).map(move |nth| 1 + reserved + (turn % shared + nth) % shared);
        free.chain(1..=reserved)
            .map(move |offset| self.after_network(offset))
    }

    fn after_network(self, offset: u32) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.network()) + offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_a_suitable_size() {
        let range = |text: &str| text.parse::<ServiceRange>();
        assert_eq!(range("10.96.0.0/12"), Ok(ServiceRange::default()));
        assert_eq!(range("10.0.3.7/16").unwrap().to_string(), "10.0.0.0/16");
        for text in ["10.0.0.0/11", "10.0.0.0/30", "10.0.0.0", "fd00::/108", ""] {
            assert!(range(text).is_err(), "{text}");
        }
        let why = range("10.0.0.0/8").unwrap_err().to_string();
        let expected =
            "cannot use \"10.0.0.0/8\" as service range, use an IPv4 network from /12 to /29";
        assert_eq!(why, expected);
    }

    #[test]
    fn network_and_broadcast_address_are_never_given() {
        let range: ServiceRange = "10.0.0.0/29".parse().unwrap();
        let all = |turn| -> Vec<u8> { range.candidates(turn).map(|it| it.octets()[3]).collect() };
        assert_eq!(all(0), [1, 2, 3, 4, 5, 6]);
        assert_eq!(all(8), [3, 4, 5, 6, 1, 2]);
        let contained = (0..9).filter(|it| range.contains(Ipv4Addr::new(10, 0, 0, *it)));
        assert_eq!(contained.collect::<Vec<u8>>(), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn start_of_the_range_is_given_last() {
        let range: ServiceRange = "10.0.0.0/24".parse().unwrap();
        let all: Vec<u8> = range.candidates(0).map(|it| it.octets()[3]).collect();
        assert_eq!((all[0], all[237], all[238], all[253]), (17, 254, 1, 16));
        assert_eq!(all.len(), 254);
        let first = ServiceRange::default().candidates(u32::MAX).next().unwrap();
        assert!(ServiceRange::default().contains(first));
    }
}
