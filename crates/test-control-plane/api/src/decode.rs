//! Decoding of request bodies: JSON, YAML and protobuf, and the kind that a body claims.

mod custom;
pub mod protobuf;
mod unrecognized;
mod yaml;

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use kube_apimachinery::json::replace_invalid_utf8;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::go;
use crate::kinds::{self, Kind};
use crate::object::Draft;
use crate::status::{ApiError, ApiResult};

pub use crate::go::json::make_whole_integers;

use self::unrecognized::unrecognized;
pub use self::yaml::{as_warnings, read as yaml, repeated_keys};

/// The media types of whole responses, in the order used by error messages.
pub(crate) const MEDIA_TYPES: &str =
    "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// The formats of request bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFormat {
    /// JSON, the default.
    Json,
    /// YAML.
    Yaml,
    /// Kubernetes' protobuf.
    Protobuf,
}

/// Returns the media type without its parameters.
pub(crate) fn media_type(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

impl BodyFormat {
    /// Returns the body format of a POST or PUT.
    ///
    /// # Errors
    ///
    /// 415 for any other media type.
    pub fn of(content_type: &str) -> ApiResult<Self> {
        match media_type(content_type) {
            "" | "application/json" => Ok(Self::Json),
            "application/yaml" => Ok(Self::Yaml),
            "application/vnd.kubernetes.protobuf" => Ok(Self::Protobuf),
            _ => Err(ApiError::new(
                415,
                "UnsupportedMediaType",
                format!(
                    "the body of the request was in an unknown format - accepted media types \
                     include: {MEDIA_TYPES}"
                ),
            )),
        }
    }
}

/// Replaces each byte of a JSON body that isn't UTF-8 by U+FFFD, as Go does. Invalid JSON stays as
/// it is, because errors quote it unchanged, and so does every other format.
pub fn as_utf8(content_type: &str, body: &Bytes) -> Bytes {
    let media_type = media_type(content_type);
    let is_json = media_type.is_empty() || media_type.ends_with("json");
    if !is_json || std::str::from_utf8(body).is_ok() || go::json::syntax_error(body).is_some() {
        return body.clone();
    }
    replace_invalid_utf8(body).into()
}

/// Decodes the object of a POST or PUT and checks that its kind matches the URL.
///
/// # Errors
///
/// 400 for a body that doesn't parse or has another kind.
pub fn object(kind: &Kind, format: BodyFormat, body: &[u8]) -> ApiResult<Draft> {
    let text = match format {
        BodyFormat::Json => Cow::Borrowed(body),
        BodyFormat::Yaml => yaml(body)
            .map_err(|why| unrecognized(&kind.kind, &why, body))?
            .to_string()
            .into_bytes()
            .into(),
        BodyFormat::Protobuf => {
            let mut draft = protobuf::object(kind, body)?;
            check_type_of_body(kind, &mut draft, body)?;
            return Ok(draft);
        }
    };
    let parsed = Draft::parse(kind, &text);
    // Computing Go's message is slow, so do it only for a body that looks wrong.
    let looks_wrong = |draft: &Draft| {
        let is_text = |member| {
            draft
                .value
                .get(member)
                .is_none_or(|v| v.is_string() || v.is_null())
        };
        !(is_text("apiVersion") && is_text("kind"))
    };
    let refused = |why: &str| {
        let why = format!("couldn't get version/kind; json parse error: {why}");
        unrecognized(&kind.kind, &why, body)
    };
    let mut draft = match parsed {
        Ok(draft) if !looks_wrong(&draft) => draft,
        _ if *text == *b"null" => Draft {
            value: json!({}),
            data: None,
        },
        parsed => {
            if let Some(why) = type_error(&text) {
                return Err(refused(&why));
            }
            parsed.map_err(|why| refused(&why))?
        }
    };
    check_type_of_body(kind, &mut draft, body)?;
    Ok(draft)
}

fn check_type_of_body(kind: &Kind, draft: &mut Draft, body: &[u8]) -> ApiResult<()> {
    if kind.custom.is_some() {
        return custom::check_type(kind, draft, body);
    }
    check_type(kind, draft)
}

/// Decodes any value, such as options; an empty body is null.
///
/// # Errors
///
/// 400 for a body that doesn't parse.
pub fn value(format: BodyFormat, body: &[u8]) -> ApiResult<Value> {
    if body.is_empty() {
        return Ok(Value::Null);
    }
    match format {
        BodyFormat::Json => serde_json::from_slice(body).map_err(|err| {
            let why = go::json::syntax_error(body).unwrap_or_else(|| err.to_string());
            ApiError::bad_request(why)
        }),
        BodyFormat::Yaml => yaml(body).map_err(ApiError::bad_request),
        BodyFormat::Protobuf => {
            protobuf::value(body).map_err(|err| ApiError::bad_request(err.to_string()))
        }
    }
}

/// The group versions that upstream still decodes scales of, but doesn't accept.
const SCALES: [&str; 3] = ["apps/v1beta1", "apps/v1beta2", "extensions/v1beta1"];

/// Returns the place in upstream's sources where the scheme of a group is made: each of the servers in
/// kube-apiserver has one.
fn scheme(group: &str) -> &'static str {
    match group {
        "apiextensions.k8s.io" => "pkg/apiserver/apiserver.go:55",
        "apiregistration.k8s.io" => "pkg/apiserver/scheme/scheme.go:28",
        _ => "pkg/api/legacyscheme/scheme.go:30",
    }
}

/// Checks kind and apiVersion in a body of a built-in kind and fills in missing ones.
///
/// # Errors
///
/// 400 if the body has another kind.
pub(crate) fn check_type(kind: &Kind, draft: &mut Draft) -> ApiResult<()> {
    let api_version = kind.api_version();
    let text = |member: &str, default: &str| -> String {
        let value = draft.value.get(member).and_then(Value::as_str);
        value
            .filter(|v| !v.is_empty())
            .unwrap_or(default)
            .to_owned()
    };
    let found_version = text("apiVersion", &api_version);
    let found_kind = text("kind", &kind.kind);
    if found_kind == "Scale" && found_kind == kind.kind && SCALES.contains(&&*found_version) {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({found_version}) does not match the expected API version \
             ({api_version})"
        )));
    }
    if found_version != api_version || found_kind != kind.kind {
        let short = found_version.rsplit('/').next().unwrap_or_default();
        let wanted = &kind.kind;
        let scheme = scheme(&kind.group);
        let known = kinds::by_kind(&found_version, &found_kind);
        let why = if known.is_some_and(|known| self::scheme(&known.group) == scheme) {
            let group = kind.group.split('.').next().unwrap_or_default();
            let group = if group.is_empty() { "core" } else { group };
            format!("converting ({short}.{found_kind}) to ({group}.{wanted}): unknown conversion")
        } else {
            format!(
                "no kind {found_kind:?} is registered for version {found_version:?} in scheme \
                 {scheme:?}"
            )
        };
        return Err(ApiError::bad_request(format!(
            "{found_kind} in version {short:?} cannot be handled as a {wanted}: {why}"
        )));
    }
    draft.value["apiVersion"] = json!(found_version);
    draft.value["kind"] = json!(found_kind);
    let metadata = draft.value.get("metadata");
    if let Some(metadata) = metadata.filter(|m| !m.is_object() && !m.is_null()) {
        let found = go::json::type_name(&metadata.to_string());
        return Err(ApiError::bad_request(format!(
            "{found_kind} in version {:?} cannot be handled as a {}: json: cannot unmarshal {found} \
             into Go struct field {found_kind}.metadata of type v1.ObjectMeta",
            kind.version, kind.kind
        )));
    }
    Ok(())
}

/// Returns the reason why the kind of JSON text can't be read, or `None` if it can.
pub(crate) fn type_error(text: &[u8]) -> Option<String> {
    if let Some(message) = go::json::syntax_error(text) {
        return Some(message);
    }
    if let Ok(members) = serde_json::from_slice::<BTreeMap<String, Box<RawValue>>>(text) {
        ["apiVersion", "kind"].iter().find_map(|member| {
            let raw = members.get(*member)?.get();
            let found = go::json::type_name(raw);
            (!matches!(found, "string" | "null")).then(|| {
                format!(
                    "json: cannot unmarshal {found} into Go struct field .{member} of type string"
                )
            })
        })
    } else {
        let found = go::json::type_name(&String::from_utf8_lossy(text));
        Some(format!(
            "json: cannot unmarshal {found} into Go value of type struct {{ APIVersion string \
             \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
             \"json:\\\"kind,omitempty\\\"\" }}"
        ))
    }
}
