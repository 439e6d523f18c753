//! JSON objects whose members can be edited one by one, while all others keep their bytes.

use std::fmt;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;
use serde::de::Error as _;
use serde::de::MapAccess;
use serde::de::Visitor;
use serde::ser::Error as _;
use serde_json::value::RawValue;

use super::encode::write_go_str;

/// A JSON object as a list of members in their order, each with the bytes of its value.
///
/// Values keep every byte. Whitespace between members is dropped, and names are written with Go's
/// escapes, as an API server writes them. Of repeated names the last wins, as in Go's decoder.
#[derive(Clone, Debug, Default)]
pub struct RawObject {
    members: Vec<(String, Box<RawValue>)>,
}

impl RawObject {
    /// Creates an object without members.
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses an object.
    ///
    /// # Errors
    /// The text is not JSON, or not an object.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Returns the value of the member `name`.
    pub fn get(&self, name: &str) -> Option<&RawValue> {
        let member = self.members.iter().rfind(|(other, _)| other == name);
        member.map(|(_, value)| &**value)
    }

    /// Replaces the value of the member `name` in place, or appends the member.
    pub fn set(&mut self, name: impl Into<String>, value: Box<RawValue>) {
        let name = name.into();
        match self.members.iter_mut().rfind(|(other, _)| *other == name) {
            Some(member) => member.1 = value,
            None => self.members.push((name, value)),
        }
    }

    /// Removes the member `name` and returns its value.
    pub fn remove(&mut self, name: &str) -> Option<Box<RawValue>> {
        let mut removed = None;
        while let Some(at) = self.position(name) {
            let (_, value) = self.members.remove(at);
            removed.get_or_insert(value);
        }
        removed
    }

    /// Returns the members in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.members
            .iter()
            .map(|(name, value)| (name.as_str(), &**value))
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

impl fmt::Display for RawObject {
    /// Writes the JSON text of the object.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::from("{");
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

impl Serialize for RawObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.to_string())
            .map_err(S::Error::custom)?
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

/// Collects the members of an object in their order.
struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = RawObject;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<RawObject, A::Error> {
        let mut members = Vec::new();
        while let Some(name) = access.next_key::<String>()? {
            let value = access
                .next_value::<Box<RawValue>>()
                .map_err(|err| A::Error::custom(format_args!("member {name:?}: {err}")))?;
            members.push((name, value));
        }
        Ok(RawObject { members })
    }
}
