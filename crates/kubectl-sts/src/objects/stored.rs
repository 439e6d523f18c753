//! Objects in both forms.

use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::server::decode;

/// An object as decoded and as the server sent it.
pub(crate) struct StoredObject<T> {
    pub(crate) object: T,
    pub(crate) text: Arc<str>,
}

impl<T> StoredObject<T> {
    /// Combines both forms.
    pub(super) fn new(object: T, text: &str) -> Self {
        let text = text.into();
        Self { object, text }
    }
}

impl<T: DeserializeOwned> StoredObject<T> {
    /// Decodes a text; `None` if it can't be decoded.
    pub(super) fn decoded(text: &Arc<str>) -> Option<Self> {
        let object = decode(text).ok()?;
        let text = Arc::clone(text);
        Some(Self { object, text })
    }
}
