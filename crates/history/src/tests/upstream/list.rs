//! Listing of the set's own revisions and of orphans.

use std::collections::BTreeSet;

use serde_json::Value;

use super::fixtures::{World, object, orphan, revision, ss1, ss2};

/// Revisions that a case may add to the cache.
struct Known {
    first: Value,
    second: Value,
    of_another: Value,
    orphan: Value,
}

fn known() -> Known {
    Known {
        first: object(&revision(&ss1(), 1, None)),
        second: object(&revision(&ss1(), 2, None)),
        of_another: object(&revision(&ss2(), 1, None)),
        orphan: orphan(&revision(&ss1(), 3, None)),
    }
}

fn name(revision: &Value) -> String {
    revision["metadata"]["name"]
        .as_str()
        .expect("named")
        .to_owned()
}

/// Adds the revisions to the cache and checks those that `ss1` lists.
fn lists(world: &World, shown: &[&Value], desired: &[&Value]) {
    for revision in shown {
        world.show(revision);
    }
    let set = ss1();
    let selector = set.spec.selector.compiled().unwrap();
    let found = world.history().list_controller_revisions(&set, selector);
    let names: BTreeSet<String> = found.iter().map(|found| found.name.to_string()).collect();
    assert_eq!(names, desired.iter().map(|desired| name(desired)).collect());
    assert_eq!(found.len(), desired.len(), "no revision is listed twice");
}

mod test_real_history_list_controller_revisions {
    use super::*;

    #[test]
    fn selects_none() {
        lists(&World::real(), &[], &[]);
    }

    #[test]
    fn selects_all() {
        let Known { first, second, .. } = known();
        lists(&World::real(), &[&first, &second], &[&first, &second]);
    }

    #[test]
    fn doesnt_select_another_objects_history() {
        let Known {
            first,
            second,
            of_another,
            ..
        } = known();
        lists(
            &World::real(),
            &[&first, &second, &of_another],
            &[&first, &second],
        );
    }

    #[test]
    fn selects_orphans() {
        let Known {
            first,
            second,
            orphan,
            ..
        } = known();
        let all = [&first, &second, &orphan];
        lists(&World::real(), &all, &all);
    }
}

mod test_fake_history_list_controller_revisions {
    use super::*;

    #[test]
    fn selects_none() {
        lists(&World::fake(), &[], &[]);
    }

    #[test]
    fn selects_all() {
        let Known { first, second, .. } = known();
        lists(&World::fake(), &[&first, &second], &[&first, &second]);
    }

    #[test]
    fn doesnt_select_another_objects_history() {
        let Known {
            first,
            second,
            of_another,
            ..
        } = known();
        lists(
            &World::fake(),
            &[&first, &second, &of_another],
            &[&first, &second],
        );
    }

    #[test]
    fn selects_orphans() {
        let Known {
            first,
            second,
            orphan,
            ..
        } = known();
        let all = [&first, &second, &orphan];
        lists(&World::fake(), &all, &all);
    }
}
