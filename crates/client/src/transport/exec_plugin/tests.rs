//! Tests with plugins that are shell scripts, against a server on a loopback port.

use std::collections::BTreeMap;
use std::path::PathBuf;

use http::{Request, Uri};
use kube::client::Body;
use kube::config::Config;

use super::super::CHECK_INTERVAL;
use super::super::tests::{ask, pass, server_that_accepts};
use super::super::{Transport, causes};
use super::*;
use crate::fake::CapturedLog;

/// A credential plugin that prints what it is told, and counts its runs.
struct Plugin {
    folder: tempfile::TempDir,
}

impl Plugin {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder }
    }

    fn prints(&self, text: &str) {
        std::fs::write(self.folder.path().join("printed"), text).unwrap();
    }

    fn gives(&self, status: &[(&str, &str)]) {
        let status: BTreeMap<&str, &str> = status.iter().copied().collect();
        let credentials = serde_json::json!({
            "kind": "ExecCredential",
            "apiVersion": "client.authentication.k8s.io/v1",
            "status": status,
        });
        self.prints(&credentials.to_string());
    }

    fn runs(&self) -> usize {
        let runs = std::fs::read_to_string(self.folder.path().join("runs"));
        runs.unwrap_or_default().lines().count()
    }

    fn config(&self, server: Uri) -> Config {
        self.config_of(server, "cat")
    }

    /// The same for a plugin that does something else with what it is to print.
    fn config_of(&self, server: Uri, what: &str) -> Config {
        let mut config = Config::new(server);
        let folder = self.folder.path().display();
        let plugin = serde_json::json!({
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "sh",
            "args": ["-c", format!("echo >> {folder}/runs; {what} {folder}/printed")],
        });
        config.auth_info.exec = Some(serde_json::from_value(plugin).unwrap());
        config
    }
}

/// Sends a request that gets no answer; why.
async fn fails(transport: &Transport) -> String {
    let request = Request::get("/").body(Body::empty()).unwrap();
    let error = transport.send(request).await.unwrap_err();
    assert!(causes(error.as_ref()).any(<dyn std::error::Error>::is::<NoToken>));
    assert!(!format!("{error:?}").contains("SECRET"), "{error:?}");
    error.to_string()
}

#[tokio::test]
async fn a_plugin_whose_token_is_refused_is_run_again() {
    let (uri, _server) = server_that_accepts("two").await;
    let plugin = Plugin::new();
    plugin.gives(&[("token", "one")]);
    let transport = Transport::new(plugin.config(uri), None).unwrap();
    assert_eq!(plugin.runs(), 0, "nobody needs it yet");
    assert_eq!(ask(&transport).await, 401);
    plugin.gives(&[("token", "two")]);
    assert_eq!(ask(&transport).await, 401, "not run again at once");
    pass(INTERVAL_MIN).await;
    assert_eq!(ask(&transport).await, 200);
    pass(INTERVAL_MIN).await;
    assert_eq!(ask(&transport).await, 200);
    assert_eq!(plugin.runs(), 2);
}

#[tokio::test]
async fn a_plugin_is_run_again_when_its_credentials_are_over() {
    let (uri, _server) = server_that_accepts("one").await;
    let plugin = Plugin::new();
    let expires = SystemClock.now() + Duration::from_secs(3600);
    plugin.gives(&[
        ("token", "one"),
        ("expirationTimestamp", &expires.to_string()),
    ]);
    let transport = Transport::new(plugin.config(uri), None).unwrap();
    assert_eq!(ask(&transport).await, 200);
    pass(Duration::from_secs(3500)).await;
    assert_eq!(ask(&transport).await, 200);
    assert_eq!(plugin.runs(), 1);
    pass(LEEWAY).await;
    assert_eq!(ask(&transport).await, 200);
    assert_eq!(plugin.runs(), 2);
}

#[tokio::test]
async fn a_plugin_is_not_run_for_a_server_that_cannot_be_reached() {
    let plugin = Plugin::new();
    plugin.gives(&[("token", "one")]);
    let config = plugin.config(Uri::from_static("http://127.0.0.1:1"));
    let transport = Transport::new(config, None).unwrap();
    for _ in 0..3 {
        let request = Request::get("/").body(Body::empty()).unwrap();
        assert!(transport.send(request).await.is_err());
        pass(CHECK_INTERVAL).await;
    }
    assert_eq!(plugin.runs(), 1);
}

#[tokio::test]
async fn a_plugin_that_fails_is_logged_once_without_its_output() {
    let log = CapturedLog::at(tracing::Level::INFO);
    let (uri, _server) = server_that_accepts("three").await;
    let plugin = Plugin::new();
    let transport = Transport::new(plugin.config(uri), None).unwrap();
    let unusable = "the credential plugin gave no credentials that can be used";
    for printed in ["{token: SECRET, [", "SECRET", "{}"] {
        plugin.prints(printed);
        assert_eq!(fails(&transport).await, unusable, "{printed}");
        pass(INTERVAL_MIN).await;
    }
    plugin.gives(&[("token", "SECRET"), ("expirationTimestamp", "SECRET")]);
    assert_eq!(fails(&transport).await, unusable);
    plugin.gives(&[("token", "three")]);
    assert_eq!(fails(&transport).await, unusable, "not run again at once");
    pass(INTERVAL_MIN).await;
    assert_eq!(ask(&transport).await, 200);
    assert_eq!(
        log.take(),
        [
            "WARN no credentials from the credential plugin, trying again error=the credential \
             plugin gave no credentials that can be used",
            "INFO the credential plugin gives credentials again",
        ]
    );
}

#[tokio::test]
async fn credentials_at_hand_are_used_while_the_plugin_fails() {
    let (uri, _server) = server_that_accepts("two").await;
    let plugin = Plugin::new();
    plugin.gives(&[("token", "one")]);
    let transport = Transport::new(plugin.config(uri), None).unwrap();
    assert_eq!(ask(&transport).await, 401);
    plugin.prints("");
    pass(INTERVAL_MIN).await;
    assert_eq!(ask(&transport).await, 401);
}

#[tokio::test]
async fn the_last_line_of_standard_error_is_told_of_a_failure() {
    let plugin = Plugin::new();
    plugin.prints("first\nlog in \u{7}again\n\n");
    let uri = Uri::from_static("http://127.0.0.1:1");
    let config = plugin.config_of(uri.clone(), "false || exit 7; cat");
    let transport = Transport::new(config, None).unwrap();
    assert_eq!(
        fails(&transport).await,
        "the credential plugin ended with exit status: 7"
    );
    let loud = plugin.folder.path().join("loud");
    std::fs::write(&loud, "cat $1 >&2; exit 3").unwrap();
    let config = plugin.config_of(uri, &format!("sh {}", loud.display()));
    let transport = Transport::new(config, None).unwrap();
    assert_eq!(
        fails(&transport).await,
        "the credential plugin ended with exit status: 3: log in again"
    );
    assert_eq!(last_line("x".repeat(1000).as_bytes()).len(), TOLD_MAX);
}

#[tokio::test]
async fn a_plugin_that_floods_its_streams_ends() {
    let plugin = Plugin::new();
    let flood = plugin.folder.path().join("flood");
    std::fs::write(
        &flood,
        "head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2",
    )
    .unwrap();
    let config = plugin.config_of(
        Uri::from_static("http://127.0.0.1:1"),
        &format!("sh {}", flood.display()),
    );
    let transport = Transport::new(config, None).unwrap();
    fails(&transport).await;
}

/// Under paused time the clock goes on to the limit while the plugin hangs.
#[tokio::test(start_paused = true)]
async fn a_plugin_that_hangs_is_given_up() {
    let plugin = Plugin::new();
    let config = plugin.config_of(Uri::from_static("http://127.0.0.1:1"), "exec sleep 1000;");
    let transport = Transport::new(config, None).unwrap();
    let begin = Instant::now();
    assert_eq!(
        fails(&transport).await,
        "the credential plugin has not ended within 60 s"
    );
    assert_eq!(begin.elapsed(), RUN_MAX);
}

#[tokio::test]
async fn a_run_outlives_the_request_that_began_it() {
    let (uri, _server) = server_that_accepts("one").await;
    let plugin = Plugin::new();
    plugin.gives(&[("token", "one")]);
    let transport = Transport::new(plugin.config(uri), None).unwrap();
    let request = Request::get("/").body(Body::empty()).unwrap();
    // Given up as soon as the plugin runs.
    let sending = transport.send(request);
    assert!(sending.now_or_never().is_none());
    assert_eq!(ask(&transport).await, 200);
    assert_eq!(plugin.runs(), 1);
}

#[tokio::test]
async fn a_plugin_that_needs_a_terminal_is_not_run() {
    let plugin = Plugin::new();
    let mut config = plugin.config(Uri::from_static("http://127.0.0.1:1"));
    let exec = config.auth_info.exec.as_mut().unwrap();
    exec.interactive_mode = Some(ExecInteractiveMode::Always);
    let transport = Transport::new(config, None).unwrap();
    let error = fails(&transport).await;
    assert!(error.contains("interactiveMode: Always"), "{error}");
    assert_eq!(plugin.runs(), 0);
}

#[tokio::test]
async fn files_that_change_need_no_plugin() {
    let log = CapturedLog::at(tracing::Level::INFO);
    let (uri, _server) = server_that_accepts("one").await;
    let plugin = Plugin::new();
    plugin.gives(&[("token", "one")]);
    let mut config = plugin.config(uri);
    let files = ["certificate", "key"].map(|name| plugin.folder.path().join(name));
    let [certificate, key] = &files;
    let issue = || {
        let pair = rcgen::generate_simple_self_signed(vec!["jane".to_owned()]).unwrap();
        std::fs::write(certificate, pair.cert.pem()).unwrap();
        std::fs::write(key, pair.signing_key.serialize_pem()).unwrap();
    };
    issue();
    let path = |file: &PathBuf| Some(file.to_str().unwrap().to_owned());
    config.auth_info.client_certificate = path(certificate);
    config.auth_info.client_key = path(key);
    let transport = Transport::new(config, None).unwrap();
    assert_eq!(ask(&transport).await, 200);
    issue();
    // Here, as the log is that of this thread.
    let shared = &transport.0;
    pass(CHECK_INTERVAL).await;
    assert!(shared.is_due());
    shared.renew_files();
    std::fs::write(key, "nothing").unwrap();
    for _ in 0..2 {
        pass(CHECK_INTERVAL).await;
        assert!(shared.is_due());
        shared.renew_files();
    }
    assert_eq!(ask(&transport).await, 200);
    assert_eq!(plugin.runs(), 1);
    let log = log.take();
    assert_eq!(log.len(), 2, "{log:#?}");
    assert_eq!(
        log[0],
        "INFO certificates of the kubeconfig have changed, connecting anew"
    );
    let kept = "WARN cannot use the changed certificates of the kubeconfig, keeping those before";
    assert!(log[1].starts_with(kept), "{log:#?}");
}
