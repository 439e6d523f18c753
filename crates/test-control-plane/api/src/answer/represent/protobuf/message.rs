//! Encoding of a JSON object as a message, in one pass over its text.

use std::fmt;
use std::ops::Range;

use kube_apimachinery::schema::{Field, Kind, Shape, Tag, Type};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use super::member::Member;
use super::value;
use crate::go::wire;

/// Appends the fields of an object of a type; those of its zero value for null.
pub(super) struct Message<'o> {
    pub(super) of: &'static Type,
    pub(super) out: &'o mut Vec<u8>,
}

impl Message<'_> {
    /// Appends the fields of the zero value.
    pub(super) fn write_zero(self) {
        Fields::new(self.of, self.out).finish(self.out);
    }
}

impl<'de> DeserializeSeed<'de> for Message<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Message<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object of the type {}", self.of.name)
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.write_zero();
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { of, out } = self;
        let mut fields = Fields::new(of, out);
        while let Some(found) = map.next_key_seed(FieldIndex(of))? {
            let Some((index, number)) = found else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let start = out.len();
            let Field { kind, shape, .. } = of.fields[index];
            map.next_value_seed(Member {
                number,
                kind,
                shape,
                out,
            })?;
            fields.written[index] = Some(start..out.len());
        }
        fields.finish(out);
        Ok(())
    }
}

/// The fields of a message, at the end of the output, in the order of the text.
struct Fields {
    of: &'static Type,
    /// Start of the message.
    start: usize,
    /// The place of each field, by its index in the type.
    written: Vec<Option<Range<usize>>>,
}

impl Fields {
    fn new(of: &'static Type, out: &[u8]) -> Self {
        let written = vec![None; of.fields.len()];
        Self {
            of,
            start: out.len(),
            written,
        }
    }

    /// Adds the missing fields that Go writes, and sorts all by number.
    fn finish(self, out: &mut Vec<u8>) {
        let mut fields: Vec<(Tag, Range<usize>)> = Vec::with_capacity(self.written.len());
        for (field, written) in self.of.fields.iter().zip(self.written) {
            let Some(tag) = field.tag else { continue };
            let place = written.unwrap_or_else(|| {
                let start = out.len();
                if field.shape == Shape::Plain && field.kind != Kind::Bytes {
                    value::write_zero(tag.number, field.kind, out);
                }
                start..out.len()
            });
            fields.push((tag, place));
        }
        fields.sort_unstable_by_key(|(tag, _)| (tag.outer.unwrap_or(tag.number), tag.number));
        let mut sorted = Vec::with_capacity(out.len() - self.start);
        for group in fields.chunk_by(|(a, _), (b, _)| a.outer.is_some() && a.outer == b.outer) {
            let append = |sorted: &mut Vec<u8>| {
                for (_, place) in group {
                    sorted.extend_from_slice(&out[place.clone()]);
                }
            };
            match group[0].0.outer {
                Some(embedded) => wire::message(&mut sorted, embedded, append),
                None => append(&mut sorted),
            }
        }
        out.truncate(self.start);
        out.append(&mut sorted);
    }
}

/// Reads a member's name as the index and the number of its field; `None` if there is no field.
struct FieldIndex(&'static Type);

impl<'de> DeserializeSeed<'de> for FieldIndex {
    type Value = Option<(usize, u32)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for FieldIndex {
    type Value = Option<(usize, u32)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member's name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        let mut fields = self.0.fields.iter().enumerate();
        let found = fields.find(|(_, field)| field.name == name);
        Ok(found.and_then(|(index, field)| Some((index, field.tag?.number))))
    }
}
