//! Conversion of custom resources by the webhook of their definition: the review, and the reading of
//! its response.
//!
//! Nothing here sends a request.
//!
//! Upstream: `webhookConverter` of `k8s.io/apiextensions-apiserver`

mod metadata;

use std::time::Duration;

use serde_json::{Value, json};

use super::client::ClientConfig;
use super::reply::Reply;
use crate::custom::CustomResource;
use crate::members::{list, text, text_at};
use crate::status::{ApiError, ApiResult};

/// The time limit of a call.
pub const CONVERSION_TIMEOUT: Duration = Duration::from_secs(30);

const GROUP: &str = "apiextensions.k8s.io";
const KIND: &str = "ConversionReview";

/// The versions of reviews that upstream knows.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// The webhook that converts the objects of a definition.
#[derive(Clone, Debug)]
pub struct Converter {
    /// The name of the definition.
    pub definition: String,
    /// The way to the webhook, or the reason why there is none.
    pub client: Result<ClientConfig, String>,
    /// The first known version of reviews that the webhook accepts.
    review_version: Option<&'static str>,
}

/// A conversion in progress.
#[derive(Clone, Copy, Debug)]
pub struct Conversion<'a> {
    /// The object, whose version is another one than the desired one.
    pub object: &'a Value,
    /// The desired `apiVersion`.
    pub to: &'a str,
    /// The uid of the review.
    pub uid: &'a str,
}

impl Converter {
    /// Returns the converter of a custom resource if an object needs one: it has another `apiVersion`
    /// than the desired one, and its definition names a webhook.
    pub fn of(custom: &CustomResource, object: &Value, to: &str) -> Option<Self> {
        let webhook = custom.conversion_webhook()?;
        if text(object, "apiVersion") == to || is_empty(object) {
            return None;
        }
        let versions = list(webhook, "conversionReviewVersions").filter_map(Value::as_str);
        let mut known = versions.filter_map(|version| {
            let mut known = REVIEW_VERSIONS.into_iter();
            known.find(|known| *known == version)
        });
        let client = webhook.get("clientConfig").unwrap_or(&Value::Null);
        Some(Self {
            definition: custom.definition.clone(),
            client: ClientConfig::read(client),
            review_version: known.next(),
        })
    }

    /// Returns the review of a conversion.
    ///
    /// # Errors
    ///
    /// The webhook knows no version of reviews.
    ///
    /// Upstream: `createConversionReviewObjects`
    pub fn review(&self, conversion: Conversion<'_>) -> ApiResult<Value> {
        let version = self.review_version.ok_or_else(|| {
            ApiError::internal("no supported conversion review versions".to_owned())
        })?;
        Ok(json!({
            "kind": KIND,
            "apiVersion": format!("{GROUP}/{version}"),
            "request": {
                "uid": conversion.uid,
                "desiredAPIVersion": conversion.to,
                "objects": [conversion.object],
            },
            "response": {"uid": "", "convertedObjects": null, "result": {"metadata": {}}},
        }))
    }

    /// Returns the object in the response of the webhook, or the error if there is none.
    ///
    /// # Errors
    ///
    /// There is no response, it reports a failure, or it contains another object.
    pub fn converted(
        &self,
        conversion: Conversion<'_>,
        reply: Result<Reply, String>,
    ) -> ApiResult<Value> {
        let from = conversion.object;
        let failed = |why: &str| {
            let (version, kind) = (text(from, "apiVersion"), text(from, "kind"));
            let what = format!("conversion webhook for {version}, Kind={kind}");
            ApiError::internal(format!("{what} {why}"))
        };
        let version = self.review_version.unwrap_or(REVIEW_VERSIONS[0]);
        let response = reply
            .and_then(|reply| reply.review(KIND, &format!("{GROUP}/{version}")))
            .and_then(|review| response(&review, version, conversion.uid))
            .map_err(|why| failed(&format!("failed: {why}")))?;
        let converted: Vec<&Value> = list(&response, "convertedObjects").collect();
        let [converted] = converted.as_slice() else {
            let count = converted.len();
            return Err(failed(&format!("returned {count} objects, expected 1")));
        };
        check_type(conversion, converted)
            .map_err(|why| failed(&format!("returned invalid object at index 0: {why}")))?;
        check_identity(from, converted)
            .map_err(|why| failed(&format!("returned invalid object: {why}")))?;
        metadata::restored(from, converted)
            .map_err(|why| failed(&format!("returned invalid metadata: {why}")))
    }
}

/// Returns true for an object with nothing but its type, which no webhook sees.
///
/// Upstream: `isEmptyUnstructuredObject`
fn is_empty(object: &Value) -> bool {
    let members = object.as_object();
    members.is_some_and(|it| it.len() == 2 && it.contains_key("kind"))
}

/// Returns the response of a review if it belongs to the request and reports a success.
///
/// Upstream: `getConvertedObjectsFromResponse`
fn response(review: &Value, version: &str, uid: &str) -> Result<Value, String> {
    let is_checked = version == REVIEW_VERSIONS[0];
    if is_checked {
        check_review(review, version)?;
    }
    let response = review.get("response").filter(|it| it.is_object());
    let response = response.ok_or("no response provided")?;
    let found = text(response, "uid");
    if is_checked && found != uid {
        return Err(format!("expected response.uid={uid:?}, got {found:?}"));
    }
    let status = text_at(response, "/result/status");
    if status == "Success" {
        return Ok(response.clone());
    }
    Err(match text_at(response, "/result/message") {
        "" => format!("response.result.status was '{status}', not 'Success'"),
        message => message.to_owned(),
    })
}

fn check_review(review: &Value, version: &str) -> Result<(), String> {
    let wanted = format!("{GROUP}/{version}, Kind={KIND}");
    let found = text(review, "apiVersion");
    let slash = if found.contains('/') { "" } else { "/" };
    let found = format!("{slash}{found}, Kind={}", text(review, "kind"));
    if found == wanted {
        return Ok(());
    }
    Err(format!(
        "expected webhook response of {wanted}, got {found}"
    ))
}

fn check_type(conversion: Conversion<'_>, converted: &Value) -> Result<(), String> {
    let (wanted, found) = (conversion.to, text(converted, "apiVersion"));
    if wanted != found {
        return Err(format!(
            "invalid groupVersion (expected {wanted}, received {found})"
        ));
    }
    let (wanted, found) = (text(conversion.object, "kind"), text(converted, "kind"));
    if wanted != found {
        return Err(format!(
            "invalid kind (expected {wanted}, received {found})"
        ));
    }
    Ok(())
}

/// Checks the fields that a conversion can't change.
///
/// Upstream: `validateConvertedObject`
fn check_identity(from: &Value, converted: &Value) -> Result<(), String> {
    for (name, shown) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let of = |object: &Value| text(&object["metadata"], name).to_owned();
        let (wanted, found) = (of(from), of(converted));
        if wanted != found {
            return Err(format!("must have the same {shown}: {wanted} != {found}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converter() -> Converter {
        Converter {
            definition: "widgets.a.b".to_owned(),
            client: Err(String::new()),
            review_version: Some("v1"),
        }
    }

    fn object() -> Value {
        json!({
            "apiVersion": "a.b/v1", "kind": "Widget",
            "metadata": {"name": "a", "uid": "u", "labels": {"x": "1"}, "generation": 3},
            "spec": {"host": "h"},
        })
    }

    fn convert(response: &Value) -> Result<Value, String> {
        let object = object();
        let conversion = Conversion {
            object: &object,
            to: "a.b/v2",
            uid: "r",
        };
        let review = json!({
            "kind": KIND, "apiVersion": "apiextensions.k8s.io/v1", "response": response,
        });
        let reply = Reply {
            code: 200,
            content_type: "application/json".to_owned(),
            body: review.to_string().into(),
        };
        let converted = converter().converted(conversion, Ok(reply));
        converted.map_err(|error| error.message)
    }

    fn success(change: impl FnOnce(&mut Value)) -> Value {
        let mut converted = object();
        converted["apiVersion"] = json!("a.b/v2");
        change(&mut converted);
        json!({"uid": "r", "result": {"status": "Success"}, "convertedObjects": [converted]})
    }

    #[test]
    fn metadata_comes_from_the_original_except_for_labels_and_annotations() {
        let response = success(|object| {
            object["metadata"] = json!({
                "name": "a", "uid": "u", "annotations": {"n": "v"}, "finalizers": ["f"],
            });
        });
        let expected = json!({
            "name": "a", "uid": "u", "generation": 3, "annotations": {"n": "v"},
        });
        assert_eq!(convert(&response).unwrap()["metadata"], expected);
    }

    #[test]
    fn wrong_responses_are_reported_as_upstream_does() {
        let start = "conversion webhook for a.b/v1, Kind=Widget";
        let failure = json!({"uid": "r", "result": {"status": "Failure"}});
        let told = json!({"uid": "r", "result": {"status": "Failure", "message": "no"}});
        let none = json!({"uid": "r", "result": {"status": "Success"}, "convertedObjects": []});
        for (response, expected) in [
            (
                failure,
                "failed: response.result.status was 'Failure', not 'Success'",
            ),
            (told, "failed: no"),
            (none, "returned 0 objects, expected 1"),
            (
                json!({"uid": "x"}),
                "failed: expected response.uid=\"r\", got \"x\"",
            ),
            (
                success(|it| it["apiVersion"] = json!("x/v1")),
                "returned invalid object at index 0: invalid groupVersion (expected a.b/v2, \
                 received x/v1)",
            ),
            (
                success(|it| it["metadata"]["uid"] = json!("w")),
                "returned invalid object: must have the same UID: u != w",
            ),
            (
                success(|it| it["metadata"]["labels"] = json!({"-": "v"})),
                "returned invalid metadata: metadata.labels: Invalid value: \"-\": name part must \
                 consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
                 an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used \
                 for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            ),
            (
                success(|it| it["metadata"]["labels"] = json!({"a": 5})),
                "returned invalid metadata: metadata.labels[a] must be a string, but is int64 in \
                 converted object",
            ),
        ] {
            let expected = format!("{start} {expected}");
            assert_eq!(convert(&response).unwrap_err(), expected);
        }
    }

    #[test]
    fn webhooks_without_a_known_version_get_no_review() {
        let object = object();
        let conversion = Conversion {
            object: &object,
            to: "a.b/v2",
            uid: "r",
        };
        let converter = Converter {
            review_version: None,
            ..converter()
        };
        let error = converter.review(conversion).unwrap_err();
        assert_eq!(error.message, "no supported conversion review versions");
    }
}
