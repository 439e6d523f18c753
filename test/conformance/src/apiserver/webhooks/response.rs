//! The recorded response of a webhook.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::bail;
use bytes::Bytes;
use http::Response;
use http::header::CONTENT_TYPE;
use http_body_util::Full;
use json_patch::merge;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Content type of responses that don't have another one.
const JSON: &str = "application/json";

/// The response of a path.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::apiserver) struct RecordedResponse {
    /// The field `response` of the review; its uid is that of the request, unless it is given.
    response: Option<Value>,
    /// Fields that replace those of the review.
    #[serde(default)]
    review: Map<String, Value>,
    /// Status of a response that is no review.
    http: Option<u16>,
    /// Text of a response that is no review.
    #[serde(default)]
    body: String,
    /// Content type of a response that is no review.
    content_type: Option<String>,
    /// True if the connection ends without a response.
    #[serde(default)]
    close: bool,
    /// Time before the response, in seconds.
    delay: Option<f64>,
    /// Merge patches of the converted objects, by version.
    convert: Option<BTreeMap<String, Value>>,
    /// Merge patch of the converted objects' metadata.
    change_metadata: Option<Value>,
}

impl RecordedResponse {
    /// Returns the response of a path that the case doesn't know.
    pub(super) fn unknown_path() -> Self {
        Self {
            http: Some(404),
            ..Self::default()
        }
    }

    /// Returns the response to a review.
    ///
    /// # Errors
    ///
    /// The connection ends without a response.
    pub(super) async fn send(&self, review: &Value) -> anyhow::Result<Response<Full<Bytes>>> {
        if let Some(seconds) = self.delay {
            tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
        }
        if self.close {
            bail!("the recorded webhook closes the connection");
        }
        if let Some(status) = self.http {
            let content_type = self.content_type.as_deref().unwrap_or(JSON);
            let response = Response::builder().status(status);
            let response = response.header(CONTENT_TYPE, content_type);
            return Ok(response.body(self.body.clone().into())?);
        }
        let text = self.review(review).to_string();
        let response = Response::builder().header(CONTENT_TYPE, JSON);
        Ok(response.body(text.into())?)
    }

    fn review(&self, asked: &Value) -> Value {
        let request = &asked["request"];
        let mut response = match (&self.response, &self.convert) {
            (Some(response), _) => response.clone(),
            (None, Some(patches)) => self.conversion(request, patches),
            (None, None) => json!({}),
        };
        if let Some(members) = response.as_object_mut() {
            let uid = members.entry("uid").or_insert(Value::Null);
            if uid.is_null() {
                *uid = request["uid"].clone();
            }
        }
        let mut review = json!({
            "apiVersion": asked["apiVersion"], "kind": asked["kind"], "response": response,
        });
        if let Some(members) = review.as_object_mut() {
            members.extend(self.review.clone());
        }
        review
    }

    fn conversion(&self, request: &Value, patches: &BTreeMap<String, Value>) -> Value {
        let desired = &request["desiredAPIVersion"];
        let patch = desired.as_str().and_then(|version| patches.get(version));
        let objects = request["objects"].as_array().into_iter().flatten();
        let converted = objects.cloned().map(|mut object| {
            object["apiVersion"] = desired.clone();
            if let Some(patch) = patch {
                merge(&mut object, patch);
            }
            if let Some(patch) = &self.change_metadata {
                merge(&mut object["metadata"], patch);
            }
            object
        });
        json!({"result": {"status": "Success"}, "convertedObjects": converted.collect::<Vec<_>>()})
    }
}
