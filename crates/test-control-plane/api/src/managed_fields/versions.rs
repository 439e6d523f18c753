//! Conversion of objects between API versions.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use super::typed::TypeRef;
use crate::kinds::{KINDS, Kind};
use crate::views;

/// An object in one of its versions.
#[derive(Clone, Debug)]
pub(super) struct Versioned<'a> {
    /// The object.
    pub(super) value: Cow<'a, Value>,
    /// The row that serves this version.
    pub(super) kind: Arc<Kind>,
}

impl Versioned<'_> {
    /// Returns the type of the object.
    pub(super) fn of(&self) -> TypeRef<'_> {
        TypeRef::of_kind(&self.kind)
    }

    /// Returns another object of the same version.
    pub(super) fn with(&self, value: Value) -> Versioned<'static> {
        Versioned {
            value: Cow::Owned(value),
            kind: Arc::clone(&self.kind),
        }
    }

    /// Returns the object as an owned value.
    pub(super) fn into_owned(self) -> Versioned<'static> {
        Versioned {
            value: Cow::Owned(self.value.into_owned()),
            kind: self.kind,
        }
    }

    /// Converts the object to another version; `None` if that version doesn't exist.
    pub(super) fn convert(&self, api_version: &str) -> Option<Versioned<'_>> {
        let kind = kind_in(&self.kind, api_version)?;
        if Arc::ptr_eq(&kind, &self.kind) {
            let value = Cow::Borrowed(&*self.value);
            return Some(Versioned { value, kind });
        }
        let mut value = self.value.clone().into_owned();
        views::to_stored(&self.kind, &mut value);
        views::to_served(&kind, &mut value);
        if kind.custom.is_some() {
            // Fields that the other version doesn't have stay.
            value["apiVersion"] = Value::from(api_version);
        }
        Some(Versioned {
            value: Cow::Owned(value),
            kind,
        })
    }
}

/// Returns the row that serves `kind` in another version.
pub(super) fn kind_in(kind: &Arc<Kind>, api_version: &str) -> Option<Arc<Kind>> {
    if is_version(kind, api_version) {
        return Some(Arc::clone(kind));
    }
    if let Some(custom) = &kind.custom {
        let version = api_version.strip_prefix(&*kind.group)?.strip_prefix('/')?;
        return Some(Arc::new(Kind {
            version: version.to_owned(),
            custom: Some(custom.in_version(version)?),
            ..Kind::clone(kind)
        }));
    }
    let same = |other: &&Arc<Kind>| other.storage == kind.storage && is_version(other, api_version);
    KINDS.iter().find(same).map(Arc::clone)
}

fn is_version(kind: &Kind, api_version: &str) -> bool {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    kind.group == group && kind.version == version
}
