//! Search for revisions with equal data.

use std::sync::Arc;

use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::stateful_set::StatefulSet;

use super::fixtures::{cached, object, ss1, ss2};
use crate::compare::find_equal_revisions;
use crate::data::RevisionData;
use crate::new_revision::NewRevision;

fn data(set: &StatefulSet) -> RevisionData {
    RevisionData::new(&set.spec.template).unwrap()
}

fn recorded(set: &StatefulSet, number: i64) -> Arc<ControllerRevision> {
    Arc::new(cached(&object(&NewRevision::new(
        set,
        &data(set),
        number,
        0,
    ))))
}

fn finds(revisions: &[Arc<ControllerRevision>], desired: &[&ControllerRevision]) {
    let set = ss1();
    let data = data(&set);
    let found: Vec<&ControllerRevision> = find_equal_revisions(revisions, &data)
        .map(|found| &**found)
        .collect();
    assert_eq!(found, desired);
}

mod test_find_equal_revisions {
    use super::*;

    #[test]
    fn finds_equivalent() {
        let (own, other, newer) = (
            recorded(&ss1(), 1),
            recorded(&ss2(), 1),
            recorded(&ss2(), 2),
        );
        finds(&[Arc::clone(&own), other, newer], &[&own]);
    }

    #[test]
    fn finds_nothing_when_empty() {
        finds(&[], &[]);
    }

    #[test]
    fn finds_nothing_with_no_matches() {
        finds(&[recorded(&ss2(), 2), recorded(&ss2(), 1)], &[]);
    }
}
