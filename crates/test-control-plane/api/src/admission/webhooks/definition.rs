//! A webhook of a stored configuration.
//!
//! Upstream: `k8s.io/apiserver/pkg/admission/plugin/webhook/accessors.go`, and
//! `pkg/admission/configuration`

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::client::ClientConfig;
use super::reply::Reply;
use super::verdict::{Failure, Verdict};
#[cfg(feature = "cel")]
use crate::admission::policies::{Inputs, Match, MatchConditions};
use crate::admission::{Attributes, Constraints, Equivalent, FailurePolicy};
use crate::members::{list, text, text_at};
use crate::status::ApiError;

/// The API group of reviews.
const GROUP: &str = "admission.k8s.io";

/// The versions of reviews.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// The kind of reviews.
const KIND: &str = "AdmissionReview";

/// A webhook of a stored configuration.
#[derive(Debug)]
pub struct Webhook {
    /// The name; several webhooks may have the same.
    pub name: String,
    /// The name of the configuration.
    pub configuration: String,
    /// A text that no other webhook of the same kind has.
    pub id: String,
    /// The requests that it reviews.
    pub constraints: Constraints,
    /// The effect of a failed call.
    pub failure_policy: FailurePolicy,
    /// The time limit of a call, if there is one.
    pub timeout: Option<Duration>,
    /// True if it is called again after others changed the object.
    pub is_reinvoked: bool,
    /// The server, or the reason why there is none.
    pub client: Result<ClientConfig, String>,
    side_effects: String,
    /// The first known version in `admissionReviewVersions`.
    review_version: Option<&'static str>,
    #[cfg(feature = "cel")]
    match_conditions: MatchConditions,
}

impl Webhook {
    /// Reads the webhooks of a configuration, in order.
    pub fn read_all(configuration: &Value) -> Vec<Self> {
        let configuration_name = text_at(configuration, "/metadata/name");
        let mut known: BTreeMap<&str, usize> = BTreeMap::new();
        let read = |value| {
            let count = known.entry(text(value, "name")).or_default();
            let webhook = Self::read(value, configuration_name, *count);
            *count += 1;
            webhook
        };
        list(configuration, "webhooks").map(read).collect()
    }

    fn read(value: &Value, configuration: &str, number: usize) -> Self {
        let name = text(value, "name").to_owned();
        let versions = list(value, "admissionReviewVersions").filter_map(Value::as_str);
        let mut known = versions.filter_map(|version| {
            let mut known = REVIEW_VERSIONS.into_iter();
            known.find(|known| *known == version)
        });
        let client = value.get("clientConfig").unwrap_or(&Value::Null);
        let timeout = value.get("timeoutSeconds").and_then(Value::as_u64);
        Self {
            id: format!("{configuration}/{name}/{number}"),
            configuration: configuration.to_owned(),
            constraints: Constraints::of_webhook(value),
            failure_policy: FailurePolicy::read(value),
            timeout: timeout.map(Duration::from_secs),
            is_reinvoked: text(value, "reinvocationPolicy") == "IfNeeded",
            client: ClientConfig::read(client),
            side_effects: text(value, "sideEffects").to_owned(),
            review_version: known.next(),
            #[cfg(feature = "cel")]
            match_conditions: MatchConditions::of_webhook(value),
            name,
        }
    }

    /// Returns true if it has conditions for the requests that its rules match.
    #[cfg(feature = "cel")]
    pub fn has_conditions(&self) -> bool {
        !self.match_conditions.is_empty()
    }

    /// Reports whether the request meets the conditions.
    ///
    /// # Errors
    ///
    /// A condition fails, and failures count; the text is upstream's.
    #[cfg(feature = "cel")]
    pub fn meets_conditions(&self, inputs: &Inputs) -> Result<bool, String> {
        match self.match_conditions.evaluate_alone(inputs) {
            Match::Met => Ok(true),
            Match::Unmet => Ok(false),
            Match::Failed(_) if self.failure_policy == FailurePolicy::Ignore => Ok(false),
            Match::Failed(text) => Err(text),
        }
    }

    /// Returns the review of a request, whose objects are in the matched version.
    ///
    /// # Errors
    ///
    /// The request is a dry run, and the webhook has side effects; or the webhook knows no version
    /// of reviews.
    ///
    /// Upstream: `CreateAdmissionObjects`
    pub fn review(
        &self,
        uid: &str,
        attributes: &Attributes<'_>,
        matched: &Equivalent,
    ) -> Result<Value, Failure> {
        if attributes.dry_run {
            self.check_dry_run()?;
        }
        let version = self.review_version.ok_or_else(|| {
            let why = "could not create admission objects: webhook does not accept known \
                       AdmissionReview versions (v1, v1beta1)";
            Failure::Call(why.to_owned())
        })?;
        let object = |object: Option<&Value>| object.cloned().unwrap_or_default();
        let mut request = attributes.request(&matched.kind, &matched.resource);
        request["uid"] = json!(uid);
        request["object"] = object(attributes.object);
        request["oldObject"] = object(attributes.old_object);
        Ok(json!({
            "kind": KIND,
            "apiVersion": format!("{GROUP}/{version}"),
            "request": request,
        }))
    }

    fn check_dry_run(&self) -> Result<(), Failure> {
        match self.side_effects.as_str() {
            "None" | "NoneOnDryRun" => Ok(()),
            "" => Err(Failure::Call("Webhook SideEffects is nil".to_owned())),
            _ => Err(Failure::Request(ApiError::bad_request(format!(
                "admission webhook {:?} does not support dry run",
                self.name
            )))),
        }
    }

    /// Reads the response to the review with a uid.
    ///
    /// # Errors
    ///
    /// The response is no review or contradicts itself.
    pub fn verdict(&self, uid: &str, is_mutating: bool, reply: &Reply) -> Result<Verdict, Failure> {
        let version = self.review_version.unwrap_or(REVIEW_VERSIONS[0]);
        let review = reply.review(KIND, &format!("{GROUP}/{version}"));
        let review =
            review.map_err(|why| Failure::Call(format!("failed to call webhook: {why}")))?;
        let is_checked = version == REVIEW_VERSIONS[0];
        let verdict = Verdict::read(&review, &self.name, uid, (is_mutating, is_checked));
        verdict.map_err(|why| Failure::Call(format!("received invalid webhook response: {why}")))
    }

    /// Returns the error of a failure for the client; `None` if the failure is ignored.
    pub fn error(&self, failure: Failure) -> Option<ApiError> {
        match failure {
            Failure::Request(error) => Some(error),
            Failure::Call(_) if self.failure_policy == FailurePolicy::Ignore => None,
            Failure::Call(why) => {
                let text = format!("failed calling webhook {:?}: {why}", self.name);
                Some(ApiError::internal_error(&text))
            }
        }
    }
}
