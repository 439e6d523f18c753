//! The kubelets' responses to the API server: logs, processes and ports of the pods they run.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use jiff::Timestamp;
use kube_test_control_plane_server::containers::{
    Exit, KubeletError, Kubelets, LogOptions, NodePod, PodAddress, Process, Stdio,
};
use tokio::io::{AsyncWriteExt, BufReader, DuplexStream, copy, duplex, split};
use tokio::sync::oneshot;

use super::log::{self, ContainerLog};
use super::orders::KubeletOrder;
use super::served_pod::ServedPod;
use super::shell::{Files, Input, Pause, Shell, Sink, Streams};
use crate::runner::Orders;

/// Exit code of a process whose container ended.
const KILLED: i32 = 137;

/// Size of the buffer between a connection and the process that serves it, in bytes.
const PIPE: usize = 64 * 1024;

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
            let pod = found.await.map_err(gone)??;
            let orders = self.0.clone();
            Ok(Arc::new(FoundPod { pod, orders }) as Arc<dyn NodePod>)
        }
        .boxed()
    }
}

/// A pod with the channel for orders to its kubelet.
struct FoundPod {
    pod: ServedPod,
    orders: Orders<KubeletOrder>,
}

impl NodePod for FoundPod {
    fn log(
        &self,
        container: &str,
        options: &LogOptions,
    ) -> Result<BoxStream<'static, Bytes>, KubeletError> {
        Ok(match self.pod.log_of(container, options.previous)? {
            Some(log) => log::read(&log, &self.pod.server, options),
            None => stream::empty().boxed(),
        })
    }

    fn exec(&self, container: &str, command: Vec<String>) -> Result<Process, KubeletError> {
        let served = self.pod.running(container)?;
        let mut scripted = self.pod.behaviour.commands.iter();
        let scripted = scripted.find(|it| it.answers(container, &command)).cloned();
        let name = self.pod.name_of(container);
        let mut handlers = self.pod.handlers.command.iter();
        let program = handlers.find_map(|handler| handler(&name, &command));
        let environment = served.environment.clone();
        let (files, log) = (served.files.clone(), served.log.clone());
        let (rng, server) = (self.pod.rng, self.pod.server.clone());
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
        let served = self.pod.running(container)?;
        let (log, server) = (served.log.clone(), self.pod.server.clone());
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
        let orders = ends.then(|| self.orders.clone());
        let (pod, container, nth) = (self.pod.key.clone(), container.to_owned(), served.runs);
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
                let mut options = LogOptions::default();
                options.follow = true;
                options.tail = Some(0);
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
        let (namespace, name) = (&*self.pod.key.namespace, &*self.pod.key.name);
        if !self.pod.is_running {
            let message = format!("pod {name}_{namespace} is not running");
            return async move { Err(message) }.boxed();
        }
        let mut handlers = self.pod.handlers.port.iter();
        if let Some(server) = handlers.find_map(|handler| handler(namespace, name, port)) {
            return server(connection).map(Ok).boxed();
        }
        let mut scripted = self.pod.behaviour.ports.iter();
        if let Some(scripted) = scripted.find(|it| it.port == port) {
            let container = scripted.container.as_ref().unwrap_or(&self.pod.main);
            return match self.exec(container, scripted.command.clone()) {
                Ok(process) => serve(process, connection).boxed(),
                Err(err) => async move { Err(err.message) }.boxed(),
            };
        }
        if self.pod.ports.contains(&port) {
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

/// Runs a process whose input and output are a connection.
async fn serve(process: Process, connection: DuplexStream) -> Result<(), String> {
    let (mut reader, mut writer) = split(connection);
    let (mut input, stdin) = duplex(PIPE);
    let (stdout, mut output) = duplex(PIPE);
    let mut stdio = Stdio::default();
    stdio.stdin = Some(stdin);
    stdio.stdout = Some(stdout);
    // Either side may close the connection at any time.
    let receive = async {
        let _ = copy(&mut reader, &mut input).await;
        let _ = input.shutdown().await;
        std::future::pending::<()>().await;
    };
    let send = async {
        let _ = copy(&mut output, &mut writer).await;
        let _ = writer.shutdown().await;
    };
    tokio::select! {
        (ended, ()) = async { tokio::join!(process(stdio), send) } => match ended {
            Err(Exit::Failed(message)) => Err(message),
            _ => Ok(()),
        },
        () = receive => Ok(()),
    }
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
