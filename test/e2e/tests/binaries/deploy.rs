//! Tests that the shipped manifests give the shipped controller the necessary permissions and
//! flags.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;

use e2e::deploy::{build, build_with, collection, is_embedded, kustomization};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use serde_json::{Value, json};

use crate::harness::{Api, History, Kind, Plane, Process, Signal, programs, set_with_claims};

pub(crate) fn of_kind<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    let found = objects.iter().find(|object| object["kind"] == kind);
    found.unwrap_or_else(|| panic!("there is no {kind}"))
}

/// Requests of a user that were rejected, according to the audit log.
fn refused(audit: &Path, user: &str) -> Vec<String> {
    let text = std::fs::read_to_string(audit).unwrap();
    let events = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let own: Vec<Value> = events
        .filter(|event| event["user"]["username"] == user)
        .collect();
    assert!(
        own.len() > 20,
        "the controller sent only {} requests",
        own.len()
    );
    let refused = own
        .iter()
        .filter(|event| event["responseStatus"]["code"] == 403);
    refused.map(ToString::to_string).collect()
}

pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

/// The controller's own port.
pub(crate) struct Port {
    pub(crate) number: u16,
    /// Authority and expected name of its certificate; `None` for a self-signed certificate.
    pub(crate) trust: Option<(PathBuf, String)>,
}

/// Client of the controller's own port, with these credentials.
pub(crate) fn port_client(folder: &Path, port: &Port, user: &Value) -> Api {
    let server = format!("https://127.0.0.1:{}", port.number);
    let cluster = match &port.trust {
        Some((ca, name)) => {
            json!({"server": server, "certificate-authority": ca, "tls-server-name": name})
        }
        None => json!({"server": server, "insecure-skip-tls-verify": true}),
    };
    let kubeconfig = json!({
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "c", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "current-context": "c",
    });
    let path = folder.join("port");
    std::fs::write(&path, kubeconfig.to_string()).unwrap();
    Api::connect(&path)
}

/// Checks that the port responds to everyone's probes, and shows metrics only to users with the shipped
/// role.
fn assert_scraped(plane: &Plane, folder: &Path, port: &Port) {
    let anonymous = port_client(folder, port, &json!({}));
    for path in ["/livez", "/readyz", "/healthz"] {
        assert_eq!(anonymous.text(path).unwrap(), "ok", "{path}");
    }
    assert!(anonymous.text("/metrics").is_err());

    if port.trust.is_none() {
        let component = kustomization("components/service-monitor");
        for object in build_with(&kustomization("overlays/managed"), &component) {
            if object["kind"] == "ClusterRole" {
                plane.api.post(&collection(&object), &object);
            }
        }
    }
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let account = json!({"metadata": {"name": "prometheus"}});
    plane.api.post(accounts, &account);
    let binding = json!({
        "metadata": {"name": "prometheus"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "statefulset-controller-manager:metrics-reader",
        },
        "subjects": [{"kind": "ServiceAccount", "name": "prometheus", "namespace": "default"}],
    });
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    plane.api.post(bindings, &binding);
    let token = plane.token("default", "prometheus");
    let scraper = port_client(folder, port, &json!({"token": token}));
    let metrics = scraper.text("/metrics").unwrap();
    let leads = "leader_election_master_status{name=\"statefulset-controller-manager\"} 1";
    assert!(metrics.contains(leads), "{metrics}");
    assert!(scraper.text("/configz").is_err());
}

/// Holds the lease like the guide, until the built-in controller is disabled. Returns its path.
fn hold_lease(plane: &Plane, namespace: &str, name: &str) -> String {
    let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
    let lease = json!({
        "metadata": {"name": name},
        "spec": {"holderIdentity": "switch-over", "leaseDurationSeconds": 86400},
    });
    plane.api.post(&leases, &lease);
    format!("{leases}/{name}")
}

/// Checks that a controller waiting for its lease responds to probes and writes nothing.
fn assert_waits(plane: &Plane, controller: &mut Process, port: &Api) {
    let line = controller.logged("the lease has another holder");
    assert!(line.contains("switch-over"), "{line}");
    assert_eq!(port.text("/readyz").unwrap(), "ok");
    let (sets, _) = plane.api.list(Kind::Set);
    assert_eq!(sets[0]["status"]["observedGeneration"], Value::Null);
    assert!(plane.api.list(Kind::Pod).0.is_empty());
}

/// Checks that the log describes the start, the wait for the lease and the first three pods in a
/// few lines.
fn assert_short(log: &[String]) {
    let complete = |line: &String| line.contains("set is in its desired state");
    let lines = log.iter().position(complete).unwrap() + 1;
    assert!(lines <= 20, "{:#?}", &log[..lines]);
}

/// Mount path of the secret with the certificate in the Deployment.
const CERTIFICATES: &str = "/etc/statefulset-controller-manager/tls";

/// Writes the contents of the service monitor's secret into a folder, with a certificate for the
/// name that the monitor verifies. Returns the authority and the name.
fn issue_certificate(objects: &[Value], folder: &Path) -> (PathBuf, String) {
    let monitor = of_kind(objects, "ServiceMonitor");
    let name = monitor.pointer("/spec/endpoints/0/tlsConfig/serverName");
    let name = name.and_then(Value::as_str).unwrap().to_owned();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "ca");
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![name.clone()]).unwrap();
    let certificate = params.signed_by(&key, &ca).unwrap();
    std::fs::write(folder.join("tls.crt"), certificate.pem()).unwrap();
    std::fs::write(folder.join("tls.key"), key.serialize_pem()).unwrap();
    std::fs::write(folder.join("ca.crt"), ca.pem()).unwrap();
    (folder.join("ca.crt"), name)
}

/// Installs the manifests, runs the controller like its Deployment while the lease is held, and
/// then lets it create a set, roll it out and scale it down.
fn assert_installation_works(objects: &[Value]) {
    let folder = tempfile::tempdir().unwrap();
    let audit = folder.path().join("audit");
    let flags = ["--audit-log-path", audit.to_str().unwrap()];
    let plane = Plane::start_with(&programs(), &flags);
    for object in objects {
        if is_embedded(object["kind"].as_str().unwrap()) {
            plane.api.post(&collection(object), object);
        }
    }
    let account = &of_kind(objects, "ServiceAccount")["metadata"];
    let (namespace, name) = (&account["namespace"], &account["name"]);
    let (namespace, name) = (namespace.as_str().unwrap(), name.as_str().unwrap());
    let kubeconfig = plane.kubeconfig_of_account(namespace, name);

    let deployment = of_kind(objects, "Deployment");
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let mut flags: Vec<String> = serde_json::from_value(container["args"].clone()).unwrap();
    flags.push(format!("--kubeconfig={}", kubeconfig.display()));
    flags.push(format!(
        "--authentication-kubeconfig={}",
        kubeconfig.display()
    ));
    flags.push(format!(
        "--authorization-kubeconfig={}",
        kubeconfig.display()
    ));
    flags.push("--bind-address=127.0.0.1".to_owned());
    let monitored = objects.iter().any(|it| it["kind"] == "ServiceMonitor");
    let port = Port {
        number: free_port(),
        trust: monitored.then(|| issue_certificate(objects, folder.path())),
    };
    flags.push(format!("--secure-port={}", port.number));
    if monitored {
        let mounted = folder.path().display().to_string();
        for flag in &mut flags {
            *flag = flag.replace(CERTIFICATES, &mounted);
        }
    }
    let mut history = History::begin(&plane.api);
    let lease = hold_lease(&plane, namespace, name);
    let mut set = set_with_claims("web", 3);
    set["spec"]["persistentVolumeClaimRetentionPolicy"] =
        json!({"whenScaled": "Delete", "whenDeleted": "Retain"});
    plane.api.create(Kind::Set, &set);
    let mut controller = plane.controller_with(&flags);
    let probes = port_client(folder.path(), &port, &json!({}));
    assert_waits(&plane, &mut controller, &probes);
    plane.api.delete(&lease);
    history.until("the set to be complete", |history| {
        history.is_complete("web")
    });
    let image = json!([{"name": "c", "image": "busybox:2"}]);
    let patch = json!({"spec": {"replicas": 1, "template": {"spec": {"containers": image}}}});
    plane.api.merge(Kind::Set, "web", &patch);
    history.until("the rollout to be complete", |history| {
        history.is_complete("web") && history.counts(Kind::Revision, "web-").len() == 2
    });

    assert_scraped(&plane, folder.path(), &port);

    let lease = plane.api.get(&lease);
    let holder = lease["spec"]["holderIdentity"].as_str();
    assert!(holder.is_some_and(|holder| !holder.is_empty()), "{lease}");
    controller.signal(Signal::TERM);
    let finished = controller.wait();
    assert_eq!(finished.code, Some(0));
    assert_short(&finished.stderr);
    let user = format!("system:serviceaccount:{namespace}:{name}");
    assert_eq!(refused(&audit, &user), [""; 0]);
}

#[test]
fn self_managed_overlay_suffices() {
    assert_installation_works(&build(&kustomization("overlays/self-managed")));
}

#[test]
fn managed_overlay_suffices() {
    assert_installation_works(&build(&kustomization("overlays/managed")));
}

#[test]
fn service_monitor_accepts_the_served_certificate() {
    let component = kustomization("components/service-monitor");
    assert_installation_works(&build_with(&kustomization("overlays/managed"), &component));
}

#[test]
fn guide_mentions_only_existing_flags() {
    let guide = include_str!("../../../../docs/operating.md");
    let (_, flags) = guide.split_once("\n## Flags\n").unwrap();
    let (flags, _) = flags.split_once("\n## ").unwrap();
    let mut command = Command::new(&programs().controller);
    let help = Process::start("controller", command.arg("--help")).wait();
    let help = help.stdout.join("\n");
    let named = flags.split('`').filter(|code| code.starts_with("--"));
    let named: Vec<&str> = named.filter(|flag| *flag != "--help").collect();
    assert!(named.len() >= 10, "{named:?}");
    for flag in named {
        assert!(help.contains(flag), "{flag} is not in {help}");
    }
}
