//! Tests of authentication.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::HeaderValue;
use kube_test_control_plane::faults::{FaultAction, FaultError, RequestMatcher};
use serde_json::json;
use statefulset_client::fake::CapturedLog;
use statefulset_client::resource::Resource;
use statefulset_client::rest::RestClient;
use tokio::time::{Instant, advance, sleep};
use tokio_util::sync::CancellationToken;
use tracing::Level;

use super::*;
use crate::scripted::{client, failure};
use crate::serving::files::Refresh as _;
use crate::serving::fixture::{
    Ca, CertificateAttributes, authentication, create, plane, provider, reviewer, spawn,
};

const CONFIG_MAPS: Resource = Resource {
    group: "",
    version: "v1",
    plural: "configmaps",
    kind: "ConfigMap",
};

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(*name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn bearer(token: &str) -> HeaderMap {
    headers(&[("authorization", &format!("Bearer {token}"))])
}

#[tokio::test]
async fn all_users_are_anonymous_without_authenticators() {
    let authentication = authentication(None);
    assert!(!authentication.wants_certificates());
    let certificate = Ca::new().client("jane", "team");
    let user = authentication
        .authenticate(&[certificate], &bearer("a"))
        .await;
    assert_eq!(user.unwrap(), User::anonymous());
}

#[tokio::test]
async fn token_review_identifies_the_user() {
    let plane = plane(&["jane"]).await;
    let client = RestClient::new(plane.client());
    let authentication = authentication(Some(reviewer(client)));
    let known = authentication
        .authenticate(&[], &bearer("token-of-jane"))
        .await;
    let user = known.unwrap();
    assert_eq!(user.name, "jane");
    assert_eq!(user.groups, ["team", "system:authenticated"]);
    let unknown = authentication.authenticate(&[], &bearer("nobody's")).await;
    let Unauthenticated(why) = unknown.unwrap_err();
    assert!(why.contains("invalid bearer token"), "{why}");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn token_reviews_are_cached_but_failures_are_not() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let client = client(move |path| {
        assert_eq!(path, "/apis/authentication.k8s.io/v1/tokenreviews");
        let before = counted.fetch_add(1, Ordering::Relaxed);
        if before == 0 {
            return Ok(failure(403, "Forbidden", "may not ask"));
        }
        let status = json!({"authenticated": true, "user": {"username": "jane"}});
        Ok((
            201,
            json!({"metadata": {}, "spec": {"token": "a"}, "status": status}).to_string(),
        ))
    });
    let authentication = authentication(Some(reviewer(client)));
    let headers = bearer("a");
    let ask = || authentication.authenticate(&[], &headers);
    assert_eq!(ask().await, Err(Unauthenticated("may not ask".to_owned())));
    assert_eq!(ask().await.unwrap().name, "jane");
    advance(Duration::from_secs(9)).await;
    assert_eq!(ask().await.unwrap().name, "jane");
    assert_eq!(count.load(Ordering::Relaxed), 2);
    advance(Duration::from_secs(1)).await;
    assert_eq!(ask().await.unwrap().name, "jane");
    assert_eq!(count.load(Ordering::Relaxed), 3);
}

#[tokio::test(start_paused = true)]
async fn tokens_fail_while_the_api_server_is_down() {
    let client = client(|_| Err("connection refused"));
    let authentication = authentication(Some(reviewer(client)));
    let Unauthenticated(why) = authentication
        .authenticate(&[], &bearer("a"))
        .await
        .unwrap_err();
    assert!(why.contains("connection refused"), "{why}");
    // Requests without credentials need no API server.
    let anonymous = authentication.authenticate(&[], &HeaderMap::new()).await;
    assert_eq!(anonymous.unwrap(), User::anonymous());
}

#[test]
fn only_bearer_schemes_yield_tokens() {
    for (value, expected) in [
        ("Bearer a", Some("a")),
        ("  bearer a  ", Some("a")),
        ("BEARER a b", Some("a")),
        ("Bearer", None),
        ("Bearer ", None),
        ("Bearer  a", None),
        ("Basic a", None),
        ("", None),
    ] {
        let headers = headers(&[("authorization", value)]);
        assert_eq!(token::bearer(&headers), expected, "{value:?}");
    }
    assert_eq!(token::bearer(&HeaderMap::new()), None);
}

#[tokio::test]
async fn client_certificate_identifies_the_user() {
    let (ca, other) = (Ca::new(), Ca::new());
    let mut authentication = authentication(None);
    authentication.client_ca = Some(ca.client_ca());
    assert!(authentication.wants_certificates());
    let none = HeaderMap::new();

    let certificate = ca.client("jane", "devs");
    let chain = [certificate];
    let user = authentication.authenticate(&chain, &none).await.unwrap();
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("jane", ""));
    assert_eq!(user.groups, ["devs", "system:authenticated"]);
    let id = &user.extra[CREDENTIAL_ID][0];
    assert_eq!(id.len(), "X509SHA256=".len() + 64, "{id}");

    let nameless = [ca.client("", "devs")];
    let user = authentication.authenticate(&nameless, &none).await;
    assert_eq!(user.unwrap(), User::anonymous());
    let anonymous = authentication.authenticate(&[], &none).await;
    assert_eq!(anonymous.unwrap(), User::anonymous());

    let for_servers = CertificateAttributes {
        name: "jane",
        for_servers: true,
        ..CertificateAttributes::default()
    };
    let expired = CertificateAttributes {
        name: "jane",
        ends: 2025,
        ..CertificateAttributes::default()
    };
    for bad in [
        other.client("jane", ""),
        ca.sign(&for_servers).0,
        ca.sign(&expired).0,
        CertificateDer::from(vec![1, 2, 3]),
    ] {
        let Unauthenticated(why) = authentication
            .authenticate(&[bad], &none)
            .await
            .unwrap_err();
        assert!(why.starts_with("client certificate: "), "{why}");
    }
}

#[tokio::test]
async fn valid_token_outweighs_a_bad_certificate() {
    let plane = plane(&["jane"]).await;
    let mut authentication = authentication(Some(reviewer(RestClient::new(plane.client()))));
    authentication.client_ca = Some(Ca::new().client_ca());
    let stranger = [Ca::new().client("john", "")];
    let user = authentication
        .authenticate(&stranger, &bearer("token-of-jane"))
        .await;
    assert_eq!(user.unwrap().name, "jane");
    plane.stop().await;
}

#[tokio::test]
async fn authorities_reload_when_their_file_changes() {
    let (first, second) = (Ca::new(), Ca::new());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.crt");
    fs::write(&path, first.pem()).unwrap();
    let ca = Arc::new(ClientCa::file("client CA", &path, &provider()).unwrap());
    let mut authentication = authentication(None);
    authentication.client_ca = Some(Arc::clone(&ca));
    let chain = [second.client("jane", "")];
    let none = HeaderMap::new();
    assert!(authentication.authenticate(&chain, &none).await.is_err());
    fs::write(&path, format!("{}{}", first.pem(), second.pem())).unwrap();
    ca.refresh();
    let user = authentication.authenticate(&chain, &none).await.unwrap();
    assert_eq!(user.name, "jane");
    fs::write(&path, "").unwrap();
    ca.refresh();
    assert!(authentication.authenticate(&chain, &none).await.is_ok());
}

fn names(allowed: &[&str]) -> HeaderNames {
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    HeaderNames {
        allowed_names: texts(allowed),
        user: texts(&["X-Remote-User", "X-Other-User"]),
        uid: texts(&["X-Remote-Uid"]),
        groups: texts(&["X-Remote-Group"]),
        extra_prefixes: texts(&["X-Remote-Extra-"]),
    }
}

#[tokio::test]
async fn proxy_headers_identify_the_user() {
    let (ca, clients) = (Ca::new(), Ca::new());
    let mut authentication = authentication(None);
    authentication.client_ca = Some(clients.client_ca());
    authentication.request_header = Some(Arc::new(RequestHeader::new(
        ca.client_ca(),
        names(&["front-proxy"]),
    )));
    let given = headers(&[
        ("x-remote-user", "jane"),
        ("x-remote-uid", "7"),
        ("x-remote-group", "a"),
        ("x-remote-group", "b"),
        ("x-remote-extra-example.com%2fscope", "x"),
        ("x-remote-extra-example.com%2fscope", "y"),
    ]);
    let proxy = [ca.client("front-proxy", "")];
    let user = authentication.authenticate(&proxy, &given).await.unwrap();
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("jane", "7"));
    assert_eq!(user.groups, ["a", "b", "system:authenticated"]);
    assert_eq!(user.extra["example.com/scope"], ["x", "y"]);

    let second = headers(&[("x-other-user", "john")]);
    let user = authentication.authenticate(&proxy, &second).await.unwrap();
    assert_eq!(user.name, "john");

    // Headers of other clients are ignored.
    let liar = [clients.client("mallory", "")];
    let user = authentication.authenticate(&liar, &given).await.unwrap();
    assert_eq!(user.name, "mallory");
    let unknown = authentication.authenticate(&[], &given).await.unwrap();
    assert_eq!(unknown, User::anonymous());
    let misnamed = [ca.client("another-proxy", "")];
    let Unauthenticated(why) = authentication
        .authenticate(&misnamed, &given)
        .await
        .unwrap_err();
    let expected = "x509: subject with cn=another-proxy is not in the allowed list, ";
    assert!(why.starts_with(expected), "{why}");
}

fn config_map(client_ca: &Ca, proxy_ca: &Ca) -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"},
        "data": {
            "client-ca-file": client_ca.pem(),
            "requestheader-client-ca-file": proxy_ca.pem(),
            "requestheader-allowed-names": "[\"front-proxy\"]",
            "requestheader-username-headers": "[\"X-Remote-User\"]",
            "requestheader-group-headers": "[\"X-Remote-Group\"]",
            "requestheader-extra-headers-prefix": "[\"X-Remote-Extra-\"]",
        },
    })
}

#[tokio::test(start_paused = true)]
async fn cluster_settings_are_reread_and_applied() {
    let plane = plane(&[]).await;
    let client = RestClient::new(plane.client());
    let (old, new, proxies) = (Ca::new(), Ca::new(), Ca::new());
    let mut lookup = Lookup::new(client.clone(), provider(), true, true);
    lookup.look().await.unwrap();
    let mut authentication = authentication(None);
    authentication.client_ca = lookup.client_ca();
    authentication.request_header = lookup.request_header();
    let stop = CancellationToken::new();
    let following = spawn(lookup.follow(stop.clone()));
    let none = HeaderMap::new();
    let (old_chain, new_chain) = ([old.client("jane", "")], [new.client("john", "")]);

    // Without the ConfigMap no certificate is accepted.
    let user = authentication.authenticate(&old_chain, &none).await;
    assert_eq!(user.unwrap(), User::anonymous());

    create(
        &client,
        &CONFIG_MAPS,
        "kube-system",
        &config_map(&old, &proxies),
    )
    .await;
    sleep(Duration::from_secs(61)).await;
    let user = authentication.authenticate(&old_chain, &none).await;
    assert_eq!(user.unwrap().name, "jane");
    let given = headers(&[("x-remote-user", "joan"), ("x-remote-group", "g")]);
    let proxy = [proxies.client("front-proxy", "")];
    let user = authentication.authenticate(&proxy, &given).await.unwrap();
    assert_eq!((user.name.as_str(), user.groups.len()), ("joan", 2));

    let changed = config_map(&new, &proxies).to_string();
    let name = "extension-apiserver-authentication";
    let replaced = client.replace(&CONFIG_MAPS, "kube-system", name, changed);
    replaced.await.unwrap();
    sleep(Duration::from_secs(61)).await;
    assert!(
        authentication
            .authenticate(&old_chain, &none)
            .await
            .is_err()
    );
    let user = authentication.authenticate(&new_chain, &none).await;
    assert_eq!(user.unwrap().name, "john");

    // A failed read changes nothing.
    let message = "out of order".to_owned();
    let error = FaultAction::respond(FaultError::Forbidden { message });
    plane
        .server()
        .faults()
        .inject_always(RequestMatcher::any(), error);
    sleep(Duration::from_secs(121)).await;
    let user = authentication.authenticate(&new_chain, &none).await;
    assert_eq!(user.unwrap().name, "john");
    stop.cancel();
    following.await.unwrap();
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn unreadable_and_invalid_settings_are_reported() {
    let forbidden = client(|_| Ok(failure(403, "Forbidden", "configmaps is forbidden")));
    let mut lookup = Lookup::new(forbidden, provider(), true, true);
    let error = lookup.look().await.unwrap_err();
    assert!(error.is_forbidden());
    assert_eq!(
        error.to_string(),
        "cannot read ConfigMap kube-system/extension-apiserver-authentication: \
         configmaps is forbidden"
    );
    let bad = client(|_| {
        let map = json!({"metadata": {}, "data": {"requestheader-allowed-names": "x"}});
        Ok((200, map.to_string()))
    });
    let mut lookup = Lookup::new(bad, provider(), true, true);
    let error = lookup.look().await.unwrap_err();
    assert!(!error.is_forbidden());
    let expected = "cannot use ConfigMap kube-system/extension-apiserver-authentication: \
                    requestheader-allowed-names: ";
    assert!(error.to_string().starts_with(expected), "{error}");
}

#[tokio::test(start_paused = true)]
async fn recovered_settings_are_logged_and_applied() {
    let log = CapturedLog::at(Level::INFO);
    let ca = Ca::new();
    let map = config_map(&ca, &ca).to_string();
    let begin = Instant::now();
    let late = client(move |_| match begin.elapsed().as_secs() {
        0..20 => Err("connection refused"),
        20..40 => Ok(failure(403, "Forbidden", "configmaps is forbidden")),
        _ => Ok((200, map.clone())),
    });
    let lookup = Lookup::new(late, provider(), true, true);
    let mut authentication = authentication(None);
    authentication.client_ca = lookup.client_ca();
    let stop = CancellationToken::new();
    let following = spawn(lookup.follow(stop.clone()));
    sleep(Duration::from_secs(100)).await;
    let chain = [ca.client("jane", "")];
    let user = authentication.authenticate(&chain, &HeaderMap::new()).await;
    assert_eq!(user.unwrap().name, "jane");
    stop.cancel();
    following.await.unwrap();
    let log = log.take();
    // `ApiHealthLog` logs the outage.
    let is_failure = |line: &&String| line.contains("cannot read the cluster's authentication");
    let lines: Vec<_> = log.iter().filter(is_failure).collect();
    assert_eq!(lines.len(), 1, "{log:#?}");
    assert!(
        lines[0].ends_with(
            "bind the Role extension-apiserver-authentication-reader in kube-system to this user"
        ) || lines[0].contains("to this user error="),
        "{log:#?}"
    );
    assert!(
        log.last()
            .unwrap()
            .contains("read the cluster's authentication settings")
    );
}
