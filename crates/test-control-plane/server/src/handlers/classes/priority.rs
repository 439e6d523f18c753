//! Priority classes of pods.

use kube_test_control_plane_api::kinds::{self, Kind};
use kube_test_control_plane_api::members::{number_at, text_at};
use kube_test_control_plane_api::object::{Draft, Key};
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use serde_json::Value;

use crate::state::Reads;

/// The storage of the classes.
const CLASSES: &str = "priorityclasses";

/// Returns the class of a name, or for an empty name the default class: of several, that of the
/// lowest priority.
///
/// Upstream: `getDefaultPriorityClass`
pub(crate) fn priority_class(reads: &Reads, name: &str) -> Option<Value> {
    if !name.is_empty() {
        let class = reads
            .store
            .get(&Key::new(kinds::by_storage(CLASSES)?, "", name))?;
        return Some(class.value());
    }
    let defaults = default_classes(reads);
    defaults.min_by_key(|class| number_at(class, "/value"))
}

/// Rejects a second default class.
///
/// Upstream: `validatePriorityClass`
pub(crate) fn check_default_class(reads: &Reads, kind: &Kind, draft: &Draft) -> ApiResult<()> {
    if &*kind.storage != CLASSES || draft.value["globalDefault"] != true {
        return Ok(());
    }
    let name = draft.metadata().name();
    let mut others = default_classes(reads);
    let other = others.find(|class| text_at(class, "/metadata/name") != name);
    let Some(other) = other else { return Ok(()) };
    let other = text_at(&other, "/metadata/name");
    let why =
        format!("PriorityClass {other} is already marked as default. Only one default can exist");
    Err(ApiError::forbidden(kind, name, &why))
}

fn default_classes(reads: &Reads) -> impl Iterator<Item = Value> {
    let (_, classes) = reads.store.list(CLASSES, "");
    let classes = classes.into_iter().map(|class| class.value());
    classes.filter(|class| class["globalDefault"] == true)
}
