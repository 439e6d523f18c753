//! Conversion of custom resources between the stored version and those of clients, by the webhook of
//! their definition if it has one.
//!
//! Upstream: `crConverter`, `schemaCoercingConverter` of `k8s.io/apiextensions-apiserver`

use bytes::Bytes;
use kube_test_control_plane_api::admission::webhooks::{CONVERSION_TIMEOUT, Conversion, Converter};
use kube_test_control_plane_api::custom::CustomResource;
use kube_test_control_plane_api::kinds::Kind;
use kube_test_control_plane_api::members::set_or_remove;
use kube_test_control_plane_api::object::{Draft, Object};
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use serde_json::{Value, json};

use crate::admission::Call;
use crate::faults::CalledWebhook;
use crate::state::Reads;

/// The end of a message about a call that took too long, as Go's HTTP client has it.
const EXPIRED: &str = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";

/// The use of earlier conversions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Earlier {
    /// The webhook is called, as for reads of single objects.
    Ignored,
    /// The webhook is called unless it has converted the same object before, as for lists, watches
    /// and updates.
    Used,
}

/// Returns true for a custom resource whose objects a webhook converts.
pub(crate) fn has_webhook(kind: &Kind) -> bool {
    let custom = kind.custom.as_ref();
    custom.is_some_and(|custom| custom.conversion_webhook().is_some())
}

/// Converts an object from the stored version to the one that `kind` serves. Does nothing to built-in
/// kinds.
///
/// # Errors
///
/// The webhook of the definition fails.
pub(crate) async fn to_served(
    reads: &Reads,
    kind: &Kind,
    draft: &mut Draft,
    earlier: Earlier,
) -> ApiResult<()> {
    let Some(custom) = &kind.custom else {
        return Ok(());
    };
    let version = kind.api_version();
    custom.default_stored(&version, &mut draft.value);
    convert(reads, custom, &mut draft.value, &version, earlier).await?;
    custom.coerce_served(&version, &mut draft.value);
    Ok(())
}

/// Converts an object from the version of a request to the stored one. Does nothing to built-in kinds.
///
/// # Errors
///
/// The webhook of the definition fails.
pub(crate) async fn to_stored(reads: &Reads, kind: &Kind, draft: &mut Draft) -> ApiResult<()> {
    let Some(custom) = &kind.custom else {
        return Ok(());
    };
    let version = &custom.stored_version;
    convert(reads, custom, &mut draft.value, version, Earlier::Ignored).await?;
    custom.coerce_stored(&mut draft.value);
    Ok(())
}

/// Converts an object of a request between two versions of a definition, of which `to` is a row. As in
/// upstream, fields that the version doesn't specify stay.
///
/// # Errors
///
/// The webhook of the definition fails.
pub(crate) async fn to_version(reads: &Reads, to: &Kind, value: &mut Value) -> ApiResult<()> {
    let Some(custom) = &to.custom else {
        return Ok(());
    };
    let version = to.api_version();
    convert(reads, custom, value, &version, Earlier::Used).await?;
    value["apiVersion"] = json!(version);
    Ok(())
}

/// Converts objects, so that [`known`] has them. Reading an object reports a failure.
pub(crate) async fn prepare(reads: &Reads, kind: &Kind, objects: &[impl AsRef<Object>]) {
    if !has_webhook(kind) {
        return;
    }
    for object in objects {
        let mut draft = object.as_ref().draft();
        drop(to_served(reads, kind, &mut draft, Earlier::Used).await);
    }
}

/// Returns an object in the version that `kind` serves, without a call.
///
/// # Errors
///
/// The webhook of the definition has not converted the object.
pub(crate) fn known(reads: &Reads, kind: &Kind, object: &Object) -> ApiResult<Draft> {
    let mut draft = object.draft();
    let Some(custom) = &kind.custom else {
        return Ok(draft);
    };
    let version = kind.api_version();
    custom.default_stored(&version, &mut draft.value);
    if Converter::of(custom, &draft.value, &version).is_some() {
        let asked = Asked::of(custom, &draft.value, &version);
        let found = reads.conversions.get(&asked.key).ok_or_else(|| {
            ApiError::internal(format!(
                "the webhook has not converted an object to {version}"
            ))
        })?;
        draft.value = asked.restored(found);
    }
    custom.coerce_served(&version, &mut draft.value);
    Ok(draft)
}

/// The object that a webhook converts. As in upstream, it has no resource version.
struct Asked {
    object: Value,
    resource_version: Option<Value>,
    key: String,
}

impl Asked {
    fn of(custom: &CustomResource, object: &Value, to: &str) -> Self {
        let mut object = object.clone();
        let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
        let resource_version = metadata.and_then(|it| it.remove("resourceVersion"));
        let webhook = custom.conversion_webhook().unwrap_or(&Value::Null);
        Self {
            key: format!("{to} {webhook} {object}"),
            object,
            resource_version,
        }
    }

    fn restored(self, mut converted: Value) -> Value {
        if let Some(metadata) = converted["metadata"].as_object_mut() {
            set_or_remove(metadata, "resourceVersion", self.resource_version);
        }
        converted
    }
}

/// Converts an object to a version by the webhook, if it needs one.
async fn convert(
    reads: &Reads,
    custom: &CustomResource,
    value: &mut Value,
    to: &str,
    earlier: Earlier,
) -> ApiResult<()> {
    let Some(converter) = Converter::of(custom, value, to) else {
        return Ok(());
    };
    let asked = Asked::of(custom, value, to);
    let known = match earlier {
        Earlier::Used => reads.conversions.get(&asked.key),
        Earlier::Ignored => None,
    };
    let converted = if let Some(converted) = known {
        converted
    } else {
        let converted = call(reads, &converter, &asked.object, to).await?;
        let key = asked.key.clone();
        reads.conversions.keep(key, converted.clone());
        converted
    };
    *value = asked.restored(converted);
    Ok(())
}

/// Calls the webhook.
async fn call(reads: &Reads, converter: &Converter, object: &Value, to: &str) -> ApiResult<Value> {
    let uid = reads.new_review_uid();
    let conversion = Conversion {
        object,
        to,
        uid: &uid,
    };
    let client = converter.client.as_ref();
    let client = client.map_err(|why| ApiError::internal(why.clone()))?;
    let body = Bytes::from(converter.review(conversion)?.to_string());
    let webhooks = &reads.webhooks.client;
    let call = Call {
        called: CalledWebhook {
            configuration: &converter.definition,
            webhook: "",
        },
        config: client,
        limit: CONVERSION_TIMEOUT,
        expired: EXPIRED,
        body,
    };
    converter.converted(conversion, webhooks.post(call).await)
}
