//! Reading request bodies: JSON and YAML, and which kind they claim to be.

use serde_json::{Value, json};

use crate::kinds::{self, Kind};
use crate::negotiate::MEDIA_TYPES;
use crate::object::Draft;
use crate::status::{ApiError, ApiResult};

/// The formats of objects in bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFormat {
    /// JSON, also where no format is named.
    Json,
    /// YAML.
    Yaml,
}

/// The media type without its parameters.
pub(crate) fn media_type(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

impl BodyFormat {
    /// The format of a POST or PUT.
    ///
    /// # Errors
    ///
    /// 415 for anything but JSON and YAML.
    pub(crate) fn of(content_type: &str) -> ApiResult<Self> {
        match media_type(content_type) {
            "" | "application/json" => Ok(Self::Json),
            "application/yaml" => Ok(Self::Yaml),
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

/// Reads the object of a POST or PUT and checks that it is of the kind that the URL names.
///
/// # Errors
///
/// 400 for a body that doesn't parse or is of another kind.
pub(crate) fn object(kind: &Kind, format: BodyFormat, body: &[u8]) -> ApiResult<Draft> {
    let text = match format {
        BodyFormat::Json => body.to_vec(),
        BodyFormat::Yaml => yaml(body)?.to_string().into_bytes(),
    };
    let mut draft = Draft::parse(kind, &text).map_err(|err| {
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): couldn't get version/kind; \
             json parse error: {}",
            kind.kind,
            parse_error(&text, &err)
        ))
    })?;
    check_type(kind, &mut draft)?;
    Ok(draft)
}

/// Reads any JSON or YAML value, such as options; an empty body is null.
///
/// # Errors
///
/// 400 for a body that doesn't parse.
pub(crate) fn value(format: BodyFormat, body: &[u8]) -> ApiResult<Value> {
    if body.is_empty() {
        return Ok(Value::Null);
    }
    match format {
        BodyFormat::Json => serde_json::from_slice(body)
            .map_err(|err| ApiError::bad_request(parse_error(body, &err))),
        BodyFormat::Yaml => yaml(body),
    }
}

/// Reads YAML.
///
/// # Errors
///
/// 400 for text that isn't YAML.
pub(crate) fn yaml(body: &[u8]) -> ApiResult<Value> {
    let text = String::from_utf8_lossy(body);
    serde_saphyr::from_str(&text)
        .map_err(|err| ApiError::bad_request(format!("error parsing YAML: {err}")))
}

/// Checks kind and apiVersion of a body, and fills them in if missing.
///
/// # Errors
///
/// 400 if the body is of another kind.
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
    let found_kind = text("kind", kind.kind);
    if found_version != api_version || found_kind != kind.kind {
        let short = found_version.rsplit('/').next().unwrap_or_default();
        let wanted = kind.kind;
        let why = if kinds::by_kind(&found_version, &found_kind).is_some() {
            let group = kind.group.split('.').next().unwrap_or_default();
            let group = if group.is_empty() { "core" } else { group };
            format!("converting ({short}.{found_kind}) to ({group}.{wanted}): unknown conversion")
        } else {
            format!(
                "no kind {found_kind:?} is registered for version {found_version:?} in scheme \
                 \"pkg/api/legacyscheme/scheme.go:30\""
            )
        };
        return Err(ApiError::bad_request(format!(
            "{found_kind} in version {short:?} cannot be handled as a {wanted}: {why}"
        )));
    }
    draft.value["apiVersion"] = json!(found_version);
    draft.value["kind"] = json!(found_kind);
    let metadata = draft.value.get("metadata");
    if metadata.is_some_and(|m| !m.is_object() && !m.is_null()) {
        return Err(ApiError::bad_request(format!(
            "{found_kind} in version {:?} cannot be handled as a {}: metadata is not an object",
            kind.version, kind.kind
        )));
    }
    Ok(())
}

/// The message of Go's JSON parser where it is known, with what was parsed.
fn parse_error(body: &[u8], err: &serde_json::Error) -> String {
    let text = String::from_utf8_lossy(body);
    let trimmed = text.trim_start();
    if trimmed.is_empty() {
        return "unexpected end of JSON input (<empty>)".to_owned();
    }
    if let Some(rest) = trimmed.strip_prefix('{') {
        let next = rest.trim_start().chars().next();
        let message = match next {
            Some(c) if c != '"' && c != '}' => {
                format!("invalid character '{c}' looking for beginning of object key string")
            }
            None => "unexpected end of JSON input".to_owned(),
            _ => err.to_string(),
        };
        return format!("{message} ({text})");
    }
    let hex: Vec<String> = body.iter().map(|b| format!("{b:02x}")).collect();
    let hex = hex.concat();
    if trimmed.starts_with('[') && serde_json::from_slice::<Value>(body).is_ok() {
        return format!(
            "json: cannot unmarshal array into Go value of type struct {{ APIVersion string \
             \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }} \
             ({hex})"
        );
    }
    format!("{err} ({hex})")
}
