//! Faults on request: rules that make requests fail in the ways of a real network and server.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::actors::ACTOR_AGENT_PREFIX;
use crate::route::{ResourceRequest, Verb};
use crate::status::ApiError;

/// What happens to a request that matches a rule.
#[derive(Clone, Debug)]
pub enum FaultAction {
    /// It is answered with this error; nothing is done.
    Respond(ApiError),
    /// The connection is dropped; nothing is done.
    DropBeforeCommit,
    /// It is done, then the connection is dropped.
    CommitThenDrop,
    /// It is done, then answered with this error.
    CommitThenRespond(ApiError),
    /// It waits this long, then goes on.
    Delay(Duration),
}

/// Which requests a rule is for. Whatever isn't set matches everything; the control plane's own
/// actors are left alone unless they are included.
#[derive(Clone, Debug, Default)]
pub struct RequestMatcher {
    verb: Option<Verb>,
    resource: Option<String>,
    subresource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    user_agent: Option<String>,
    actors: bool,
}

impl RequestMatcher {
    /// Matches every request of clients.
    pub fn any() -> Self {
        Self::default()
    }

    /// Only this verb.
    #[must_use]
    pub fn verb(mut self, verb: Verb) -> Self {
        self.verb = Some(verb);
        self
    }

    /// Only this resource, such as `pods`.
    #[must_use]
    pub fn resource(mut self, resource: &str) -> Self {
        self.resource = Some(resource.to_owned());
        self
    }

    /// Only this subresource; an empty one means the object itself.
    #[must_use]
    pub fn subresource(mut self, subresource: &str) -> Self {
        self.subresource = Some(subresource.to_owned());
        self
    }

    /// Only this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Only this object; creates match by the name in their body.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Only clients whose user agent starts so; actors are clients here.
    #[must_use]
    pub fn user_agent(mut self, prefix: &str) -> Self {
        self.user_agent = Some(prefix.to_owned());
        self.actors = true;
        self
    }

    /// Also the requests of the control plane's own actors.
    #[must_use]
    pub fn include_actors(mut self) -> Self {
        self.actors = true;
        self
    }

    fn matches(&self, request: &ResourceRequest, user_agent: &str) -> bool {
        let equal = |wanted: &Option<String>, found: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == found)
        };
        self.verb.is_none_or(|verb| verb == request.verb)
            && equal(&self.resource, request.kind.plural)
            && equal(&self.subresource, request.target.subresource())
            && equal(&self.namespace, &request.namespace)
            && equal(&self.name, &request.name)
            && self
                .user_agent
                .as_deref()
                .is_none_or(|p| user_agent.starts_with(p))
            && (self.actors || !user_agent.starts_with(ACTOR_AGENT_PREFIX))
    }
}

/// A rule: which requests, how many of them, and what happens.
#[derive(Clone, Debug)]
struct FaultRule {
    matcher: RequestMatcher,
    skip: u32,
    times: Option<u32>,
    action: FaultAction,
}

/// The rules in force; the first that matches counts.
#[derive(Debug, Default)]
pub struct Faults(Mutex<Vec<FaultRule>>);

impl Faults {
    /// Strikes the next `times` requests that match.
    pub fn inject(&self, matcher: RequestMatcher, times: u32, action: FaultAction) {
        self.inject_after(matcher, 0, times, action);
    }

    /// Lets `skip` matching requests pass, then strikes the next `times`.
    pub fn inject_after(
        &self,
        matcher: RequestMatcher,
        skip: u32,
        times: u32,
        action: FaultAction,
    ) {
        self.push(FaultRule {
            matcher,
            skip,
            times: Some(times),
            action,
        });
    }

    /// Strikes every request that matches until the rules are cleared.
    pub fn inject_always(&self, matcher: RequestMatcher, action: FaultAction) {
        self.push(FaultRule {
            matcher,
            skip: 0,
            times: None,
            action,
        });
    }

    /// Removes every rule.
    pub fn clear(&self) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    fn push(&self, rule: FaultRule) {
        let mut rules = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rules.push(rule);
    }

    /// What happens to a request, if anything.
    pub(crate) fn strike(&self, request: &ResourceRequest, agent: &str) -> Option<FaultAction> {
        let mut rules = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (i, rule) in rules.iter_mut().enumerate() {
            if !rule.matcher.matches(request, agent) {
                continue;
            }
            if rule.skip > 0 {
                rule.skip -= 1;
                continue;
            }
            let action = rule.action.clone();
            if let Some(times) = &mut rule.times {
                *times = times.saturating_sub(1);
                if *times == 0 {
                    rules.remove(i);
                }
            }
            return Some(action);
        }
        None
    }
}
