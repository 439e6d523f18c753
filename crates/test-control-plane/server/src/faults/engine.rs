//! The active rules.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::applied::Applied;
use super::decision::FaultDecision;
use super::facts::RequestFacts;
use super::gate::{Gate, GatePoint, GateState};
use super::matcher::RequestMatcher;
use super::outage::Outage;
use super::plan::FaultPlan;
use super::rule::{FaultAction, FaultRule, RuleId};
use super::schedule::{Running, Schedule};
use super::view::ViewRule;
use super::watch_rule::{WatchAction, WatchRule};
use super::watches::{Seen, Watches};
use super::webhook_rule::{CallDecision, CalledWebhook, WebhookRule};

/// The active rules, evaluated in the order of their addition. Clones share their state.
#[derive(Clone, Debug)]
pub struct Faults(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Changes with the rules for watches and views.
    watches_changed: watch::Sender<u64>,
    outage: Outage,
}

#[derive(Debug)]
struct State {
    seed: u64,
    next_id: u64,
    rules: Vec<ActiveRule>,
    gates: Vec<Arc<GateState>>,
    watches: Watches,
    views: Vec<(RuleId, ViewRule)>,
    admission_views: Vec<(RuleId, ViewRule)>,
    webhooks: Vec<ActiveWebhookRule>,
    hits: BTreeMap<RuleId, u64>,
}

#[derive(Debug)]
struct ActiveRule {
    id: RuleId,
    rule: FaultRule,
    running: Running,
}

#[derive(Debug)]
struct ActiveWebhookRule {
    id: RuleId,
    rule: WebhookRule,
    running: Running,
}

impl Faults {
    /// Creates an empty set of rules with a seed for their random draws.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Shared {
            state: Mutex::new(State {
                seed,
                next_id: 0,
                rules: Vec::new(),
                gates: Vec::new(),
                watches: Watches::default(),
                views: Vec::new(),
                admission_views: Vec::new(),
                webhooks: Vec::new(),
                hits: BTreeMap::new(),
            }),
            watches_changed: watch::channel(0).0,
            outage: Outage::default(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a rule for requests.
    pub fn add(&self, rule: FaultRule) -> RuleId {
        self.lock().add(rule)
    }

    /// Adds the rules of a plan; its seed applies to all rules added from now on.
    pub fn load(&self, plan: &FaultPlan) -> Vec<RuleId> {
        let mut state = self.lock();
        if let Some(seed) = plan.seed {
            state.seed = seed;
        }
        let mut ids = Vec::new();
        ids.extend(plan.requests.iter().map(|rule| state.add(rule.clone())));
        let watches = plan.watches.iter();
        ids.extend(watches.map(|rule| state.add_watch_rule(rule.clone(), false)));
        ids.extend(plan.views.iter().map(|rule| state.add_view(rule.clone())));
        let webhooks = plan.webhooks.iter();
        ids.extend(webhooks.map(|rule| state.add_webhook_rule(rule.clone())));
        let views = plan.admission_views.iter();
        ids.extend(views.map(|rule| state.add_admission_view(rule.clone())));
        drop(state);
        self.tell_watches();
        ids
    }

    /// Applies an action to the next `times` matching requests.
    pub fn inject(&self, matcher: RequestMatcher, times: u32, action: FaultAction) -> RuleId {
        self.inject_after(matcher, 0, times, action)
    }

    /// Lets `skip` matching requests pass, then applies an action to the next `times`.
    pub fn inject_after(
        &self,
        matcher: RequestMatcher,
        skip: u32,
        times: u32,
        action: FaultAction,
    ) -> RuleId {
        self.add(FaultRule::new(matcher, action).when(Schedule::times(times).skip(skip)))
    }

    /// Applies an action to every matching request until the rule is removed.
    pub fn inject_always(&self, matcher: RequestMatcher, action: FaultAction) -> RuleId {
        self.add(FaultRule::new(matcher, action))
    }

    /// Holds matching requests before they are processed, until their release.
    pub fn gate(&self, matcher: RequestMatcher) -> Gate {
        self.gate_at(GatePoint::BeforeCommit, matcher)
    }

    /// Holds matching requests at a point, until their release.
    pub fn gate_at(&self, point: GatePoint, matcher: RequestMatcher) -> Gate {
        let (gate, state) = Gate::new(matcher, point);
        self.lock().gates.push(state);
        gate
    }

    /// Adds a rule for watches, including open ones.
    pub fn add_watch_rule(&self, rule: WatchRule) -> RuleId {
        let id = self.lock().add_watch_rule(rule, false);
        self.tell_watches();
        id
    }

    /// Applies an action to the matching open watches, but not to later ones.
    pub fn apply_to_open_watches(&self, matcher: RequestMatcher, action: WatchAction) -> RuleId {
        let rule = WatchRule::new(matcher, action);
        let id = self.lock().add_watch_rule(rule, true);
        self.tell_watches();
        id
    }

    /// Adds a rule for the state that reads see. Where several rules match, the oldest state
    /// applies.
    pub fn add_view(&self, rule: ViewRule) -> RuleId {
        let id = self.lock().add_view(rule);
        self.tell_watches();
        id
    }

    /// Adds a rule for the calls of webhooks.
    pub fn add_webhook_rule(&self, rule: WebhookRule) -> RuleId {
        self.lock().add_webhook_rule(rule)
    }

    /// Adds a rule for the policies, bindings, parameters and webhook configurations that apply to
    /// requests: those of an older state, as on an API server that lags behind the others. Where several rules match,
    /// the oldest state applies.
    pub fn add_admission_view(&self, rule: ViewRule) -> RuleId {
        self.lock().add_admission_view(rule)
    }

    /// Returns the requests of the open watches, oldest first.
    pub fn open_watches(&self) -> Vec<RequestFacts> {
        self.lock().watches.open()
    }

    /// Returns the number of requests, watches or calls that a rule affected, even after its removal.
    pub fn hits(&self, id: RuleId) -> u64 {
        self.lock().hits.get(&id).copied().unwrap_or_default()
    }

    /// Removes a rule. Returns true if it was active.
    pub fn remove(&self, id: RuleId) -> bool {
        let mut state = self.lock();
        let before = state.len();
        state.rules.retain(|active| active.id != id);
        state.views.retain(|(found, _)| *found != id);
        state.admission_views.retain(|(found, _)| *found != id);
        state.webhooks.retain(|active| active.id != id);
        let removed = state.len() < before || state.watches.remove(id);
        drop(state);
        self.tell_watches();
        removed
    }

    /// Removes all rules and opens all gates.
    pub fn clear(&self) {
        let mut state = self.lock();
        state.rules.clear();
        state.watches.clear();
        state.views.clear();
        state.admission_views.clear();
        state.webhooks.clear();
        let gates = std::mem::take(&mut state.gates);
        drop(state);
        for gate in gates {
            gate.open();
        }
        self.tell_watches();
    }

    /// Returns the outage control of client connections.
    pub fn outage(&self) -> &Outage {
        &self.0.outage
    }

    /// Evaluates the rules for a request.
    pub(crate) fn decide(&self, facts: &RequestFacts, body: &[u8]) -> FaultDecision {
        self.lock().decide(facts, body)
    }

    /// Evaluates the rules for a call of a webhook.
    pub(crate) fn decide_call(&self, called: CalledWebhook<'_>) -> CallDecision {
        self.lock().decide_call(called)
    }

    /// Returns the revision whose policies and webhooks apply to a request; `None` for the newest.
    pub(crate) fn admission_horizon(&self, facts: &RequestFacts, newest: u64) -> Option<u64> {
        oldest(&self.lock().admission_views, facts, newest)
    }

    fn tell_watches(&self) {
        self.0.watches_changed.send_modify(|count| *count += 1);
    }

    /// Returns the newest revision that a request sees; `None` if it is unlimited.
    pub(super) fn horizon(&self, facts: &RequestFacts, newest: u64) -> Option<u64> {
        oldest(&self.lock().views, facts, newest)
    }

    /// Subscribes to changes of the rules for watches and views.
    pub(crate) fn watch_changes(&self) -> watch::Receiver<u64> {
        self.0.watches_changed.subscribe()
    }

    pub(super) fn begin_watch(&self, facts: &RequestFacts) -> Seen {
        self.lock().watches.begin(facts)
    }

    pub(super) fn end_watch(&self, seen: &Seen) {
        self.lock().watches.end(seen.watch);
    }

    pub(super) fn refresh_watch(
        &self,
        seen: &mut Seen,
        facts: &RequestFacts,
        applied: &mut Vec<Applied>,
    ) {
        let mut state = self.lock();
        for id in state.watches.refresh(seen, facts, applied) {
            *state.hits.entry(id).or_default() += 1;
        }
    }
}

impl State {
    /// Returns the id and the seed of a new rule.
    fn new_id(&mut self, name: &str) -> (RuleId, u64) {
        let id = RuleId(self.next_id);
        self.next_id += 1;
        let own = if name.is_empty() { id.0 } else { hash(name) };
        (id, self.seed ^ own.wrapping_mul(SPREAD))
    }

    fn add(&mut self, rule: FaultRule) -> RuleId {
        let (id, seed) = self.new_id(&rule.name);
        let running = Running::start(rule.when, seed);
        self.rules.push(ActiveRule { id, rule, running });
        id
    }

    fn add_watch_rule(&mut self, rule: WatchRule, open_only: bool) -> RuleId {
        let (id, seed) = self.new_id(&rule.name);
        self.watches.add(id, rule, seed, open_only);
        id
    }

    fn add_view(&mut self, rule: ViewRule) -> RuleId {
        let (id, _) = self.new_id("");
        self.views.push((id, rule));
        id
    }

    fn add_webhook_rule(&mut self, rule: WebhookRule) -> RuleId {
        let (id, seed) = self.new_id(&rule.name);
        let running = Running::start(rule.when, seed);
        self.webhooks.push(ActiveWebhookRule { id, rule, running });
        id
    }

    fn add_admission_view(&mut self, rule: ViewRule) -> RuleId {
        let (id, _) = self.new_id("");
        self.admission_views.push((id, rule));
        id
    }

    /// Returns the number of the rules, without those for watches.
    fn len(&self) -> usize {
        self.rules.len() + self.views.len() + self.admission_views.len() + self.webhooks.len()
    }

    fn decide_call(&mut self, called: CalledWebhook<'_>) -> CallDecision {
        let mut decision = CallDecision::default();
        for active in &mut self.webhooks {
            if decision.is_decided() {
                break;
            }
            if active.rule.matcher.matches(called) && active.running.selects_next() {
                *self.hits.entry(active.id).or_default() += 1;
                decision.add(&active.rule.action, &mut active.running.random);
            }
        }
        self.webhooks
            .retain(|active| !active.running.is_exhausted());
        decision
    }

    fn decide(&mut self, facts: &RequestFacts, body: &[u8]) -> FaultDecision {
        let mut decision = FaultDecision::default();
        if self.rules.is_empty() && self.gates.is_empty() {
            return decision;
        }
        self.gates.retain(|gate| !gate.is_open());
        let gates = self.gates.iter().filter(|gate| gate.matches(facts, body));
        decision.gates = gates.map(Arc::clone).collect();
        let mut exhausted = false;
        for active in &mut self.rules {
            if decision.is_decided() {
                break;
            }
            if active.rule.matcher.matches(facts, body) && active.running.selects_next() {
                *self.hits.entry(active.id).or_default() += 1;
                decision.add(&active.rule, &mut active.running.random);
            }
            exhausted |= active.running.is_exhausted();
        }
        if exhausted {
            self.rules.retain(|active| !active.running.is_exhausted());
        }
        decision
    }
}

/// Returns the oldest revision of the views of a request; `None` without a view.
fn oldest(views: &[(RuleId, ViewRule)], facts: &RequestFacts, newest: u64) -> Option<u64> {
    let matching = views
        .iter()
        .filter(|(_, rule)| rule.matcher.matches(facts, &[]));
    matching.map(|(_, rule)| rule.view.horizon(newest)).min()
}

/// Spreads consecutive numbers over all seeds.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// FNV-1a: seeds must not depend on the process.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
