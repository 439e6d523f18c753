//! Tests of the classification and the texts of API errors.

use std::io::Error as IoError;

use super::*;
use crate::resource::{PODS, STATEFUL_SETS};

#[test]
fn classification_follows_reason() {
    assert!(Error::api(404, "NotFound", "x").is_not_found());
    assert!(Error::api(409, "Conflict", "x").is_conflict());
    assert!(Error::api(422, "Invalid", "x").is_invalid());
    assert!(Error::api(409, "AlreadyExists", "x").is_already_exists());
    assert!(!Error::api(409, "AlreadyExists", "x").is_conflict());
    assert!(!Error::api(404, "Forbidden", "x").is_not_found());
}

#[test]
fn code_decides_without_standard_reason() {
    for reason in ["", "SomethingElse"] {
        assert!(Error::api(404, reason, "x").is_not_found());
        assert!(Error::api(409, reason, "x").is_conflict());
        assert!(Error::api(422, reason, "x").is_invalid());
        assert!(!Error::api(409, reason, "x").is_already_exists());
    }
}

#[test]
fn expired_version_is_detected_by_reason_or_code() {
    assert!(Error::api(410, "Expired", "x").is_expired());
    assert!(Error::api(410, "Gone", "x").is_expired());
    assert!(Error::api(410, "", "x").is_expired());
    assert!(!Error::api(404, "NotFound", "x").is_expired());
}

#[test]
fn api_error_prints_only_server_message() {
    let error = Error::api(404, "NotFound", "pods \"web-0\" not found");
    assert_eq!(error.to_string(), "pods \"web-0\" not found");
}

#[test]
fn status_body_is_kept_unchanged() {
    let body = br#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"m",
        "reason":"AlreadyExists","details":{"causes":[{"reason":"NamespaceTerminating"}]},"code":409}"#;
    let error = Error::from_response(409, body, "POST", PODS.group_resource(), "");
    let status = error.status().unwrap();
    assert_eq!(
        (status.code, status.reason.as_str(), status.message.as_str()),
        (409, "AlreadyExists", "m")
    );
    assert!(status.has_cause("NamespaceTerminating"));
    assert!(!status.has_cause("Other"));
}

#[test]
fn status_body_without_code_gets_http_code() {
    let body = br#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"m"}"#;
    let error = Error::from_response(409, body, "PUT", PODS.group_resource(), "web-0");
    assert_eq!(error.status().unwrap().code, 409);
    assert!(error.is_conflict());
}

#[test]
fn foreign_body_gets_message_of_its_code() {
    let resource = STATEFUL_SETS.group_resource();
    let text = |code, body: &str, verb, name| {
        Error::from_response(code, body.as_bytes(), verb, resource, name).to_string()
    };
    assert_eq!(
        text(502, "Bad Gateway", "GET", "web"),
        "an error on the server (\"Bad Gateway\") has prevented the request from succeeding \
         (get statefulsets.apps web)"
    );
    assert_eq!(
        text(404, "404 page not found", "GET", ""),
        "the server could not find the requested resource (get statefulsets.apps)"
    );
    assert!(Error::from_response(409, b"", "POST", resource, "").is_already_exists());
    assert!(Error::from_response(409, b"", "PUT", resource, "web").is_conflict());
}

#[test]
fn foreign_body_is_truncated() {
    let resource = PODS.group_resource();
    let quoted = |body: &str| {
        let error = Error::from_response(415, body.as_bytes(), "GET", resource, "");
        error.to_string().matches('é').count()
    };
    assert_eq!(quoted(&"é".repeat(1000)), 1000);
    assert_eq!(quoted(&format!("x{}", "é".repeat(2000))), 1023);
}

#[test]
fn transport_error_names_causes_once() {
    let inner = std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "connection refused");
    let error = Error::Transport {
        action: "GET /api/v1/pods".to_owned(),
        source: Box::new(inner),
    };
    assert_eq!(error.to_string(), "GET /api/v1/pods: connection refused");
    assert!(error.is_transport());
}

#[test]
fn tls_failures_are_distinguished() {
    let transport = |source: Box<dyn StdError + Send + Sync>| Error::Transport {
        action: "GET /healthz".to_owned(),
        source,
    };
    let tls = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
    assert!(transport(Box::new(IoError::other(IoError::other(tls.clone())))).is_tls());
    assert!(transport(Box::new(tls)).is_tls());
    let refused = IoError::from(std::io::ErrorKind::ConnectionRefused);
    assert!(!transport(Box::new(refused)).is_tls());
}

#[test]
fn missing_permission_differs_from_other_forbidden_errors() {
    let forbidden = |message: &str| Error::api(403, "Forbidden", message);
    let missing =
        "pods is forbidden: User \"jane\" cannot create resource \"pods\" in API group \"\"";
    assert!(forbidden(missing).is_missing_right());
    for other in [
        "pods \"web-0\" is forbidden: exceeded quota: q",
        "pods \"web-0\" is forbidden: unable to create new content in namespace ns because it is being terminated",
    ] {
        assert!(!forbidden(other).is_missing_right(), "{other}");
    }
    assert!(!Error::api(409, "Conflict", missing).is_missing_right());
}

#[test]
fn failure_of_a_token_request_says_nothing_about_the_request() {
    let reset = || IoError::from(std::io::ErrorKind::ConnectionReset);
    let asked = Error::Transport {
        action: "create serviceaccounts/token".to_owned(),
        source: Box::new(reset()),
    };
    let no_token = NoToken::Failed {
        account: "kube-system/x".to_owned(),
        source: Preparation::new(asked),
    };
    let error = Error::NoCredentials {
        action: "list pods".to_owned(),
        source: Box::new(no_token),
    };
    assert_eq!(
        error.to_string(),
        "list pods: cannot get a token of the service account kube-system/x: create \
         serviceaccounts/token: connection reset"
    );
    let is_io = |error: &(dyn StdError + 'static)| error.is::<IoError>();
    assert!(!causes(&error).any(is_io));
    let mut chain = std::iter::successors(Some(&error as &dyn StdError), |&error| error.source());
    assert!(chain.any(|error| error.to_string() == reset().to_string()));
}

#[test]
fn plugin_failures_keep_their_source() {
    let missing = IoError::from(std::io::ErrorKind::NotFound);
    let error = NoToken::from(PluginError::Start(Preparation::new(missing)));
    assert_eq!(
        error.to_string(),
        "cannot run the credential plugin: entity not found"
    );
    let NoToken::Plugin(PluginError::Start(source)) = &error else {
        panic!("{error}");
    };
    let source = source.error().downcast_ref::<IoError>();
    assert_eq!(
        source.map(IoError::kind),
        Some(std::io::ErrorKind::NotFound)
    );
}
