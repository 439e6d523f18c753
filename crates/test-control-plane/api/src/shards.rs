//! Shard selectors of lists and watches: ranges of the hashes of a member.
//!
//! Upstream: gate `ShardedListAndWatch`

use std::ops::Range;

use kube_apimachinery::hash::fnv1a_64;

use crate::object::Object;
use crate::status::{ApiError, ApiResult};

/// The parameter `shardSelector`: an object matches if one of the terms does.
#[derive(Clone, Debug)]
pub struct ShardSelector {
    terms: Vec<Term>,
    /// The selector as sent.
    pub text: String,
}

#[derive(Clone, Debug)]
struct Term {
    member: Member,
    hashes: Range<u128>,
}

#[derive(Clone, Copy, Debug)]
enum Member {
    Uid,
    Namespace,
}

impl ShardSelector {
    /// Parses terms such as `shardRange(object.metadata.uid, '0x0', '0x8000000000000000')` between
    /// `||`.
    ///
    /// # Errors
    ///
    /// 400 for anything else.
    pub fn parse(text: &str) -> ApiResult<Self> {
        let terms = text.split("||").map(|term| {
            let wrong =
                || ApiError::bad_request(format!("invalid shard selector {:?}", term.trim()));
            parse_term(term.trim()).ok_or_else(wrong)
        });
        Ok(Self {
            terms: terms.collect::<ApiResult<_>>()?,
            text: text.to_owned(),
        })
    }

    /// Returns true if the object matches.
    pub fn matches(&self, object: &Object) -> bool {
        self.terms.iter().any(|term| {
            let value = match term.member {
                Member::Uid => &*object.uid,
                Member::Namespace => &*object.key.namespace,
            };
            term.hashes.contains(&u128::from(fnv1a_64(value)))
        })
    }
}

fn parse_term(term: &str) -> Option<Term> {
    let arguments = term.strip_prefix("shardRange(")?.strip_suffix(')')?;
    let arguments: Vec<&str> = arguments.split(',').map(str::trim).collect();
    let [member, start, end] = *arguments else {
        return None;
    };
    let member = match member {
        "object.metadata.uid" => Member::Uid,
        "object.metadata.namespace" => Member::Namespace,
        _ => return None,
    };
    let hashes = parse_hash(start)?..parse_hash(end)?;
    (hashes.start < hashes.end && hashes.end <= 1 << 64).then_some(Term { member, hashes })
}

/// Parses a hexadecimal number in quotes, of at most 2^64.
fn parse_hash(text: &str) -> Option<u128> {
    let digits = text.strip_prefix("'0x")?.strip_suffix('\'')?;
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u128::from_str_radix(digits, 16).ok().filter(|_| is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_ranges_of_two_members() {
        for text in [
            "shardRange(object.metadata.uid, '0x0', '0x8000000000000000')",
            "shardRange(object.metadata.namespace,'0x8000000000000000','0x10000000000000000')",
            "shardRange(object.metadata.uid,'0x0','0x1') || shardRange(object.metadata.uid,'0x2','0x3')",
        ] {
            assert_eq!(ShardSelector::parse(text).unwrap().text, text);
        }
        for text in [
            "",
            "shardRange(metadata.uid,'0x0','0x1')",
            "shardRange(object.metadata.name,'0x0','0x1')",
            "shardRange(object.metadata.uid,'0x1','0x1')",
            "shardRange(object.metadata.uid,'0x0','0x10000000000000001')",
            "shardRange(object.metadata.uid,'0x+1','0x2')",
            "shardRange(object.metadata.uid,0x0,0x1)",
            "shardRange(object.metadata.uid,'0x0','0x1') ||",
        ] {
            let error = ShardSelector::parse(text).unwrap_err();
            assert!(
                error.message.starts_with("invalid shard selector"),
                "{text}"
            );
        }
    }
}
