//! Encoding of an object's member, whose field may repeat.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use kube_apimachinery::schema::{Kind, Shape};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::value::{Null, OneValue};
use crate::go::wire;

/// Appends the value of a member, or all values of a list or a map.
pub(super) struct Member<'o> {
    pub(super) number: u32,
    pub(super) kind: Kind,
    pub(super) shape: Shape,
    pub(super) out: &'o mut Vec<u8>,
}

impl<'de> DeserializeSeed<'de> for Member<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let Self {
            number,
            kind,
            shape,
            out,
        } = self;
        let null = match shape {
            Shape::List | Shape::Map => {
                return deserializer.deserialize_any(Repeated { number, kind, out });
            }
            Shape::Plain if kind != Kind::Bytes => Null::Zero,
            Shape::Plain | Shape::Pointer => Null::Absent,
        };
        OneValue {
            number,
            kind,
            null,
            out,
        }
        .deserialize(deserializer)
    }
}

/// Appends one field per element of a list or entry of a map; nothing for null.
struct Repeated<'o> {
    number: u32,
    kind: Kind,
    out: &'o mut Vec<u8>,
}

impl<'de> Visitor<'de> for Repeated<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list or a map")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Self { number, kind, out } = self;
        loop {
            let null = Null::Zero;
            let element = OneValue {
                number,
                kind,
                null,
                out,
            };
            if list.next_element_seed(element)?.is_none() {
                return Ok(());
            }
        }
    }

    /// Sorts the entries by key, as Go does.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { number, kind, out } = self;
        let start = out.len();
        let mut entries: BTreeMap<String, Range<usize>> = BTreeMap::new();
        while let Some(key) = map.next_key::<String>()? {
            let start = out.len();
            wire::try_message(out, number, |out| {
                wire::bytes(out, 1, &key);
                let null = Null::Zero;
                map.next_value_seed(OneValue {
                    number: 2,
                    kind,
                    null,
                    out,
                })
            })?;
            entries.insert(key, start..out.len());
        }
        let mut sorted = Vec::with_capacity(out.len() - start);
        for place in entries.into_values() {
            sorted.extend_from_slice(&out[place]);
        }
        out.truncate(start);
        out.append(&mut sorted);
        Ok(())
    }
}
