//! Upstream's listing benchmark as a test, each case run once: out of 50,000 revisions the indexes
//! return the set's own and the orphans.

use std::sync::Arc;

use kube_apimachinery::labels::Labels;
use kube_apimachinery::owner_reference::OwnerReference;
use kube_apimachinery::selector::Selector;
use statefulset_client::cache::indexer::Indexer;
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_controller_util::testing::{ObjectStore, builders};

use crate::controller_history::History;
use crate::fake::FakeHistory;

/// Number of revisions in the cache.
const TOTAL: usize = 50_000;

fn parent(name: &str) -> StatefulSet {
    builders::set(name).uid(&format!("{name}-uid")).build()
}

/// Lists with the given numbers of owned revisions and orphans; another set owns the rest.
fn lists(owned: usize, orphans: usize) {
    let parent = parent("test-parent");
    let (own, other): (OwnerReference, OwnerReference) = (
        parent.controller_reference(),
        self::parent("other-parent").controller_reference(),
    );
    let labels: Labels = [("name", "scenario")].into_iter().collect();
    let cache = Indexer::new();
    for index in 0..TOTAL {
        let controller = if index < owned {
            Some(own.clone())
        } else if index < owned + orphans {
            None
        } else {
            Some(other.clone())
        };
        cache.add(ControllerRevision {
            name: format!("revision-{index}").into(),
            namespace: parent.namespace().into(),
            labels: labels.clone(),
            controller,
            ..ControllerRevision::default()
        });
    }
    let selector = Selector::parse("name=scenario").unwrap();
    let history = FakeHistory {
        revisions: ObjectStore::new("controllerrevisions", Arc::new(cache)),
        ..FakeHistory::default()
    };
    let mut found = history.list_controller_revisions(&parent, &selector);
    assert_eq!(found.len(), owned + orphans);
    found.retain(|revision| revision.controller.as_ref() == Some(&own));
    assert_eq!(found.len(), owned);
}

mod bench_list_controller_revisions {
    use super::lists;

    #[test]
    fn case_0_1pct_owned_0pct_orphan() {
        lists(50, 0);
    }

    #[test]
    fn case_0_1pct_owned_0_1pct_orphan() {
        lists(50, 50);
    }

    #[test]
    fn case_1pct_owned_0pct_orphan() {
        lists(500, 0);
    }

    #[test]
    fn case_1pct_owned_1pct_orphan() {
        lists(500, 500);
    }

    #[test]
    fn case_10pct_owned_0pct_orphan() {
        lists(5_000, 0);
    }

    #[test]
    fn case_10pct_owned_10pct_orphan() {
        lists(5_000, 5_000);
    }

    #[test]
    fn case_100pct_owned_0pct_orphan() {
        lists(50_000, 0);
    }
}
