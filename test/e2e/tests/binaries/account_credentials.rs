//! Tests of the shipped controller with kube-controller-manager's kubeconfig and
//! `--use-service-account-credentials`: it reads as one user and writes as the other.

use std::collections::BTreeSet;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use serde_json::{Value, json};

use crate::harness::{History, Kind, Plane, Process, Signal, programs, set, set_with_claims};

const MANAGER: &str = "system:kube-controller-manager";
const ACCOUNT: &str = "system:serviceaccount:kube-system:statefulset-controller";
const ACCOUNT_PATH: &str = "/api/v1/namespaces/kube-system/serviceaccounts/statefulset-controller";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
/// Name of this program's lease in the manifests.
const LEASE: &str = "statefulset-controller-manager";

/// Credentials for a user from a new authority, whose certificate goes to a file.
fn credentials(authority_file: &Path, user: &str) -> Value {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    std::fs::write(authority_file, authority.pem()).unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, user);
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    json!({
        "client-certificate-data": STANDARD.encode(certificate.pem()),
        "client-key-data": STANDARD.encode(key.serialize_pem()),
    })
}

/// Lets kube-controller-manager's user keep a lease other than its own, as in the guide.
fn grant_lease(plane: &Plane) {
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system";
    let rule = json!({
        "apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
        "resourceNames": [LEASE], "verbs": ["get", "update"],
    });
    let role = json!({"metadata": {"name": LEASE}, "rules": [rule]});
    plane.api.post(&format!("{rbac}/roles"), &role);
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "metadata": {"name": LEASE},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": LEASE},
        "subjects": [{"apiGroup": group, "kind": "User", "name": MANAGER}],
    });
    plane.api.post(&format!("{rbac}/rolebindings"), &binding);
}

/// Requests of the program as `user: verb resource`, without a user if the credentials were
/// rejected. Checks that none was forbidden.
fn requests(audit: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(audit).unwrap();
    let events = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let text = |event: &Value, pointer: &str| {
        let text = event.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let own = events.filter(|event| text(event, "/userAgent").starts_with(LEASE));
    let request = |event: Value| {
        assert_ne!(event["responseStatus"]["code"], 403, "{event}");
        let (verb, resource) = (text(&event, "/verb"), text(&event, "/objectRef/resource"));
        let user = text(&event, "/user/username");
        let subresource = text(&event, "/objectRef/subresource");
        let separator = if subresource.is_empty() { "" } else { "/" };
        let is_of_object = !resource.is_empty();
        is_of_object.then(|| format!("{user}: {verb} {resource}{separator}{subresource}"))
    };
    own.filter_map(request).collect()
}

fn assert_has_all(requests: &BTreeSet<String>, user: &str, expected: &[&str]) {
    for request in expected {
        let request = format!("{user}: {request}");
        assert!(requests.contains(&request), "{request} in {requests:#?}");
    }
}

/// Starts a control plane with this audit log, and the controller with the credentials of
/// kube-controller-manager's user.
fn start(folder: &Path, audit: &Path) -> (Plane, Process) {
    let authority = folder.join("ca");
    let user = credentials(&authority, MANAGER);
    let flags = [
        "--start-delay=20ms",
        "--ready-delay=20ms",
        "--audit-log-path",
        audit.to_str().unwrap(),
        "--client-ca-file",
        authority.to_str().unwrap(),
    ];
    let plane = Plane::start_with(&programs(), &flags);
    grant_lease(&plane);
    let kubeconfig = plane.kubeconfig_of(&user);
    let controller = plane.controller_with(&[
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--leader-elect-resource-name={LEASE}"),
        "--use-service-account-credentials=true".to_owned(),
        "--secure-port=0".to_owned(),
        "-v=2".to_owned(),
    ]);
    (plane, controller)
}

fn delete(plane: &Plane, path: &str) {
    plane.api.with_client(async |client| {
        let request = http::Request::delete(path).body(Vec::new()).unwrap();
        client.request_text(request).await.unwrap();
    });
}

#[test]
fn controller_reads_as_manager_and_writes_as_account() {
    let folder = tempfile::tempdir().unwrap();
    let audit = folder.path().join("audit");
    let (plane, controller) = start(folder.path(), &audit);
    let mut history = History::begin(&plane.api);
    plane.api.create(Kind::Set, &set_with_claims("web", 2));
    history.until("the set to be complete", |history| {
        history.is_complete("web")
    });
    let image = json!([{"name": "c", "image": "busybox:2"}]);
    let patch = json!({"spec": {"template": {"spec": {"containers": image}}}});
    plane.api.merge(Kind::Set, "web", &patch);
    history.until("the rollout to be complete", |history| {
        history.is_complete("web") && history.counts(Kind::Revision, "web-").len() == 2
    });

    // A recreated account rejects tokens of its predecessor.
    delete(&plane, ACCOUNT_PATH);
    plane.api.create(Kind::Set, &set("later", 2));
    history.until("the later set to be complete", |history| {
        history.is_complete("later")
    });
    controller.signal(Signal::TERM);
    let finished = controller.wait();
    assert_eq!(finished.code, Some(0), "{finished:#?}");

    let requests = requests(&audit);
    let writes = [
        "create pods",
        "delete pods",
        "create persistentvolumeclaims",
        "create controllerrevisions",
        "update statefulsets/status",
        "create events",
    ];
    assert_has_all(&requests, ACCOUNT, &writes);
    let rest = [
        "list pods",
        "watch statefulsets",
        "update leases",
        "get serviceaccounts",
        "create serviceaccounts",
        "create serviceaccounts/token",
    ];
    assert_has_all(&requests, MANAGER, &rest);
    let (refused, accepted): (Vec<_>, Vec<_>) = requests
        .iter()
        .partition(|request| request.starts_with(':'));
    assert!(
        !refused.is_empty(),
        "no request was rejected with the deleted account's token"
    );
    let others: Vec<_> = accepted
        .into_iter()
        .filter(|request| {
            let write = writes.iter().find(|write| request.ends_with(*write));
            let is_write = write.is_some_and(|write| *write != "create events");
            let is_of_account = request.starts_with(ACCOUNT);
            let is_cached = request.contains(": list ") || request.contains(": watch ");
            (is_write && !is_of_account) || (is_cached && is_of_account)
        })
        .collect();
    assert!(others.is_empty(), "{others:#?}");
}

#[test]
fn revoked_permission_is_logged_once_until_restored() {
    let folder = tempfile::tempdir().unwrap();
    let (plane, mut controller) = start(folder.path(), &folder.path().join("audit"));
    controller.logged("ready: caches are filled");
    let mut history = History::begin(&plane.api);
    plane.api.create(Kind::Set, &set("web", 1));
    history.until("the set to be complete", |history| {
        history.is_complete("web")
    });

    let path = format!("{BINDINGS}/{MANAGER}");
    let mut binding = plane.api.get(&path);
    delete(&plane, &path);
    delete(&plane, ACCOUNT_PATH);
    plane.api.create(Kind::Set, &set("later", 2));
    let line = controller.logged("permission is missing, trying again");
    assert!(line.contains("serviceaccounts"), "{line}");

    let metadata = binding["metadata"].as_object_mut().unwrap();
    metadata.retain(|member, _| member == "name");
    plane.api.post(BINDINGS, &binding);
    controller.logged("permission is granted");
    history.until("the later set to be complete", |history| {
        history.is_complete("later")
    });
    controller.signal(Signal::TERM);
    let finished = controller.wait();
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    let logged = finished.stderr.iter();
    let logged: Vec<_> = logged
        .filter(|line| line.contains("serviceaccounts"))
        .collect();
    assert_eq!(logged.len(), 2, "{logged:#?}");
}
