//! Objects of one kind in a fake API server: complete JSON and the cache's view.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use kube_apimachinery::object_key::ObjectKey;
use serde_json::Value;
use statefulset_client::error::Error;
use statefulset_client::indexer::{CachedObject, Indexer};

use crate::live::Live;

/// Store of complete JSON objects, with a cache that shows every write immediately.
pub struct ObjectStore<K> {
    plural: &'static str,
    cache: Arc<Indexer<K>>,
    objects: Mutex<BTreeMap<ObjectKey, Value>>,
}

impl<K: CachedObject> ObjectStore<K> {
    /// Creates an empty store for a resource, such as `pods`, over a cache.
    pub fn new(plural: &'static str, cache: Arc<Indexer<K>>) -> Self {
        Self {
            plural,
            cache,
            objects: Mutex::default(),
        }
    }

    /// The cache.
    pub fn cache(&self) -> &Arc<Indexer<K>> {
        &self.cache
    }

    fn objects(&self) -> std::sync::MutexGuard<'_, BTreeMap<ObjectKey, Value>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the complete JSON of an object.
    pub fn json(&self, namespace: &str, name: &str) -> Option<Value> {
        self.objects()
            .get(&ObjectKey::new(namespace, name))
            .cloned()
    }

    /// Creates or replaces an object, also in the cache.
    pub fn put(&self, json: Value) -> Arc<K> {
        let object = K::decode(&json.to_string()).expect("objects have the store's kind");
        let key = ObjectKey::new(object.namespace(), object.name());
        let object = Arc::new(object);
        self.cache.update(Arc::clone(&object));
        self.objects().insert(key, json);
        object
    }

    /// Creates an object; a missing uid becomes `{name}-uid`.
    ///
    /// # Errors
    ///
    /// The name is taken.
    pub fn create(&self, mut json: Value) -> Result<Arc<K>, Error> {
        let text = |member: &str| json["metadata"][member].as_str().unwrap_or("").to_owned();
        let (namespace, name) = (text("namespace"), text("name"));
        if self
            .objects()
            .contains_key(&ObjectKey::new(&namespace, &name))
        {
            let message = format!("{} {name:?} already exists", self.plural);
            return Err(Error::api(409, "AlreadyExists", message));
        }
        if json["metadata"]["uid"].as_str().is_none_or(str::is_empty) {
            json["metadata"]["uid"] = Value::from(format!("{name}-uid"));
        }
        Ok(self.put(json))
    }

    /// Reads an object.
    ///
    /// # Errors
    ///
    /// The object doesn't exist.
    pub fn read(&self, namespace: &str, name: &str) -> Result<Live<K>, Error> {
        let json = self
            .json(namespace, name)
            .ok_or_else(|| self.not_found(name))?;
        Ok(Live::decode(&json.to_string()).expect("objects have the store's kind"))
    }

    /// Replaces an existing object.
    ///
    /// # Errors
    ///
    /// The object doesn't exist.
    pub fn update(&self, live: Live<K>) -> Result<(), Error> {
        let (namespace, name) = (live.object.namespace(), live.object.name());
        if self.json(namespace, name).is_none() {
            return Err(self.not_found(name));
        }
        self.put(live.json);
        Ok(())
    }

    /// Deletes an object immediately.
    ///
    /// # Errors
    ///
    /// The object doesn't exist.
    pub fn delete(&self, namespace: &str, name: &str) -> Result<(), Error> {
        let removed = self.objects().remove(&ObjectKey::new(namespace, name));
        self.cache.remove(namespace, name);
        removed.map(drop).ok_or_else(|| self.not_found(name))
    }

    fn not_found(&self, name: &str) -> Error {
        Error::api(
            404,
            "NotFound",
            format!("{} {name:?} not found", self.plural),
        )
    }
}
