//! Templates, kept verbatim so that members unknown to the compiled types survive.

use std::borrow::Cow;
use std::sync::Arc;

use kube_apimachinery::json::{ParseError, RawObject, parse, to_go_string};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use statefulset_client::cache::indexer::SharedText;

use super::memo::TemplateMemo;
use super::part::Part;
use crate::decode::or_default;

/// A pod template: the verbatim JSON of `.spec.template`.
#[derive(Clone, Debug)]
pub struct PodTemplate {
    json: Part,
    /// True if the text is Go's encoding of a value.
    is_encoded: bool,
    memo: Arc<TemplateMemo>,
}

impl From<Part> for PodTemplate {
    fn from(json: Part) -> Self {
        Self {
            json,
            is_encoded: false,
            memo: Arc::default(),
        }
    }
}

impl PodTemplate {
    /// Creates a template from its JSON.
    pub fn from_value(template: &Value) -> Self {
        Self {
            is_encoded: true,
            ..Part::whole(to_go_string(template)).into()
        }
    }

    /// Slices the template from the text of a spec.
    pub(super) fn of(spec: &SharedText, template: Option<&RawValue>) -> Self {
        template.map_or_else(Self::default, |template| Part::of(spec, template).into())
    }

    /// The JSON text, as sent by the server.
    pub fn to_json(&self) -> Cow<'_, str> {
        self.json.to_str()
    }

    /// The template as Go encodes it, with sorted members.
    ///
    /// # Errors
    ///
    /// Same as [`PodTemplate::to_value`].
    pub fn encoded(&self) -> Result<Cow<'_, str>, ParseError> {
        if self.is_encoded {
            return Ok(self.to_json());
        }
        Ok(to_go_string(&self.to_value()?).into())
    }

    /// Returns the members that pods need, parsed once while syncs need them.
    ///
    /// # Errors
    ///
    /// Same as [`PodTemplate::to_value`].
    pub fn members(&self) -> Result<Arc<TemplateMembers>, ParseError> {
        self.memo
            .members(|| TemplateMembers::parse(&self.encoded()?))
    }

    /// Length of the JSON text in bytes.
    pub fn json_len(&self) -> usize {
        self.json.len()
    }

    pub(super) fn moved(&self, spec: &SharedText, form: &SharedText) -> Self {
        Self {
            json: self.json.moved(spec, form),
            is_encoded: self.is_encoded,
            memo: Arc::clone(&self.memo),
        }
    }

    /// Results of syncs about this template.
    pub fn memo(&self) -> &TemplateMemo {
        &self.memo
    }

    /// Takes over the memo of the set's previous template, if the text is the same.
    pub(super) fn inherit_memo(&mut self, previous: &Self) {
        if self.json_len() == previous.json_len() && self.to_json() == previous.to_json() {
            self.memo = Arc::clone(&previous.memo);
        }
    }

    /// The template as a JSON value.
    ///
    /// # Errors
    ///
    /// The template nests too deep, or contains a number beyond the range of doubles.
    pub fn to_value(&self) -> Result<Value, ParseError> {
        parse(&self.to_json())
    }
}

impl Default for PodTemplate {
    /// The empty template.
    fn default() -> Self {
        Part::whole("{}").into()
    }
}

/// Members of a template as Go encodes them.
#[derive(Debug)]
pub struct TemplateMembers {
    metadata: Option<Box<RawValue>>,
    /// The spec, with the text of its members; empty if it isn't an object.
    pub spec: RawObject<'static>,
}

impl TemplateMembers {
    fn parse(template: &str) -> Result<Self, ParseError> {
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
    /// Same as [`PodTemplate::to_value`].
    pub fn metadata(&self) -> Result<Value, ParseError> {
        let metadata = self.metadata.as_ref();
        metadata.map_or(Ok(Value::Null), |metadata| parse(metadata.get()))
    }
}

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
