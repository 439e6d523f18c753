//! Lists a whole collection, page by page.

use std::sync::Arc;

use kube_apimachinery::json::Document;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::scope::Scope;
use crate::cache::indexer::{CachedObject, Indexer, SetAside, SharedParts, Undecodable};
use crate::error::Error;
use crate::resource::Resource;
use crate::rest::{ListMetadata, ListOptions, ListStream, RestClient};

/// After a page longer than this, in bytes, the next pages have fewer objects.
const PAGE_BYTES_LARGE: usize = 16 * 1024 * 1024;
/// After a page shorter than this, in bytes, the next limit doubles.
const PAGE_BYTES_SMALL: usize = 4 * 1024 * 1024;
/// Divisor of the limit after a large or slow page.
const PAGE_CUT: u32 = 8;
/// Maximum number of attempts at a list in pages. If they all expire, the server compacts faster than
/// it sends them: then one request lists everything.
const PAGED_ATTEMPTS_MAX: u32 = 3;
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

/// The decoding of objects that share memory with others.
pub(super) struct Decoding<'a, K> {
    pub(super) parts: &'a SharedParts,
    /// The objects' last states.
    pub(super) indexer: &'a Indexer<K>,
}

impl<K: CachedObject> Decoding<'_, K> {
    /// Decodes an object, a part of the document.
    pub(super) fn decode(&self, document: &Document, json: &str) -> Result<K, serde_json::Error> {
        let last = |namespace: &str, name: &str| self.indexer.get(namespace, name);
        K::decode_next(document, json, self.parts, &last)
    }
}

#[derive(Deserialize)]
struct Bookmark {
    metadata: BookmarkMetadata,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct BookmarkMetadata {
    resource_version: String,
}

/// Returns the version of a bookmark.
pub(super) fn bookmark_version(json: &str) -> Result<String, serde_json::Error> {
    let bookmark: Bookmark = serde_json::from_str(json)?;
    Ok(bookmark.metadata.resource_version)
}

/// Lists all objects in the scope. If the snapshot expires between two pages, the list starts over
/// with the last page size, and finally without pages.
///
/// # Errors
///
/// Returns the error of a request.
///
/// Upstream: `pager.ListPager` with `FullListIfExpired`.
pub(super) async fn list_all<K: CachedObject>(
    client: &RestClient,
    resource: &Resource,
    scope: &Scope,
    page_size: u32,
    decoding: &Decoding<'_, K>,
) -> Result<List<K>, Error> {
    // A limit of zero would mean no limit.
    let limit = page_size.max(1);
    let mut pages = Pages {
        client,
        resource,
        scope,
        limit_max: limit,
        limit,
    };
    for _ in 0..PAGED_ATTEMPTS_MAX {
        match list_pages(&mut pages, decoding).await {
            Err((err, true)) if err.is_expired() => {
                let resource = resource.group_resource();
                tracing::debug!(%resource, error = %err, "pages expired, listing from the beginning");
            }
            result => return result.map_err(|(err, _)| err),
        }
    }
    pages.limit = 0;
    let list = list_pages(&mut pages, decoding).await;
    list.map_err(|(err, _)| err)
}

/// Lists all pages once. The error includes whether any page had arrived.
async fn list_pages<K: CachedObject>(
    pages: &mut Pages<'_>,
    decoding: &Decoding<'_, K>,
) -> Result<List<K>, (Error, bool)> {
    let mut list = List::default();
    let mut begun = false;
    let mut continue_token = String::new();
    loop {
        let page = pages.get(&continue_token, decoding, &mut list).await;
        let metadata = page.map_err(|err| (err, begun))?;
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
    scope: &'a Scope,
    /// Maximum limit of a page.
    limit_max: u32,
    /// Limit of the next page; 0 for a list without pages.
    limit: u32,
}

impl Pages<'_> {
    /// Adds the page after a continue token to the list. A page that takes too long is requested
    /// again with fewer objects.
    async fn get<K: CachedObject>(
        &mut self,
        continue_token: &str,
        decoding: &Decoding<'_, K>,
        list: &mut List<K>,
    ) -> Result<ListMetadata, Error> {
        let before = (list.objects.len(), list.set_aside.len());
        loop {
            let options = ListOptions {
                namespace: self.scope.namespace.clone(),
                limit: self.limit,
                continue_token: continue_token.to_owned(),
                shard_selector: self.scope.shard_selector(),
                selectors: self.scope.selectors.clone(),
            };
            let mut page = self.client.list(self.resource, &options).await?;
            match read_items(&mut page, self, decoding, list).await {
                Err(Error::Timeout { .. }) if self.limit > 1 => {
                    list.objects.truncate(before.0);
                    list.set_aside.truncate(before.1);
                    self.cut();
                }
                Err(err) => return Err(err),
                Ok(()) => {
                    self.adapt_to(page.bytes());
                    return page.finish();
                }
            }
        }
    }

    fn adapt_to(&mut self, page_bytes: usize) {
        if self.limit == 0 {
            return;
        }
        if page_bytes > PAGE_BYTES_LARGE {
            self.cut();
        } else if page_bytes < PAGE_BYTES_SMALL {
            self.limit = self.limit.saturating_mul(2).min(self.limit_max);
        }
    }

    fn cut(&mut self) {
        self.limit = (self.limit / PAGE_CUT).max(1);
    }
}

/// Decodes a page's items. An object that can't be decoded is set aside: dropping it would look like
/// a deletion.
///
/// # Errors
///
/// The page breaks off, or an item is invalid JSON.
async fn read_items<K: CachedObject>(
    page: &mut ListStream,
    Pages {
        resource, scope, ..
    }: &Pages<'_>,
    decoding: &Decoding<'_, K>,
    list: &mut List<K>,
) -> Result<(), Error> {
    let mut bytes = 0;
    while let Some(item) = page.next().await? {
        let text = item.text();
        match decoding.decode(&item, text) {
            Ok(object) if scope.contains(object.namespace()) => {
                list.objects.push(Arc::new(object));
            }
            Ok(_) => {}
            Err(source) => {
                // The page is broken rather than the object.
                serde_json::from_str::<&RawValue>(text).map_err(|source| {
                    let action = format!("list {}", resource.group_resource());
                    Error::Decode { action, source }
                })?;
                if let Some(object) = SetAside::read(text, &source) {
                    if scope.contains(&object.namespace) {
                        list.set_aside.push(object);
                    }
                } else {
                    let resource = resource.group_resource();
                    let error = Undecodable::new(&source);
                    tracing::warn!(%resource, error = error.text(), "dropped a listed object without a readable name");
                }
            }
        }
        bytes += text.len();
        if bytes >= YIELD_BYTES {
            bytes = 0;
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}
