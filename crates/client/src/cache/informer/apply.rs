//! Applies lists and watch events to the cache, and calls the handlers.

use std::ops::ControlFlow;
use std::sync::Arc;

use kube_apimachinery::protobuf::WireError;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::handler::EventHandler;
use super::list::{self, Decoding, List};
use super::metrics::InformerMetrics;
use super::report::Reporter;
use super::scope::Scope;
use super::turn::Turn;
use crate::cache::indexer::{CachedObject, Indexer, SetAside, SharedParts, Undecodable};
use crate::error::Error;
use crate::resource::Resource;
use crate::rest::{JsonObject, WatchEvent, WatchObject};

/// The way a watch ended.
pub(super) enum Ended {
    /// Closed normally. A watch without events may be broken.
    Closed { events: usize },
    /// Closed by the informer because of its silence.
    Silent,
    /// Failed; the watch can continue from the last version seen.
    Broken(Error),
    /// Failed; the last version seen has expired.
    Lost(Error),
}

/// The object of a watch event.
enum Read<K> {
    Object(Result<K, SetAside>),
    /// An object of another shard, with its version: the server knows no shards.
    OutOfScope(String),
    /// Not even its name can be read.
    Nameless,
}

/// The cache of an informer, with its handlers.
pub(super) struct Applier<K> {
    pub(super) resource: Resource,
    pub(super) scope: Scope,
    pub(super) indexer: Arc<Indexer<K>>,
    pub(super) shared_parts: Arc<SharedParts>,
    pub(super) handlers: Vec<Arc<dyn EventHandler<K>>>,
    pub(super) reporter: Reporter,
    pub(super) metrics: Arc<dyn InformerMetrics>,
}

impl<K: CachedObject> Applier<K> {
    /// Replaces the cache's content and calls the handlers. Returns the list's version.
    pub(super) async fn apply_list(&mut self, list: List<K>, initial: bool) -> String {
        let start = Instant::now();
        let replaced =
            self.indexer
                .replace_all(list.objects, list.set_aside, &list.resource_version);
        self.reporter
            .set_aside_in_list(&self.indexer.all_set_aside());
        self.count_set_aside();
        let mut turn = Turn::default();
        for (old, new) in &replaced.present {
            let begun = Instant::now();
            self.notify(|handler| match old {
                Some(old) => handler.on_update(old, new),
                None => handler.on_add(new, initial),
            });
            turn.record(begun).await;
        }
        for gone in &replaced.gone {
            let begun = Instant::now();
            self.notify(|handler| handler.on_delete(gone, true));
            turn.record(begun).await;
        }
        self.processed(start, &list.resource_version);
        if initial {
            let objects = replaced.present.len();
            tracing::debug!(resource = %self.resource.group_resource(), objects, "cache is filled");
        } else {
            self.notify(|handler| handler.on_relisted());
        }
        list.resource_version
    }

    /// Sends every object to the handlers as an update to itself.
    pub(super) async fn show_all_again(&self) {
        let mut turn = Turn::default();
        for object in self.indexer.list() {
            let begun = Instant::now();
            self.notify(|handler| handler.on_update(&object, &object));
            turn.record(begun).await;
        }
    }

    fn notify(&self, call: impl Fn(&dyn EventHandler<K>)) {
        for handler in &self.handlers {
            call(&**handler);
        }
    }

    pub(super) fn decoding(&self) -> Decoding<'_, K> {
        Decoding {
            parts: &self.shared_parts,
            indexer: &self.indexer,
        }
    }

    fn count_set_aside(&self) {
        self.metrics.set_aside(self.indexer.set_aside_len());
    }

    fn processed(&self, start: Instant, version: &str) {
        self.metrics.in_step();
        self.metrics.processed(start.elapsed());
        self.metrics.store_version(version);
    }

    /// Applies one event to the cache, calls the handlers, and moves the watch position to its
    /// version.
    pub(super) fn apply_event(
        &mut self,
        event: WatchEvent,
        resource_version: &mut String,
    ) -> ControlFlow<Ended> {
        let start = Instant::now();
        let version = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => match self.read(&object)? {
                Read::Object(object) => self.stored(object),
                Read::OutOfScope(version) => self.passed(version),
                Read::Nameless => String::new(),
            },
            WatchEvent::Deleted(object) => match self.read(&object)? {
                Read::Object(object) => self.deleted(object),
                Read::OutOfScope(version) => self.passed(version),
                Read::Nameless => String::new(),
            },
            WatchEvent::Bookmark(object) => {
                let version = self.bookmark_version(&object)?;
                self.passed(version)
            }
            WatchEvent::Error(status) => {
                let err = Error::Api(Box::new(status));
                let stays_good = err.is_too_many_requests();
                return ControlFlow::Break(if stays_good {
                    Ended::Broken(err)
                } else {
                    Ended::Lost(err)
                });
            }
        };
        self.processed(start, &version);
        if !version.is_empty() {
            *resource_version = version;
        }
        ControlFlow::Continue(())
    }

    /// Decodes an event's object.
    fn read(&self, object: &WatchObject) -> ControlFlow<Ended, Read<K>> {
        match object {
            WatchObject::Json(json) => self.read_json(json),
            WatchObject::Protobuf(message) => self
                .read_protobuf(message)
                .map_continue(|object| self.in_scope(object)),
        }
    }

    /// Decodes a message. After an error, the watch continues in JSON.
    fn read_protobuf(&self, message: &[u8]) -> ControlFlow<Ended, K> {
        let decoded = match K::FROM_PROTOBUF {
            Some(decode) => decode(message),
            None => Err(WireError::Value("unrequested protobuf".to_owned())),
        };
        match decoded {
            Ok(mut object) => {
                object.share_parts(&self.shared_parts);
                ControlFlow::Continue(object)
            }
            Err(err) => {
                let source = serde::de::Error::custom(err);
                ControlFlow::Break(Ended::Broken(self.decode_error(source)))
            }
        }
    }

    fn bookmark_version(&self, object: &WatchObject) -> ControlFlow<Ended, String> {
        match object {
            WatchObject::Json(json) => match list::bookmark_version(json.text()) {
                Ok(version) => ControlFlow::Continue(version),
                Err(source) => ControlFlow::Break(self.undecodable(source)),
            },
            WatchObject::Protobuf(message) => {
                let object = self.read_protobuf(message)?;
                ControlFlow::Continue(object.resource_version().to_owned())
            }
        }
    }

    fn in_scope(&self, object: K) -> Read<K> {
        if self.scope.contains(object.namespace()) {
            Read::Object(Ok(object))
        } else {
            Read::OutOfScope(object.resource_version().to_owned())
        }
    }

    /// Decodes an object. Invalid JSON fails the watch instead of setting the object aside.
    fn read_json(&self, json: &JsonObject) -> ControlFlow<Ended, Read<K>> {
        let source = match self.decoding().decode(json.document(), json.text()) {
            Ok(object) => return ControlFlow::Continue(self.in_scope(object)),
            Err(source) => source,
        };
        if let Err(source) = serde_json::from_str::<&RawValue>(json.text()) {
            return ControlFlow::Break(self.undecodable(source));
        }
        ControlFlow::Continue(match SetAside::read(json.text(), &source) {
            Some(object) if self.scope.contains(&object.namespace) => Read::Object(Err(object)),
            Some(object) => Read::OutOfScope(object.resource_version),
            None => {
                tracing::warn!(
                    resource = %self.resource.group_resource(),
                    error = Undecodable::new(&source).text(),
                    "dropped a watch event without a readable name"
                );
                Read::Nameless
            }
        })
    }

    /// Records a version up to which the cache misses nothing. Returns it.
    fn passed(&self, version: String) -> String {
        self.indexer.bookmark(&version);
        version
    }

    /// Stores an object's new state. Returns its version, empty if unreadable.
    fn stored(&mut self, new: Result<K, SetAside>) -> String {
        match new {
            Ok(new) => {
                let version = new.resource_version().to_owned();
                self.decoded(&Arc::new(new));
                version
            }
            Err(object) => {
                let version = object.resource_version.clone();
                self.reporter.set_aside(&object);
                self.indexer.set_aside(object);
                self.count_set_aside();
                version
            }
        }
    }

    fn decoded(&mut self, new: &Arc<K>) {
        match self.indexer.add(Arc::clone(new)) {
            Some(old) => self.notify(|handler| handler.on_update(&old, new)),
            None => self.notify(|handler| handler.on_add(new, false)),
        }
        self.not_set_aside(new.namespace(), new.name());
    }

    /// Deletes an object; its name is enough. Returns the version of the deletion, empty if
    /// unreadable.
    fn deleted(&mut self, last: Result<K, SetAside>) -> String {
        let last = match last {
            Ok(last) => Arc::new(last),
            Err(last) => {
                let SetAside {
                    namespace,
                    name,
                    resource_version,
                    ..
                } = last;
                let cached = self
                    .indexer
                    .delete_named(&namespace, &name, &resource_version);
                if let Some(cached) = cached {
                    self.notify(|handler| handler.on_delete(&cached, true));
                }
                self.not_set_aside(&namespace, &name);
                return resource_version;
            }
        };
        if self.indexer.is_set_aside(last.namespace(), last.name()) {
            // The handlers got an older state, which may have had another owner.
            self.decoded(&last);
        }
        if self.indexer.delete(&last).is_some() {
            self.notify(|handler| handler.on_delete(&last, false));
        }
        last.resource_version().to_owned()
    }

    /// Ends the setting aside of an object, if any, and logs it.
    fn not_set_aside(&mut self, namespace: &str, name: &str) {
        self.reporter.not_set_aside(namespace, name);
        self.count_set_aside();
    }

    fn undecodable(&self, source: serde_json::Error) -> Ended {
        Ended::Lost(self.decode_error(source))
    }

    fn decode_error(&self, source: serde_json::Error) -> Error {
        let action = format!("watch {}", self.resource.group_resource());
        Error::Decode { action, source }
    }
}
