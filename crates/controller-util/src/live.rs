//! An object just read from the API server, to be edited and written back whole.

use serde_json::Value;
use statefulset_client::indexer::CachedObject;

/// A live object: the compact view that decisions read beside the complete JSON that edits change.
///
/// It is the only form in which an existing object is ever PUT.
#[derive(Clone, Debug)]
pub struct Live<K> {
    /// What decisions read; not updated by edits of [`Live::json`].
    pub object: K,
    /// The complete object.
    pub json: Value,
}

impl<K: CachedObject> Live<K> {
    /// Takes the text of a server's answer.
    ///
    /// # Errors
    ///
    /// The text is no object of this kind.
    pub fn decode(text: &str) -> Result<Self, serde_json::Error> {
        Ok(Self {
            object: K::decode(text)?,
            json: serde_json::from_str(text)?,
        })
    }
}
