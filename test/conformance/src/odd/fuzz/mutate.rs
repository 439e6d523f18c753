//! Random mutations whose JSON Go's decoder still accepts.

use rand::RngExt as _;
use rand::rngs::StdRng;

use super::tree::Tree;

/// Go's decoder rejects more than 10,000 levels; the rest is room for the enclosing levels.
const DEPTH_MAX: usize = 9_970;

/// Numbers that some decoders misinterpret.
const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "-1",
    "1",
    "3",
    "1e0",
    "1.0",
    "2.5",
    "2147483647",
    "2147483648",
    "-2147483649",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "18446744073709551616",
    "1e19",
    "1e308",
    "1e-400",
    "1E400",
    "123456789012345678901234567890123456789012345678901234567890",
];

/// Contents of strings, without quotes.
const STRINGS: &[&[u8]] = &[
    b"",
    b" ",
    b"odd",
    b"odd-0",
    b"odd-1",
    b"odd-00",
    b"odd--1",
    b"odd-2147483648",
    b"odd-99999999999999999999",
    b"-0",
    b"-",
    b"odd/0",
    b"..",
    b"True",
    b"Running",
    b"Failed",
    b"Succeeded",
    b"OnDelete",
    b"RollingUpdate",
    b"OrderedReady",
    b"Retain",
    b"Delete",
    b"50%",
    b"-5%",
    b"99999999999999999999%",
    b"%",
    b"0x10",
    b"+1",
    b"\xff",
    b"a\xffb\xfe",
    b"\xed\xa0\x80",
    b"\xc0\x80",
    b"\xe2\x82",
    b"\\ud800",
    b"\\udc00\\ud800",
    b"\\ud83d\\ude00",
    b"\\u0000",
    b"\\u2028<>&",
    b"\xef\xbb\xbf",
    b"2026-01-01T00:00:00Z",
    b"0001-01-01T00:00:00Z",
    b"0000-01-01T00:00:00Z",
    b"9999-12-31T23:59:59Z",
    b"9999-12-31T23:59:60Z",
    b"-9999-01-01T00:00:00Z",
    b"10000-01-01T00:00:00Z",
    b"2026-01-01T00:00:00+23:59",
    b"2026-01-01T00:00:00.999999999999Z",
    b"2026-02-30T00:00:00Z",
    b"yesterday",
];

/// Field names that decoders look for, at any position.
const NAMES: &[&[u8]] = &[
    b"",
    b"unknown",
    b"Name",
    b"name",
    b"namespace",
    b"uid",
    b"metadata",
    b"spec",
    b"status",
    b"labels",
    b"ownerReferences",
    b"controller",
    b"deletionTimestamp",
    b"managedFields",
    b"$patch",
    b"$retainKeys",
    b"$setElementOrder/containers",
    b"replicas",
    b"template",
    b"volumeClaimTemplates",
    b"matchExpressions",
    b"maxUnavailable",
    b"partition",
    b"ordinals",
    b"start",
    b"x\xff",
    b"\\ud800",
    b"a\\u0062",
];

/// Encodes an object with one to four mutations.
pub(super) fn mutated(object: &Tree, rng: &mut StdRng) -> Vec<u8> {
    let mut object = object.clone();
    for _ in 0..rng.random_range(1..=4) {
        change(&mut object, rng);
    }
    object.encode()
}

fn change(object: &mut Tree, rng: &mut StdRng) {
    let place = rng.random_range(1..object.len().max(2));
    let Some(target) = object.at(place) else {
        return;
    };
    match target {
        Tree::Leaf(text) if rng.random_bool(0.3) && text.starts_with(b"\"") => {
            insert_in_string(text, rng);
        }
        Tree::Object(members) if rng.random_bool(0.6) => change_members(members, rng),
        Tree::Array(items) if rng.random_bool(0.6) => change_items(items, rng),
        target => *target = value(rng),
    }
}

fn change_members(members: &mut Vec<(Vec<u8>, Tree)>, rng: &mut StdRng) {
    let index = rng.random_range(0..members.len().max(1));
    match rng.random_range(0..5) {
        0 if !members.is_empty() => drop(members.remove(index)),
        // A repeated field, which decoders resolve differently.
        1 if !members.is_empty() => {
            let (name, old) = members[index].clone();
            let new = if rng.random() { old } else { value(rng) };
            members.push((name, new));
        }
        2 if !members.is_empty() => members[index].1 = value(rng),
        3 if !members.is_empty() => members[index].0 = pick(NAMES, rng).to_vec(),
        _ => members.insert(
            index.min(members.len()),
            (pick(NAMES, rng).to_vec(), value(rng)),
        ),
    }
}

fn change_items(items: &mut Vec<Tree>, rng: &mut StdRng) {
    let index = rng.random_range(0..items.len().max(1));
    match rng.random_range(0..4) {
        0 => items.clear(),
        1 if !items.is_empty() => {
            let times = if rng.random_bool(0.1) { 2_000 } else { 1 };
            let item = items[index].clone();
            items.extend(std::iter::repeat_n(item, times));
        }
        2 if !items.is_empty() => items[index] = value(rng),
        _ => items.push(value(rng)),
    }
}

fn insert_in_string(text: &mut Vec<u8>, rng: &mut StdRng) {
    let odd: &[u8] = pick::<&[u8]>(STRINGS, rng);
    // Only at the ends: elsewhere it could split an escape.
    let at = if rng.random() { 1 } else { text.len() - 1 };
    text.splice(at..at, odd.iter().copied());
}

/// A random value of any type.
fn value(rng: &mut StdRng) -> Tree {
    match rng.random_range(0..20) {
        0 | 1 => Tree::leaf("null"),
        2 => Tree::leaf(if rng.random() { "true" } else { "false" }),
        3..=6 => Tree::leaf(*pick(NUMBERS, rng)),
        7..=12 => Tree::Leaf(quoted(pick::<&[u8]>(STRINGS, rng))),
        13 => Tree::Array(Vec::new()),
        14 => Tree::Object(Vec::new()),
        15 => Tree::Object(vec![(pick(NAMES, rng).to_vec(), value(rng))]),
        16 => Tree::Array(vec![value(rng)]),
        17 => nested(rng),
        18 => Tree::Leaf(quoted(&vec![b'x'; rng.random_range(1..200_000)])),
        _ => {
            let item = Tree::leaf(*pick(NUMBERS, rng));
            Tree::Array(vec![item; rng.random_range(1..5_000)])
        }
    }
}

fn nested(rng: &mut StdRng) -> Tree {
    let depth = match rng.random_range(0..3) {
        0 => rng.random_range(90..300),
        1 => rng.random_range(300..DEPTH_MAX),
        _ => DEPTH_MAX,
    };
    let (open, inner, close): (&[u8], &[u8], &[u8]) = match rng.random_range(0..3) {
        0 => (b"[", b"", b"]"),
        1 => (b"{\"f:a\":", b"{}", b"}"),
        _ => (b"{\"spec\":", b"\"\xff\"", b"}"),
    };
    Tree::Leaf([open.repeat(depth), inner.to_vec(), close.repeat(depth)].concat())
}

fn quoted(text: &[u8]) -> Vec<u8> {
    [b"\"", text, b"\""].concat()
}

fn pick<'a, T>(choices: &'a [T], rng: &mut StdRng) -> &'a T {
    &choices[rng.random_range(0..choices.len())]
}

#[cfg(test)]
mod tests {
    use kube_apimachinery::json::{self, Document};
    use rand::SeedableRng as _;

    use super::*;
    use crate::odd::fuzz::objects;

    /// More levels than an object has around any of its values, plus those of a list.
    const WRAPPED_MAX: usize = 25;

    #[test]
    fn every_mutation_stays_json() {
        let mut rng = StdRng::seed_from_u64(3);
        for _ in 0..300 {
            let object = mutated(&objects::any(&mut rng), &mut rng);
            let text = Document::new(object).into_text();
            let checked = serde_json::from_str::<&serde_json::value::RawValue>(&text);
            assert!(checked.is_ok(), "{:?}: {text}", checked.err());
        }
    }

    #[tokio::test]
    async fn deepest_value_stays_within_the_decoder_limit() {
        let depth = DEPTH_MAX + WRAPPED_MAX;
        let deep = [b"[".repeat(depth), b"]".repeat(depth)].concat();
        let deep = Document::new(deep).into_text();
        let parsed = json::on_large_stack(async move { json::parse(&deep).is_ok() });
        assert!(parsed.await);
    }
}
