//! Random changes of JSON values, bytes and texts.

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use serde_json::{Map, Value, json};

/// Placeholder for nesting deeper than a value supports.
const DEEP: &str = "\u{1}deep\u{1}";

/// The depths of this nesting.
const DEPTHS: [usize; 7] = [100, 127, 200, 5_000, 9_900, 10_000, 300_000];

/// Placeholder for text that is invalid in a value.
const RAW: &str = "\u{1}raw\u{1}";

/// Such texts.
const RAWS: &[&[u8]] = &[
    b"\"\xff\"",
    b"\"a\xe2\x82z\"",
    b"\"\\ud800\"",
    b"\"\\ude00\\ud83d\"",
    b"1e400",
    b"-1e400",
    b"-0",
    b"1.50",
    b"123456789012345678901234567890",
    b"{\"f:b\":{},\"f:a\":{},\"f:a\":{\"f:c\":1}}",
    b"{\"f:\xff\":{}}",
    b"{\"name\":\"a\",\"name\":null}",
    b"[{},{\"name\":\"a\"},null]",
    "\"\u{10ff41}\u{2028}<\"".as_bytes(),
];

/// Texts that are known to cause bugs.
const TEXTS: &[&str] = &[
    "",
    " ",
    "a",
    "web",
    "web-0",
    "default",
    "..",
    "/",
    "a/b",
    "a/b/c",
    "%",
    "%2F",
    "\0",
    "\u{feff}",
    "é",
    "\u{1f600}",
    "\u{202e}abc",
    "A",
    "-a",
    "a-",
    "a.b",
    "example.com/a",
    "kubernetes.io/metadata.name",
    "foregroundDeletion",
    "orphan",
    "null",
    "true",
    "0",
    "1",
    "-1",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "1e400",
    "0x10",
    "1Gi",
    "1e-9",
    "1E1000000000",
    "100m",
    "99999999999999999999Ei",
    "50%",
    "101%",
    "-0",
    "2024-02-29T23:59:60Z",
    "2023-02-29T00:00:00Z",
    "0000-00-00T00:00:00Z",
    "9999-12-31T23:59:59-24:00",
    "9999-12-31T23:59:59Z",
    "0000-01-01T00:00:00+01:00",
    "0001-01-01T00:00:00+24:00",
    "2024-01-01T00:00:00.000000Z",
    "Always",
    "RollingUpdate",
    "OnDelete",
    "Parallel",
    "ClusterIP",
    "None",
    "TCP",
    "a=b",
    "a in (b,c)",
    "!a",
    "a notin (",
    "metadata.name=web",
    "~1",
    "~",
    "-",
    "*",
    "{}",
    "[]",
    "\"",
    "\\",
    "\u{7f}\u{80}",
    "img:latest",
    "img@sha256:0",
    "http://[::1]:80/a",
    "10.0.0.1",
    "system:serviceaccount:a:b",
];

/// Returns one of the texts, or a long one.
pub(crate) fn text(random: &mut StdRng) -> String {
    match random.random_range(0..24) {
        0 => "a".repeat(random.random_range(50..300)),
        1 => "é".repeat(random.random_range(20..3_000)),
        2 => "a.".repeat(random.random_range(100..200)),
        3 => {
            let letters = random.random_range(0..12);
            (0..letters).map(|_| random.random::<char>()).collect()
        }
        4 => random.random::<i64>().to_string(),
        _ => TEXTS.choose(random).copied().unwrap_or_default().to_owned(),
    }
}

fn number(random: &mut StdRng) -> Value {
    let small = random.random_range(-2..4);
    let some = [
        json!(small),
        json!(0),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(i32::MAX),
        json!(i64::from(i32::MAX) + 1),
        json!(i32::MIN),
        json!(1.5),
        json!(-0.0),
        json!(1e300),
        json!(1e-300),
        json!(65_536),
        json!(1_000_000_000_000_i64),
    ];
    some.choose(random).cloned().unwrap_or_default()
}

/// Returns a value of any type.
pub(crate) fn odd_value(random: &mut StdRng) -> Value {
    match random.random_range(0..16) {
        0 => Value::Null,
        1 => json!(random.random::<bool>()),
        2 | 3 => number(random),
        4 => json!([]),
        5 => json!({}),
        6 => json!([odd_value(random)]),
        7 => json!({text(random): odd_value(random)}),
        8 if random.random_ratio(1, 10) => json!(DEEP),
        9 => json!([null, {}, [], "", 0]),
        10 if random.random_ratio(1, 2) => json!(RAW),
        11 if random.random_ratio(1, 4) => json!([{
            "manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "fieldsV1": if random.random() { RAW } else { DEEP },
        }]),
        _ => json!(text(random)),
    }
}

/// Changes one place in a value.
pub(crate) fn value(random: &mut StdRng, value: &mut Value, donor: &Value) {
    let place = pick(random, value);
    match random.random_range(0..10) {
        0 => *place = Value::Null,
        1 | 2 => *place = odd_value(random),
        3 => *place = donor.clone(),
        4 => {
            let inner = place.take();
            *place = json!([inner, inner]);
        }
        5 => {
            let inner = place.take();
            *place = json!({text(random): inner});
        }
        _ => change_inside(random, place),
    }
}

fn change_inside(random: &mut StdRng, place: &mut Value) {
    match place {
        Value::Object(members) => change_members(random, members),
        Value::Array(elements) if !elements.is_empty() => {
            let index = random.random_range(0..elements.len());
            let other = random.random_range(0..elements.len());
            match random.random_range(0..4) {
                0 => drop(elements.remove(index)),
                1 => elements.swap(index, other),
                2 => elements.push(odd_value(random)),
                _ => elements.insert(index, elements[other].clone()),
            }
        }
        Value::Number(_) => *place = number(random),
        Value::String(old) => match random.random_range(0..3) {
            0 => old.push_str(&text(random)),
            1 => drop(old.pop()),
            _ => *old = text(random),
        },
        other => *other = odd_value(random),
    }
}

fn change_members(random: &mut StdRng, members: &mut Map<String, Value>) {
    let names: Vec<String> = members.keys().cloned().collect();
    let name = names.choose(random).cloned().unwrap_or_default();
    match random.random_range(0..4) {
        0 => drop(members.remove(&name)),
        1 if members.contains_key("labels") && random.random() => {
            members.insert("managedFields".to_owned(), odd_value(random));
        }
        1 => drop(members.insert(text(random), odd_value(random))),
        2 => {
            if let Some(value) = members.remove(&name) {
                members.insert(text(random), value);
            }
        }
        _ => {
            let value = names.choose(random).and_then(|other| members.get(other));
            if let Some(value) = value.cloned() {
                members.insert(name, value);
            }
        }
    }
}

/// Picks a place in a value, at any depth.
fn pick<'a>(random: &mut StdRng, value: &'a mut Value) -> &'a mut Value {
    let children = match value {
        Value::Object(members) => members.len(),
        Value::Array(elements) => elements.len(),
        _ => 0,
    };
    if children == 0 || random.random_ratio(1, 6) {
        return value;
    }
    let index = random.random_range(0..children);
    let child = match value {
        Value::Object(members) => members.values_mut().nth(index),
        Value::Array(elements) => elements.get_mut(index),
        _ => None,
    };
    pick(
        random,
        child.expect("the index is below the number of children"),
    )
}

/// Returns the text of a value with its placeholders replaced.
pub(crate) fn to_bytes(random: &mut StdRng, value: &Value) -> Vec<u8> {
    let text = value.to_string();
    let markers = [json!(DEEP).to_string(), json!(RAW).to_string()];
    if !markers.iter().any(|marker| text.contains(marker)) {
        return text.into_bytes();
    }
    let depth = DEPTHS.choose(random).copied().unwrap_or_default();
    let (open, close) = [("[", "]"), ("{\"spec\":", "}"), ("{\"f:a\":", "}")]
        .choose(random)
        .copied()
        .unwrap_or_default();
    let inner = if open == "[" { "" } else { "{}" };
    let deep = format!("{}{inner}{}", open.repeat(depth), close.repeat(depth));
    let text = text.replace(&markers[0], &deep);
    let mut bytes = Vec::new();
    for (index, part) in text.split(&markers[1]).enumerate() {
        if index > 0 {
            bytes.extend_from_slice(RAWS.choose(random).copied().unwrap_or_default());
        }
        bytes.extend_from_slice(part.as_bytes());
    }
    bytes
}

/// Changes random bytes.
pub(crate) fn bytes(random: &mut StdRng, bytes: &mut Vec<u8>) {
    for _ in 0..random.random_range(1..4) {
        if bytes.is_empty() {
            bytes.push(random.random());
            continue;
        }
        let at = random.random_range(0..bytes.len());
        let until = random.random_range(at..=bytes.len().min(at + 40));
        match random.random_range(0..7) {
            0 => bytes[at] ^= 1 << random.random_range(0..8),
            1 => bytes[at] = random.random(),
            2 => bytes.insert(at, random.random()),
            3 => bytes.truncate(at),
            4 => drop(bytes.drain(at..until)),
            5 => bytes.extend_from_within(at..until),
            _ => {
                let odd = text(random).into_bytes();
                bytes.splice(at..at, odd);
            }
        }
    }
}
