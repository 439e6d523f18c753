//! Logs of containers.

use futures::StreamExt;
use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use kube_test_control_plane_api::query::Query;
use kube_test_control_plane_api::status::{ApiError, ApiResult, FieldError};
use kube_test_control_plane_store::clock::Clock;
use serde_json::json;

use super::container::{container, existing, pod_address};
use crate::containers::{KubeletError, LogOptions};
use crate::reply::{self, Reply};
use crate::route::ResourceRequest;
use crate::state::Streams;

/// Returns the log of a container; empty without a kubelet, and for a pod without a node.
pub(crate) async fn pod_log(
    streams: &Streams,
    request: &ResourceRequest,
    query: &Query,
) -> ApiResult<Reply> {
    let options = log_options(streams.reads.clock(), &request.name, query)?;
    let pod = existing(&streams.reads, request)?;
    let container = container(&pod, &request.name, query.get("container"))?;
    let Some(address) = pod_address(&streams.reads, request, &pod)? else {
        return Ok(reply::text(StatusCode::OK, ""));
    };
    let Some(kubelets) = streams.kubelets() else {
        return Ok(reply::text(StatusCode::OK, ""));
    };
    let refused = |error| as_error(error, &request.name);
    let pod = kubelets.find(address).await.map_err(refused)?;
    let pieces = pod.log(&container, &options).map_err(refused)?;
    if options.follow {
        return Ok(reply::streamed_text(pieces));
    }
    let pieces: Vec<_> = pieces.collect().await;
    Ok(reply::text(StatusCode::OK, pieces.concat()))
}

/// Reads and validates the parameters.
///
/// Upstream: `ValidatePodLogOptions`
pub(super) fn log_options(clock: &dyn Clock, name: &str, query: &Query) -> ApiResult<LogOptions> {
    let tail = query.integer("tailLines")?;
    let limit = query.integer("limitBytes")?;
    let seconds = query.integer("sinceSeconds")?;
    let time = query.get("sinceTime").map(parse_time).transpose()?;
    let mut errors = Vec::new();
    if let Some(lines @ ..0) = tail {
        let message = "must be greater than or equal to 0";
        errors.push(FieldError::invalid("tailLines", &json!(lines), message));
    }
    if let Some(bytes @ ..1) = limit {
        errors.push(FieldError::invalid("limitBytes", &json!(bytes), POSITIVE));
    }
    match (seconds, time) {
        (Some(_), Some(_)) => errors.push(FieldError::forbidden("", ONE_START)),
        (Some(seconds @ ..1), None) => {
            errors.push(FieldError::invalid(
                "sinceSeconds",
                &json!(seconds),
                POSITIVE,
            ));
        }
        _ => {}
    }
    if !errors.is_empty() {
        return Err(ApiError::invalid_kind("PodLogOptions", "", name, &errors));
    }
    let before = |seconds| {
        let now = clock.now();
        now.saturating_sub(SignedDuration::from_secs(seconds))
            .unwrap_or(now)
    };
    Ok(LogOptions {
        follow: query.flag("follow"),
        previous: query.flag("previous"),
        timestamps: query.flag("timestamps"),
        since: time.or(seconds.map(before)),
        tail: tail.and_then(|lines| u64::try_from(lines).ok()),
        limit_bytes: limit.and_then(|bytes| u64::try_from(bytes).ok()),
    })
}

const POSITIVE: &str = "must be greater than 0";
const ONE_START: &str = "at most one of `sinceTime` or `sinceSeconds` may be specified";

fn parse_time(text: &str) -> ApiResult<Timestamp> {
    text.parse().map_err(|_| {
        ApiError::bad_request(format!(
            "parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text:?} as \
             \"2006\""
        ))
    })
}

/// Returns the API server's response for the error of a kubelet.
///
/// Upstream: `GenericHttpResponseChecker.Check`
fn as_error(error: KubeletError, name: &str) -> ApiError {
    match error.code {
        400 => ApiError::bad_request(error.message),
        404 => ApiError::new(
            404,
            "NotFound",
            format!("the server could not find the requested resource ( pods/log {name})"),
        ),
        500 => ApiError::internal_error(&error.message),
        _ => ApiError::internal(error.message),
    }
}
