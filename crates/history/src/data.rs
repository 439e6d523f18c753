//! The data that a revision records: the pod template, marked as a replacement.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use kube_apimachinery::json::{self, equal_as_doubles, numbers_as_doubles, to_go_string};
use kube_apimachinery::schema::{
    DecodeError, TypeName, UnknownMembers, drop_unknown_members, normalize, unknown_members_agree,
    with_null_creation_times,
};
use serde_json::Value;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_controller_util::stateful_set::PodTemplate;

use crate::error::Error;

#[cfg(test)]
mod tests;

/// The Go type of a pod template.
pub(crate) const TEMPLATE_TYPE: &str = "PodTemplateSpec";
/// Path of the template in a set, for error texts.
pub(crate) const TEMPLATE_PATH: &str = "spec.template";
/// The field that holds a template's strategic merge directive.
const DIRECTIVE: &str = "$patch";

/// Data that a revision of a set's template records.
pub struct RevisionData {
    /// The template's type, in the version that decides which fields are known.
    of: TypeName<'static>,
    pub(crate) template: Value,
    recorded: Forms,
    /// Data that upstream would record after dropping unknown fields. `None` if the template
    /// has a value that doesn't fit upstream's types.
    known: OnceLock<Option<Forms>>,
}

/// The forms of a template's data.
struct Forms {
    /// The form of v1.34 and later.
    latest: Arc<str>,
    /// The form of earlier versions, if one of them is emulated.
    earlier: Option<Arc<str>>,
}

impl Forms {
    fn new(template: &Value, with_earlier: bool) -> Self {
        let earlier = || get_patch(with_null_creation_times(template.clone()));
        Self {
            latest: get_patch(template.clone()),
            earlier: with_earlier.then(earlier),
        }
    }

    fn contain<T: PartialEq<str> + ?Sized>(&self, data: &T) -> bool {
        *data == *self.latest || self.earlier.as_ref().is_some_and(|form| *data == **form)
    }
}

impl RevisionData {
    /// Builds the data of a template as v1.36.2 records it.
    ///
    /// # Errors
    ///
    /// The template has no JSON value.
    pub fn new(template: &PodTemplate) -> Result<Self, Error> {
        Self::at(template, FeatureGates::default())
    }

    /// Builds the data of a template as the emulated version records it: before 1.34 with an
    /// explicit `null` for an empty creation time. It equals the revisions in the form of any
    /// version, so the form alone never starts a rollout. The version also decides which fields
    /// are known.
    ///
    /// # Errors
    ///
    /// The template has no JSON value.
    pub fn at(template: &PodTemplate, gates: FeatureGates) -> Result<Self, Error> {
        let template = template.to_value()?;
        Ok(Self {
            of: gates.types().type_name(TEMPLATE_TYPE),
            recorded: Forms::new(&template, gates.revisions_record_null_creation_time()),
            template,
            known: OnceLock::new(),
        })
    }

    /// The bytes that a new revision records: the whole template, unknown fields included.
    pub fn recorded(&self) -> &Arc<str> {
        let Forms { latest, earlier } = &self.recorded;
        earlier.as_ref().unwrap_or(latest)
    }

    /// The bytes that upstream would record: the template without unknown fields. `None` if
    /// upstream can't decode the template.
    pub fn known(&self) -> Option<&Arc<str>> {
        self.known_forms().map(|known| &known.latest)
    }

    fn known_forms(&self) -> Option<&Forms> {
        let known = self.known.get_or_init(|| {
            let known = self.known_members(&self.template).ok()?;
            Some(Forms::new(&known, self.recorded.earlier.is_some()))
        });
        known.as_ref()
    }

    /// True if a recorded revision holds exactly these bytes, in the form of either version.
    pub fn is_recorded_as<T: PartialEq<str> + ?Sized>(&self, data: &T) -> bool {
        self.recorded.contain(data)
    }

    /// True if a recorded revision holds this data: these bytes, or the bytes that upstream
    /// would record without the unknown fields. An unknown field may appear or disappear; one in
    /// both must have the same value.
    ///
    /// Upstream: `EqualRevision`, which compares two revisions.
    pub fn equals(&self, data: &str) -> bool {
        let without_unknown = || self.without_unknown_members(data);
        let is_known = |known: &Forms| {
            known.contain(data) || without_unknown().is_some_and(|data| known.contain(&*data))
        };
        self.is_recorded_as(data) || self.known_forms().is_some_and(is_known)
    }

    /// Returns recorded data without its unknown fields; `None` if this data can't equal it.
    fn without_unknown_members(&self, data: &str) -> Option<String> {
        let mut data = json::parse(data).ok()?;
        let template = data.pointer_mut("/spec/template")?;
        let members = template.as_object_mut();
        let directive = members.and_then(|members| members.remove(DIRECTIVE));
        let mut known = template.clone();
        if !drop_unknown_members(self.of, &mut known) || !self.agrees_on_unknown_members(template) {
            return None;
        }
        if let (Some(directive), Value::Object(members)) = (directive, &mut known) {
            members.insert(DIRECTIVE.to_owned(), directive);
        }
        *template = known;
        Some(to_go_string(&data))
    }

    /// True if each unknown field in both this template and a recorded one is recorded with the
    /// same value. Compares list elements by index, so the result counts only if the known fields
    /// are equal.
    pub(crate) fn agrees_on_unknown_members(&self, recorded_template: &Value) -> bool {
        unknown_members_agree(
            self.of,
            &self.template,
            recorded_template,
            &equal_as_doubles,
        )
    }

    /// Returns a template without unknown fields, encoded as Go encodes it.
    pub(crate) fn known_members(&self, template: &Value) -> Result<Value, DecodeError> {
        normalize(self.of, template, UnknownMembers::Drop, TEMPLATE_PATH)
    }

    /// The template's labels, which a revision carries.
    pub(crate) fn template_labels(&self) -> BTreeMap<String, String> {
        let labels = self.template.pointer("/metadata/labels");
        labels
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.clone(), value.as_str().unwrap_or("").to_owned()))
            .collect()
    }
}

/// Returns the bytes that record a template.
///
/// Upstream: `getPatch`.
pub(crate) fn get_patch(mut template: Value) -> Arc<str> {
    numbers_as_doubles(&mut template);
    if let Value::Object(members) = &mut template {
        members.insert(DIRECTIVE.to_owned(), Value::from("replace"));
    }
    let template = to_go_string(&template);
    format!(r#"{{"spec":{{"template":{template}}}}}"#).into()
}
