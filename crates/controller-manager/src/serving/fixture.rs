//! Shared test fixtures of the endpoints: authorities, certificates, control planes, handlers.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Request;
use http_body_util::{BodyExt as _, Empty};
use jiff::Timestamp;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::auth::{Identity, Tokens as KnownTokens};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use statefulset_client::backoff::NoJitter;
use statefulset_client::clock::FakeClock;
use statefulset_client::resource::Resource;
use statefulset_client::rest::RestClient;
use tokio::task::JoinHandle;

use super::answer::Answer;
use super::authentication::{Authentication, Tokens};
use super::authorization::{AllowedPaths, Authorization, CacheTtls};
use super::client_ca::{Authorities, ClientCa};
use super::endpoints::Endpoints;
use super::handler::Handler;
use super::health::Health;
use super::review::Reviewer;
use super::zpages::StatusPage;

/// Default of `--authorization-always-allow-paths`.
const ALWAYS: [&str; 3] = ["/healthz", "/readyz", "/livez"];

pub(crate) const ROLES: Resource = rbac("clusterroles", "ClusterRole");
pub(crate) const BINDINGS: Resource = rbac("clusterrolebindings", "ClusterRoleBinding");

const fn rbac(plural: &'static str, kind: &'static str) -> Resource {
    Resource {
        group: "rbac.authorization.k8s.io",
        version: "v1",
        plural,
        kind,
    }
}

/// Current time of the tests.
pub(crate) fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// A certificate authority.
pub(crate) struct Ca(CertifiedIssuer<'static, KeyPair>);

/// Certificate attributes that matter to the tests.
#[derive(Default)]
pub(crate) struct CertificateAttributes<'a> {
    pub(crate) name: &'a str,
    pub(crate) group: &'a str,
    pub(crate) for_servers: bool,
    /// Year of expiry; 0 for a distant one.
    pub(crate) ends: i32,
}

impl Ca {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "ca");
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    pub(crate) fn authorities(&self) -> Authorities {
        Authorities::parse(self.pem().as_bytes(), &provider()).unwrap()
    }

    pub(crate) fn client_ca(&self) -> Arc<ClientCa> {
        Arc::new(ClientCa::looked_up(Some(self.authorities())))
    }

    pub(crate) fn sign(
        &self,
        wanted: &CertificateAttributes<'_>,
    ) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        let parts = [
            (DnType::OrganizationName, wanted.group),
            (DnType::CommonName, wanted.name),
        ];
        for (kind, text) in parts.into_iter().filter(|(_, text)| !text.is_empty()) {
            params.distinguished_name.push(kind, text);
        }
        params.extended_key_usages = vec![if wanted.for_servers {
            ExtendedKeyUsagePurpose::ServerAuth
        } else {
            ExtendedKeyUsagePurpose::ClientAuth
        }];
        if wanted.ends != 0 {
            params.not_after = rcgen::date_time_ymd(wanted.ends, 1, 1);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        (certificate.der().clone(), key.into())
    }

    /// A client certificate without its key.
    pub(crate) fn client(&self, name: &str, group: &str) -> CertificateDer<'static> {
        let wanted = CertificateAttributes {
            name,
            group,
            ..CertificateAttributes::default()
        };
        self.sign(&wanted).0
    }
}

/// A control plane that knows the tokens `token-of-NAME` of these users.
pub(crate) async fn plane(users: &[&str]) -> TestControlPlane {
    let mut tokens = KnownTokens::default();
    for user in users {
        tokens.insert(
            &format!("token-of-{user}"),
            Identity::user(*user).group("team"),
        );
    }
    TestControlPlane::builder().tokens(tokens).start().await
}

/// Grants a user verbs on paths.
pub(crate) async fn allow(client: &RestClient, user: &str, paths: &[&str], verbs: &[&str]) {
    let name = format!("of-{user}");
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [{"nonResourceURLs": paths, "verbs": verbs}],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name,
        },
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    create(client, &ROLES, "", &role).await;
    create(client, &BINDINGS, "", &binding).await;
}

pub(crate) async fn create(client: &RestClient, to: &Resource, namespace: &str, object: &Value) {
    client
        .create(to, namespace, object.to_string())
        .await
        .unwrap();
}

pub(crate) fn reviewer(client: RestClient) -> Reviewer {
    Reviewer::new(client, Arc::new(NoJitter))
}

pub(crate) fn authentication(reviewer: Option<Reviewer>) -> Authentication {
    Authentication {
        request_header: None,
        client_ca: None,
        tokens: reviewer.map(|it| Tokens::new(it, Duration::from_secs(10))),
        clock: Arc::new(FakeClock::new(now())),
    }
}

pub(crate) fn authorization(reviewer: Option<Reviewer>) -> Authorization {
    let ttls = CacheTtls {
        authorized: Duration::from_secs(10),
        unauthorized: Duration::from_secs(5),
    };
    Authorization::new(AllowedPaths::new(&ALWAYS).unwrap(), reviewer, ttls)
}

/// The endpoints, and the verbosity that was set last.
pub(crate) fn endpoints() -> (Endpoints, Arc<Mutex<Option<i32>>>) {
    let verbosity = Arc::new(Mutex::new(None));
    let set = Arc::clone(&verbosity);
    let endpoints = Endpoints {
        health: Arc::new(Health::default()),
        metrics: Box::new(|| "a_metric 1\n".to_owned()),
        configz: "{\"config\":{}}".to_owned(),
        flagz: Some(vec![("v".to_owned(), "0".to_owned())]),
        statusz: Some(StatusPage {
            program: "it".to_owned(),
            version: "0.1.0".to_owned(),
            emulated: "1.36".to_owned(),
            started: now(),
            clock: Arc::new(FakeClock::new(now())),
        }),
        program: "it".to_owned(),
        shadow: Some(Box::new(|objects| format!("{{\"objects\":{objects}}}"))),
        set_verbosity: Some(Box::new(move |level| {
            *set.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
            Ok(())
        })),
    };
    (endpoints, verbosity)
}

/// A handler with the control plane's reviews, or without any.
pub(crate) fn handler(client: Option<RestClient>) -> Handler {
    let authentication = authentication(client.clone().map(reviewer));
    let authorization = authorization(client.map(reviewer));
    Handler::new(authentication, authorization, endpoints().0)
}

/// A request; an empty `token` sends none.
pub(crate) fn request(method: &str, uri: &str, token: &str) -> Request<Empty<bytes::Bytes>> {
    let mut builder = Request::builder().method(method).uri(uri);
    if !token.is_empty() {
        builder = builder.header("authorization", format!("Bearer {token}"));
    }
    builder.body(Empty::new()).unwrap()
}

/// Code and body of a response.
pub(crate) async fn read(answer: Answer) -> (u16, String) {
    let code = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8(bytes.to_vec()).unwrap())
}

/// Runs a future in the background; the test awaits its end.
#[expect(clippy::disallowed_methods, reason = "the test joins the task")]
pub(crate) fn spawn<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    tokio::spawn(work)
}
