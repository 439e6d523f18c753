//! Rules for the calls of webhooks: hanging, late, unreachable and wrong ones.

use std::future::{Future, pending};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http::header::CONTENT_TYPE;
use kube_test_control_plane_api::setters;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::delay::Delay;
use super::matcher::is_wanted;
use super::rule::rule_setters;
use super::schedule::Schedule;

/// Selects calls of webhooks, their number, and an action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct WebhookRule {
    /// The rule's name, which seeds its random draws.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Selects calls.
    #[serde(rename = "match", default)]
    pub matcher: WebhookMatcher,
    /// Limits the number of affected calls.
    #[serde(default)]
    pub when: Schedule,
    /// The action.
    pub action: WebhookAction,
}

/// Selects calls of webhooks. Empty, it matches every call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct WebhookMatcher {
    /// The name of the webhook configuration, or of the definition for conversions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<String>,
    /// The name of the webhook in its configuration; conversions have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<String>,
}

/// Action of a rule on a call. The failure policy and the time limit of the webhook decide about the
/// request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
#[non_exhaustive]
pub enum WebhookAction {
    /// Calls the webhook after a delay. Later rules still apply.
    Delay(Delay),
    /// Never responds, without a call.
    Hang,
    /// Nothing listens.
    Refuse,
    /// The connection ends without a response.
    Drop,
    /// Responds without a call.
    Respond {
        /// The HTTP status code.
        code: u16,
        /// The body, as JSON if it can be.
        body: String,
    },
}

/// The webhook that is called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CalledWebhook<'a> {
    pub(crate) configuration: &'a str,
    pub(crate) webhook: &'a str,
}

/// The effect of the rules on one call.
#[derive(Debug, Default)]
pub(crate) struct CallDecision {
    delay: Duration,
    end: Option<WebhookAction>,
}

impl WebhookRule {
    /// Creates a rule for every matching call.
    pub fn new(matcher: WebhookMatcher, action: WebhookAction) -> Self {
        Self {
            name: String::new(),
            matcher,
            when: Schedule::always(),
            action,
        }
    }

    rule_setters!();
}

impl WebhookMatcher {
    /// Matches every call.
    pub fn any() -> Self {
        Self::default()
    }

    setters! {
        /// Matches the webhooks of this configuration or definition.
        configuration: into String,
        /// Matches the webhooks of this name.
        webhook: into String,
    }

    pub(super) fn matches(&self, called: CalledWebhook<'_>) -> bool {
        is_wanted(self.configuration.as_ref(), called.configuration)
            && is_wanted(self.webhook.as_ref(), called.webhook)
    }
}

impl CallDecision {
    pub(super) fn is_decided(&self) -> bool {
        self.end.is_some()
    }

    pub(super) fn add(&mut self, action: &WebhookAction, random: &mut StdRng) {
        match action {
            WebhookAction::Delay(delay) => self.delay += delay.draw(random),
            other => self.end = Some(other.clone()),
        }
    }

    /// Makes a call of a server at an address according to the rules.
    ///
    /// # Errors
    ///
    /// There is no response; the text is Go's.
    pub(crate) async fn carry_out(
        self,
        address: &str,
        call: impl Future<Output = Result<Response<Bytes>, String>>,
    ) -> Result<Response<Bytes>, String> {
        if !self.delay.is_zero() {
            sleep(self.delay).await;
        }
        match self.end {
            None | Some(WebhookAction::Delay(_)) => call.await,
            Some(WebhookAction::Hang) => pending().await,
            Some(WebhookAction::Refuse) => {
                Err(format!("dial tcp {address}: connect: connection refused"))
            }
            Some(WebhookAction::Drop) => Err("EOF".to_owned()),
            Some(WebhookAction::Respond { code, body }) => Response::builder()
                .status(code)
                .header(CONTENT_TYPE, "application/json")
                .body(body.into())
                .map_err(|error| error.to_string()),
        }
    }
}
