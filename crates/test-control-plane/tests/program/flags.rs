//! Effects of the flags.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::running::{Running, client, get, program};

#[test]
fn program_reports_readiness_and_stops_on_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    for signal in [Signal::TERM, Signal::INT] {
        let running = Running::start(&["--kubeconfig-out", path.to_str().unwrap()]);
        let url = running.url.clone();
        assert!(url.starts_with("https://127.0.0.1:"), "{url}");
        assert!(std::fs::read_to_string(&path).unwrap().contains(&url));
        running.end(signal);
    }
}

#[test]
fn program_ends_with_its_input_if_asked_to() {
    let mut command = program();
    command.args(["--actors", "", "--exit-with-stdin"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    assert!(line.starts_with("ready "), "{line}");
    assert!(child.try_wait().unwrap().is_none(), "its input is open");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn generated_texts_name_the_flags() {
    for text in ["man", "completion-bash", "completion-zsh"] {
        let output = program().args(["--generate", text]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let printed = String::from_utf8(output.stdout).unwrap();
        let printed = printed.replace("\\-", "-");
        assert!(printed.contains("--kubeconfig-out"), "{text}: {printed}");
    }
    let refused = program().args(["--generate", "prose"]).output().unwrap();
    let line = String::from_utf8(refused.stderr).unwrap();
    assert!(
        !refused.status.success() && line.lines().count() == 1,
        "{line}"
    );
}

#[tokio::test]
async fn token_has_the_permissions_of_its_roles() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, "t0,jane,7,\"developers\"\n").unwrap();
    let running = Running::start(&[
        "--authorization-mode=RBAC",
        "--token-auth-file",
        tokens.to_str().unwrap(),
        "--kubeconfig-out",
        kubeconfig.to_str().unwrap(),
    ]);
    let with_token = |token: &'static str| {
        move |config: &mut Value| config["users"][0]["user"] = json!({"token": token})
    };
    let jane = client(&kubeconfig, with_token("t0")).await;
    let pods = "/api/v1/namespaces/default/pods";
    let Err(kube::Error::Api(status)) = get(&jane, pods).await else {
        panic!("the token is authorized");
    };
    assert_eq!(
        (status.code, &*status.reason, &*status.message),
        (
            403,
            "Forbidden",
            "pods is forbidden: User \"jane\" cannot list resource \"pods\" in API group \"\" in \
             the namespace \"default\""
        )
    );
    let Err(kube::Error::Api(status)) =
        get(&client(&kubeconfig, with_token("t1")).await, pods).await
    else {
        panic!("the token is known");
    };
    assert_eq!((status.code, &*status.message), (401, "Unauthorized"));

    let admin = client(&kubeconfig, |_| ()).await;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "developers"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "view",
        },
        "subjects": [{
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "Group",
            "name": "developers",
        }],
    });
    let bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
    let request = http::Request::post(bindings).header("content-type", "application/json");
    let request = request.body(binding.to_string().into_bytes()).unwrap();
    admin.request::<Value>(request).await.unwrap();
    assert_eq!(get(&jane, pods).await.unwrap()["kind"], "PodList");
    running.end(Signal::TERM);
}

#[tokio::test]
async fn external_certificates_are_served_and_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let authority = |name: &str| {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    };
    let (servers, clients) = (authority("servers"), authority("clients"));
    let key = KeyPair::generate().unwrap();
    let names = ["localhost", "127.0.0.1"].map(str::to_owned);
    let params = CertificateParams::new(names).unwrap();
    let certificate = params.signed_by(&key, &servers).unwrap();
    let chain = format!("{}{}", certificate.pem(), servers.pem());
    let kubeconfig = folder.path().join("kubeconfig");
    let running = Running::start(&[
        "--tls-cert-file",
        &file("server.crt", &chain),
        "--tls-private-key-file",
        &file("server.key", &key.serialize_pem()),
        "--client-ca-file",
        &file("clients.crt", &clients.pem()),
        "--kubeconfig-out",
        kubeconfig.to_str().unwrap(),
    ]);

    // The administrator's kubeconfig trusts the given certificate.
    let admin = client(&kubeconfig, |_| ()).await;
    assert_eq!(
        get(&admin, "/api/v1/namespaces").await.unwrap()["kind"],
        "NamespaceList"
    );

    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    let name = &mut params.distinguished_name;
    name.push(DnType::CommonName, "jane");
    name.push(DnType::OrganizationName, "system:masters");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let certificate = params.signed_by(&key, &clients).unwrap();
    let jane = client(&kubeconfig, |config| {
        config["clusters"][0]["cluster"]["certificate-authority-data"] =
            json!(STANDARD.encode(servers.pem()));
        config["users"][0]["user"] = json!({
            "client-certificate-data": STANDARD.encode(certificate.pem()),
            "client-key-data": STANDARD.encode(key.serialize_pem()),
        });
    })
    .await;
    let review = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let request = http::Request::post(review).header("content-type", "application/json");
    let review: Value = jane
        .request(request.body(b"{}".to_vec()).unwrap())
        .await
        .unwrap();
    assert_eq!(review["status"]["userInfo"]["username"], "jane");
    let groups = &review["status"]["userInfo"]["groups"];
    assert_eq!(*groups, json!(["system:masters", "system:authenticated"]));
    running.end(Signal::TERM);
}

#[tokio::test]
async fn requests_are_logged_and_fail_by_the_plan() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let plan = r#"{"requests": [
        {"match": {"verbs": ["list"], "resources": ["configmaps"]},
         "when": {"limit": 1},
         "action": {"respond": "serviceUnavailable"}}
    ]}"#;
    std::fs::write(path("plan.json"), plan).unwrap();
    std::fs::write(path("audit.log"), "before\n").unwrap();
    let running = Running::start(&[
        "--fault-plan-file",
        &path("plan.json"),
        "--audit-log-path",
        &path("audit.log"),
        "--kubeconfig-out",
        &path("kubeconfig"),
        "--actors",
        "",
    ]);
    let admin = client(&folder.path().join("kubeconfig"), |_| ()).await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let Err(kube::Error::Api(status)) = get(&admin, maps).await else {
        panic!("the first list succeeds");
    };
    assert_eq!((status.code, &*status.reason), (503, "ServiceUnavailable"));
    get(&admin, maps).await.unwrap();
    running.end(Signal::TERM);
    let log = std::fs::read_to_string(path("audit.log")).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    let codes: Vec<Value> = lines[1..]
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .inspect(|event| assert_eq!(event["apiVersion"], "audit.k8s.io/v1"))
        .map(|event| event["responseStatus"]["code"].clone())
        .collect();
    assert_eq!((lines[0], codes), ("before", vec![json!(503), json!(200)]));
}
