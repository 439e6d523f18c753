//! Order of a history. Upstream's revisions all have one name, so its comparison of names proves
//! nothing; here the names differ.

use std::sync::Arc;

use statefulset_controller_util::controller_revision::ControllerRevision;

use crate::controller_history::sort_controller_revisions;

fn revision(name: &str, number: i64, second: i64) -> Arc<ControllerRevision> {
    Arc::new(ControllerRevision {
        name: name.into(),
        revision: number,
        creation_timestamp: Some(jiff::Timestamp::from_second(second).unwrap()),
        ..ControllerRevision::default()
    })
}

fn first() -> Arc<ControllerRevision> {
    revision("ss1-d", 1, 0)
}

fn second() -> Arc<ControllerRevision> {
    revision("ss1-c", 2, 0)
}

fn third() -> Arc<ControllerRevision> {
    revision("ss1-b", 3, 0)
}

fn sorts(mut revisions: Vec<Arc<ControllerRevision>>, desired: &[Arc<ControllerRevision>]) {
    sort_controller_revisions(&mut revisions);
    assert_eq!(revisions, desired);
}

mod test_sort_controller_revisions {
    use super::*;

    #[test]
    fn out_of_order() {
        sorts(
            vec![second(), first(), third()],
            &[first(), second(), third()],
        );
    }

    #[test]
    fn sorted() {
        sorts(
            vec![first(), second(), third()],
            &[first(), second(), third()],
        );
    }

    #[test]
    fn reversed() {
        sorts(
            vec![third(), second(), first()],
            &[first(), second(), third()],
        );
    }

    /// Upstream's list lacks the fifth revision that it expects; here it is present. Of three
    /// revisions with one number the older comes first, and of two with one creation time the name
    /// that sorts first.
    #[test]
    fn with_ties() {
        let (later, last) = (revision("ss1-0", 3, 1), revision("ss1-a", 3, 1));
        sorts(
            vec![
                third(),
                Arc::clone(&last),
                Arc::clone(&later),
                second(),
                first(),
            ],
            &[first(), second(), third(), later, last],
        );
    }

    #[test]
    fn empty() {
        sorts(vec![], &[]);
    }
}
