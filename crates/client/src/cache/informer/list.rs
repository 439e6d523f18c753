//! Lists a whole collection, page by page.

use std::sync::Arc;

use kube_apimachinery::json::Document;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::cache::indexer::{CachedObject, SetAside, TextPool};
use crate::error::Error;
use crate::resource::Resource;
use crate::rest::{ListOptions, RestClient};

/// Maximum length of a page, in bytes. It bounds a list's memory in addition to the objects. A page
/// of one object may be longer.
const PAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// After a page shorter than this, in bytes, the next limit doubles.
const PAGE_BYTES_SMALL: usize = 4 * 1024 * 1024;
/// Divisor of the limit after a page that was too long.
const PAGE_CUT: u32 = 8;
/// Maximum number of times that a list starts over after its pages expired. Then the list fails,
/// and backoff relieves a server that forgets faster than it answers.
const BEGINNINGS_MAX: u32 = 3;
/// Bytes of decoded objects, a few milliseconds of work, after which other tasks may run.
const YIELD_BYTES: usize = 256 * 1024;

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
    /// Some servers send null for an empty list.
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

/// Returns the version of a bookmark.
pub(super) fn bookmark_version(json: &str) -> Result<String, serde_json::Error> {
    let bookmark: Bookmark = serde_json::from_str(json)?;
    Ok(bookmark.metadata.resource_version)
}

/// Lists all objects in a namespace, or in all namespaces if it is empty. If the snapshot expires
/// between two pages, the list starts over with the last page size.
///
/// # Errors
///
/// Returns the error of a request. Returns an expired page only if every attempt expired.
///
/// Upstream: `pager.ListPager`.
pub(super) async fn list_all<K: CachedObject>(
    client: &RestClient,
    resource: &Resource,
    namespace: &str,
    page_size: u32,
    texts: &TextPool,
) -> Result<List<K>, Error> {
    // A limit of zero would mean no limit.
    let limit = page_size.max(1);
    let mut pages = Pages {
        client,
        resource,
        namespace,
        limit_max: limit,
        limit,
    };
    let mut beginnings = 1;
    loop {
        match list_pages(&mut pages, texts).await {
            Err((err, true)) if err.is_expired() && beginnings < BEGINNINGS_MAX => {
                let resource = resource.group_resource();
                tracing::debug!(%resource, error = %err, "pages expired, listing from the beginning");
                beginnings += 1;
            }
            result => return result.map_err(|(err, _)| err),
        }
    }
}

/// Lists all pages once. The error includes whether any page had arrived.
async fn list_pages<K: CachedObject>(
    pages: &mut Pages<'_>,
    texts: &TextPool,
) -> Result<List<K>, (Error, bool)> {
    let mut list = List::default();
    let mut begun = false;
    let mut continue_token = String::new();
    loop {
        let page = pages.get(&continue_token).await;
        let page = page.map_err(|err| (err, begun))?;
        let metadata = read_page(&page, pages.resource, texts, &mut list).await;
        let metadata = metadata.map_err(|err| (err, begun))?;
        if !begun {
            list.resource_version = metadata.resource_version;
        }
        begun = true;
        continue_token = metadata.continue_token;
        if continue_token.is_empty() {
            return Ok(list);
        }
    }
}

/// Requests pages, with a lower limit for large objects.
struct Pages<'a> {
    client: &'a RestClient,
    resource: &'a Resource,
    namespace: &'a str,
    /// Maximum limit of a page.
    limit_max: u32,
    /// Limit of the next page.
    limit: u32,
}

impl Pages<'_> {
    /// Gets the page after a continue token.
    async fn get(&mut self, continue_token: &str) -> Result<Document, Error> {
        loop {
            let options = ListOptions {
                namespace: self.namespace.to_owned(),
                limit: self.limit,
                continue_token: continue_token.to_owned(),
                bytes_max: (self.limit > 1).then_some(PAGE_BYTES_MAX),
            };
            match self.client.list(self.resource, &options).await {
                Err(Error::AnswerTooLong { .. }) => self.limit = (self.limit / PAGE_CUT).max(1),
                Err(err) => return Err(err),
                Ok(page) => {
                    if page.text().len() < PAGE_BYTES_SMALL {
                        self.limit = self.limit.saturating_mul(2).min(self.limit_max);
                    }
                    return Ok(page);
                }
            }
        }
    }
}

/// Decodes a page. An object that can't be decoded is set aside: dropping it would look like a
/// deletion.
async fn read_page<K: CachedObject>(
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
    let mut bytes = 0;
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
                    let error = SetAside::reason(&source);
                    tracing::warn!(%resource, error, "dropped a listed object without a readable name");
                }
            }
        }
        bytes += item.get().len();
        if bytes >= YIELD_BYTES {
            bytes = 0;
            tokio::task::yield_now().await;
        }
    }
    Ok(page.metadata)
}
