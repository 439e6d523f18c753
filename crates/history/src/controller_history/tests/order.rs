//! Order of revisions.

use super::*;
use crate::next_revision;

fn revision(name: &str, revision: i64, second: i64) -> Arc<ControllerRevision> {
    Arc::new(ControllerRevision {
        name: name.into(),
        revision,
        creation_timestamp: Some(jiff::Timestamp::from_second(second).unwrap()),
        ..ControllerRevision::default()
    })
}

#[test]
fn revisions_sort_by_number_then_time_then_name() {
    let mut revisions = vec![
        revision("d", 2, 0),
        revision("c", 1, 9),
        revision("b", 1, 5),
        revision("a", 1, 9),
    ];
    sort_controller_revisions(&mut revisions);
    let names: Vec<&str> = revisions.iter().map(|revision| &*revision.name).collect();
    assert_eq!(names, ["b", "a", "c", "d"]);
    assert_eq!(next_revision(&revisions), 3);
    assert_eq!(next_revision(&[]), 1);
    assert_eq!(next_revision(&[revision("a", i64::MAX, 0)]), i64::MIN);
}
