//! The annotation with the last configuration of kubectl's client-side apply.
//!
//! Upstream: `lastappliedmanager.go` and `lastappliedupdater.go` of `k8s.io/apimachinery`.

use kube_apimachinery::json::to_go_string;
use serde_json::{Value, json};

use super::set::Set;
use super::typed::{self, TypeRef};
use crate::kinds::Kind;
use crate::settings::EmulatedVersion;

/// The manager of client-side apply.
pub(super) const MANAGER: &str = "kubectl";

/// The annotation's name.
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Maximum size of an object's annotations, in bytes.
const ANNOTATIONS_MAX: usize = 256 * 1024;

/// Returns the annotation's fields that still have their applied values, or `None` without an
/// annotation of this version.
pub(super) fn fields(kind: &Kind, live: &Value) -> Option<Set> {
    let text = annotation(live)?;
    let applied: Value = serde_json::from_str(text).ok().filter(Value::is_object)?;
    if applied.get("apiVersion")?.as_str()? != kind.api_version() {
        return None;
    }
    let of = TypeRef::of_kind(kind);
    let strictness = typed::Strictness::Declared(EmulatedVersion::NEWEST);
    typed::validate(of, &applied, strictness).ok()?;
    let comparison = typed::compare(of, &applied, live);
    let fields = typed::field_set(of, &applied)
        .difference(&comparison.modified)
        .difference(&comparison.added)
        .difference(&comparison.removed);
    Some(fields)
}

/// Updates the annotation with the configuration, if the object has it.
pub(super) fn renew(object: &mut Value, config: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut applied = config.clone();
    if let Some(annotations) = applied.pointer_mut("/metadata/annotations")
        && let Some(annotations) = annotations.as_object_mut()
    {
        annotations.remove(ANNOTATION);
    }
    let text = format!("{}\n", to_go_string(&applied));
    let annotations = object.pointer_mut("/metadata/annotations");
    let Some(annotations) = annotations.and_then(Value::as_object_mut) else {
        return;
    };
    annotations.insert(ANNOTATION.to_owned(), json!(text));
    let size = |(name, value): (&String, &Value)| name.len() + value.as_str().map_or(0, str::len);
    if annotations.iter().map(size).sum::<usize>() > ANNOTATIONS_MAX {
        annotations.remove(ANNOTATION);
    }
}

fn annotation(object: &Value) -> Option<&str> {
    let annotations = object.pointer("/metadata/annotations")?;
    let text = annotations.get(ANNOTATION)?.as_str()?;
    Some(text).filter(|text| !text.is_empty())
}
