//! The operator's webhooks: one rejects empty pages, one converts pages between their versions.
//!
//! In a test the control plane calls the handler. In a cluster the operator serves it on a port, behind
//! a proxy in its pod that terminates TLS for the service `default/pages`.

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Body;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use kube::core::DynamicObject;
use kube::core::admission::{AdmissionRequest, AdmissionResponse, AdmissionReview};
use kube::core::conversion::{ConversionRequest, ConversionResponse, ConversionReview};
use kube::core::crd::merge_crds;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tower::service_fn;

use super::{Page, v2};

/// A failure of the handler: the review can't be read.
pub(super) type Error = Box<dyn std::error::Error + Send + Sync>;

/// Returns the definition of pages in both versions.
pub(super) fn definition() -> Result<CustomResourceDefinition, Error> {
    let mut merged = merge_crds(vec![Page::crd(), v2::Page::crd()], "v1")?;
    merged.spec.conversion = Some(serde_json::from_value(json!({
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": client("/convert"),
            "conversionReviewVersions": ["v1"],
        },
    }))?);
    Ok(merged)
}

/// Returns the configuration of the webhook that reviews pages.
pub(super) fn configuration() -> Result<ValidatingWebhookConfiguration, Error> {
    Ok(serde_json::from_value(json!({
        "metadata": {"name": "pages"},
        "webhooks": [{
            "name": "pages.example.com",
            "clientConfig": client("/validate"),
            "rules": [{
                "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["pages"],
                "operations": ["CREATE", "UPDATE"],
            }],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }],
    }))?)
}

fn client(path: &str) -> Value {
    json!({"service": {"namespace": "default", "name": "pages", "path": path}})
}

/// Serves the webhooks on a port.
pub(super) async fn serve(listener: TcpListener) -> Result<(), Error> {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await?;
        while connections.try_join_next().is_some() {}
        connections.spawn(async move {
            let service = TowerToHyperService::new(service_fn(respond));
            let stream = TokioIo::new(stream);
            let server = Builder::new(TokioExecutor::new());
            // The client sees a broken connection, too.
            drop(server.serve_connection(stream, service).await);
        });
    }
}

/// Responds to a review.
pub(super) async fn respond<B>(request: Request<B>) -> Result<Response<Full<bytes::Bytes>>, Error>
where
    B: Body,
    B::Error: Into<Error>,
{
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(Into::into)?.to_bytes();
    match parts.uri.path() {
        "/validate" => reply(&validated(&body)?),
        "/convert" => reply(&converted(&body)?),
        _ => {
            let mut unknown = Response::default();
            *unknown.status_mut() = StatusCode::NOT_FOUND;
            Ok(unknown)
        }
    }
}

fn reply(review: &impl Serialize) -> Result<Response<Full<bytes::Bytes>>, Error> {
    Ok(Response::new(serde_json::to_vec(review)?.into()))
}

/// Rejects a page without text.
fn validated(body: &[u8]) -> Result<AdmissionReview<DynamicObject>, Error> {
    let review: AdmissionReview<Page> = serde_json::from_slice(body)?;
    let request: AdmissionRequest<Page> = review.try_into()?;
    let response = AdmissionResponse::from(&request);
    let is_empty = |page: &Page| page.spec.text.trim().is_empty();
    let response = if request.object.as_ref().is_some_and(is_empty) {
        response.deny("a page needs a text")
    } else {
        response
    };
    Ok(response.into_review())
}

/// Converts pages: `v1` has a text, `v2` its lines.
fn converted(body: &[u8]) -> Result<ConversionReview, Error> {
    let review: ConversionReview = serde_json::from_slice(body)?;
    let mut request = ConversionRequest::from_review(review)?;
    let objects = std::mem::take(&mut request.objects);
    let objects = objects
        .into_iter()
        .map(|mut page| {
            page["spec"] = if let Some(text) = page["spec"]["text"].as_str() {
                json!({"lines": text.lines().collect::<Vec<_>>()})
            } else {
                let lines: Vec<String> = serde_json::from_value(page["spec"]["lines"].take())?;
                json!({"text": lines.join("\n")})
            };
            page["apiVersion"] = json!(request.desired_api_version);
            Ok(page)
        })
        .collect::<Result<Vec<Value>, serde_json::Error>>()?;
    Ok(ConversionResponse::for_request(request)
        .success(objects)
        .into_review())
}
