//! JSON objects whose members can be edited one by one, while all others keep their bytes.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;
use serde::de::Error as _;
use serde::de::MapAccess;
use serde::de::Visitor;
use serde::ser::Error as _;
use serde_json::Value;
use serde_json::value::RawValue;

use super::deep::{ParseError, parse};
use super::encode::write_go_str;

/// A JSON object as a list of members in their order, each with the bytes of its value.
///
/// Values keep every byte. Whitespace between members is dropped, and names are written with Go's
/// escapes, as an API server writes them. Of repeated names the last wins, as in Go's decoder.
///
/// Parsed members are slices of the text.
#[derive(Clone, Debug, Default)]
pub struct RawObject<'a> {
    members: Vec<(Cow<'a, str>, Cow<'a, RawValue>)>,
}

impl<'a> RawObject<'a> {
    /// Creates an object without members.
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses an object.
    ///
    /// # Errors
    /// The text is not JSON, or not an object.
    pub fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Parses an object, and edits the object in its member `name` on the way, so that every byte is
    /// read once.
    ///
    /// # Errors
    /// The text is not JSON, or the object or the member is not an object.
    pub fn parse_edited(
        text: &'a str,
        name: &str,
        edit: impl FnMut(&mut RawObject<'a>),
    ) -> Result<Self, serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let object = deserializer.deserialize_map(EditedMember { name, edit })?;
        deserializer.end()?;
        Ok(object)
    }

    /// Returns the same members, borrowed from this object.
    pub fn borrowed(&self) -> RawObject<'_> {
        let members = self.iter();
        let members = members.map(|(name, value)| (Cow::Borrowed(name), Cow::Borrowed(value)));
        RawObject {
            members: members.collect(),
        }
    }

    /// Copies the members, which no longer borrow from the text then.
    pub fn into_owned(self) -> RawObject<'static> {
        let members = self.members.into_iter().map(|(name, value)| {
            (
                Cow::Owned(name.into_owned()),
                Cow::Owned(value.into_owned()),
            )
        });
        RawObject {
            members: members.collect(),
        }
    }

    /// Returns the value of the member `name`.
    pub fn get(&self, name: &str) -> Option<&RawValue> {
        let member = self.members.iter().rfind(|(other, _)| other == name);
        member.map(|(_, value)| &**value)
    }

    /// Returns the value of the member `name`, parsed.
    ///
    /// # Errors
    ///
    /// The value nests too deep, or contains a number beyond the range of doubles.
    pub fn get_parsed(&self, name: &str) -> Result<Option<Value>, ParseError> {
        let value = self.get(name).map(|value| parse(value.get()));
        value.transpose()
    }

    /// Replaces the value of the member `name` in place, or appends the member.
    pub fn set(&mut self, name: impl Into<Cow<'a, str>>, value: Box<RawValue>) {
        let (name, value) = (name.into(), Cow::Owned(value));
        match self.members.iter_mut().rfind(|(other, _)| *other == name) {
            Some(member) => member.1 = value,
            None => self.members.push((name, value)),
        }
    }

    /// Removes the member `name` and returns its value.
    pub fn remove(&mut self, name: &str) -> Option<Cow<'a, RawValue>> {
        let mut removed = None;
        while let Some(at) = self.position(name) {
            let (_, value) = self.members.remove(at);
            removed.get_or_insert(value);
        }
        removed
    }

    /// Sorts the members by name.
    pub fn sort(&mut self) {
        self.members
            .sort_by(|(name, _), (other, _)| name.cmp(other));
    }

    /// Returns the members in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.members.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Returns true if the object has no members.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Returns the object as a raw value, for use as a member of another object.
    #[expect(clippy::expect_used, reason = "names and raw values form valid JSON")]
    pub fn to_raw(&self) -> Box<RawValue> {
        RawValue::from_string(self.to_string()).expect("names and raw values form valid JSON")
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.members.iter().rposition(|(other, _)| other == name)
    }
}

impl fmt::Display for RawObject<'_> {
    /// Writes the JSON text of the object.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths = self
            .iter()
            .map(|(name, value)| name.len() + value.get().len() + 4);
        let mut text = String::with_capacity(2 + lengths.sum::<usize>());
        text.push('{');
        for (index, (name, value)) in self.iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            write_go_str(name, &mut text);
            text.push(':');
            text.push_str(value.get());
        }
        text.push('}');
        formatter.write_str(&text)
    }
}

impl Serialize for RawObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.to_string())
            .map_err(S::Error::custom)?
            .serialize(serializer)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawObject<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

/// A member's name; borrowed unless it has escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// Collects the members of an object in their order.
struct Members;

/// Collects the members, and edits the object in one of them.
struct EditedMember<'a, F> {
    name: &'a str,
    edit: F,
}

impl<'de> Visitor<'de> for Members {
    type Value = RawObject<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<RawObject<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some(Name(name)) = access.next_key()? {
            let value = raw_member(&name, &mut access)?;
            members.push((name, Cow::Borrowed(value)));
        }
        Ok(RawObject { members })
    }
}

impl<'de, F: FnMut(&mut RawObject<'de>)> Visitor<'de> for EditedMember<'_, F> {
    type Value = RawObject<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        Members.expecting(formatter)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut access: A) -> Result<RawObject<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some(Name(name)) = access.next_key()? {
            let value = if name == self.name {
                let mut object = access.next_value()?;
                (self.edit)(&mut object);
                Cow::Owned(object.to_raw())
            } else {
                Cow::Borrowed(raw_member(&name, &mut access)?)
            };
            members.push((name, value));
        }
        Ok(RawObject { members })
    }
}

/// Reads a member's value, and names the member in an error.
fn raw_member<'de, A: MapAccess<'de>>(
    name: &str,
    access: &mut A,
) -> Result<&'de RawValue, A::Error> {
    let value = access.next_value();
    value.map_err(|err| A::Error::custom(format_args!("member {name:?}: {err}")))
}
