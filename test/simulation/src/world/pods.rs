//! The kubelets of a run, and its other actors.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kube_test_control_plane::actors::{
    ActorsConfig, Crash, Delay, GarbageCollectorConfig, ImagePullFailure, KubeletConfig, Outcome,
    PodBehaviour, VolumeBinderConfig,
};

use serde_json::Value;

use crate::plan::{Settings, Span};

/// Time from the start of a container that crashes to its crash.
const CRASHES_AFTER: Span = Span(100, 3_000);

/// Time to expand a volume.
const EXPANSION: Span = Span(500, 20_000);

/// Time that a resize takes.
const RESIZE: Span = Span(100, 3_000);

/// Reports whether a pod has an image that never becomes ready.
pub(super) fn is_dead(pod: &Value) -> bool {
    let image = pod.pointer("/spec/containers/0/image");
    let image = image.and_then(Value::as_str);
    image.is_some_and(|image| image.starts_with("dead"))
}

/// Returns the actors. Images that begin with `bad` never become ready while `bad_images` is true.
pub(super) fn actors(settings: &Settings, bad_images: &Arc<AtomicBool>) -> ActorsConfig {
    let good = PodBehaviour::default()
        .start_delay(delay(settings.pod_start))
        .ready_delay(delay(settings.pod_ready))
        .stop_delay(delay(settings.pod_stop))
        .resize_delay(delay(RESIZE));
    let bad_images = Arc::clone(bad_images);
    let rule = {
        let good = good.clone();
        move |pod: &Value| {
            let image = pod.pointer("/spec/containers/0/image")?.as_str()?;
            let is_bad = image.starts_with("bad") && bad_images.load(Ordering::Relaxed);
            (is_bad || is_dead(pod)).then(|| broken(&good, image))
        }
    };
    let collector = GarbageCollectorConfig::default().delay(settings.collector_delay.into());
    ActorsConfig::all()
        .kubelet(KubeletConfig::new(good).rule(rule))
        .garbage_collector(collector)
        .volume_binder(VolumeBinderConfig::default().expansion_delay(delay(EXPANSION)))
        // The sets need none of them, and the histories of the seeds stay.
        .controllers([])
}

fn delay(span: Span) -> Delay {
    let millis = Duration::from_millis;
    Delay::between(millis(span.0), millis(span.1))
}

/// Returns the behaviour of a pod whose image is broken, in the way that the image's name tells.
fn broken(good: &PodBehaviour, image: &str) -> PodBehaviour {
    let unready = good.clone().outcome(Outcome::NeverReady);
    match image.rsplit_once('-') {
        Some((_, "pull")) => good.clone().image_pull_failure(ImagePullFailure::default()),
        Some((_, "crash")) => unready.crash(Crash::default().after(delay(CRASHES_AFTER))),
        _ => unready,
    }
}
