//! Unknown and repeated fields of a body, for `fieldValidation`.

mod walk;

use std::sync::Arc;

use serde_json::Value;

use crate::decode::as_warnings;
use crate::kinds::Kind;
use crate::normalize::{check_overwritten, normalize};
use crate::object::Draft;
use crate::options::FieldValidation;
use crate::patch::{self, Patch, Patched};
use crate::settings::{EmulatedVersion, UnknownFields};
use crate::status::{ApiError, ApiResult};

pub use self::walk::has_repeated;
use self::walk::{Finding, walk};

/// The check of a body's fields.
#[derive(Clone, Copy, Debug)]
pub struct MemberCheck<'a> {
    /// The kind of the body.
    pub kind: &'a Arc<Kind>,
    /// The client's choice.
    pub validation: FieldValidation,
    /// The version whose schema defines the known fields.
    pub version: EmulatedVersion,
    /// The treatment of fields outside the schema.
    pub unknown_fields: UnknownFields,
}

impl MemberCheck<'_> {
    /// Finds repeated and unknown fields of a POST or PUT. Returns warnings, or an error for a
    /// strict client. `draft` is the object in the body, `in_yaml` the error about repeated fields in its
    /// original YAML.
    ///
    /// # Errors
    ///
    /// 400 for a strict client, and for a value of the wrong type next to unknown fields.
    pub fn body(
        self,
        draft: &Draft,
        text: &[u8],
        in_yaml: Option<String>,
    ) -> ApiResult<Vec<String>> {
        let Self {
            kind,
            validation,
            version,
            ..
        } = self;
        if validation == FieldValidation::Ignore {
            return Ok(Vec::new());
        }
        let reports_unknown = self.reports_unknown();
        let found = walk(kind, version, text)
            .into_iter()
            .filter(|finding| reports_unknown || matches!(finding, Finding::Repeated(_)))
            .map(|finding| finding.to_string());
        let mut found: Vec<String> = in_yaml.into_iter().chain(found).collect();
        if let Some(custom) = &kind.custom {
            let value = serde_json::from_slice(text).unwrap_or_default();
            found.extend(unknown(&custom.unknown_fields(
                &kind.api_version(),
                &kind.kind,
                &value,
            )));
        }
        if !found.is_empty() {
            self.check_types(draft)?;
        }
        if validation != FieldValidation::Strict || found.is_empty() {
            return Ok(found
                .iter()
                .flat_map(|message| as_warnings(message))
                .collect());
        }
        Err(ApiError::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: {}",
            kind.kind,
            kind.version,
            kind.kind,
            strict_error(&found)
        )))
    }

    /// Finds repeated fields of a patch and the unknown fields that it adds to the object.
    /// `patched` returns the object before the patch and the result, or nothing for a patch that doesn't
    /// apply: the update reports why.
    ///
    /// # Errors
    ///
    /// 422 for a strict client, and for a value of the wrong type next to unknown fields.
    pub fn patch(
        self,
        patch: &Patch,
        text: &[u8],
        patched: impl FnOnce() -> Option<(Value, Patched)>,
    ) -> ApiResult<Vec<String>> {
        let Self {
            kind,
            validation,
            version,
            ..
        } = self;
        if validation == FieldValidation::Ignore {
            return Ok(Vec::new());
        }
        let mut found = match patch {
            Patch::Json(_) => printed(&walk::operations(text), "json patch "),
            Patch::Merge(_) | Patch::Strategic(_) => printed(&walk::repeated(text), ""),
        };
        let is_strict = validation == FieldValidation::Strict;
        if !is_strict && !self.reports_unknown() {
            return Ok(found);
        }
        let Some((old, new)) = patched() else {
            return Ok(Vec::new());
        };
        let mut brought = walk(kind, version, &new.text());
        if !brought.is_empty() {
            // Ignore findings in the old object.
            let known = walk(kind, version, old.to_string().as_bytes());
            brought.retain(|finding| !known.contains(finding));
        }
        found.extend(printed(&brought, ""));
        if let Some(custom) = &kind.custom {
            let (version, new) = (kind.api_version(), new.draft.to_value());
            found.extend(unknown(&custom.unknown_fields(&version, &kind.kind, &new)));
        }
        if found.is_empty() {
            return Ok(found);
        }
        self.check_types(&new.draft)
            .map_err(|error| patch.undecodable(kind, error, Some(&new)))?;
        if !is_strict {
            return Ok(found);
        }
        let result = patch.shown(kind, &new);
        Err(patch::invalid(&result, &strict_error(&found)))
    }

    /// Checks the types of all values. Upstream's decoder says nothing of unknown fields next to a value
    /// of the wrong type. Custom resources have types in their metadata only.
    fn check_types(self, draft: &Draft) -> ApiResult<()> {
        if self.kind.custom.is_some() {
            return check_overwritten(self.kind, draft, self.version);
        }
        normalize(
            self.kind,
            &mut draft.clone(),
            self.version,
            self.unknown_fields,
        )
    }

    /// Returns true if unknown fields are reported. Without `fieldValidation`, only pruned fields
    /// are reported, including all unknown fields of custom resources.
    fn reports_unknown(self) -> bool {
        match self.validation {
            FieldValidation::Strict | FieldValidation::Warn => true,
            FieldValidation::Unspecified => {
                self.kind.custom.is_some() || self.unknown_fields == UnknownFields::Prune
            }
            FieldValidation::Ignore => false,
        }
    }
}

/// Returns the error of a strict decoder that found unknown fields at these paths.
pub fn unknown_error(paths: &[String]) -> String {
    strict_error(&unknown(paths).collect::<Vec<_>>())
}

/// Returns the messages for unknown fields.
fn unknown(paths: &[String]) -> impl Iterator<Item = String> {
    paths.iter().map(|path| format!("unknown field {path:?}"))
}

/// Prints findings.
fn printed(found: &[Finding], prefix: &str) -> Vec<String> {
    let print = |finding: &Finding| format!("{prefix}{finding}");
    found.iter().map(print).collect()
}

fn strict_error(found: &[String]) -> String {
    format!("strict decoding error: {}", found.join(", "))
}
