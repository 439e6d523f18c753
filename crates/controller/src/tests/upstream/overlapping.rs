//! Order of sets that select the same pod.

use std::sync::Arc;

use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_controller_util::testing::upstream;

use crate::stateful_set::overlapping_stateful_sets;

/// Ten unsorted sets. Upstream shuffles them at random; a stride coprime to ten also reaches every
/// place, and is reproducible.
fn in_disorder(set: impl Fn(usize) -> StatefulSet) -> Vec<Arc<StatefulSet>> {
    (0..10).map(|place| Arc::new(set(place * 7 % 10))).collect()
}

/// Upstream checks the result with its comparison; here the names must be sorted.
fn names_sorted(mut sets: Vec<Arc<StatefulSet>>) -> String {
    overlapping_stateful_sets(&mut sets);
    sets.iter().map(|set| set.name()).collect()
}

#[test]
fn test_overlapping_stateful_sets() {
    let of_different_ages = in_disorder(|age| {
        let name = (9 - age).to_string();
        let created = format!("2026-03-01T12:00:0{age}Z");
        let set = upstream::set(1).with("metadata.name", name);
        set.with("metadata.creationTimestamp", created).build()
    });
    assert_eq!(names_sorted(of_different_ages), "9876543210");

    let of_one_age = in_disorder(|number| {
        let set = upstream::set(1).with("metadata.name", number.to_string());
        set.with("metadata.creationTimestamp", "2026-03-01T12:00:00Z")
            .build()
    });
    assert_eq!(names_sorted(of_one_age), "0123456789");
}
