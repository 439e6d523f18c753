//! A set of a test, with the test's actions and waits.

use std::time::Duration;

use integration::World;
use integration::poll::Patience;
use integration::space::Space;
use integration::stateful_sets::{count, name, phase, uid};
use kube_test_control_plane::actors::PodBehaviour;
use serde_json::{Value, json};
use statefulset_client::resource::{PODS, STATEFUL_SETS};

/// Time limit for a whole set.
pub const SET_PATIENCE: Patience = Patience(Duration::from_secs(600));
/// Time limit for a pod.
pub const POD_PATIENCE: Patience = Patience(Duration::from_secs(300));

/// Duration of each pod stage. Without it, a pod that fails immediately would be recreated in an
/// endless loop.
const STAGE: Duration = Duration::from_millis(200);

/// A set in the namespace of its test.
pub struct StatefulSet<'a> {
    pub(crate) space: &'a Space,
    world: &'a World,
    pub(crate) name: String,
    selector: String,
}

/// Revision names in a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revisions {
    /// Revision of pods before an update.
    pub current: String,
    /// Revision that pods are updated to.
    pub update: String,
}

#[expect(
    clippy::missing_panics_doc,
    reason = "a test harness panics on failures"
)]
impl<'a> StatefulSet<'a> {
    pub(super) fn new(space: &'a Space, world: &'a World, created: &Value) -> Self {
        let labels = created["spec"]["selector"]["matchLabels"].as_object();
        let labels = labels.expect("the sets of these tests select by labels");
        let pairs: Vec<String> = labels
            .iter()
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
            .collect();
        Self {
            space,
            world,
            name: name(created).to_owned(),
            selector: pairs.join(","),
        }
    }

    /// Name of the set.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Label selector of its pods.
    pub fn selector(&self) -> &str {
        &self.selector
    }

    /// Reads the set.
    pub async fn get(&self) -> Value {
        self.space.get(&STATEFUL_SETS, &self.name).await
    }

    /// Pods that the set selects, sorted by name.
    pub async fn pods(&self) -> Vec<Value> {
        self.space.list(&PODS, &self.selector).await
    }

    /// Name of a pod.
    pub fn pod_name(&self, ordinal: usize) -> String {
        format!("{}-{ordinal}", self.name)
    }

    /// Reads a pod that must exist.
    pub async fn pod(&self, ordinal: usize) -> Value {
        let space = self.space;
        space.get(&PODS, &self.pod_name(ordinal)).await
    }

    /// Changes the set.
    ///
    /// Upstream: `updateStatefulSetWithRetries`.
    pub async fn change(&self, change: impl Fn(&mut Value)) -> Value {
        let space = self.space;
        space.change(&STATEFUL_SETS, &self.name, "", change).await
    }

    /// Sets the image of the first container.
    pub async fn set_image(&self, image: &str) {
        let set = |set: &mut Value| {
            set["spec"]["template"]["spec"]["containers"][0]["image"] = image.into();
        };
        self.change(set).await;
    }

    /// Sets the claim retention policy.
    pub async fn set_retention(&self, policy: &Value) {
        self.change(|set| {
            set["spec"]["persistentVolumeClaimRetentionPolicy"] = policy.clone();
        })
        .await;
    }

    /// Sets the partition.
    pub async fn set_partition(&self, index: usize) {
        let partition = |set: &mut Value| {
            set["spec"]["updateStrategy"]["rollingUpdate"] = json!({"partition": index});
        };
        self.change(partition).await;
    }

    /// Sets the number of replicas.
    ///
    /// Upstream: `UpdateReplicas`.
    pub async fn update_replicas(&self, replicas: usize) {
        self.change(|set| set["spec"]["replicas"] = replicas.into())
            .await;
    }

    /// Scales the set and waits until that number of pods exists.
    ///
    /// Upstream: `Scale`.
    pub async fn scale(&self, replicas: usize) {
        self.update_replicas(replicas).await;
        let scaled = async || (self.pods().await.len() == replicas).then_some(());
        let what = format!("{} pods of {}", replicas, self.name);
        SET_PATIENCE.until(&what, scaled).await;
    }

    /// Deletes a pod immediately.
    ///
    /// Upstream: `deleteStatefulPodAtIndex`.
    pub async fn delete_pod(&self, ordinal: usize) {
        let pod = self.pod_name(ordinal);
        self.space.delete(&PODS, &pod, Some(0)).await;
    }

    /// Deletes pods immediately and waits for their replacements.
    pub async fn replace_pods(&self, ordinals: &[usize]) {
        let mut before = Vec::new();
        for ordinal in ordinals {
            before.push(uid(&self.pod(*ordinal).await).to_owned());
        }
        for ordinal in ordinals {
            self.delete_pod(*ordinal).await;
        }
        let space = self.space;
        let recreated = async || {
            for (ordinal, before) in ordinals.iter().zip(&before) {
                let pod = space.find(&PODS, &self.pod_name(*ordinal), "").await?;
                if uid(&pod) == before {
                    return None;
                }
            }
            Some(())
        };
        let what = format!("the pods {ordinals:?} of {} are recreated", self.name);
        SET_PATIENCE.until(&what, recreated).await;
    }

    /// Resumes paused pods one after the other, as they are created.
    ///
    /// Upstream: `Saturate`.
    pub async fn saturate(&self) {
        let wanted = replicas(&self.get().await);
        for ordinal in 0..wanted {
            self.until_running(ordinal + 1, ordinal).await;
            let pods = self.world.pods();
            let pod = self.pod_name(ordinal);
            pods.behave(self.space.name(), &pod, behaviour()).await;
        }
        self.until_ready(wanted).await;
    }

    /// Makes the probe of a pod succeed or fail, and waits until the pod's readiness follows.
    ///
    /// Upstream: `breakPodHTTPProbe`, `restorePodHTTPProbe`.
    pub async fn set_probe(&self, ordinal: usize, succeeds: bool) {
        let pod = self.pod_name(ordinal);
        let pods = self.world.pods();
        pods.set_ready(self.space.name(), &pod, succeeds).await;
        let shown = async || (is_ready(&self.pod(ordinal).await) == succeeds).then_some(());
        let what = format!("{pod} is ready: {succeeds}");
        POD_PATIENCE.until(&what, shown).await;
    }

    /// Sets the probe results of all existing pods, without waiting.
    ///
    /// Upstream: `breakHTTPProbe`, `restoreHTTPProbe`.
    pub async fn set_probes(&self, succeed: bool) {
        let pods = self.world.pods();
        for pod in self.pods().await {
            pods.set_ready(self.space.name(), name(&pod), succeed).await;
        }
    }

    /// Waits until exactly `running` pods run, of which exactly the lowest `ready` ones are ready.
    /// Fails on more pods.
    ///
    /// Upstream: `WaitForRunning`.
    pub async fn until_running(&self, running: usize, ready: usize) {
        let as_wanted = async || {
            let pods = self.pods().await;
            assert!(
                pods.len() <= running,
                "{} has {} pods, expected at most {running}",
                self.name,
                pods.len()
            );
            let all_run = pods.iter().all(|pod| phase(pod) == "Running");
            let readiness = pods.iter().map(is_ready);
            let wanted = (0..running).map(|ordinal| ordinal < ready);
            (all_run && readiness.eq(wanted)).then_some(())
        };
        let what = format!("{running} pods of {} run, {ready} ready", self.name);
        SET_PATIENCE.until(&what, as_wanted).await;
    }

    /// Waits until exactly `pods` pods run and are ready.
    ///
    /// Upstream: `WaitForRunningAndReady`.
    pub async fn until_ready(&self, pods: usize) {
        self.until_running(pods, pods).await;
    }

    /// Waits until the controller has observed the set's current generation, and returns the set.
    ///
    /// Upstream: `waitForStatus`.
    pub async fn observed(&self) -> Value {
        let generation = generation(&self.get().await);
        let seen = async || {
            let set = self.get().await;
            (count(&set, "observedGeneration") >= generation).then_some(set)
        };
        let what = format!("the controller sees {}", self.name);
        SET_PATIENCE.until(&what, seen).await
    }

    /// Waits until the status is of the current generation and has these counts.
    ///
    /// Upstream: `WaitForStatusReplicas` and similar functions.
    pub async fn until_counts(&self, wanted: &[(&str, usize)]) -> Value {
        let as_wanted = async || {
            let set = self.get().await;
            let seen = count(&set, "observedGeneration") >= generation(&set);
            let is = |(member, wanted): &(&str, usize)| {
                usize::try_from(count(&set, member)) == Ok(*wanted)
            };
            let all = wanted.iter().all(is);
            (seen && all).then_some(set)
        };
        let what = format!("the status of {} has {wanted:?}", self.name);
        SET_PATIENCE.until(&what, as_wanted).await
    }

    /// Revisions in the status once the controller has observed the current generation.
    pub async fn revisions(&self) -> Revisions {
        revisions_of(&self.observed().await)
    }

    /// Waits until every pod has been updated.
    ///
    /// Upstream: `waitForRollingUpdate`.
    pub async fn until_updated(&self) -> Revisions {
        let updated = async || {
            let set = self.get().await;
            let revisions = revisions_of(&set);
            let all_there = self.pods().await.len() >= replicas(&set);
            (all_there && revisions.current == revisions.update).then_some(revisions)
        };
        let what = format!("{} is updated", self.name);
        SET_PATIENCE.until(&what, updated).await
    }

    /// Waits until the pods from the partition up have been updated.
    ///
    /// Upstream: `waitForPartitionedRollingUpdate`.
    pub async fn until_updated_down_to(&self, partition: usize) {
        let updated = async || {
            let set = self.get().await;
            let (revisions, pods) = (revisions_of(&set), self.pods().await);
            let complete = partition > 0 || revisions.current == revisions.update;
            let mut above = pods.iter().skip(partition);
            let all = above.all(|pod| revision(pod) == revisions.update);
            (complete && all && pods.len() >= replicas(&set)).then_some(())
        };
        let what = format!("{} is updated down to {partition}", self.name);
        SET_PATIENCE.until(&what, updated).await;
    }

    /// Checks the image and the revision of every pod.
    pub async fn assert_pods(&self, image: &str, revision: &str) {
        self.assert_partitioned(0, ("", ""), (image, revision))
            .await;
    }

    /// Checks images and revisions of the pods below an index, and of the others.
    pub async fn assert_partitioned(
        &self,
        partition: usize,
        below: (&str, &str),
        others: (&str, &str),
    ) {
        let pods = self.pods().await;
        assert_eq!(pods.len(), replicas(&self.get().await), "pods");
        for (index, pod) in pods.iter().enumerate() {
            let wanted = if index < partition { below } else { others };
            let image = pod["spec"]["containers"][0]["image"].as_str();
            let found = (image.unwrap_or_default(), revision(pod));
            assert_eq!(found, wanted, "image and revision of {}", name(pod));
        }
    }

    /// Checks for ten seconds that exactly `pods` pods exist.
    ///
    /// Upstream: `confirmStatefulPodCount`.
    pub async fn stays_at(&self, pods: usize) {
        let look = async || assert_eq!(self.pods().await.len(), pods, "pods of {}", self.name);
        Patience(Duration::from_secs(10)).throughout(look).await;
    }

    /// Waits until the pods that are neither finished nor terminating have exactly these ordinals.
    ///
    /// Upstream: `waitForPodNames`.
    pub async fn until_named(&self, ordinals: &[u32]) {
        let wanted: Vec<String> = ordinals
            .iter()
            .map(|ordinal| format!("{}-{ordinal}", self.name))
            .collect();
        let named = async || {
            let pods = self.pods().await;
            let active = pods.iter().filter(|pod| is_active(pod)).map(name);
            active.eq(wanted.iter().map(String::as_str)).then_some(())
        };
        let what = format!("the pods are {wanted:?}");
        SET_PATIENCE.until(&what, named).await;
    }
}

/// Desired number of replicas.
pub fn replicas(set: &Value) -> usize {
    let replicas = set["spec"]["replicas"].as_u64();
    replicas
        .and_then(|replicas| usize::try_from(replicas).ok())
        .unwrap_or(1)
}

fn generation(set: &Value) -> i64 {
    set["metadata"]["generation"].as_i64().unwrap_or(0)
}

fn revisions_of(set: &Value) -> Revisions {
    let text = |member: &str| {
        set["status"][member]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    Revisions {
        current: text("currentRevision"),
        update: text("updateRevision"),
    }
}

/// Revision label of a pod.
pub fn revision(pod: &Value) -> &str {
    let label = &pod["metadata"]["labels"]["controller-revision-hash"];
    label.as_str().unwrap_or_default()
}

/// Returns true if the Ready condition of a pod or a node is true.
pub fn is_ready(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

fn is_active(pod: &Value) -> bool {
    let is_over = ["Failed", "Succeeded"].contains(&phase(pod));
    !is_over && pod["metadata"]["deletionTimestamp"].is_null()
}

/// Behaviour of running pods.
pub(super) fn behaviour() -> PodBehaviour {
    PodBehaviour::with_delays(STAGE)
}
