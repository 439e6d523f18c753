//! Reading a whole collection, page by page.

use std::sync::Arc;

use kube_apimachinery::json::Document;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::Error;
use crate::indexer::{CachedObject, SetAside, TextPool};
use crate::resource::Resource;
use crate::rest::{ListOptions, RestClient};

/// The longest page that is read, in bytes: what a list may hold in memory beside the objects. A
/// page of one object is read at any length.
const PAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// After a page shorter than this, in bytes, the next one may hold twice as many objects.
const PAGE_BYTES_SMALL: usize = 4 * 1024 * 1024;
/// By so much a page that was too long is cut.
const PAGE_CUT: u32 = 8;

/// A whole collection at one version.
pub(super) struct List<K> {
    pub(super) objects: Vec<Arc<K>>,
    /// The objects that can't be decoded.
    pub(super) set_aside: Vec<SetAside>,
    pub(super) resource_version: String,
}

impl<K> Default for List<K> {
    fn default() -> Self {
        Self {
            objects: Vec::new(),
            set_aside: Vec::new(),
            resource_version: String::new(),
        }
    }
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
pub(super) fn bookmark_version(json: &str) -> Result<String, serde_json::Error> {
    let bookmark: Bookmark = serde_json::from_str(json)?;
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
    texts: &TextPool,
) -> Result<List<K>, Error> {
    match list_pages(client, resource, page_size, texts).await {
        Err((err, true)) if err.is_expired() => {
            let resource_name = resource.group_resource();
            tracing::debug!(resource = %resource_name, "pages expired, listing in one piece");
            list_pages(client, resource, 0, texts)
                .await
                .map_err(|(err, _)| err)
        }
        result => result.map_err(|(err, _)| err),
    }
}

/// Lists by pages, of fewer objects where they are large. An error says whether a page had already
/// come.
async fn list_pages<K: CachedObject>(
    client: &RestClient,
    resource: &Resource,
    page_size: u32,
    texts: &TextPool,
) -> Result<List<K>, (Error, bool)> {
    let mut options = ListOptions {
        limit: page_size,
        ..ListOptions::default()
    };
    let mut list = List::default();
    let mut begun = false;
    loop {
        options.bytes_max = (options.limit > 1).then_some(PAGE_BYTES_MAX);
        let page = match client.list(resource, &options).await {
            Err(Error::AnswerTooLong { .. }) => {
                options.limit = (options.limit / PAGE_CUT).max(1);
                continue;
            }
            page => page.map_err(|err| (err, begun))?,
        };
        let metadata = read_page(&page, resource, texts, &mut list).map_err(|err| (err, begun))?;
        if !begun {
            list.resource_version = metadata.resource_version;
        }
        begun = true;
        if metadata.continue_token.is_empty() {
            return Ok(list);
        }
        options.continue_token = metadata.continue_token;
        if page.text().len() < PAGE_BYTES_SMALL {
            options.limit = options.limit.saturating_mul(2).min(page_size);
        }
    }
}

/// Decodes a page. An object that can't be decoded is set aside: to leave it out would be to treat
/// it as gone.
fn read_page<K: CachedObject>(
    document: &Document,
    resource: &Resource,
    texts: &TextPool,
    list: &mut List<K>,
) -> Result<PageMetadata, Error> {
    let decode_error = |source| {
        let action = format!("list {}", resource.group_resource());
        Error::Decode { action, source }
    };
    let page: Page<'_> = serde_json::from_str(document.text()).map_err(decode_error)?;
    for item in page.items.unwrap_or_default() {
        match K::decode_part(document, item.get()) {
            Ok(mut object) => {
                object.share_texts(texts);
                list.objects.push(Arc::new(object));
            }
            Err(source) => {
                if let Some(object) = SetAside::read(item.get(), &source) {
                    list.set_aside.push(object);
                } else {
                    let resource = resource.group_resource();
                    tracing::warn!(%resource, error = %source, "dropped a listed object without a readable name");
                }
            }
        }
    }
    Ok(page.metadata)
}
