//! Fields of pod templates.

use kube_apimachinery::json::{ParseError, RawObject, parse};
use serde_json::Value;
use serde_json::value::RawValue;

/// Fields of a template as Go encodes them.
#[derive(Debug)]
pub struct TemplateMembers {
    metadata: Option<Box<RawValue>>,
    /// The spec, with the text of its fields; empty if it isn't an object.
    pub spec: RawObject<'static>,
}

impl TemplateMembers {
    pub(super) fn parse(template: &str) -> Result<Self, ParseError> {
        let template = RawObject::parse(template)?;
        let spec = template.get("spec");
        let spec = spec.and_then(|spec| RawObject::parse(spec.get()).ok());
        Ok(Self {
            metadata: template.get("metadata").map(RawValue::to_owned),
            spec: spec.unwrap_or_default().into_owned(),
        })
    }

    /// The metadata; null without any.
    ///
    /// # Errors
    ///
    /// Same as [`PodTemplate::to_value`](super::PodTemplate::to_value).
    pub fn metadata(&self) -> Result<Value, ParseError> {
        let metadata = self.metadata.as_ref();
        metadata.map_or(Ok(Value::Null), |metadata| parse(metadata.get()))
    }
}
