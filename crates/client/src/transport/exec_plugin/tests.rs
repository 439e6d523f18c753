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

/// A credential plugin that prints a given text and counts its runs.
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

    /// Sets a token that expires after `lifetime`.
    fn gives_for(&self, token: &str, lifetime: Duration) {
        let expires = (SystemClock.now() + lifetime).to_string();
        self.gives(&[("token", token), ("expirationTimestamp", &expires)]);
    }

    /// Writes another script and returns its command line.
    fn script(&self, text: &str) -> String {
        let path = self.folder.path().join("script");
        std::fs::write(&path, text).unwrap();
        format!("sh {}", path.display())
    }

    fn runs(&self) -> usize {
        let runs = std::fs::read_to_string(self.folder.path().join("runs"));
        runs.unwrap_or_default().lines().count()
    }

    fn config(&self, server: Uri) -> Config {
        self.config_of(server, "cat")
    }

    /// Returns a configuration whose plugin pipes its output into a command.
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

/// Sends a request without a response and returns the error.
async fn fails(transport: &Transport) -> String {
    let request = Request::get("/").body(Body::empty()).unwrap();
    let error = transport.send(request).await.unwrap_err();
    assert!(causes(error.as_ref()).any(<dyn std::error::Error>::is::<NoToken>));
    assert!(!format!("{error:?}").contains("SECRET"), "{error:?}");
    error.to_string()
}

#[tokio::test]
async fn plugin_is_run_again_after_rejected_token() {
    let (uri, _server) = server_that_accepts("two").await;
    let plugin = Plugin::new();
    plugin.gives(&[("token", "one")]);
    let transport = Transport::new(plugin.config(uri), None).unwrap();
    assert_eq!(plugin.runs(), 0, "no request needs it yet");
    assert_eq!(ask(&transport).await, 401);
    plugin.gives(&[("token", "two")]);
    assert_eq!(ask(&transport).await, 401, "not run again immediately");
    pass(INTERVAL_MIN).await;
    assert_eq!(ask(&transport).await, 200);
    pass(INTERVAL_MIN).await;
    assert_eq!(ask(&transport).await, 200);
    assert_eq!(plugin.runs(), 2);
}

#[tokio::test]
async fn plugin_is_run_again_after_expiry() {
    let (uri, _server) = server_that_accepts("one").await;
    let plugin = Plugin::new();
    plugin.gives_for("one", Duration::from_secs(3600));
    let transport = Transport::new(plugin.config(uri), None).unwrap();
    assert_eq!(ask(&transport).await, 200);
    pass(Duration::from_secs(3500)).await;
    assert_eq!(ask(&transport).await, 200);
    assert_eq!(plugin.runs(), 1);
    pass(Duration::from_secs(100)).await;
    assert_eq!(ask(&transport).await, 200);
    assert_eq!(plugin.runs(), 2);
}

#[tokio::test]
async fn requests_do_not_wait_while_credentials_are_valid() {
    let (uri, _server) = server_that_accepts("one").await;
    let plugin = Plugin::new();
    plugin.gives_for("one", Duration::from_secs(3600));
    let script = plugin.script("cat $1");
    let transport = Transport::new(plugin.config_of(uri, &script), None).unwrap();
    assert_eq!(ask(&transport).await, 200);
    plugin.script("exec sleep 1000");
    pass(Duration::from_secs(3550)).await;
    let begin = Instant::now();
    for _ in 0..3 {
        assert_eq!(ask(&transport).await, 200);
    }
    assert!(begin.elapsed() < RUN_MAX, "waited for the plugin");
    // It is killed and run again, because there are no other credentials.
    let exec = transport.0.plugin.as_ref().unwrap();
    let run = exec.state().running.clone();
    tokio::time::pause();
    let given_up = run.expect("a run alongside the requests").await;
    tokio::time::resume();
    assert!(matches!(
        given_up.result.err(),
        Some(PluginError::Hangs { .. })
    ));
    plugin.script("cat $1");
    plugin.gives_for("one", Duration::from_secs(7200));
    assert_eq!(ask(&transport).await, 200);
    pass(INTERVAL_MIN).await;
    assert_eq!(ask(&transport).await, 200);
    pass(INTERVAL_MIN).await;
    assert_eq!(ask(&transport).await, 200);
    assert!(exec.state().running.is_none(), "run with fresh credentials");
}

#[tokio::test]
async fn token_from_background_run_is_used() {
    let (uri, _server) = server_that_accepts("two").await;
    let plugin = Plugin::new();
    plugin.gives_for("one", LEEWAY / 2);
    let transport = Transport::new(plugin.config(uri), None).unwrap();
    let exec = transport.0.plugin.as_ref().unwrap();
    let renew = || exec.renew(|auth| transport.0.reconnect(auth.clone()));
    renew().await.unwrap();
    plugin.gives_for("two", LEEWAY * 2);
    pass(INTERVAL_MIN).await;
    assert!(renew().now_or_never().is_some(), "waits for the plugin");
    let run = exec.state().running.clone();
    run.expect("a run alongside the requests").await;
    assert_eq!(ask(&transport).await, 200);
    assert_eq!(plugin.runs(), 2);
}

#[tokio::test]
async fn plugin_is_not_run_again_for_unreachable_server() {
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
async fn failed_plugin_is_logged_once_without_output() {
    let log = CapturedLog::at(tracing::Level::INFO);
    let (uri, _server) = server_that_accepts("three").await;
    let plugin = Plugin::new();
    let transport = Transport::new(plugin.config(uri), None).unwrap();
    let unusable = "the credential plugin returned no usable credentials";
    for printed in ["{token: SECRET, [", "SECRET", "{}"] {
        plugin.prints(printed);
        assert_eq!(fails(&transport).await, unusable, "{printed}");
        pass(INTERVAL_MIN).await;
    }
    plugin.gives(&[("token", "SECRET"), ("expirationTimestamp", "SECRET")]);
    assert_eq!(fails(&transport).await, unusable);
    plugin.gives(&[("token", "three")]);
    assert_eq!(
        fails(&transport).await,
        unusable,
        "not run again immediately"
    );
    pass(INTERVAL_MIN).await;
    assert_eq!(ask(&transport).await, 200);
    assert_eq!(
        log.take(),
        [
            "WARN no credentials from the credential plugin, trying again error=the credential \
             plugin returned no usable credentials",
            "INFO the credential plugin returns credentials again",
        ]
    );
}

#[tokio::test]
async fn current_credentials_are_used_while_plugin_fails() {
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
async fn failure_includes_last_line_of_standard_error() {
    let plugin = Plugin::new();
    plugin.prints("first\nlog in \u{7}again\n\n");
    let uri = Uri::from_static("http://127.0.0.1:1");
    let config = plugin.config_of(uri.clone(), "false || exit 7; cat");
    let transport = Transport::new(config, None).unwrap();
    assert_eq!(
        fails(&transport).await,
        "the credential plugin failed with exit status: 7"
    );
    let loud = plugin.folder.path().join("loud");
    std::fs::write(&loud, "cat $1 >&2; exit 3").unwrap();
    let config = plugin.config_of(uri, &format!("sh {}", loud.display()));
    let transport = Transport::new(config, None).unwrap();
    assert_eq!(
        fails(&transport).await,
        "the credential plugin failed with exit status: 3: log in again"
    );
    assert_eq!(
        last_line("x".repeat(1000).as_bytes()).len(),
        STDERR_LOGGED_MAX
    );
}

#[tokio::test]
async fn plugin_that_floods_its_streams_ends() {
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

/// Paused time advances to the limit while the plugin hangs.
#[tokio::test(start_paused = true)]
async fn hanging_plugin_times_out() {
    let plugin = Plugin::new();
    let config = plugin.config_of(Uri::from_static("http://127.0.0.1:1"), "exec sleep 1000;");
    let transport = Transport::new(config, None).unwrap();
    let begin = Instant::now();
    assert_eq!(
        fails(&transport).await,
        "the credential plugin did not exit within 60 s"
    );
    assert_eq!(begin.elapsed(), RUN_MAX);
}

/// Returns a script that starts another process, writes its id to a file, and continues.
fn with_grandchild(plugin: &Plugin, rest: &str) -> String {
    let pid = plugin.folder.path().join("pid");
    plugin.script(&format!("sleep 1000 & echo $! > {}; {rest}", pid.display()))
}

/// Returns the process that the script started.
async fn grandchild(plugin: &Plugin) -> rustix::process::Pid {
    let path = plugin.folder.path().join("pid");
    loop {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        if text.ends_with('\n') {
            return rustix::process::Pid::from_raw(text.trim().parse().unwrap()).unwrap();
        }
        tokio::task::yield_now().await;
    }
}

/// Waits until a process has ended. A zombie counts as ended.
async fn is_gone(pid: rustix::process::Pid) {
    let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
    while std::fs::read_to_string(&path).is_ok_and(|stat| !stat.contains(") Z ")) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn hanging_plugin_is_killed_with_its_children() {
    let plugin = Plugin::new();
    let script = with_grandchild(&plugin, "wait");
    let config = plugin.config_of(Uri::from_static("http://127.0.0.1:1"), &script);
    let transport = Transport::new(config, None).unwrap();
    let given_up = async {
        let pid = grandchild(&plugin).await;
        tokio::time::pause();
        tokio::time::advance(RUN_MAX).await;
        tokio::time::resume();
        pid
    };
    let (error, pid) = tokio::join!(fails(&transport), given_up);
    assert!(error.contains("did not exit within 60 s"), "{error}");
    is_gone(pid).await;
}

#[tokio::test]
async fn unneeded_plugin_is_killed_with_its_children() {
    let plugin = Plugin::new();
    let script = with_grandchild(&plugin, "wait");
    let config = plugin.config_of(Uri::from_static("http://127.0.0.1:1"), &script);
    let transport = Transport::new(config, None).unwrap();
    let request = Request::get("/").body(Body::empty()).unwrap();
    assert!(transport.send(request).now_or_never().is_none());
    let pid = grandchild(&plugin).await;
    drop(transport);
    is_gone(pid).await;
}

#[tokio::test]
async fn plugin_may_leave_process_holding_its_streams() {
    let (uri, _server) = server_that_accepts("one").await;
    let leaves = async |streams: &str| {
        let plugin = Plugin::new();
        plugin.gives(&[("token", "one")]);
        let pid = plugin.folder.path().join("pid");
        let pid = pid.display();
        let script = plugin.script(&format!("sleep 1000 {streams} & echo $! > {pid}; cat $1"));
        let transport = Transport::new(plugin.config_of(uri.clone(), &script), None).unwrap();
        let begin = Instant::now();
        assert_eq!(ask(&transport).await, 200, "{streams}");
        assert!(begin.elapsed() < RUN_MAX, "{streams}");
        let left = grandchild(&plugin).await;
        rustix::process::kill_process(left, rustix::process::Signal::KILL).expect(streams);
    };
    tokio::join!(leaves(""), leaves(">/dev/null"), leaves("2>/dev/null"));
}

#[tokio::test]
async fn run_outlives_its_request() {
    let (uri, _server) = server_that_accepts("one").await;
    let plugin = Plugin::new();
    plugin.gives(&[("token", "one")]);
    let transport = Transport::new(plugin.config(uri), None).unwrap();
    let request = Request::get("/").body(Body::empty()).unwrap();
    // Dropped as soon as the plugin runs.
    let sending = transport.send(request);
    assert!(sending.now_or_never().is_none());
    assert_eq!(ask(&transport).await, 200);
    assert_eq!(plugin.runs(), 1);
}

#[tokio::test]
async fn plugin_that_needs_terminal_is_not_run() {
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
async fn changed_files_do_not_run_plugin() {
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
    // Called here because the captured log is per thread.
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
        "INFO certificates of the kubeconfig have changed, reconnecting"
    );
    let kept =
        "WARN cannot use the changed certificates of the kubeconfig, keeping the previous ones";
    assert!(log[1].starts_with(kept), "{log:#?}");
}
