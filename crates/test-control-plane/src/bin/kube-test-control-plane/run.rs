//! Starts the control plane, reports readiness, and waits for a signal.

use std::io::{Write, copy, sink, stdin, stdout};
use std::net::SocketAddr;
use std::time::SystemTime;

use anyhow::Context;
use kube_test_control_plane::audit::AuditLevel;
use kube_test_control_plane::{ServerConfig, ServerGates, TestControlPlane};
use rand::TryRng;
use rand::rngs::SysRng;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::args::{Args, WebhookService};
use crate::audit_file::AuditFile;
use crate::inputs::Inputs;

/// Runs until a signal. A failed start leaves nothing behind.
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt()).context("listening for SIGINT")?;
    let mut terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    let inputs = Inputs::read(&args)?;
    let plane = start(&args, inputs).await?;
    let begun = begin(&args, &plane);
    if begun.is_ok() {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            () = input_end(args.exit_with_stdin) => {}
        }
    }
    plane.stop().await;
    begun
}

/// Waits for the end of the standard input if it `counts`; otherwise, indefinitely.
async fn input_end(counts: bool) {
    if !counts {
        return std::future::pending().await;
    }
    let (sender, end) = oneshot::channel();
    // The runtime would wait for a blocking task, and the input may never end.
    std::thread::spawn(move || {
        // An unreadable input has ended, and after a signal no receiver is left.
        let _ = copy(&mut stdin().lock(), &mut sink());
        let _ = sender.send(());
    });
    let _ = end.await;
}

async fn start(args: &Args, inputs: Inputs) -> anyhow::Result<TestControlPlane> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the program is where the clock comes from"
    )]
    let now = jiff::Timestamp::try_from(SystemTime::now()).context("reading the clock")?;
    let config = ServerConfig::default()
        .seed(SysRng.try_next_u64().context("drawing a seed")?)
        .tokens(inputs.tokens)
        .authorization(args.authorization_mode.clone())
        .log_window(args.log_window)
        .service_cluster_ip_range(args.service_cluster_ip_range)
        .service_account_admission(args.service_account_admission)
        .unknown_fields(args.unknown_fields)
        .emulated_version(args.emulated_version)
        .feature_gates(
            ServerGates::parse(&args.feature_gates, args.emulated_version)
                .context("cannot use --feature-gates")?,
        );
    let mut builder = TestControlPlane::builder()
        .server_config(config)
        .actors(inputs.actors)
        .starting_at(now)
        .listen(SocketAddr::new(args.bind_address, args.secure_port));
    for service in &args.webhook_service {
        let WebhookService {
            namespace,
            name,
            address,
        } = service;
        builder = builder.webhook_address(namespace, name, *address);
    }
    if inputs.runs_stateful_sets {
        builder = builder.actor(kube_test_control_plane_statefulset::controller());
    }
    if let Some(port) = args.kubelet_port {
        builder = builder.listen_kubelets(SocketAddr::new(args.bind_address, port));
    }
    if let Some(certificate) = inputs.serving {
        builder = builder.serving_certificate(certificate);
    }
    if let Some(authorities) = inputs.authorities {
        builder = builder.client_authorities(authorities);
    }
    let plane = builder.try_start().await?;
    if let Some(plan) = &inputs.faults {
        plane.server().faults().load(plan);
    }
    Ok(plane)
}

/// Writes the kubeconfig and reports readiness.
fn begin(args: &Args, plane: &TestControlPlane) -> anyhow::Result<()> {
    let audit_log = args.audit_log_path.as_deref();
    let audit_log = audit_log.map(AuditFile::open).transpose()?;
    if let Some(path) = &args.kubeconfig_out {
        plane.write_kubeconfig(path)?;
    }
    // Actors already send requests, and a log stays unchanged if the kubeconfig cannot be written.
    let audit_file = audit_log.map(|(file, writer)| {
        let audit = plane.server().audit();
        audit.write_to(writer, AuditLevel::Metadata);
        file
    });
    let kubelets = plane.kubelet_url();
    let kubelets = kubelets.map_or_else(String::new, |url| format!("kubelets {url}\n"));
    let url = plane.url().unwrap_or_default();
    if let Err(err) = writeln!(stdout(), "{kubelets}ready {url}") {
        if let Some(path) = &args.kubeconfig_out {
            // The first failure is reported.
            let _ = std::fs::remove_file(path);
        }
        return Err(err).context("writing the readiness line to the standard output");
    }
    if let Some(file) = audit_file {
        file.keep();
    }
    Ok(())
}
