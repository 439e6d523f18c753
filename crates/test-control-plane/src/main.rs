//! The program: a control plane on a loopback port, until it is told to stop.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};
use clap::{ArgAction, Parser};
use kube_test_control_plane::actors::{
    ActorsConfig, GarbageCollectorConfig, KubeletConfig, NamespaceControllerConfig,
    NodeControllerConfig, PodBehaviour, PodCollectorConfig, SchedulerConfig, VolumeBinderConfig,
    parse_duration,
};
use kube_test_control_plane::auth::{Authorization, Tokens};
use kube_test_control_plane::{FeatureGates, ServerConfig, TestControlPlane, UnknownFields};
use rand::TryRngCore;
use rand::rngs::OsRng;
use tokio::signal::unix::{SignalKind, signal};

/// The actors by name, in the order in which they are listed.
const ACTORS: &str = "kubelet,scheduler,node-controller,pod-garbage-collector,\
                      disruption-controller,volume-binder,garbage-collector,namespace-controller";

/// An embedded Kubernetes control plane for tests and demos: no cluster, no containers.
#[derive(Debug, Parser)]
#[command(name = "kube-test-control-plane", version)]
struct Args {
    /// The port to serve on; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    secure_port: u16,

    /// The loopback address to serve on.
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    bind_address: IpAddr,

    /// Where to write the administrator's kubeconfig.
    #[arg(long, value_name = "FILE")]
    kubeconfig_out: Option<PathBuf>,

    /// Bearer tokens: lines of token,user,uid,"group1,group2".
    #[arg(long, value_name = "FILE")]
    token_auth_file: Option<PathBuf>,

    /// Who decides what users may do: a list of RBAC, Node, AlwaysAllow and AlwaysDeny, of which the
    /// first that allows a request decides. The members of system:masters may always do everything.
    #[arg(long, value_name = "LIST", default_value = "RBAC")]
    authorization_mode: Authorization,

    /// Which actors run, separated by commas; an empty list runs none.
    #[arg(long, value_name = "LIST", default_value = ACTORS)]
    actors: String,

    /// Lets kubelet and scheduler write events, as a cluster's do.
    #[arg(long)]
    actor_events: bool,

    /// How long a pod stays pending on its node, such as 500ms or 2s.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    start_delay: Duration,

    /// How long a pod runs before it is ready, such as 500ms or 2s.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    ready_delay: Duration,

    /// What becomes of fields that Kubernetes v1.36.2 doesn't know: prune drops them, as it does;
    /// keep stores them, as a newer server that knows them.
    #[arg(long, value_name = "POLICY", default_value = "prune")]
    unknown_fields: UnknownFields,

    /// Feature gates that change what is stored: MaxUnavailableStatefulSet=true|false (off).
    #[arg(long, value_name = "GATES", default_value = "")]
    feature_gates: FeatureGates,

    /// How many changes are kept for watches that go on from an older version.
    #[arg(long, value_name = "N", default_value_t = ServerConfig::default().log_window)]
    log_window: usize,

    /// Log more; repeat for even more.
    #[arg(short, long, action = ArgAction::Count)]
    verbose: u8,
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "needs a number and a unit of ms, s, m or h".to_owned())
}

fn main() -> ExitCode {
    let args = Args::parse();
    let level = match args.verbose {
        0 => "warn",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(format!("off,kube_test_control_plane={level}"))
        .init();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(err) => return fail(&anyhow::Error::new(err).context("starting the runtime")),
    };
    match runtime.block_on(run(args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => fail(&err),
    }
}

#[expect(
    clippy::print_stderr,
    reason = "the one line that says why the program failed"
)]
fn fail(err: &anyhow::Error) -> ExitCode {
    eprintln!("error: {err:#}");
    ExitCode::FAILURE
}

async fn run(args: Args) -> anyhow::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt()).context("listening for SIGINT")?;
    let mut terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    let tokens = read_tokens(&args)?;
    #[expect(
        clippy::disallowed_methods,
        reason = "the program is where the clock comes from"
    )]
    let now = jiff::Timestamp::try_from(SystemTime::now()).context("reading the clock")?;
    let config = ServerConfig {
        seed: OsRng.try_next_u64().context("drawing a seed")?,
        tokens,
        authorization: args.authorization_mode.clone(),
        log_window: args.log_window,
        unknown_fields: args.unknown_fields,
        feature_gates: args.feature_gates,
        ..ServerConfig::default()
    };
    let plane = TestControlPlane::builder()
        .server_config(config)
        .actors(actors(&args)?)
        .starting_at(now)
        .listen(SocketAddr::new(args.bind_address, args.secure_port))
        .try_start()
        .await?;
    if let Some(path) = &args.kubeconfig_out {
        plane.write_kubeconfig(path)?;
    }
    announce(&plane.url().unwrap_or_default());
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    plane.stop().await;
    Ok(())
}

#[expect(
    clippy::print_stdout,
    reason = "whoever started the program waits for this line"
)]
fn announce(url: &str) {
    println!("ready {url}");
}

fn read_tokens(args: &Args) -> anyhow::Result<Tokens> {
    let mut tokens = Tokens::default();
    if let Some(path) = &args.token_auth_file {
        let shown = path.display();
        let text = std::fs::read_to_string(path).with_context(|| format!("reading {shown}"))?;
        tokens
            .insert_file(&text)
            .with_context(|| format!("reading {shown}"))?;
    }
    Ok(tokens)
}

fn actors(args: &Args) -> anyhow::Result<ActorsConfig> {
    let mut config = ActorsConfig {
        events: args.actor_events,
        ..ActorsConfig::default()
    };
    for name in args
        .actors
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
    {
        match name {
            "kubelet" => {
                config.kubelet = Some(KubeletConfig::new(PodBehaviour {
                    start_delay: args.start_delay.into(),
                    ready_delay: args.ready_delay.into(),
                    ..PodBehaviour::default()
                }));
            }
            "scheduler" => config.scheduler = Some(SchedulerConfig::default()),
            "node-controller" => {
                config.node_controller = Some(NodeControllerConfig::default());
            }
            "pod-garbage-collector" => {
                config.pod_collector = Some(PodCollectorConfig::default());
            }
            "disruption-controller" => config.disruption_controller = true,
            "volume-binder" => config.volume_binder = Some(VolumeBinderConfig::default()),
            "garbage-collector" => {
                config.garbage_collector = Some(GarbageCollectorConfig::default());
            }
            "namespace-controller" => {
                config.namespace_controller = Some(NamespaceControllerConfig::default());
            }
            other => bail!("--actors: unknown actor {other:?}, known are {ACTORS}"),
        }
    }
    Ok(config)
}
