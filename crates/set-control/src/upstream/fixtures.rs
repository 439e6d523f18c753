//! A walk: a world, and the set that a test moves through it.

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde_json::Value;
use statefulset_client::error::Error as ApiError;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_controller_util::stateful_set::{PodTemplate, StatefulSet};

use statefulset_controller_util::testing::upstream;
use statefulset_history::{
    NewRevision, RevisionData, controller_revision_name, hash_controller_revision,
};

use super::runs::{Run, SEED_VARIABLE};
use crate::testing::World;

/// Name that the reference gives the revision of upstream's set.
pub(super) const NGINX_REVISION: &str = "foo-674c887789";
/// Name that the reference gives the revision of upstream's set with the image `foo`.
pub(super) const FOO_REVISION: &str = "foo-758f94cd5c";

/// A world, the set that a test moves through it, and the driver's random choices.
pub(super) struct Walk {
    /// The cluster.
    pub(super) world: World,
    /// The test's copy of the set, usually the last one read.
    pub(super) set: StatefulSet,
    /// Random numbers for the drivers.
    pub(super) random: StdRng,
    run: Run,
}

impl Walk {
    /// Creates an empty cluster for a run with a set.
    pub(super) fn new(set: StatefulSet, run: Run, gates: FeatureGates) -> Self {
        Self {
            world: World::new(gates),
            set,
            random: StdRng::seed_from_u64(run.seed),
            run,
        }
    }

    /// Reads the set again.
    pub(super) fn reread(&mut self) {
        self.set = self.world.stored(&self.set);
    }

    /// Changes the set and stores it.
    pub(super) fn change(&mut self, change: impl FnOnce(&mut StatefulSet)) {
        change(&mut self.set);
        self.world.store(&self.set);
    }

    /// Changes the image of the set's container and stores the set.
    pub(super) fn change_image(&mut self, image: &str) {
        self.change(|set| {
            edit_template(set, |template| {
                template["spec"]["containers"][0]["image"] = image.into();
            });
        });
    }

    /// Returns the images of the set's pods, by ordinal.
    pub(super) fn images(&self) -> Vec<String> {
        let pods = self.world.objects.pods_of(&self.set);
        let image = |name: &str| {
            let pod = self.world.objects.pods.json(self.set.namespace(), name);
            let pod = pod.expect("cached objects are stored");
            pod["spec"]["containers"][0]["image"]
                .as_str()
                .expect("pods have an image")
                .to_owned()
        };
        pods.iter().map(|pod| image(&pod.name)).collect()
    }

    /// Returns the names of the set's pods, by ordinal.
    pub(super) fn pod_names(&self) -> Vec<String> {
        let pods = self.world.objects.pods_of(&self.set);
        pods.iter().map(|pod| pod.name.to_string()).collect()
    }

    /// Returns `replicas`, ready and updated counts of the current set.
    pub(super) fn counts(&self) -> [i32; 3] {
        let status = &self.set.status;
        [
            status.replicas,
            status.ready_replicas,
            status.updated_replicas,
        ]
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let run = self.run;
            eprintln!("failed in {run:?}; {SEED_VARIABLE} names the seed to run alone");
        }
    }
}

/// Edits the set's pod template.
pub(super) fn edit_template(set: &mut StatefulSet, edit: impl FnOnce(&mut Value)) {
    let mut template = set.spec.template.to_value().unwrap();
    edit(&mut template);
    set.spec.template = PodTemplate::from_value(&template);
}

/// The injected failure.
pub(super) fn injected() -> ApiError {
    ApiError::api(500, "InternalError", "injected failure")
}

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
