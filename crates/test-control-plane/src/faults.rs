//! Faults that a test injects into requests, watches and webhooks.

pub use kube_test_control_plane_server::faults::{
    Count, Delay, EventMatcher, FaultAction, FaultError, FaultPlan, FaultRule, Faults, Gate,
    GatePoint, Outage, ParseDelayError, PlanError, RequestFacts, RequestMatcher, RuleId, Schedule,
    UnsoundAction, View, ViewRule, WatchAction, WatchMoment, WatchRule, WebhookAction,
    WebhookMatcher, WebhookRule,
};
