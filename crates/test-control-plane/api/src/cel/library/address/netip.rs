//! Addresses and networks as Go reads them, with its errors.
//!
//! Upstream: `ParseAddr` and `ParsePrefix` of Go's `net/netip`

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use kube_apimachinery::int_or_string::go_quote;

/// An address, and whether it has a zone.
pub(super) struct Parsed {
    pub(super) address: IpAddr,
    pub(super) has_zone: bool,
}

/// What is wrong with a text, and from where on.
struct Fault<'a> {
    message: &'static str,
    at: &'a str,
}

fn fault<'a>(message: &'static str, at: &'a str) -> Fault<'a> {
    Fault { message, at }
}

/// Reads an address.
///
/// # Errors
///
/// Go's text: this is no address.
pub(super) fn address(text: &str) -> Result<Parsed, String> {
    let found = match text.bytes().find(|byte| b".:%".contains(byte)) {
        Some(b'.') => ipv4(text).map(|octets| Parsed {
            address: Ipv4Addr::from(octets).into(),
            has_zone: false,
        }),
        Some(b':') => ipv6(text),
        Some(_) => Err(fault("missing IPv6 address", "")),
        None => Err(fault("unable to parse IP", "")),
    };
    found.map_err(|Fault { message, at }| {
        let of = go_quote(text);
        if at.is_empty() {
            format!("ParseAddr({of}): {message}")
        } else {
            format!("ParseAddr({of}): {message} (at {})", go_quote(at))
        }
    })
}

/// Reads a network.
///
/// # Errors
///
/// Go's text: this is no network.
pub(super) fn network(text: &str) -> Result<IpNet, String> {
    parts(text).map_err(|detail| format!("netip.ParsePrefix({}): {detail}", go_quote(text)))
}

fn parts(text: &str) -> Result<IpNet, String> {
    let (start, bits) = text.rsplit_once('/').ok_or("no '/'")?;
    let Parsed { address, has_zone } = address(start)?;
    if has_zone {
        return Err("IPv6 zones cannot be present in a prefix".to_owned());
    }
    let wrong = || format!("bad bits after slash: {}", go_quote(bits));
    let is_number = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || bits.len() > 1 && bits.starts_with('0') {
        return Err(wrong());
    }
    let bits: i64 = bits.parse().map_err(|_| wrong())?;
    let length = u8::try_from(bits).ok();
    let found = length.and_then(|length| IpNet::new(address, length).ok());
    found.ok_or_else(|| "prefix length out of range".to_owned())
}

/// Returns the text from a byte on.
fn from(text: &str, at: usize) -> &str {
    text.get(at..).unwrap_or_default()
}

/// Upstream: `parseIPv4Fields`
fn ipv4(text: &str) -> Result<[u8; 4], Fault<'_>> {
    let (mut octets, mut place) = ([0; 4], 0);
    let (mut value, mut digits) = (0, 0);
    let bytes = text.as_bytes();
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return Err(fault("IPv4 field has octet with leading zero", ""));
                }
                value = value * 10 + u16::from(byte - b'0');
                digits += 1;
                if value > 255 {
                    return Err(fault("IPv4 field has value >255", ""));
                }
            }
            b'.' => {
                let is_last = at + 1 == bytes.len();
                if at == 0 || is_last || bytes.get(at - 1) == Some(&b'.') {
                    let message = "IPv4 field must have at least one digit";
                    return Err(fault(message, from(text, at)));
                }
                if place == 3 {
                    return Err(fault("IPv4 address too long", ""));
                }
                octets[place] = u8::try_from(value).unwrap_or(u8::MAX);
                place += 1;
                (value, digits) = (0, 0);
            }
            _ => return Err(fault("unexpected character", from(text, at))),
        }
    }
    if place < 3 {
        return Err(fault("IPv4 address too short", ""));
    }
    octets[3] = u8::try_from(value).unwrap_or(u8::MAX);
    Ok(octets)
}

/// Upstream: `parseIPv6`
fn ipv6(text: &str) -> Result<Parsed, Fault<'_>> {
    let (mut rest, zone) = match text.split_once('%') {
        Some((_, "")) => return Err(fault("zone must be a non-empty string", "")),
        Some((rest, _)) => (rest, true),
        None => (text, false),
    };
    let (mut bytes, mut filled): ([u8; 16], usize) = ([0; 16], 0);
    let mut ellipsis = None;
    let parsed = |bytes: [u8; 16]| Parsed {
        address: Ipv6Addr::from(bytes).into(),
        has_zone: zone,
    };
    if let Some(after) = rest.strip_prefix("::") {
        (ellipsis, rest) = (Some(0), after);
        if rest.is_empty() {
            return Ok(parsed(bytes));
        }
    }
    while filled < 16 {
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        if digits > 4 {
            return Err(fault("each group must have 4 or less digits", rest));
        }
        if digits == 0 {
            let message = "each colon-separated field must have at least one digit";
            return Err(fault(message, rest));
        }
        let (group, after) = rest.split_at(digits);
        if after.starts_with('.') {
            if ellipsis.is_none() && filled != 12 {
                let message =
                    "embedded IPv4 address must replace the final 2 fields of the address";
                return Err(fault(message, rest));
            }
            let Some(place) = bytes.get_mut(filled..filled + 4) else {
                let message =
                    "too many hex fields to fit an embedded IPv4 at the end of the address";
                return Err(fault(message, rest));
            };
            place.copy_from_slice(&ipv4(rest)?);
            (rest, filled) = ("", filled + 4);
            break;
        }
        let value = u16::from_str_radix(group, 16).unwrap_or_default();
        if let Some(place) = bytes.get_mut(filled..filled + 2) {
            place.copy_from_slice(&value.to_be_bytes());
        }
        (rest, filled) = (after, filled + 2);
        if rest.is_empty() {
            break;
        }
        let Some(after) = rest.strip_prefix(':') else {
            return Err(fault("unexpected character, want colon", rest));
        };
        if after.is_empty() {
            return Err(fault("colon must be followed by more characters", rest));
        }
        rest = after;
        if let Some(after) = rest.strip_prefix(':') {
            if ellipsis.is_some() {
                return Err(fault("multiple :: in address", rest));
            }
            (ellipsis, rest) = (Some(filled), after);
            if rest.is_empty() {
                break;
            }
        }
    }
    if !rest.is_empty() {
        return Err(fault("trailing garbage after address", rest));
    }
    match ellipsis {
        None if filled < 16 => return Err(fault("address string too short", "")),
        Some(_) if filled == 16 => {
            let message = "the :: must expand to at least one field of zeros";
            return Err(fault(message, ""));
        }
        Some(at) => {
            if let Some(part) = bytes.get_mut(at..) {
                part.rotate_right(16 - filled);
            }
        }
        None => {}
    }
    Ok(parsed(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_go() {
        for (text, shown) in [
            ("1.2.3.4", "1.2.3.4"),
            ("::", "::"),
            ("::1", "::1"),
            ("1::", "1::"),
            ("1:2::7:8", "1:2::7:8"),
            ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"),
            ("2001:DB8::1.2.3.4", "2001:db8::102:304"),
            ("1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"),
        ] {
            assert_eq!(address(text).unwrap().address.to_string(), shown, "{text}");
        }
        assert!(address("fe80::1%eth0").unwrap().has_zone);
    }

    #[test]
    fn errors_read_as_in_go() {
        for (text, wanted) in [
            ("x", "unable to parse IP"),
            ("%a", "missing IPv6 address"),
            ("01.2.3.4", "IPv4 field has octet with leading zero"),
            ("1.2.3.400", "IPv4 field has value >255"),
            ("1.2.3", "IPv4 address too short"),
            ("1.2.3.4.5", "IPv4 address too long"),
            (
                "1..2.3",
                "IPv4 field must have at least one digit (at \".2.3\")",
            ),
            ("1.2.3.4é", "unexpected character (at \"é\")"),
            ("fe80::1%", "zone must be a non-empty string"),
            (
                "12345::",
                "each group must have 4 or less digits (at \"12345::\")",
            ),
            (
                "::g",
                "each colon-separated field must have at least one digit (at \"g\")",
            ),
            (
                "1:1.2.3.4",
                "embedded IPv4 address must replace the final 2 fields of the address (at \
                 \"1.2.3.4\")",
            ),
            (
                "1:2:3:4:5:6::1.2.3.4",
                "the :: must expand to at least one field of zeros",
            ),
            (
                "1:2:3:4:5:6:7::1.2.3.4",
                "too many hex fields to fit an embedded IPv4 at the end of the address (at \
                 \"1.2.3.4\")",
            ),
            ("1:2g", "unexpected character, want colon (at \"g\")"),
            (
                "1:2:",
                "colon must be followed by more characters (at \":\")",
            ),
            ("1::2::3", "multiple :: in address (at \":3\")"),
            (
                "1:2:3:4:5:6:7:8:9",
                "trailing garbage after address (at \"9\")",
            ),
            ("1:2", "address string too short"),
        ] {
            let found = address(text).err();
            let wanted = format!("ParseAddr({text:?}): {wanted}");
            assert_eq!(found.as_ref(), Some(&wanted), "{text}");
        }
        for (text, wanted) in [
            ("1.2.3.4", "no '/'"),
            ("x/8", "ParseAddr(\"x\"): unable to parse IP"),
            ("::1%a/8", "IPv6 zones cannot be present in a prefix"),
            ("1.2.3.4/", "bad bits after slash: \"\""),
            ("1.2.3.4/08", "bad bits after slash: \"08\""),
            ("1.2.3.4/+8", "bad bits after slash: \"+8\""),
            ("1.2.3.4/33", "prefix length out of range"),
        ] {
            let found = network(text).err();
            let wanted = format!("netip.ParsePrefix({text:?}): {wanted}");
            assert_eq!(found.as_ref(), Some(&wanted), "{text}");
        }
    }
}
