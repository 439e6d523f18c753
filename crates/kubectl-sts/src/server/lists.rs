//! Lists, page by page. An object that can't be decoded is left out and named.

use std::fmt::{self, Write as _};

use anyhow::Context as _;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::refusal::{Refusal, explained, is_expired};
use super::resources::Resource;

/// Objects in one page of a list.
const PAGE: usize = 500;
/// Attempts to read a list whose later pages expire.
const LIST_TRIES: usize = 3;

/// A page of a list.
#[derive(Deserialize)]
struct Page<'a> {
    #[serde(default)]
    metadata: PageMetadata,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

/// The position of a page.
#[derive(Default, Deserialize)]
struct PageMetadata {
    #[serde(default, rename = "continue")]
    next: Option<String>,
}

/// The objects of a list.
#[derive(Default)]
pub struct Listed<C> {
    /// Those that the caller keeps.
    pub kept: C,
    /// Those that can't be decoded.
    pub unreadable: Vec<Unreadable>,
}

/// An object that can't be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    kind: &'static str,
    namespace: String,
    /// Its name; empty if not even that can be read.
    pub name: String,
    /// Uids of its owners.
    pub owners: Vec<String>,
    reason: String,
}

impl Unreadable {
    fn new(kind: &'static str, text: &str, error: &anyhow::Error) -> Self {
        let object: Value = serde_json::from_str(text).unwrap_or_default();
        let member = |name: &str| {
            let found = object.pointer(&format!("/metadata/{name}"));
            found.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let owners = object.pointer("/metadata/ownerReferences");
        let owners = owners.and_then(Value::as_array).into_iter().flatten();
        let uids = owners.filter_map(|owner| owner.get("uid")?.as_str());
        Self {
            kind,
            namespace: member("namespace"),
            name: member("name"),
            owners: uids.map(str::to_owned).collect(),
            reason: error.root_cause().to_string(),
        }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            namespace,
            name,
            reason,
            ..
        } = self;
        let dash = if namespace.is_empty() { "" } else { "/" };
        write!(
            f,
            "{kind} {namespace}{dash}{name} cannot be decoded: {reason}"
        )
    }
}

/// Reads a list page by page with `read`, which gets a path. `keep` decodes each object.
///
/// # Errors
///
/// A permission is missing, or the server doesn't respond.
pub(super) async fn read_all<T, C: Default + Extend<T>>(
    read: impl AsyncFn(&str) -> Result<String, kube::Error>,
    resource: &Resource,
    namespace: Option<&str>,
    keep: impl Fn(&str) -> anyhow::Result<Option<T>>,
) -> anyhow::Result<Listed<C>> {
    let action = || format!("list {}", resource.place(namespace));
    for _ in 1..LIST_TRIES {
        match read_once(&read, resource, namespace, &keep).await {
            Err(error) if is_expired(&error) => {}
            read => return read.with_context(action),
        }
    }
    let read = read_once(&read, resource, namespace, &keep).await;
    read.with_context(action)
}

async fn read_once<T, C: Default + Extend<T>>(
    read: &impl AsyncFn(&str) -> Result<String, kube::Error>,
    resource: &Resource,
    namespace: Option<&str>,
    keep: &impl Fn(&str) -> anyhow::Result<Option<T>>,
) -> anyhow::Result<Listed<C>> {
    let path = resource.path(namespace);
    let (mut listed, mut position) = (Listed::<C>::default(), String::new());
    loop {
        let page = read(&format!("{path}?limit={PAGE}{position}")).await;
        let text = page.map_err(|error| {
            if matches!(&error, kube::Error::Api(status) if status.code == 404) {
                return anyhow::Error::new(Refusal {
                    code: 404,
                    message: "the server doesn't serve this resource".to_owned(),
                });
            }
            explained(error, "list", resource, namespace)
        })?;
        let page: Page<'_> = serde_json::from_str(&text).context("decode the answer")?;
        for item in page.items.unwrap_or_default() {
            match keep(item.get()) {
                Ok(kept) => listed.kept.extend(kept),
                Err(error) => {
                    let unreadable = Unreadable::new(resource.kind, item.get(), &error);
                    listed.unreadable.push(unreadable);
                }
            }
        }
        match page.metadata.next {
            Some(next) if !next.is_empty() => {
                position = format!("&continue={}", percent_encoded(&next));
            }
            _ => return Ok(listed),
        }
    }
}

/// Decodes an object of a list.
///
/// # Errors
///
/// The object can't be decoded.
pub fn decode<T: DeserializeOwned>(text: &str) -> anyhow::Result<T> {
    serde_json::from_str(text).context("decode an object of the list")
}

/// Encodes a value of a query.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string never fails.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continue_tokens_are_encoded() {
        assert_eq!(percent_encoded("a-Z.9+/=&"), "a-Z.9%2B%2F%3D%26");
    }
}
