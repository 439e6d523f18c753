//! Shards: disjoint parts of a cluster's namespaces, each served by one controller.

use std::fmt;
use std::str::FromStr;

use kube_apimachinery::hash::fnv1a_64;

/// Number of ranges into which the hashes are divided. The hashes of names that differ only in their
/// last characters lie close together, so each shard gets many ranges, far from each other.
const RANGES: u32 = 64;
/// Length of a range.
const RANGE: u128 = (1 << 64) / RANGES as u128;

/// One of `count` shards. Each namespace belongs to exactly one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    index: u32,
    count: u32,
}

/// A text that names no shard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected INDEX/COUNT, with an index from 0 below a count of at most {RANGES}")]
pub struct ParseShardError;

impl Shard {
    /// Index of the shard, from 0.
    pub fn index(self) -> u32 {
        self.index
    }

    /// Number of shards.
    pub fn count(self) -> u32 {
        self.count
    }

    /// Returns true if the namespace belongs to the shard.
    pub fn contains(self, namespace: &str) -> bool {
        let range = u128::from(fnv1a_64(namespace)) / RANGE;
        range % u128::from(self.count) == u128::from(self.index)
    }

    /// Returns the shard as the parameter `shardSelector` of a list or watch. API servers with the
    /// feature gate `ShardedListAndWatch` send only objects of these namespaces; others ignore it.
    /// They accept only bounds of 16 digits, and 2^64.
    pub fn selector(self) -> String {
        let first = (self.index..RANGES).step_by(self.count as usize);
        let ranges = first.map(|range| {
            let start = u128::from(range) * RANGE;
            let end = start + RANGE;
            format!("shardRange(object.metadata.namespace,'{start:#018x}','{end:#018x}')")
        });
        ranges.collect::<Vec<_>>().join("||")
    }
}

impl FromStr for Shard {
    type Err = ParseShardError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (index, count) = text.split_once('/').ok_or(ParseShardError)?;
        let number = |text: &str| {
            let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse()
                .ok()
                .filter(|_| is_plain)
                .ok_or(ParseShardError)
        };
        let (index, count): (u32, u32) = (number(index)?, number(count)?);
        if index < count && count <= RANGES {
            Ok(Self { index, count })
        } else {
            Err(ParseShardError)
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shards(count: u32) -> Vec<Shard> {
        (0..count).map(|index| Shard { index, count }).collect()
    }

    #[test]
    fn namespace_belongs_to_one_shard() {
        for count in [1, 2, 3, 5, 64] {
            for namespace in ["", "default", "team-1", "team-2", "kube-system"] {
                let owners = shards(count)
                    .into_iter()
                    .filter(|it| it.contains(namespace));
                assert_eq!(owners.count(), 1, "{namespace} of {count}");
            }
        }
    }

    #[test]
    fn numbered_namespaces_are_spread() {
        for count in [2, 4] {
            for shard in shards(count) {
                let namespaces = (0..1000).map(|number| format!("ns-{number:04}"));
                let own = namespaces
                    .filter(|namespace| shard.contains(namespace))
                    .count();
                let fair = 1000 / count as usize;
                assert!(own > fair / 2 && own < fair * 3 / 2, "{shard}: {own}");
            }
        }
    }

    #[test]
    fn selector_lists_the_ranges_of_hashes() {
        let shard: Shard = "63/64".parse().unwrap();
        let last =
            "shardRange(object.metadata.namespace,'0xfc00000000000000','0x10000000000000000')";
        assert_eq!(shard.selector(), last);
        let shard: Shard = "0/32".parse().unwrap();
        let expected = "shardRange(object.metadata.namespace,'0x0000000000000000','0x0400000000000000')\
                        ||shardRange(object.metadata.namespace,'0x8000000000000000','0x8400000000000000')";
        assert_eq!(shard.selector(), expected);
        let half: Shard = "1/2".parse().unwrap();
        assert_eq!(half.selector().matches("shardRange(").count(), 32);
    }

    #[test]
    fn only_an_index_below_the_count_is_a_shard() {
        for text in ["0/1", "1/2", "63/64"] {
            assert_eq!(text.parse::<Shard>().unwrap().to_string(), text);
        }
        for text in [
            "", "1", "1/1", "2/1", "0/0", "0/65", "-1/2", "+0/2", "0/2/", "a/b", " 0/2",
        ] {
            assert_eq!(text.parse::<Shard>(), Err(ParseShardError), "{text}");
        }
    }
}
