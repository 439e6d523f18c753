//! Templates kept verbatim, so that members that no compiled type knows survive.

use std::sync::Arc;

use kube_apimachinery::json::RawObject;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A pod template: the verbatim JSON of `.spec.template`.
#[derive(Clone, Debug)]
pub struct PodTemplate(Arc<str>);

impl PodTemplate {
    /// Keeps a template from its JSON.
    pub fn from_value(template: &Value) -> Self {
        Self(template.to_string().into())
    }

    /// The JSON text, as the server sent it.
    pub fn as_json(&self) -> &str {
        &self.0
    }

    /// The template as a JSON value.
    pub fn to_value(&self) -> Value {
        serde_json::from_str(&self.0).expect("a template is only ever made from valid JSON")
    }
}

impl Default for PodTemplate {
    /// The empty template.
    fn default() -> Self {
        Self("{}".into())
    }
}

impl<'de> Deserialize<'de> for PodTemplate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(if raw.get() == "null" {
            Self::default()
        } else {
            Self(raw.get().into())
        })
    }
}

/// A claim template: its name and its verbatim JSON.
#[derive(Clone, Debug)]
pub struct ClaimTemplate {
    /// Name: also that of the pod volume that uses the claim.
    pub name: Box<str>,
    json: Arc<str>,
}

impl ClaimTemplate {
    /// The template as a JSON value.
    pub fn to_value(&self) -> Value {
        serde_json::from_str(&self.json).expect("a template is only ever made from valid JSON")
    }
}

impl<'de> Deserialize<'de> for ClaimTemplate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Named {
            metadata: Option<Name>,
        }
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Name {
            name: Option<Box<str>>,
        }
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let named: Named = serde_json::from_str(raw.get()).map_err(serde::de::Error::custom)?;
        let name = named.metadata.unwrap_or_default().name.unwrap_or_default();
        Ok(Self {
            name,
            json: raw.get().into(),
        })
    }
}

/// The JSON object without one of its members, every other byte kept.
pub(super) fn without_member(
    object: &RawValue,
    member: &str,
) -> Result<Box<RawValue>, serde_json::Error> {
    let mut object = RawObject::parse(object.get())?;
    object.remove(member);
    serde_json::value::to_raw_value(&object)
}
