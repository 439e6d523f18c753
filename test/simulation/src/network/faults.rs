//! The faults of requests, and their decision for each request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube_test_control_plane::faults::{FaultError, RequestFacts};
use rand::RngExt as _;
use rand::rngs::StdRng;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::plan::{Fault, FaultRequests, LEASE_NAMESPACE, Span};
use crate::record::is_write;
use crate::seed;

/// The effect on a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fate {
    /// Latency of the request.
    pub there: Duration,
    /// Latency of the response.
    pub back: Duration,
    /// Outcome.
    pub ending: Ending,
    /// The API server rejects it.
    pub error: Option<FaultError>,
    /// Its instance is cut off for this time, before it is sent.
    pub isolate: Option<Duration>,
    /// Its instance stops for this time, once its response has arrived.
    pub suspend: Option<Duration>,
}

/// Outcome of a request. If several faults apply, the variant declared last wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// With its response.
    #[default]
    Response,
    /// Its response is lost.
    LoseResponse,
    /// Its process dies once it is processed.
    CrashAfter,
    /// The API server does not process it, and says so.
    LeaveUnprocessed,
    /// It never gets to the API server.
    Drop,
    /// Its process dies before it is sent.
    CrashBefore,
}

/// The faults of a run.
#[derive(Clone)]
pub struct Faults {
    state: Arc<Mutex<State>>,
    /// The instances that are cut off.
    isolated: Until,
    /// The instances that stopped.
    suspended: Until,
}

/// Times until which something holds for instances.
type Until = Arc<watch::Sender<BTreeMap<usize, Instant>>>;

struct State {
    random: StdRng,
    latency: Span,
    active: Vec<Active>,
    /// Faults of single writes with their length, by the number of the write.
    at_writes: BTreeMap<u64, Vec<(Fault, Duration)>>,
}

struct Active {
    fault: Fault,
    until: Instant,
}

impl Faults {
    /// Creates the faults of a run: none, but this latency.
    pub fn new(seed: u64, latency: Span) -> Self {
        Self {
            state: Arc::new(Mutex::new(State {
                random: seed::stream(seed, "network"),
                latency,
                active: Vec::new(),
                at_writes: BTreeMap::new(),
            })),
            isolated: Until::default(),
            suspended: Until::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a fault that lasts for this time.
    pub fn begin(&self, fault: Fault, time: Duration) {
        let until = Instant::now() + time;
        self.lock().active.push(Active { fault, until });
    }

    /// Hits the `nth` write of all instances with this fault.
    pub fn inject_at_write(&self, nth: u64, fault: Fault, time: Duration) {
        let mut state = self.lock();
        state.at_writes.entry(nth).or_default().push((fault, time));
    }

    /// Cuts an instance off for this time.
    pub fn isolate(&self, instance: usize, time: Duration) {
        let until = Instant::now() + time;
        self.isolated.send_modify(|isolated| {
            isolated.insert(instance, until);
        });
    }

    /// Stops an instance for this time: it is cut off as well.
    pub fn suspend(&self, instance: usize, time: Duration) {
        self.isolate(instance, time);
        let until = Instant::now() + time;
        self.suspended.send_modify(|suspended| {
            suspended.insert(instance, until);
        });
    }

    /// Reports whether an instance stopped.
    pub fn is_suspended(&self, instance: usize) -> bool {
        let suspended = self.suspended.borrow();
        suspended
            .get(&instance)
            .is_some_and(|until| *until > Instant::now())
    }

    /// Waits until the instance goes on.
    pub async fn resumed(&self, instance: usize) {
        wait_for_end(&self.suspended, instance).await;
    }

    /// Ends all faults.
    pub fn clear(&self) {
        let mut state = self.lock();
        state.active.clear();
        state.at_writes.clear();
        self.isolated.send_modify(BTreeMap::clear);
        self.suspended.send_modify(BTreeMap::clear);
    }

    /// Waits until the instance is not cut off.
    pub async fn reachable(&self, instance: usize) {
        wait_for_end(&self.isolated, instance).await;
    }

    /// Decides what happens to a request, the `nth` write if it is one. Nothing happens to the events
    /// of the election: their number would otherwise change the random numbers of all other requests.
    pub fn decide(&self, instance: usize, facts: &RequestFacts, nth: Option<u64>) -> Fate {
        if facts.resource == "events" && facts.namespace == LEASE_NAMESPACE {
            return Fate::default();
        }
        let mut state = self.lock();
        let State {
            random,
            latency,
            active,
            at_writes,
        } = &mut *state;
        let mut fate = Fate {
            there: latency.draw(random),
            back: latency.draw(random),
            ..Fate::default()
        };
        let now = Instant::now();
        active.retain(|active| active.until > now);
        for Active { fault, .. } in active.iter() {
            let Some(requests) = requests_of(fault) else {
                continue;
            };
            if matches(requests, instance, facts) && random.random_range(0..100) < requests.percent
            {
                fate.apply(fault, random);
            }
        }
        for (fault, time) in nth
            .and_then(|nth| at_writes.remove(&nth))
            .unwrap_or_default()
        {
            fate.apply(&fault, random);
            match fault {
                Fault::Isolate { .. } => fate.isolate = Some(time),
                Fault::Suspend { .. } => fate.suspend = Some(time),
                _ => {}
            }
        }
        fate
    }
}

/// Waits until something no longer holds for an instance.
async fn wait_for_end(times: &Until, instance: usize) {
    let mut times = times.subscribe();
    loop {
        let until = times.borrow_and_update().get(&instance).copied();
        let Some(until) = until.filter(|until| *until > Instant::now()) else {
            return;
        };
        tokio::select! {
            biased;
            // The sender lives as long as the faults.
            _ = times.changed() => {}
            () = tokio::time::sleep_until(until) => {}
        }
    }
}

impl Fate {
    fn apply(&mut self, fault: &Fault, random: &mut StdRng) {
        match fault {
            Fault::Reject { error, .. } => self.error = Some(error.clone()),
            Fault::Drop(_) => self.end(Ending::Drop),
            Fault::LoseResponse(_) => self.end(Ending::LoseResponse),
            Fault::LeaveUnprocessed(_) => self.end(Ending::LeaveUnprocessed),
            Fault::DelayRequest { delay, .. } => self.there += delay.draw(random),
            Fault::DelayResponse { delay, .. } => self.back += delay.draw(random),
            Fault::CrashBefore => self.end(Ending::CrashBefore),
            Fault::CrashAfter => self.end(Ending::CrashAfter),
            _ => {}
        }
    }

    fn end(&mut self, ending: Ending) {
        self.ending = self.ending.max(ending);
    }
}

/// Returns the requests that a fault hits; none if it is no fault of requests.
fn requests_of(fault: &Fault) -> Option<&FaultRequests> {
    match fault {
        Fault::Drop(requests)
        | Fault::LoseResponse(requests)
        | Fault::LeaveUnprocessed(requests)
        | Fault::Reject { requests, .. }
        | Fault::DelayRequest { requests, .. }
        | Fault::DelayResponse { requests, .. } => Some(requests),
        _ => None,
    }
}

fn matches(requests: &FaultRequests, instance: usize, facts: &RequestFacts) -> bool {
    let FaultRequests {
        instance: of,
        verbs,
        resource,
        percent: _,
    } = requests;
    let by_resource = match resource {
        Some(resource) => *resource == facts.resource,
        None => facts.resource != "leases",
    };
    let by_verb = match facts.verb {
        Some(verb) if !verbs.is_empty() => verbs.contains(&verb),
        // A fault without verbs leaves watches alone: they have separate faults.
        Some(_) => is_write(facts.verb, &facts.resource) || !is_watch(facts),
        None => false,
    };
    of.is_none_or(|of| of == instance) && by_resource && by_verb
}

fn is_watch(facts: &RequestFacts) -> bool {
    facts.verb == Some(kube_test_control_plane::route::Verb::Watch)
}
