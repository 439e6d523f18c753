//! Conversions of custom resources by webhooks, for lists, watches and updates. Upstream's watch cache
//! holds objects in the version of its clients.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// The most conversions that are kept. Older ones are made again when they are needed.
const KEPT_MAX: usize = 4096;

/// The latest conversions, by what was converted.
#[derive(Debug, Default)]
pub(crate) struct Conversions(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    converted: BTreeMap<String, Value>,
    /// The keys, oldest first.
    order: VecDeque<String>,
}

impl Conversions {
    /// Returns the result of a conversion if it is known.
    pub(crate) fn get(&self, key: &str) -> Option<Value> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.converted.get(key).cloned()
    }

    /// Keeps the result of a conversion.
    pub(crate) fn keep(&self, key: String, converted: Value) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.converted.insert(key.clone(), converted).is_none() {
            kept.order.push_back(key);
        }
        if kept.order.len() > KEPT_MAX
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.converted.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn oldest_conversions_are_dropped() {
        let conversions = Conversions::default();
        for number in 0..=KEPT_MAX {
            conversions.keep(number.to_string(), json!(number));
        }
        assert_eq!(conversions.get("0"), None);
        assert_eq!(conversions.get("1"), Some(json!(1)));
    }
}
