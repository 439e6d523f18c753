//! Reading a whole collection, page by page.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::Error;
use crate::indexer::CachedObject;
use crate::resource::Resource;
use crate::rest::{ListOptions, RestClient};

/// A whole collection at one version.
pub(super) struct List<K> {
    pub(super) objects: Vec<Arc<K>>,
    pub(super) resource_version: String,
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(default)]
    metadata: PageMetadata,
    /// Null in an empty list of some servers.
    #[serde(default, borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PageMetadata {
    resource_version: String,
    #[serde(rename = "continue")]
    continue_token: String,
}

#[derive(Deserialize)]
struct Bookmark {
    metadata: PageMetadata,
}

/// The version that a bookmark names.
pub(super) fn bookmark_version(json: &RawValue) -> Result<String, serde_json::Error> {
    let bookmark: Bookmark = serde_json::from_str(json.get())?;
    Ok(bookmark.metadata.resource_version)
}

/// Lists all objects of all namespaces. If the server forgets the snapshot between two pages, the
/// rest is given up and everything is asked for in one piece.
///
/// Upstream: `pager.ListPager`.
pub(super) async fn list_all<K: CachedObject>(
    client: &RestClient,
    resource: &Resource,
    page_size: u32,
) -> Result<List<K>, Error> {
    match list_pages(client, resource, page_size).await {
        Err((err, true)) if err.is_expired() => {
            let resource_name = resource.group_resource();
            tracing::debug!(resource = %resource_name, "pages expired, listing in one piece");
            list_pages(client, resource, 0)
                .await
                .map_err(|(err, _)| err)
        }
        result => result.map_err(|(err, _)| err),
    }
}

/// Lists by pages. An error says whether a page had already come.
async fn list_pages<K: CachedObject>(
    client: &RestClient,
    resource: &Resource,
    page_size: u32,
) -> Result<List<K>, (Error, bool)> {
    let mut options = ListOptions {
        limit: page_size,
        ..ListOptions::default()
    };
    let mut objects = Vec::new();
    let mut version = None;
    loop {
        let begun = version.is_some();
        let text = client
            .list(resource, &options)
            .await
            .map_err(|err| (err, begun))?;
        let metadata = read_page(&text, resource, &mut objects).map_err(|err| (err, begun))?;
        let resource_version = version.get_or_insert(metadata.resource_version);
        if metadata.continue_token.is_empty() {
            let resource_version = std::mem::take(resource_version);
            return Ok(List {
                objects,
                resource_version,
            });
        }
        options.continue_token = metadata.continue_token;
    }
}

/// Decodes a page. One object that cannot be read fails the list: to leave it out would be to treat
/// it as gone.
fn read_page<K: CachedObject>(
    text: &str,
    resource: &Resource,
    objects: &mut Vec<Arc<K>>,
) -> Result<PageMetadata, Error> {
    let decode_error = |source| {
        let action = format!("list {}", resource.group_resource());
        Error::Decode { action, source }
    };
    let page: Page<'_> = serde_json::from_str(text).map_err(decode_error)?;
    for item in page.items.unwrap_or_default() {
        let object = K::decode(item.get()).map_err(|source| undecodable(resource, item, source))?;
        objects.push(Arc::new(object));
    }
    Ok(page.metadata)
}

/// The error for an object that can't be read, with its name as far as that can be.
pub(super) fn undecodable(
    resource: &Resource,
    object: &RawValue,
    source: serde_json::Error,
) -> Error {
    let value: Value = serde_json::from_str(object.get()).unwrap_or_default();
    let text = |member: &str| value["metadata"][member].as_str().unwrap_or("?");
    let (namespace, name) = (text("namespace"), text("name"));
    let action = format!("read {} {namespace}/{name}", resource.kind);
    Error::Decode { action, source }
}
