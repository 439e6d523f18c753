//! Uses of the control plane's kubeconfig: a client, a kubeconfig with the controller's
//! permissions, and a curl command.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use base64::Engine as _;
use http::Request;
use kube::{
    Client,
    config::{Config, KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};

/// Creates a client without retries.
pub(crate) async fn client(path: &Path) -> anyhow::Result<Client> {
    let kubeconfig = Kubeconfig::read_from(path)
        .with_context(|| format!("read the kubeconfig {}", path.display()))?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .with_context(|| format!("use the kubeconfig {}", path.display()))?;
    config.default_retry = false;
    Client::try_from(config).context("create a client for the control plane")
}

/// Path of the service account that every API server grants the controller's role.
const ACCOUNTS: &str = "/api/v1/namespaces/kube-system/serviceaccounts";
const ACCOUNT: &str = "statefulset-controller";
/// Lifetime of its token: longer than any session.
const TOKEN_SECONDS: u32 = 365 * 24 * 3600;

/// Writes a kubeconfig with the controller's permissions next to the administrator's; returns its
/// path.
pub(crate) async fn of_controller(client: &Client, admin: &Path) -> anyhow::Result<PathBuf> {
    let post = async |path: &str, object: Value| {
        let request = Request::post(path).header("content-type", "application/json");
        let request = request.body(object.to_string().into_bytes())?;
        let answer: Value = client.request(request).await?;
        anyhow::Ok(answer)
    };
    let account = json!({"metadata": {"name": ACCOUNT}});
    let created = post(ACCOUNTS, account).await;
    created.context("create the controller's service account")?;
    let review = json!({"spec": {"expirationSeconds": TOKEN_SECONDS}});
    let answer = post(&format!("{ACCOUNTS}/{ACCOUNT}/token"), review).await;
    let answer = answer.context("request a token of the controller's service account")?;
    let mut kubeconfig = read(admin)?;
    kubeconfig["users"][0]["user"] = json!({"token": answer["status"]["token"]});
    let path = admin.with_file_name("controller-kubeconfig");
    std::fs::write(&path, kubeconfig.to_string())
        .with_context(|| format!("write {}", path.display()))?;
    Ok(path)
}

fn read(path: &Path) -> anyhow::Result<Value> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("read the kubeconfig {}", path.display()))?;
    serde_saphyr::from_str(&text)
        .with_context(|| format!("parse the kubeconfig {}", path.display()))
}

/// Returns a curl command that lists the pods. Writes the kubeconfig's certificates and keys into
/// `folder`, because curl needs files.
pub(crate) fn curl_command(path: &Path, folder: &Path) -> anyhow::Result<String> {
    let kubeconfig = read(path)?;
    let (command, files) = compose(&kubeconfig, folder).context("read the kubeconfig's members")?;
    for (name, content) in files {
        let file = folder.join(name);
        std::fs::write(&file, content).with_context(|| format!("write {}", file.display()))?;
    }
    Ok(command)
}

/// Name and content of a file.
type File = (&'static str, Vec<u8>);

/// Returns the command and its files in `folder`; `None` without a server or with invalid base64.
fn compose(kubeconfig: &Value, folder: &Path) -> Option<(String, Vec<File>)> {
    let cluster = kubeconfig.pointer("/clusters/0/cluster")?;
    let server = cluster.get("server")?.as_str()?;
    let user = kubeconfig.pointer("/users/0/user").unwrap_or(&Value::Null);
    let mut words = vec!["curl -sS".to_owned()];
    let mut files = Vec::new();
    for (flag, member, name, owner) in [
        ("--cacert", "certificate-authority", "ca.crt", cluster),
        ("--cert", "client-certificate", "client.crt", user),
        ("--key", "client-key", "client.key", user),
    ] {
        if let Some(data) = owner.get(format!("{member}-data")).and_then(Value::as_str) {
            let decoded = base64::engine::general_purpose::STANDARD
                .decode(data.trim())
                .ok()?;
            files.push((name, decoded));
            words.push(format!("{flag} {}", folder.join(name).display()));
        } else if let Some(file) = owner.get(member).and_then(Value::as_str) {
            words.push(format!("{flag} {file}"));
        }
    }
    if let Some(token) = user.get("token").and_then(Value::as_str) {
        words.push(format!("-H 'Authorization: Bearer {token}'"));
    }
    words.push(format!("{}/api/v1/pods", server.trim_end_matches('/')));
    Some((words.join(" "), files))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedded_certificates_become_files_and_tokens_headers() {
        let kubeconfig = serde_json::json!({
            "clusters": [{"cluster": {
                "server": "https://127.0.0.1:6443/", "certificate-authority-data": "Y2E=",
            }}],
            "users": [{"user": {"token": "t", "client-key": "k.pem"}}],
        });
        let (command, files) = compose(&kubeconfig, Path::new("d")).expect("it is complete");
        assert_eq!(
            command,
            "curl -sS --cacert d/ca.crt --key k.pem -H 'Authorization: Bearer t' \
             https://127.0.0.1:6443/api/v1/pods"
        );
        assert_eq!(files, [("ca.crt", b"ca".to_vec())]);
    }

    #[test]
    fn kubeconfig_without_a_server_gives_no_command() {
        assert_eq!(
            compose(&serde_json::json!({"clusters": []}), Path::new("d")),
            None
        );
    }
}
