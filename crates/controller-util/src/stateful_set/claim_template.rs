//! Claim templates, kept verbatim like pod templates.

use kube_apimachinery::json::{ParseError, parse};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use statefulset_client::cache::indexer::SharedText;

use super::part::Part;
use crate::decode::or_default;

/// A claim template: its name and its verbatim JSON.
#[derive(Clone, Debug)]
pub struct ClaimTemplate {
    /// Name of the template and of the pod volume that uses the claim.
    pub name: Box<str>,
    json: Part,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Named {
    #[serde(deserialize_with = "or_default")]
    metadata: Name,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Name {
    #[serde(deserialize_with = "or_default")]
    name: Box<str>,
}

impl ClaimTemplate {
    /// Slices the template from the text of a spec.
    pub(super) fn of(spec: &SharedText, template: &RawValue) -> Result<Self, serde_json::Error> {
        let named: Named = serde_json::from_str(template.get())?;
        Ok(Self {
            name: named.metadata.name,
            json: Part::of(spec, template),
        })
    }

    /// The template as a JSON value.
    ///
    /// # Errors
    ///
    /// The template nests too deep, or contains a number beyond the range of doubles.
    pub fn to_value(&self) -> Result<Value, ParseError> {
        parse(&self.json.to_str())
    }

    pub(super) fn moved(&self, spec: &SharedText, form: &SharedText) -> Self {
        Self {
            name: self.name.clone(),
            json: self.json.moved(spec, form),
        }
    }
}
