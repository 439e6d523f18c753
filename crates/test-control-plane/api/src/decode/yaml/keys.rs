//! Detection of repeated keys in YAML mappings, with the messages of Go's YAML reader.

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::options;

/// Returns Go's message about repeated keys, or `None` if there are none. Stops silently at a
/// syntax error, which the decoder reports.
pub fn repeated_keys(text: &str) -> Option<String> {
    let mut found = Vec::new();
    let walk = |parser: serde_saphyr::Deserializer<'_, '_>| Keys(&mut found).deserialize(parser);
    let _ = serde_saphyr::with_deserializer_from_str_with_options(text, options(), walk);
    (!found.is_empty()).then(|| format!("yaml: unmarshal errors:\n{}", found.join("\n")))
}

/// Splits Go's message into warnings, one per line, without its header.
pub fn as_warnings(message: &str) -> impl Iterator<Item = String> {
    let lines = message.lines().map(str::trim);
    let lines = lines.filter(|line| !line.ends_with("unmarshal errors:"));
    lines.map(str::to_owned)
}

/// Visits a document and records its repeated keys.
struct Keys<'a>(&'a mut Vec<String>);

impl<'de> DeserializeSeed<'de> for Keys<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Keys<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("YAML")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            map.next_value_seed(Keys(self.0))?;
            let line = key.referenced.line();
            // Go checks the key after it has read the value.
            if let Some(key) = seen.replace(key.value.clone()) {
                self.0
                    .push(format!("  line {line}: key {key:?} already set in map"));
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Keys(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_repeated_key_is_reported_with_its_line() {
        let text = "a: 1\nb:\n  c: [{d: 1, d: 2}]\n  c: x\na: 3\n1: y\n";
        let told = "yaml: unmarshal errors:\n  line 3: key \"d\" already set in map\n  \
                    line 4: key \"c\" already set in map\n  line 5: key \"a\" already set in map";
        assert_eq!(repeated_keys(text).as_deref(), Some(told));
        for text in ["", "a: 1\nb: {a: 1}\n", "a: [", "x"] {
            assert_eq!(repeated_keys(text), None, "{text}");
        }
    }
}
