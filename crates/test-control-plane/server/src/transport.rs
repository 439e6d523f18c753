//! HTTP layer between the wire and the handlers: reads bodies, and encodes responses with the
//! client's format, compression and headers.

use std::io::Write as _;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Buf, Bytes, BytesMut};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::stream;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName,
    USER_AGENT, VARY,
};
use http::response::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use http_body_util::{BodyExt, Collected};
use kube_test_control_plane_api::query::Query;
use kube_test_control_plane_api::response::negotiate::{self, Format, NegotiatedFormat};
use kube_test_control_plane_api::response::represent::protobuf;
use kube_test_control_plane_api::response::{pretty, yaml};
use kube_test_control_plane_api::status::{ApiError, ApiResult};

use crate::reply::{self, BoxError, Reply, Streamed};

/// Limit of a request body in bytes.
const BODY_MAX: usize = 3 * 1024 * 1024;

/// Limit of an oversized body, in bytes, that is read and dropped so that the client sees the
/// response.
const DRAINED_MAX: usize = 64 * 1024 * 1024;

/// Larger bodies than this, in bytes, are compressed for clients that accept it.
const GZIP_THRESHOLD: usize = 128 * 1024;

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
const FLOW_SCHEMA: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const PRIORITY_LEVEL: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

/// Reads a request's body.
///
/// # Errors
///
/// 413 for an oversized body, 400 for an incomplete one.
pub(crate) async fn read_body<B>(body: B) -> ApiResult<Bytes>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let mut body = pin!(body);
    let mut first = Bytes::new();
    let mut more = BytesMut::new();
    let mut size = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|err| {
            let err: BoxError = err.into();
            ApiError::bad_request(format!("reading the body: {err}"))
        })?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        size += data.remaining();
        if size > DRAINED_MAX {
            break;
        }
        if size > BODY_MAX {
            more.clear();
        } else if first.is_empty() {
            first = data;
        } else {
            if more.is_empty() {
                more.extend_from_slice(&first);
            }
            more.extend_from_slice(&data);
        }
    }
    if size > BODY_MAX {
        let message = format!("Request entity too large: limit is {BODY_MAX}");
        return Err(ApiError::new(413, "RequestEntityTooLarge", message));
    }
    Ok(if more.is_empty() {
        first
    } else {
        more.freeze()
    })
}

/// Returns the requested host; in-process requests may have none.
pub(crate) fn host(uri: &Uri, headers: &HeaderMap) -> String {
    let named = uri.authority().map(http::uri::Authority::as_str);
    let header = || headers.get(HOST).and_then(|value| value.to_str().ok());
    named.or_else(header).unwrap_or("localhost").to_owned()
}

/// Request properties that determine the response encoding.
pub(crate) struct ResponseEncoder {
    accept: NegotiatedFormat,
    pretty: bool,
    gzip: bool,
    head: bool,
    audit_id: HeaderValue,
}

impl ResponseEncoder {
    pub(crate) fn new(
        method: &Method,
        headers: &HeaderMap,
        query: &Query,
        stamps: &Stamps,
    ) -> Self {
        let header = |name| {
            let value: Option<&HeaderValue> = headers.get(name);
            value.and_then(|v| v.to_str().ok()).unwrap_or_default()
        };
        Self {
            accept: negotiate::plain(header(ACCEPT)),
            pretty: is_read_by_people(query, header(USER_AGENT)),
            gzip: takes_gzip(header(ACCEPT_ENCODING)),
            head: method == Method::HEAD,
            audit_id: headers
                .get(AUDIT_ID)
                .cloned()
                .unwrap_or_else(|| stamps.next()),
        }
    }

    /// Returns the request's id in the audit log.
    pub(crate) fn audit_id(&self) -> &str {
        self.audit_id.to_str().unwrap_or_default()
    }

    /// Adds the common response headers.
    pub(crate) fn stamp(self, reply: Reply, stamps: &Stamps) -> Reply {
        let mut reply = in_frames(reply);
        let headers = reply.headers_mut();
        headers.insert(AUDIT_ID, self.audit_id);
        headers.insert(FLOW_SCHEMA, stamps.flow_schema.clone());
        headers.insert(PRIORITY_LEVEL, stamps.priority_level.clone());
        reply
    }

    /// Encodes the response in the client's format and compression.
    pub(crate) async fn encode(&self, reply: Reply) -> Reply {
        let extensions = reply.extensions();
        let wanted = extensions
            .get::<NegotiatedFormat>()
            .copied()
            .unwrap_or(self.accept);
        let is_stream = extensions.get::<Streamed>().is_some();
        let is_json = reply
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|value| value.as_bytes().starts_with(b"application/json"));
        let is_yaml = is_json && wanted.format == Format::Yaml;
        let is_protobuf = is_json && wanted.format == Format::Protobuf;
        let is_pretty = is_json && (self.pretty || wanted.pretty) && !is_protobuf;
        if is_stream || !(is_yaml || is_protobuf || is_pretty || self.gzip || self.head) {
            return reply;
        }
        let (mut parts, body) = reply.into_parts();
        // The body is complete, so collecting it can't fail.
        let mut body = body
            .collect()
            .await
            .map(Collected::to_bytes)
            .unwrap_or_default();
        if is_yaml && let Some(text) = yaml::from_json(&body) {
            body = text.into();
            set_yaml(&mut parts.headers);
        } else if is_protobuf {
            body = in_protobuf(&mut parts, body);
        } else if is_pretty {
            body = pretty::indent(&body).into();
        }
        if self.gzip
            && body.len() > GZIP_THRESHOLD
            && let Ok(compressed) = gzip(&body)
        {
            body = compressed;
            let value = HeaderValue::from_static("gzip");
            parts.headers.insert(CONTENT_ENCODING, value);
            let value = HeaderValue::from_static("Accept-Encoding");
            parts.headers.append(VARY, value);
        }
        if self.head {
            let length = HeaderValue::from(body.len());
            parts.headers.insert(CONTENT_LENGTH, length);
            body = Bytes::new();
        }
        reply::with_body(parts, body)
    }
}

/// The media type of protobuf.
const PROTOBUF: HeaderValue = HeaderValue::from_static("application/vnd.kubernetes.protobuf");

/// Converts a body to protobuf; 406 if the object has no protobuf form.
fn in_protobuf(parts: &mut Parts, body: Bytes) -> Bytes {
    let encoded = protobuf::answer(&body).or_else(|err| {
        let error = ApiError::not_acceptable(err.to_string());
        parts.status = StatusCode::NOT_ACCEPTABLE;
        protobuf::answer(error.to_value().to_string().as_bytes())
    });
    encoded.map_or(body, |message| {
        parts.headers.insert(CONTENT_TYPE, PROTOBUF);
        message.into()
    })
}

/// Converts a JSON watch to protobuf frames; other responses stay unchanged. Fault rules apply to
/// the JSON lines before.
fn in_frames(reply: Reply) -> Reply {
    let extensions = reply.extensions();
    let wanted = extensions
        .get::<NegotiatedFormat>()
        .map(|wanted| wanted.format);
    if wanted != Some(Format::Protobuf) || extensions.get::<Streamed>().is_none() {
        return reply;
    }
    let (mut parts, body) = reply.into_parts();
    let media_type = HeaderValue::from_static("application/vnd.kubernetes.protobuf;stream=watch");
    parts.headers.insert(CONTENT_TYPE, media_type);
    let lines = (body, BytesMut::new());
    let frames = stream::try_unfold(lines, |(mut body, mut text)| async move {
        loop {
            if let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                let frame = protobuf::watch_frame(&text.split_to(end + 1))?;
                return Ok::<_, BoxError>(Some((Bytes::from(frame), (body, text))));
            }
            let Some(frame) = body.frame().await.transpose()? else {
                return Ok(None);
            };
            if let Ok(data) = frame.into_data() {
                text.extend_from_slice(&data);
            }
        }
    });
    reply::streamed(parts, frames)
}

fn set_yaml(headers: &mut HeaderMap) {
    let value = HeaderValue::from_static("application/yaml");
    if let Some(old) = headers.insert(CONTENT_TYPE, value)
        && let Some(parameters) = old.to_str().ok().and_then(|old| old.split_once(';'))
        && let Ok(value) = HeaderValue::from_str(&format!("application/yaml;{}", parameters.1))
    {
        headers.insert(CONTENT_TYPE, value);
    }
}

fn gzip(body: &[u8]) -> std::io::Result<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    encoder.write_all(body)?;
    Ok(encoder.finish()?.into())
}

fn takes_gzip(accept_encoding: &str) -> bool {
    accept_encoding
        .split(',')
        .any(|coding| coding.split(';').next().unwrap_or_default().trim() == "gzip")
}

/// Reports whether the client wants indented output, by parameter or user agent.
fn is_read_by_people(query: &Query, user_agent: &str) -> bool {
    match query.get("pretty") {
        Some(value) => matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True"),
        None => ["curl", "Wget", "Mozilla/5.0"]
            .iter()
            .any(|program| user_agent.starts_with(program)),
    }
}

/// The response header identifiers. They have a separate random source, so that reads don't change
/// the uids of objects.
#[derive(Debug)]
pub(crate) struct Stamps {
    seed: u64,
    used: AtomicU64,
    flow_schema: HeaderValue,
    priority_level: HeaderValue,
}

impl Stamps {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            used: AtomicU64::new(2),
            flow_schema: stamp(seed, 0),
            priority_level: stamp(seed, 1),
        }
    }

    fn next(&self) -> HeaderValue {
        stamp(self.seed, self.used.fetch_add(1, Ordering::Relaxed))
    }
}

/// Returns the uuid of a number, spread over all bits.
fn stamp(seed: u64, number: u64) -> HeaderValue {
    let spread = |mut bits: u64| {
        for factor in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb_u64] {
            bits = (bits ^ (bits >> 30)).wrapping_mul(factor);
        }
        bits ^ (bits >> 31)
    };
    let high = spread(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed);
    let low = spread(high ^ number);
    let bits = (u128::from(high) << 64) | u128::from(low);
    let id = uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid();
    let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
    let text = id.hyphenated().encode_lower(&mut text);
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::{Full, StreamBody};
    use std::collections::BTreeSet;

    #[tokio::test]
    async fn body_at_the_limit_is_accepted() {
        let body = vec![b'x'; BODY_MAX];
        assert_eq!(
            read_body(Full::new(Bytes::from(body))).await.unwrap().len(),
            BODY_MAX
        );
        let body = vec![b'x'; BODY_MAX + 1];
        let error = read_body(Full::new(Bytes::from(body))).await.unwrap_err();
        assert_eq!(error.code, 413);
        assert_eq!(error.details, None);
    }

    #[tokio::test]
    async fn body_parts_are_joined() {
        let frames = ["a", "bc", "", "d"]
            .map(|part| Ok::<_, std::io::Error>(http_body::Frame::data(Bytes::from(part))));
        let body = StreamBody::new(stream::iter(frames));
        assert_eq!(read_body(body).await.unwrap(), "abcd");
    }

    #[test]
    fn stamps_are_unique() {
        let stamps = Stamps::new(7);
        let drawn: BTreeSet<HeaderValue> = (0..1000)
            .map(|_| stamps.next())
            .chain([stamps.flow_schema.clone(), stamps.priority_level.clone()])
            .collect();
        assert_eq!(drawn.len(), 1002);
    }

    #[test]
    fn gzip_is_negotiated_by_name() {
        for (header, takes) in [
            ("deflate, gzip;q=1.0", true),
            ("", false),
            ("x-gzip", false),
        ] {
            assert_eq!(takes_gzip(header), takes, "{header}");
        }
    }
}
