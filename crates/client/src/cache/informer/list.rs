//! Reading a whole collection, page by page.

use std::sync::Arc;

use kube_apimachinery::json::Document;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::cache::indexer::{CachedObject, SetAside, TextPool};
use crate::error::Error;
use crate::resource::Resource;
use crate::rest::{ListOptions, RestClient};

/// The longest page that is read, in bytes: what a list may hold in memory beside the objects. A
/// page of one object is read at any length.
const PAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// After a page shorter than this, in bytes, the next one may hold twice as many objects.
const PAGE_BYTES_SMALL: usize = 4 * 1024 * 1024;
/// By so much a page that was too long is cut.
const PAGE_CUT: u32 = 8;
/// How often a list is begun whose pages expire; then it counts as failed, so that a server which
/// forgets faster than it answers is asked ever more rarely.
const BEGINNINGS_MAX: u32 = 3;
/// After so many bytes of objects, a few milliseconds' work, other tasks may run.
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

/// Lists all objects of a namespace, or of all if it is empty. If the server forgets the snapshot between two pages, the
/// list begins anew, with pages as long as the last ones were.
///
/// # Errors
///
/// Those of the requests; that pages have expired only when they did so in every list begun.
///
/// Upstream: `pager.ListPager`.
pub(super) async fn list_all<K: CachedObject>(
    client: &RestClient,
    resource: &Resource,
    namespace: &str,
    page_size: u32,
    texts: &TextPool,
) -> Result<List<K>, Error> {
    // No limit would be no bound.
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

/// Lists by pages, once. An error says whether a page had already come.
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

/// Asks for pages, of fewer objects where they are large.
struct Pages<'a> {
    client: &'a RestClient,
    resource: &'a Resource,
    namespace: &'a str,
    /// No page holds more objects than these.
    limit_max: u32,
    /// How many objects the next page may hold.
    limit: u32,
}

impl Pages<'_> {
    /// The page that begins here.
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

/// Decodes a page. An object that can't be decoded is set aside: to leave it out would be to treat
/// it as gone.
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
