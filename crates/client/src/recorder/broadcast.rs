//! Sends events to the API server in the background, without blocking the controller.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rand::{Rng as _, RngExt as _, SeedableRng as _, rngs::StdRng};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::correlator::Correlator;
use super::delivery_log::DeliveryLog;
use super::event::{Event, event_name, is_dns_subdomain};
use super::event_log::EventLog;
use super::{EventRecorder, EventType, ObjectReference};
use crate::clock::Clock;
use crate::error::Error;
use crate::resource::EVENTS;
use crate::rest::{PatchType, RestClient};

/// Maximum number of queued events; more are dropped. Upstream: `maxQueuedEvents`.
pub const EVENT_QUEUE_CAPACITY: usize = 1000;
/// Maximum number of attempts to send an event. Upstream: `maxTriesPerEvent`.
const TRIES_MAX: u32 = 12;
/// Wait between two attempts.
const RETRY_WAIT: Duration = Duration::from_secs(10);

/// Puts events into a queue for an [`EventSink`].
///
/// Upstream: `record.EventBroadcaster`, `record.recorderImpl`.
#[derive(Clone)]
pub struct BroadcastRecorder {
    component: Arc<str>,
    clock: Arc<dyn Clock>,
    queue: mpsc::Sender<Event>,
    dropped: Arc<AtomicU64>,
    log: Arc<EventLog>,
    /// The time in the last event's name, in nanoseconds.
    named: Arc<Mutex<i128>>,
}

/// The receiver of a [`BroadcastRecorder`]'s events: correlates and sends them.
pub struct EventSink {
    clock: Arc<dyn Clock>,
    queue: mpsc::Receiver<Event>,
    dropped: Arc<AtomicU64>,
}

impl BroadcastRecorder {
    /// Creates a recorder for a component, such as `statefulset-controller`, and its sink, which
    /// the caller runs.
    pub fn new(component: &str, clock: Arc<dyn Clock>) -> (Self, EventSink) {
        let (sender, receiver) = mpsc::channel(EVENT_QUEUE_CAPACITY);
        let dropped = Arc::new(AtomicU64::new(0));
        let sink = EventSink {
            clock: Arc::clone(&clock),
            queue: receiver,
            dropped: Arc::clone(&dropped),
        };
        (
            Self {
                component: component.into(),
                clock,
                queue: sender,
                dropped,
                log: Arc::default(),
                named: Arc::default(),
            },
            sink,
        )
    }

    /// Returns a unique time for an event's name: `now`, or a nanosecond after the last one used.
    /// The clock may stand still, and the server rejects the second of two events with one name.
    fn moment_for_a_name(&self, now: Timestamp) -> i128 {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        *named = now.as_nanosecond().max(*named + 1);
        *named
    }

    /// Returns the number of events dropped because the queue was full.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl EventRecorder for BroadcastRecorder {
    fn event(
        &self,
        regarding: &ObjectReference,
        event_type: EventType,
        reason: &str,
        message: &str,
    ) {
        self.log.log(regarding, event_type, reason, message);
        let now = self.clock.now();
        let mut object = regarding.clone();
        let resource_version = std::mem::take(&mut object.resource_version);
        let event = Event {
            name: event_name(&regarding.name, self.moment_for_a_name(now)),
            object: Arc::new(object),
            resource_version,
            component: Arc::clone(&self.component),
            severity: event_type,
            reason: reason.to_owned(),
            message: message.into(),
            first_timestamp: now,
            last_timestamp: now,
            count: 1,
            reporting: true,
        };
        if self.queue.try_send(event).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl EventSink {
    /// Sends events until the token is cancelled or every recorder is dropped. Cancellation
    /// discards queued events. A process that lost its lease must cancel, because unsent events are
    /// retried for minutes. The seed determines random delays and names.
    pub async fn run(mut self, client: RestClient, seed: u64, cancelled: CancellationToken) {
        let mut rng = StdRng::seed_from_u64(seed);
        let work = async {
            let mut correlator = Correlator::new();
            let mut log = DeliveryLog::default();
            while let Some(event) = self.queue.recv().await {
                let has_room = self.queue.len() < EVENT_QUEUE_CAPACITY / 2;
                log.dropped(self.dropped.load(Ordering::Relaxed), has_room);
                if let Some(event) = correlator.correlate(event, self.clock.now()) {
                    deliver(&client, event, &mut correlator, &mut rng, &mut log).await;
                }
            }
        };
        cancelled.run_until_cancelled(work).await;
    }
}

/// Retries an event until the server responds to it.
///
/// Upstream: `recordToSink`.
async fn deliver(
    client: &RestClient,
    mut event: Event,
    correlator: &mut Correlator,
    rng: &mut StdRng,
    log: &mut DeliveryLog,
) {
    if !is_dns_subdomain(&event.name) {
        event.name = random_uuid(rng);
    }
    for tries in 1..=TRIES_MAX {
        let err = match send(client, &event).await {
            Ok(()) => {
                correlator.update_state(&event);
                log.delivered();
                return;
            }
            Err(err) => err,
        };
        if is_final(&err) {
            log.refused(&event, &err);
            return;
        }
        tracing::debug!(event = %event.name, error = %err, tries, "cannot send an event yet");
        if tries < TRIES_MAX {
            // The first wait is random, so that clients don't all retry at the same time.
            let share = if tries == 1 { rng.random::<f64>() } else { 1.0 };
            tokio::time::sleep(RETRY_WAIT.mul_f64(share)).await;
        } else {
            log.given_up(&event, &err);
        }
    }
}

/// Sends an event: a repeated event as a patch, or as a new one if the earlier one is gone.
///
/// Upstream: `recordEvent`.
async fn send(client: &RestClient, event: &Event) -> Result<(), Error> {
    let namespace = event.namespace();
    if event.count > 1 {
        let patch = event.to_patch();
        let patched = client
            .patch(&EVENTS, namespace, &event.name, PatchType::Strategic, patch)
            .await;
        match patched {
            Err(err) if err.status().is_some_and(|status| status.code == 404) => {}
            result => return result.map(drop),
        }
    }
    client
        .create(&EVENTS, namespace, event.to_json())
        .await
        .map(drop)
}

/// Returns true if a retry would fail the same way.
fn is_final(err: &Error) -> bool {
    // A leader that renews late may send again.
    matches!(err, Error::Api(_) | Error::InvalidRequest(_))
}

/// Returns a version 4 UUID.
fn random_uuid(rng: &mut StdRng) -> String {
    let bits = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
    let bits = bits & !(0xf << 76 | 0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        bits >> 96,
        bits >> 80 & 0xffff,
        bits >> 64 & 0xffff,
        bits >> 48 & 0xffff,
        bits & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
mod tests;
