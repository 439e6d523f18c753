//! Tests of the constants that the ported tests share.

use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_controller_util::testing::upstream;
use statefulset_history::{
    NewRevision, RevisionData, controller_revision_name, hash_controller_revision,
};

use super::walks::{FOO_REVISION, NGINX_REVISION};
use crate::testing::edit_template;

#[test]
fn revisions_are_those_that_upstream_computes() {
    let mut set = upstream::set(3).build();
    let data = RevisionData::new(&set.spec.template).unwrap();
    let expected = concat!(
        r#"{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"foo":"bar"}},"spec":"#,
        r#"{"containers":[{"image":"nginx","name":"nginx","resources":{},"volumeMounts":"#,
        r#"[{"mountPath":"/tmp/zookeeper","name":"datadir"},{"mountPath":"/home","name":"home"}]}],"#,
        r#""volumes":[{"hostPath":{"path":"/tmp/home"},"name":"home"}]}}}}"#
    );
    assert_eq!(**data.recorded(), *expected);
    let name = |set: &StatefulSet, count| {
        let data = RevisionData::new(&set.spec.template).unwrap();
        NewRevision::new(set, &data, 1, count).name
    };
    // Only upstream's tests name revisions without a collision count.
    let uncounted = |set: &StatefulSet| {
        let data = RevisionData::new(&set.spec.template).unwrap();
        controller_revision_name(set.name(), &hash_controller_revision(data.recorded(), None))
    };
    assert_eq!(uncounted(&set), "foo-5cf54b6f4c");
    assert_eq!(name(&set, 0), NGINX_REVISION);
    assert_eq!(name(&set, 1), "foo-674c887788");
    edit_template(&mut set, |template| {
        template["spec"]["containers"][0]["image"] = "foo".into();
    });
    assert_eq!(name(&set, 0), FOO_REVISION);
    assert_eq!(name(&set, 1), "foo-758f94cd5b");
    assert_eq!(uncounted(&set), "foo-545b598fcf");
    edit_template(&mut set, |template| {
        template["metadata"]["labels"]["new"] = "label".into();
    });
    assert_eq!(uncounted(&set), "foo-7458856f97");
}
