//! Objects in both forms.

use serde::de::DeserializeOwned;

use crate::server::decode;

/// An object as decoded and as the server sent it.
pub(crate) struct Stored<T> {
    pub(crate) object: T,
    pub(crate) text: Box<str>,
}

impl<T> Stored<T> {
    /// Combines both forms.
    pub(super) fn new(object: T, text: &str) -> Self {
        let text = text.into();
        Self { object, text }
    }
}

impl<T: DeserializeOwned> Stored<T> {
    /// Decodes a text; `None` if it can't be decoded.
    pub(super) fn decoded(text: Box<str>) -> Option<Self> {
        let object = decode(&text).ok()?;
        Some(Self { object, text })
    }
}
