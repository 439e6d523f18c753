//! Containers that respond: logs, commands, attached clients and forwarded ports, by the client
//! library's own methods.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use futures::{AsyncBufReadExt, TryStreamExt};
use http::Request;
use k8s_openapi::api::core::v1::Pod;
use kube::Config;
use kube::api::{
    Api, AttachParams, AttachedProcess, DeleteParams, LogParams, PostParams, TerminalSize,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::actors::{
    Crash, KubeletConfig, LogLine, PodBehaviour, PodMatcher, PodRule, ScriptedCommand, port_server,
    program,
};
use kube_test_control_plane::auth::Identity;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{Plane, eventually, is_ready};

const POD: &str = "/api/v1/namespaces/default/pods/p";

/// Starts a control plane with a running pod `p` of these containers.
async fn running(config: KubeletConfig, containers: Value) -> (Plane, Api<Pod>) {
    let plane = TestControlPlane::builder().kubelet(config).start().await;
    let pods = Api::default_namespaced(plane.client());
    let plane = Plane::new(plane);
    create(&plane, containers).await;
    (plane, pods)
}

async fn create(plane: &Plane, containers: Value) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": containers},
    });
    plane.create("/api/v1/namespaces/default/pods", &pod).await;
    eventually(|| async { is_ready(&plane.get(POD).await) }).await;
}

fn one() -> Value {
    json!([{"name": "c", "image": "img:1", "ports": [{"containerPort": 80}],
        "env": [{"name": "GREETING", "value": "hello"}]}])
}

fn line(seconds: u64, text: &str) -> LogLine {
    LogLine::new(text).after(Duration::from_secs(seconds))
}

fn message(error: kube::Error) -> (u16, String) {
    match error {
        kube::Error::Api(status) => (status.code, status.message),
        other => panic!("{other}"),
    }
}

/// Returns the output, the errors, and the message and exit code of the status.
async fn finish(mut process: AttachedProcess) -> (String, String, Option<(String, String)>) {
    let status = process.take_status().unwrap();
    let (mut out, mut err) = (String::new(), String::new());
    if let Some(mut stdout) = process.stdout() {
        stdout.read_to_string(&mut out).await.unwrap();
    }
    if let Some(mut stderr) = process.stderr() {
        stderr.read_to_string(&mut err).await.unwrap();
    }
    let status = status.await.unwrap();
    let failure = (status.status.as_deref() == Some("Failure")).then(|| {
        let causes = status
            .details
            .unwrap_or_default()
            .causes
            .unwrap_or_default();
        let code = causes.into_iter().filter(|it| it.reason.is_some());
        let code = code.filter_map(|cause| cause.message).collect();
        (status.message.unwrap_or_default(), code)
    });
    (out, err, failure)
}

#[tokio::test(start_paused = true)]
async fn logs_select_lines_by_time_and_number() {
    let behaviour =
        PodBehaviour::default().log([line(0, "a"), line(10, "b"), line(20, "c"), line(1000, "d")]);
    let (plane, pods) = running(KubeletConfig::new(behaviour), one()).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let read = async |params: LogParams| pods.logs("p", &params).await.unwrap();
    assert_eq!(read(LogParams::default()).await, "a\nb\nc\n");
    let tail = LogParams {
        tail_lines: Some(2),
        ..LogParams::default()
    };
    assert_eq!(read(tail).await, "b\nc\n");
    let since = LogParams {
        since_seconds: Some(15),
        ..LogParams::default()
    };
    assert_eq!(read(since).await, "c\n");
    let limit = LogParams {
        limit_bytes: Some(3),
        ..LogParams::default()
    };
    assert_eq!(read(limit).await, "a\nb");
    let timestamps = LogParams {
        timestamps: true,
        tail_lines: Some(1),
        ..LogParams::default()
    };
    let stamped = read(timestamps).await;
    let (time, text) = stamped.split_once(' ').unwrap();
    assert_eq!(
        (time.len(), text),
        ("2026-01-01T00:00:20.000000000Z".len(), "c\n")
    );
    plane.0.pods().log("default", "p", "c", "now").await;
    assert_eq!(read(LogParams::default()).await, "a\nb\nc\nnow\n");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn followed_logs_end_with_the_container() {
    let containers = json!([{"name": "c", "image": "img:1",
        "command": ["sh", "-c", "for i in $(seq 1 3); do echo kube $i; sleep 5; done"]}]);
    let (plane, pods) = running(KubeletConfig::default(), containers).await;
    let params = LogParams {
        follow: true,
        ..LogParams::default()
    };
    let mut lines = pods.log_stream("p", &params).await.unwrap().lines();
    for expected in ["kube 1", "kube 2", "kube 3"] {
        assert_eq!(lines.try_next().await.unwrap().as_deref(), Some(expected));
    }
    plane.0.pods().crash("default", "p", Crash::default()).await;
    assert_eq!(lines.try_next().await.unwrap(), None);

    let previous = LogParams {
        previous: true,
        ..LogParams::default()
    };
    let restarted =
        || async { plane.get(POD).await["status"]["containerStatuses"][0]["restartCount"] == 1 };
    eventually(restarted).await;
    assert_eq!(
        pods.logs("p", &previous).await.unwrap(),
        "kube 1\nkube 2\nkube 3\n"
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn containers_end_with_their_own_commands() {
    let config = KubeletConfig::default();
    let plane = TestControlPlane::builder().kubelet(config).start().await;
    let pods: Api<Pod> = Api::default_namespaced(plane.client());
    let plane = Plane::new(plane);
    for (script, policy, phase, exit_code) in [
        ("echo a; sleep 3; echo b", "Never", "Succeeded", Some(0)),
        (
            "echo a; sleep 3; echo b; exit 3",
            "Never",
            "Failed",
            Some(3),
        ),
        (
            "echo a; sleep 3; echo b; exit 3",
            "OnFailure",
            "Running",
            Some(3),
        ),
        // The end of these is unknown.
        ("echo a; serve || exit 1", "Never", "Running", None),
        ("echo a; [ -f /ready ] || exit 1", "Never", "Running", None),
        ("echo a; sleep 3600", "Never", "Running", None),
        ("sleep 3 & echo a", "Never", "Running", None),
    ] {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
            "spec": {"restartPolicy": policy, "terminationGracePeriodSeconds": 1, "containers":
                [{"name": "c", "image": "img:1", "command": ["sh", "-c", script]}]},
        });
        plane.create("/api/v1/namespaces/default/pods", &pod).await;
        let is_running = || async { plane.get(POD).await["status"]["phase"] == "Running" };
        eventually(is_running).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        let status = plane.get(POD).await["status"].take();
        assert_eq!(status["phase"], phase, "{script}");
        let container = &status["containerStatuses"][0];
        let mut ends = ["lastState", "state"].iter();
        let end = ends.find_map(|state| container[state].get("terminated"));
        let code = end.and_then(|end| end["exitCode"].as_i64());
        assert_eq!(code, exit_code, "{script}");
        let log = pods.logs("p", &LogParams::default()).await.unwrap();
        let expected = if exit_code == Some(3) && policy == "OnFailure" || exit_code.is_none() {
            "a\n"
        } else {
            "a\nb\n"
        };
        assert!(log.starts_with(expected), "{script}: {log}");
        pods.delete("p", &DeleteParams::default()).await.unwrap();
        let is_gone = || async { plane.code(POD).await == 404 };
        eventually(is_gone).await;
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn forced_deletion_ends_followed_logs() {
    let (plane, pods) = running(KubeletConfig::default(), one()).await;
    let params = LogParams {
        follow: true,
        ..LogParams::default()
    };
    let mut lines = pods.log_stream("p", &params).await.unwrap().lines();
    plane
        .0
        .pods()
        .delete("default", "p", Some(0))
        .await
        .unwrap();
    assert_eq!(lines.try_next().await.unwrap(), None);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn logs_report_missing_runs_and_containers() {
    let containers = json!([{"name": "a", "image": "img:1"}, {"name": "b", "image": "img:1"}]);
    let (plane, pods) = running(KubeletConfig::default(), containers).await;
    let refused = async |params: LogParams| message(pods.logs("p", &params).await.unwrap_err());
    let of = |container: &str| LogParams {
        container: Some(container.to_owned()),
        ..LogParams::default()
    };
    let found = refused(LogParams::default()).await;
    let expected = "a container name must be specified for pod p, choose one of: [a b]";
    assert_eq!(found, (400, expected.to_owned()));
    let found = refused(of("x")).await;
    assert_eq!(
        found,
        (400, "container x is not valid for pod p".to_owned())
    );
    let found = refused(LogParams {
        previous: true,
        ..of("b")
    })
    .await;
    let expected = "previous terminated container \"b\" in pod \"p\" not found";
    assert_eq!(found, (400, expected.to_owned()));
    let found = refused(LogParams {
        tail_lines: Some(-1),
        ..of("b")
    })
    .await;
    let expected = "PodLogOptions \"p\" is invalid: tailLines: Invalid value: -1: must be greater \
                    than or equal to 0";
    assert_eq!(found, (422, expected.to_owned()));

    let missing = pods.logs("nope", &LogParams::default()).await.unwrap_err();
    assert_eq!(
        message(missing),
        (404, "pods \"nope\" not found".to_owned())
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn commands_write_output_and_exit_codes() {
    let (plane, pods) = running(KubeletConfig::default(), one()).await;
    let params = AttachParams::default();
    let exec = async |command: &[&str]| {
        let process = pods.exec("p", command.iter().copied(), &params).await;
        finish(process.unwrap()).await
    };
    let (out, err, status) =
        exec(&["sh", "-c", "echo $GREETING $HOSTNAME; echo no >&2; exit 3"]).await;
    assert_eq!((out.as_str(), err.as_str()), ("hello p\n", "no\n"));
    let expected =
        "command terminated with non-zero exit code: command terminated with exit code 3";
    assert_eq!(status, Some((expected.to_owned(), "3".to_owned())));

    let (out, _, status) = exec(&["sh", "-c", "sleep 2; echo late"]).await;
    assert_eq!((out.as_str(), status), ("late\n", None));
    let (_, _, status) = exec(&["sh", "-c", "echo kept > /tmp/file"]).await;
    assert_eq!(status, None);
    assert_eq!(exec(&["cat", "/tmp/file"]).await.0, "kept\n");

    let (.., status) = exec(&["psql"]).await;
    let (message, _) = status.unwrap();
    assert!(
        message.contains("exec: \"psql\": executable file not found in $PATH"),
        "{message}"
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn connections_end_with_a_normal_close() {
    let (plane, pods) = running(KubeletConfig::default(), one()).await;
    let path = format!("{}/p/exec?stdout=1&command=true", pods.resource_url());
    let request = Request::get(path).body(Vec::new()).unwrap();
    let connection = plane.0.client().connect(request).await.unwrap();
    let messages: Vec<_> = connection.into_stream().try_collect().await.unwrap();
    let close = messages.last().unwrap();
    assert!(close.is_close());
    assert!(format!("{close:?}").contains("Normal"), "{close:?}");
    plane.stop().await;
}

/// Asks a shell for a response, and ends it with an exit code.
pub(super) async fn assert_shell_answers(mut process: AttachedProcess) {
    let mut stdin = process.stdin().unwrap();
    let mut stdout = process.stdout().unwrap();
    stdin.write_all(b"echo first\n").await.unwrap();
    let mut answer = [0; 6];
    stdout.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"first\n");
    stdin.write_all(b"exit 1\n").await.unwrap();
    let status = process.take_status().unwrap().await.unwrap();
    assert_eq!(status.reason.as_deref(), Some("NonZeroExitCode"));
}

#[tokio::test(start_paused = true)]
async fn shells_read_their_input() {
    let (plane, pods) = running(KubeletConfig::default(), one()).await;
    let params = AttachParams::default().stdin(true).stderr(false);
    let process = pods.exec("p", ["sh"], &params).await.unwrap();
    assert_shell_answers(process).await;

    let mut process = pods.exec("p", ["cat"], &params).await.unwrap();
    let mut stdin = process.stdin().unwrap();
    let input = "line\n".repeat(100_000);
    let write = async {
        stdin.write_all(input.as_bytes()).await.unwrap();
        stdin.shutdown().await.unwrap();
    };
    let ((out, _, status), ()) = tokio::join!(finish(process), write);
    assert_eq!(status, None);
    assert!(out == input, "{} of {} bytes", out.len(), input.len());
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn containers_end_with_their_attached_client() {
    let config = KubeletConfig::default();
    let plane = TestControlPlane::builder().kubelet(config).start().await;
    let pods: Api<Pod> = Api::default_namespaced(plane.client());
    let plane = Plane::new(plane);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "img:1",
            "stdin": true, "stdinOnce": true, "command": ["sh"]}]},
    });
    plane.create("/api/v1/namespaces/default/pods", &pod).await;
    eventually(|| async { is_ready(&plane.get(POD).await) }).await;
    let params = AttachParams::default().stdin(true).stderr(false);
    let mut process = pods.attach("p", &params).await.unwrap();
    let mut stdin = process.stdin().unwrap();
    stdin.write_all(b"echo hi\nexit 3\n").await.unwrap();
    assert_eq!(finish(process).await.0, "hi\n");
    let state = || async { plane.get(POD).await["status"]["containerStatuses"][0]["state"].take() };
    eventually(|| async { state().await["terminated"]["exitCode"] == 3 }).await;
    assert_eq!(plane.get(POD).await["status"]["phase"], "Failed");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn archives_carry_files_in_and_out() {
    let (plane, pods) = running(KubeletConfig::default(), one()).await;
    let plain = AttachParams::default();
    let exec = async |command: &[&str]| {
        let process = pods.exec("p", command.iter().copied(), &plain).await;
        finish(process.unwrap()).await
    };
    exec(&["sh", "-c", "echo kept > /tmp/a/file"]).await;
    let (archive, _, status) = exec(&["tar", "cf", "-", "/tmp/a"]).await;
    assert_eq!((archive.len(), status), (2048, None));
    assert!(archive.starts_with("tmp/a/file\0"));

    let command = ["tar", "-xmf", "-", "-C", "/copy"];
    let params = AttachParams::default().stdin(true);
    let mut process = pods.exec("p", command, &params).await.unwrap();
    let mut stdin = process.stdin().unwrap();
    stdin.write_all(archive.as_bytes()).await.unwrap();
    stdin.shutdown().await.unwrap();
    assert_eq!(finish(process).await.2, None);
    assert_eq!(exec(&["cat", "/copy/tmp/a/file"]).await.0, "kept\n");
    assert_eq!(exec(&["test", "-d", "/copy"]).await.2, None);
    assert!(exec(&["tar", "cf", "-", "/none"]).await.2.is_some());
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn terminals_echo_and_change_their_size() {
    use futures::SinkExt as _;
    let (plane, pods) = running(KubeletConfig::default(), one()).await;
    let params = AttachParams::interactive_tty();
    let mut process = pods.exec("p", ["sh"], &params).await.unwrap();
    let mut sizes = process.terminal_size().unwrap();
    let (width, height) = (120, 40);
    sizes.send(TerminalSize { width, height }).await.unwrap();
    let mut stdin = process.stdin().unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    stdin.write_all(b"stty size\nexit\n").await.unwrap();
    let (out, _, status) = finish(process).await;
    assert_eq!(out, "/ # stty size\r\n40 120\r\n/ # exit\r\n");
    assert_eq!(status, None);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn scripts_and_closures_answer_commands() {
    let behaviour = PodBehaviour::default().commands([ScriptedCommand::default()
        .command("pg_isready*")
        .stdout("accepting connections\n")
        .exit_code(2)
        .delay(Duration::from_secs(5))]);
    let config = KubeletConfig::default()
        .when(PodMatcher::default(), behaviour)
        .on_command(|container, command| {
            let name = container.pod.clone();
            (command == ["whoami"]).then(|| {
                program(async move |stdio| {
                    let line = format!("user of {name}\n");
                    stdio
                        .stdout
                        .unwrap()
                        .write_all(line.as_bytes())
                        .await
                        .unwrap();
                    0
                })
            })
        });
    let (plane, pods) = running(config, one()).await;
    let params = AttachParams::default();
    let process = pods.exec("p", ["pg_isready", "-U", "app"], &params).await;
    let (out, _, status) = finish(process.unwrap()).await;
    assert_eq!(out, "accepting connections\n");
    assert_eq!(status.unwrap().1, "2");
    let process = pods.exec("p", ["whoami"], &params).await.unwrap();
    assert_eq!(finish(process).await.0, "user of p\n");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn attached_clients_see_new_lines() {
    let behaviour = PodBehaviour::default().log([line(0, "old"), line(60, "new")]);
    let (plane, pods) = running(KubeletConfig::new(behaviour), one()).await;
    let params = AttachParams::default().stderr(false);
    let mut process = pods.attach("p", &params).await.unwrap();
    let mut stdout = process.stdout().unwrap();
    let mut text = [0; 4];
    stdout.read_exact(&mut text).await.unwrap();
    assert_eq!(&text, b"new\n");
    plane.0.pods().crash("default", "p", Crash::default()).await;
    let status = process.take_status().unwrap().await.unwrap();
    assert_eq!(status.status.as_deref(), Some("Success"));
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn processes_end_with_their_container() {
    let (plane, pods) = running(KubeletConfig::default(), one()).await;
    let params = AttachParams::default();
    let process = pods
        .exec("p", ["sleep", "infinity"], &params)
        .await
        .unwrap();
    plane.0.pods().crash("default", "p", Crash::default()).await;
    let (.., status) = finish(process).await;
    assert_eq!(status.unwrap().1, "137");

    // The container waits for its restart.
    let process = pods.exec("p", ["true"], &params).await.unwrap();
    let (.., status) = finish(process).await;
    let expected = "Internal error occurred: unable to upgrade connection: container not found \
                    (\"c\")";
    assert_eq!(status.unwrap().0, expected);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn forwarded_ports_carry_data() {
    let config = KubeletConfig::default().on_port(|_, name, port| {
        let greeting = format!("{name}:{port}");
        (port == 8080).then(|| {
            port_server(async move |mut connection| {
                connection.write_all(greeting.as_bytes()).await.unwrap();
            })
        })
    });
    let (plane, pods) = running(config, one()).await;
    let mut forwarder = pods.portforward("p", &[80, 8080, 9]).await.unwrap();
    let mut echo = forwarder.take_stream(80).unwrap();
    echo.write_all(b"ping").await.unwrap();
    let mut answer = [0; 4];
    echo.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"ping");
    let mut greeting = [0; 6];
    let mut greeter = forwarder.take_stream(8080).unwrap();
    greeter.read_exact(&mut greeting).await.unwrap();
    assert_eq!(&greeting, b"p:8080");
    let error = forwarder.take_error(9).unwrap().await.unwrap();
    assert!(
        error.contains("dial tcp4 127.0.0.1:9: connect: connection refused"),
        "{error}"
    );
    forwarder.abort();
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn scripted_ports_serve_the_files_of_a_container() {
    let rules = PodRule::list_from_yaml(
        r#"
        - pods: {image: "img:*"}
          behaviour:
            files: {/www/hello: "hello\n"}
            ports:
            - {port: 80, command: [sh, -c, "read path; cat /www$path"]}
            - {port: 81, container: none, command: [cat]}
            - {port: 82, command: [postgres]}
        - behaviour: {outcome: fails}
        "#,
    )
    .unwrap();
    let config = KubeletConfig::default().rules(rules);
    let (plane, pods) = running(config, one()).await;
    let read = async |path: &[u8]| {
        let mut forwarder = pods.portforward("p", &[80]).await.unwrap();
        let mut stream = forwarder.take_stream(80).unwrap();
        stream.write_all(path).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    };
    assert_eq!(read(b"/hello\n").await, "hello\n");
    let command = ["cp", "/www/hello", "/www/new"];
    let process = pods.exec("p", command, &AttachParams::default()).await;
    assert_eq!(finish(process.unwrap()).await.2, None);
    assert_eq!(read(b"/new\n").await, "hello\n");
    let mut forwarder = pods.portforward("p", &[81, 82]).await.unwrap();
    for (port, expected) in [
        (81, "container not found (\"none\")"),
        (82, "exec: \"postgres\": executable file not found in $PATH"),
    ] {
        let error = forwarder.take_error(port).unwrap().await.unwrap();
        assert!(error.contains(expected), "{error}");
    }
    forwarder.abort();
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn ephemeral_containers_answer() {
    let (plane, pods) = running(KubeletConfig::default(), one()).await;
    let mut pod = pods.get("p").await.unwrap();
    let debugger = json!([{"name": "debugger", "image": "busybox", "stdin": true, "tty": true}]);
    pod.spec.as_mut().unwrap().ephemeral_containers = serde_json::from_value(debugger).unwrap();
    let params = PostParams::default();
    pods.replace_ephemeral_containers("p", &params, &pod)
        .await
        .unwrap();
    let is_running = || async {
        let pod = plane.get(POD).await;
        pod["status"]["ephemeralContainerStatuses"][0]["state"]["running"].is_object()
    };
    eventually(is_running).await;
    let params = AttachParams::default().container("debugger");
    let process = pods.exec("p", ["echo", "here"], &params).await.unwrap();
    assert_eq!(finish(process).await.0, "here\n");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn connections_need_a_container_and_permissions() {
    let (plane, pods) = running(KubeletConfig::default(), one()).await;
    let params = AttachParams::default().container("x");
    let error = pods.exec("p", ["true"], &params).await.err().unwrap();
    assert_eq!(
        message(error),
        (400, "container x is not valid for pod p".to_owned())
    );

    let role = json!({"metadata": {"name": "r"}, "rules": [
        {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["get"]}]});
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    plane.create(&format!("{roles}/roles"), &role).await;
    let binding = json!({"metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "name": "me", "apiGroup": "rbac.authorization.k8s.io"}]});
    plane
        .create(&format!("{roles}/rolebindings"), &binding)
        .await;
    let mine: Api<Pod> = Api::default_namespaced(plane.0.client_as(Identity::user("me")));
    let error = mine
        .exec("p", ["true"], &AttachParams::default())
        .await
        .err()
        .unwrap();
    let (code, text) = message(error);
    assert_eq!(code, 403);
    assert!(
        text.contains("cannot create resource \"pods/exec\""),
        "{text}"
    );
    plane.stop().await;
}

#[tokio::test]
async fn containers_answer_over_tls() {
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let plane = TestControlPlane::builder()
        .kubelet(KubeletConfig::default())
        .listen(loopback);
    let plane = Plane::new(plane.start().await);
    create(&plane, one()).await;
    let kubeconfig: Kubeconfig = serde_json::from_value(plane.0.kubeconfig().unwrap()).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    let pods: Api<Pod> = Api::default_namespaced(kube::Client::try_from(config).unwrap());
    let params = AttachParams::default();
    let process = pods.exec("p", ["echo", "over TLS"], &params).await.unwrap();
    assert_eq!(finish(process).await.0, "over TLS\n");
    let mut forwarder = pods.portforward("p", &[80]).await.unwrap();
    let mut echo = forwarder.take_stream(80).unwrap();
    echo.write_all(b"ping").await.unwrap();
    let mut answer = [0; 4];
    echo.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"ping");
    forwarder.abort();
    plane.stop().await;
}
