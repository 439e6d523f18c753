//! The kubelets' answers to the API server: logs, processes and ports of the pods they run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use jiff::Timestamp;
use kube_test_control_plane_api::members::{list, text};
use kube_test_control_plane_api::object::Key;
use kube_test_control_plane_server::containers::{
    Exit, KubeletError, Kubelets, LogOptions, NodePod, PodAddress, Process, Stdio,
};
use serde_json::Value;
use tokio::io::{AsyncWriteExt, BufReader, DuplexStream, copy, split};
use tokio::sync::oneshot;

use super::behaviour::PodBehaviour;
use super::container::{Container, State};
use super::log::{self, ContainerLog};
use super::own_command::{self, Exited};
use super::run::PodRun;
use super::script::{ContainerName, Handlers};
use super::shell::{Files, Input, Pause, Shell, Sink, Streams};
use super::{Kubelet, KubeletOrder, Stage};
use crate::delay::SeededRng;
use crate::runner::Orders;
use crate::server::ActorServer;

/// Exit code of a process whose container ended.
const KILLED: i32 = 137;

/// The kubelets behind an API server.
#[derive(Clone, Debug)]
pub(crate) struct NodeKubelets(pub(crate) Orders<KubeletOrder>);

impl Kubelets for NodeKubelets {
    fn find(&self, pod: PodAddress) -> BoxFuture<'_, Result<Arc<dyn NodePod>, KubeletError>> {
        async move {
            let (answer, found) = oneshot::channel();
            let node = pod.node.clone();
            let gone = |_| KubeletError::new(502, format!("no kubelet listens on node {node}"));
            self.0.send(KubeletOrder::Find { pod, answer });
            let mut pod = found.await.map_err(gone)??;
            pod.orders = Some(self.0.clone());
            Ok(Arc::new(pod) as Arc<dyn NodePod>)
        }
        .boxed()
    }
}

/// A container as it was when the API server asked.
#[derive(Debug)]
struct Served {
    state: State,
    log: Option<Arc<ContainerLog>>,
    previous: Option<Arc<ContainerLog>>,
    environment: Vec<(String, String)>,
    files: Files,
    /// Number of its runs.
    runs: u32,
    /// True if the container reads its standard input.
    has_stdin: bool,
    /// True if its standard input ends with the first attached client.
    has_stdin_once: bool,
    command: Vec<String>,
}

/// A pod as it was when the API server asked.
#[derive(Debug)]
pub(crate) struct ServedPod {
    server: ActorServer,
    key: Key,
    behaviour: PodBehaviour,
    handlers: Handlers,
    containers: BTreeMap<String, Served>,
    ports: Vec<u16>,
    is_running: bool,
    rng: SeededRng,
    /// Channel for orders to the kubelets.
    orders: Option<Orders<KubeletOrder>>,
}

impl Kubelet {
    /// Finds a pod for the API server.
    pub(super) fn find(&self, pod: &PodAddress) -> Result<ServedPod, KubeletError> {
        if !self.is_served(&pod.node) {
            let address = self
                .nodes
                .get(&*pod.node)
                .map_or(super::ADDRESS, String::as_str);
            let message = format!("dial tcp {address}:10250: connect: no route to host");
            return Err(KubeletError::new(502, message));
        }
        let run = self.runs.get(&*pod.uid);
        let run = run.ok_or_else(|| KubeletError::new(404, "pod does not exist"))?;
        let containers = run.all_containers().map(|container| {
            let served = served(container, run);
            (container.name.clone(), served)
        });
        Ok(ServedPod {
            server: self.client.server.clone(),
            key: run.key.clone(),
            behaviour: run.behaviour.clone(),
            handlers: self.config.handlers.clone(),
            containers: containers.collect(),
            ports: run.containers.iter().flat_map(ports).collect(),
            is_running: matches!(run.stage, Stage::Running | Stage::Stopping),
            rng: self.rng,
            orders: None,
        })
    }
}

fn served(container: &Container, run: &PodRun) -> Served {
    Served {
        state: container.state.clone(),
        log: container.log.clone(),
        previous: container.previous_log.clone(),
        environment: environment(&container.spec, run),
        files: container.files.clone(),
        runs: container.runs,
        has_stdin: container.spec["stdin"] == true,
        has_stdin_once: container.spec["stdinOnce"] == true,
        command: command(&container.spec),
    }
}

/// Number of variables in the environment of every container.
pub(super) const OWN_VARIABLES: usize = 3;

/// Returns a container's environment. Variables from config maps, secrets and resource fields are
/// omitted.
pub(super) fn environment(spec: &Value, run: &PodRun) -> Vec<(String, String)> {
    let own: [(&str, String); OWN_VARIABLES] = [
        ("HOSTNAME", run.key.name.to_string()),
        ("KUBERNETES_SERVICE_HOST", "10.96.0.1".to_owned()),
        ("KUBERNETES_SERVICE_PORT", "443".to_owned()),
    ];
    let own = own.map(|(name, value)| (name.to_owned(), value));
    let given = list(spec, "env").filter_map(|variable| {
        let name = text(variable, "name").to_owned();
        if let Some(value) = variable.get("value") {
            return Some((name, value.as_str()?.to_owned()));
        }
        let field = variable
            .pointer("/valueFrom/fieldRef/fieldPath")?
            .as_str()?;
        let value = match field {
            "metadata.name" => run.key.name.to_string(),
            "metadata.namespace" => run.key.namespace.to_string(),
            "metadata.uid" => run.uid.to_string(),
            "spec.nodeName" => run.node.to_string(),
            "status.podIP" => run.pod_ip.clone().unwrap_or_default(),
            "status.hostIP" => run.host_ip.clone(),
            _ => return None,
        };
        Some((name, value))
    });
    own.into_iter().chain(given).collect()
}

/// Returns a container's own command with its arguments.
pub(super) fn command(spec: &Value) -> Vec<String> {
    let words = list(spec, "command").chain(list(spec, "args"));
    words
        .filter_map(|word| word.as_str().map(str::to_owned))
        .collect()
}

fn ports(container: &Container) -> Vec<u16> {
    let ports = list(&container.spec, "ports");
    let ports = ports.filter(|port| text(port, "protocol") != "UDP");
    let numbers = ports.filter_map(|port| port.get("containerPort")?.as_u64());
    numbers
        .filter_map(|port| u16::try_from(port).ok())
        .collect()
}

impl PodRun {
    /// Ends the logs of a pod that its node has dropped, and with them its processes.
    pub(super) fn end_logs(&self, now: Timestamp) {
        for log in self.all_containers().filter_map(|it| it.log.as_ref()) {
            log.end(now);
        }
    }

    /// Returns the log of a container that starts, and its end if that is known: those of its
    /// script, or else those of its own command.
    pub(super) fn begin_log(
        &self,
        container: &Container,
        now: super::Now<'_>,
    ) -> (ContainerLog, Option<Exited>) {
        let scripted = self.behaviour.log.iter().filter(|line| {
            let is_meant = |name: &String| *name == container.name;
            line.container.as_ref().is_none_or(is_meant)
        });
        let mut script: Vec<(Duration, String)> = scripted
            .zip(0..)
            .map(|(line, nth)| (self.draw(line.after, "log", nth, now), line.text.clone()))
            .collect();
        let mut end = None;
        if script.is_empty() {
            (script, end) = own_command::run(container, self, now.timestamp);
        }
        let at = |after| {
            let began = now.timestamp;
            began.saturating_add(after).unwrap_or(began)
        };
        let lines = script.into_iter().map(|(after, text)| (at(after), text));
        (ContainerLog::new(lines), end)
    }
}

impl ServedPod {
    /// Returns a container that runs.
    fn running(&self, name: &str) -> Result<&Served, KubeletError> {
        let found = self.containers.get(name);
        let running = found.filter(|it| matches!(it.state, State::Running { .. }));
        running.ok_or_else(|| KubeletError::new(500, format!("container not found ({name:?})")))
    }

    /// Returns the log of the run that the options select.
    ///
    /// Upstream: `validateContainerLogStatus`
    fn log_of(
        &self,
        name: &str,
        previous: bool,
    ) -> Result<Option<Arc<ContainerLog>>, KubeletError> {
        let pod = &self.key.name;
        let refused = |message: String| KubeletError::new(400, message);
        let Some(container) = self.containers.get(name) else {
            let message = format!("container {name:?} in pod {pod:?} is not available");
            return Err(refused(message));
        };
        if previous {
            let message = || {
                refused(format!(
                    "previous terminated container {name:?} in pod {pod:?} not found"
                ))
            };
            return container.previous.clone().map(Some).ok_or_else(message);
        }
        let State::Waiting { reason, .. } = &container.state else {
            return Ok(container.log.clone());
        };
        if let Some(log) = &container.previous {
            return Ok(Some(Arc::clone(log)));
        }
        let why = match *reason {
            "ErrImagePull" => "image can't be pulled",
            "ImagePullBackOff" => "trying and failing to pull image",
            other => other,
        };
        Err(refused(format!(
            "container {name:?} in pod {pod:?} is waiting to start: {why}"
        )))
    }

    fn name_of(&self, container: &str) -> ContainerName {
        ContainerName {
            namespace: self.key.namespace.to_string(),
            pod: self.key.name.to_string(),
            container: container.to_owned(),
        }
    }
}

impl NodePod for ServedPod {
    fn log(
        &self,
        container: &str,
        options: &LogOptions,
    ) -> Result<BoxStream<'static, Bytes>, KubeletError> {
        Ok(match self.log_of(container, options.previous)? {
            Some(log) => log::read(&log, &self.server, options),
            None => stream::empty().boxed(),
        })
    }

    fn exec(&self, container: &str, command: Vec<String>) -> Result<Process, KubeletError> {
        let served = self.running(container)?;
        let mut scripted = self.behaviour.commands.iter();
        let scripted = scripted.find(|it| it.answers(container, &command)).cloned();
        let name = self.name_of(container);
        let mut handlers = self.handlers.command.iter();
        let program = handlers.find_map(|handler| handler(&name, &command));
        let environment = served.environment.clone();
        let (files, log) = (served.files.clone(), served.log.clone());
        let (rng, server) = (self.rng, self.server.clone());
        Ok(Box::new(move |stdio| {
            let work = async move {
                if let Some(program) = program {
                    return exit_of(program(stdio).await);
                }
                if let Some(answer) = scripted {
                    let delay = rng.draw(answer.delay, &name.pod, "command", 0);
                    tokio::time::sleep(delay).await;
                    write(stdio.stdout, &answer.stdout).await;
                    write(stdio.stderr, &answer.stderr).await;
                    return exit_of(answer.exit_code);
                }
                run(&command, environment, files, stdio, server.now()).await
            };
            until_ended(log, work).boxed()
        }))
    }

    fn attach(&self, container: &str) -> Result<Process, KubeletError> {
        let served = self.running(container)?;
        let (log, server) = (served.log.clone(), self.server.clone());
        let environment = served.environment.clone();
        let files = served.files.clone();
        let is_known = Shell::knows(&served.command);
        let command = if is_known {
            served.command.clone()
        } else {
            vec!["cat".to_owned()]
        };
        let reads = served.has_stdin;
        // The container ends with its command, which no other client can reach.
        let ends = is_known && served.has_stdin_once;
        let orders = self.orders.clone().filter(|_| ends);
        let (pod, container, nth) = (self.key.clone(), container.to_owned(), served.runs);
        let exit = move |code| KubeletOrder::Exit {
            pod,
            container,
            run: nth,
            code,
        };
        Ok(Box::new(move |stdio| {
            let ended = log.clone();
            let work = async move {
                if reads {
                    let now = server.now();
                    let ended = run(&command, environment, files, stdio, now).await;
                    if let Some(orders) = orders {
                        orders.send(exit(match ended {
                            Err(Exit::Code(code)) => code,
                            _ => 0,
                        }));
                    }
                    return ended;
                }
                let Some(log) = log else {
                    return Ok(());
                };
                // An attached client sees only later lines.
                let options = LogOptions {
                    follow: true,
                    tail: Some(0),
                    ..LogOptions::default()
                };
                let mut lines = log::read(&log, &server, &options);
                let mut stdout = stdio.stdout;
                while let Some(piece) = lines.next().await {
                    if let Some(stdout) = &mut stdout
                        && stdout.write_all(&piece).await.is_err()
                    {
                        break;
                    }
                }
                Ok(())
            };
            if reads {
                until_ended(ended, work).boxed()
            } else {
                work.boxed()
            }
        }))
    }

    fn connect(
        &self,
        port: u16,
        connection: DuplexStream,
    ) -> BoxFuture<'static, Result<(), String>> {
        let (namespace, name) = (&*self.key.namespace, &*self.key.name);
        if !self.is_running {
            let message = format!("pod {name}_{namespace} is not running");
            return async move { Err(message) }.boxed();
        }
        let mut handlers = self.handlers.port.iter();
        if let Some(server) = handlers.find_map(|handler| handler(namespace, name, port)) {
            return server(connection).map(Ok).boxed();
        }
        if self.ports.contains(&port) {
            return echo(connection).map(Ok).boxed();
        }
        let message = format!(
            "failed to connect to localhost:{port} inside namespace of pod {name}_{namespace}, \
             IPv4: dial tcp4 127.0.0.1:{port}: connect: connection refused"
        );
        async move { Err(message) }.boxed()
    }
}

/// Sends a client's data back.
async fn echo(connection: DuplexStream) {
    let (mut reader, mut writer) = split(connection);
    // The client may close the connection at any time.
    let _ = copy(&mut reader, &mut writer).await;
}

/// Runs a process until its container ends.
async fn until_ended(
    log: Option<Arc<ContainerLog>>,
    work: impl Future<Output = Result<(), Exit>>,
) -> Result<(), Exit> {
    let Some(log) = log else {
        return work.await;
    };
    tokio::select! {
        biased;
        ended = work => ended,
        () = log.ended() => Err(Exit::Code(KILLED)),
    }
}

/// Runs a program of the shell.
async fn run(
    command: &[String],
    environment: Vec<(String, String)>,
    files: Files,
    stdio: Stdio,
    now: Timestamp,
) -> Result<(), Exit> {
    if !Shell::knows(command) {
        let program = command.first().map_or("", String::as_str);
        return Err(Exit::Failed(format!(
            "failed to exec in container: failed to start exec: OCI runtime exec failed: exec \
             failed: unable to start container process: exec: {program:?}: executable file not \
             found in $PATH: unknown"
        )));
    }
    let input = stdio
        .stdin
        .map_or(Input::Empty, |it| Input::Live(BufReader::new(it)));
    let sink = |stream: Option<DuplexStream>| stream.map_or(Sink::Null, Sink::Live);
    let err = match &stdio.terminal {
        Some(_) => Sink::Merged,
        None => sink(stdio.stderr),
    };
    let streams = Streams::new(input, sink(stdio.stdout), err, Pause::Real, stdio.terminal);
    exit_of(
        Shell::new(environment, files, streams, now)
            .run(command)
            .await,
    )
}

fn exit_of(code: i32) -> Result<(), Exit> {
    if code == 0 {
        Ok(())
    } else {
        Err(Exit::Code(code))
    }
}

/// Writes text to a stream that the client wants.
async fn write(stream: Option<DuplexStream>, text: &str) {
    if let Some(mut stream) = stream {
        // The client may have gone.
        let _ = stream.write_all(text.as_bytes()).await;
    }
}
