//! Runs the controller while no other process does.

use std::fmt::Display;
use std::sync::Arc;

use kube_test_control_plane_cluster::control_plane::ActorContext;
use statefulset_controller::client::feature_gates::{FeatureGates, KubeVersion};
use statefulset_controller::client::recorder::NoopRecorder;
use statefulset_controller::client::rest::RestClient;
use statefulset_controller::{BuildError, StatefulSetController};

use crate::lease::LeaseWatch;

/// Runs the controller until the control plane stops.
pub(crate) async fn run(context: ActorContext) {
    let mut lease = LeaseWatch::new(&context);
    while !context.stopping.is_cancelled() {
        tokio::select! {
            () = context.stopping.cancelled() => return,
            () = lease.until_free() => {}
        }
        let controller = match controller(&context) {
            Ok(controller) => controller,
            Err(error) => return report(&error),
        };
        let shutdown = context.stopping.child_token();
        let run = controller.run(shutdown.clone().cancelled_owned());
        tokio::pin!(run);
        let ended = tokio::select! {
            ended = &mut run => ended,
            holder = lease.until_taken() => {
                tracing::warn!(%holder, "another StatefulSet controller runs: stopping this one");
                shutdown.cancel();
                run.await
            }
        };
        if let Err(error) = ended {
            return report(&error);
        }
    }
}

fn report(error: &dyn Display) {
    tracing::error!(%error, "the StatefulSet controller has stopped");
}

/// Builds the controller for a control plane.
fn controller(context: &ActorContext) -> Result<StatefulSetController, BuildError> {
    let client = RestClient::new(context.client.clone());
    let builder = StatefulSetController::builder_with_clients(client.clone(), client)
        .clock(Arc::clone(&context.clock))
        .feature_gates(gates(context))
        .resync_period(None)
        .seed(context.config.seed);
    let builder = if context.events {
        builder
    } else {
        builder.recorder(Arc::new(NoopRecorder))
    };
    builder.build()
}

/// Returns the gates of the emulated version, as the server has them.
fn gates(context: &ActorContext) -> FeatureGates {
    let minor = context.config.emulated_version.minor();
    let of_server = context.config.feature_gates;
    FeatureGates::at(KubeVersion::v1(minor))
        .max_unavailable_stateful_set(of_server.max_unavailable_stateful_set)
        .stateful_set_recreate_strategy(of_server.stateful_set_recreate_strategy == Some(true))
}
