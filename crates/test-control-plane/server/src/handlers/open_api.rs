//! `OpenAPI` documents over HTTP: immutable with a hash in the URL, else revalidated.

use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, EXPIRES, IF_NONE_MATCH, LOCATION, VARY,
};
use http::{HeaderName, HeaderValue, StatusCode};
use jiff::{Timestamp, ToSpan, tz::TimeZone};
use kube_test_control_plane_api::open_api::{self, Documents};
use kube_test_control_plane_api::response::negotiate;

use crate::config::EmulatedVersion;
use crate::incoming::Incoming;
use crate::reply::{self, Reply};

/// Returns the index, or the document of a group version.
pub(crate) fn answer(
    wanted: Option<&(String, String)>,
    of_custom: &Documents,
    emulated: EmulatedVersion,
    incoming: &Incoming,
    now: Timestamp,
) -> Reply {
    let Some((group, version)) = wanted else {
        return reply::plain(StatusCode::OK, open_api::index(of_custom, emulated));
    };
    let Some(document) = open_api::document(of_custom, emulated, group, version) else {
        let mut reply = reply::plain(StatusCode::NOT_FOUND, "");
        reply.headers_mut().remove(CONTENT_TYPE);
        return reply;
    };
    let accept = incoming.header(ACCEPT);
    if !accept.is_empty() && !negotiate::takes_json(accept) {
        return reply::plain(StatusCode::NOT_ACCEPTABLE, "");
    }
    let etag = format!("\"{}\"", document.hash);
    let hash = incoming.query.get("hash");
    let mut reply = if hash.is_some_and(|hash| hash != document.hash) {
        let mut reply = reply::plain(StatusCode::MOVED_PERMANENTLY, "");
        set(&mut reply, LOCATION, &document.url);
        return reply;
    } else if incoming.header(IF_NONE_MATCH) == etag {
        reply::plain(StatusCode::NOT_MODIFIED, "")
    } else {
        reply::document(StatusCode::OK, document.text.clone())
    };
    set(&mut reply, CONTENT_TYPE, "application/json");
    set(&mut reply, ETAG, &etag);
    set(&mut reply, VARY, "Accept");
    if hash.is_some() {
        set(&mut reply, CACHE_CONTROL, "public, immutable");
        set(&mut reply, EXPIRES, &in_a_year(now));
    }
    reply
}

/// The media type of the document in v2 as protobuf, and the deprecated one that kubectl sends.
const PROTOBUF_V2: [&str; 2] = [
    "com.github.proto-openapi.spec.v2.v1.0+protobuf",
    "com.github.proto-openapi.spec.v2@v1.0+protobuf",
];

/// Returns the document of all resources in v2.
pub(crate) fn v2(of_custom: &Documents, emulated: EmulatedVersion, incoming: &Incoming) -> Reply {
    let accept = incoming.header(ACCEPT);
    let takes_protobuf = PROTOBUF_V2
        .iter()
        .any(|media_type| negotiate::names(accept, "application", media_type));
    if !takes_protobuf && !accept.is_empty() && !negotiate::takes_json(accept) {
        let mut reply = reply::plain(StatusCode::NOT_ACCEPTABLE, "");
        reply.headers_mut().remove(CONTENT_TYPE);
        return reply;
    }
    let document = open_api::v2(of_custom, emulated);
    let text = document.to_string();
    let etag = format!("\"{}\"", open_api::hash(text.as_bytes()));
    let mut reply = if incoming.header(IF_NONE_MATCH) == etag {
        reply::plain(StatusCode::NOT_MODIFIED, "")
    } else if takes_protobuf {
        reply::document(StatusCode::OK, open_api::v2::protobuf::encode(&document))
    } else {
        reply::document(StatusCode::OK, text)
    };
    let media_type = if takes_protobuf {
        format!("application/{}", PROTOBUF_V2[0])
    } else {
        "application/json".to_owned()
    };
    set(&mut reply, CONTENT_TYPE, &media_type);
    set(&mut reply, ETAG, &etag);
    set(&mut reply, VARY, "Accept");
    reply
}

fn in_a_year(now: Timestamp) -> String {
    let then = now.to_zoned(TimeZone::UTC).saturating_add(1.year());
    then.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

fn set(reply: &mut Reply, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        reply.headers_mut().insert(name, value);
    }
}
