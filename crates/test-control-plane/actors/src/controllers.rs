//! The workload controllers, and controllers without settings.

#[cfg(feature = "cel")]
pub(super) mod policy_status;

use tokio::task::JoinSet;

use crate::client::ActorClient;
use crate::deployment_controller::DeploymentController;
use crate::endpoint_slice_controller::EndpointSliceController;
use crate::job_controller::JobController;
use crate::replica_set_controller::ReplicaSetController;
use crate::runner::spawn;
use crate::server::ActorServer;

/// A workload controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Controller {
    /// Creates replica sets for deployments, and rolls them out.
    Deployments,
    /// Creates the pods of replica sets.
    ReplicaSets,
    /// Keeps the addresses of services' pods in slices.
    EndpointSlices,
    /// Runs the pods of jobs.
    Jobs,
}

impl Controller {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Deployments,
        Self::ReplicaSets,
        Self::EndpointSlices,
        Self::Jobs,
    ];

    /// Returns the name of the controller.
    pub fn name(self) -> &'static str {
        match self {
            Self::Deployments => "deployment-controller",
            Self::ReplicaSets => "replicaset-controller",
            Self::EndpointSlices => "endpointslice-controller",
            Self::Jobs => "job-controller",
        }
    }

    /// Returns the controller of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    pub(super) fn start(self, client: ActorClient, server: &ActorServer, tasks: &mut JoinSet<()>) {
        match self {
            Self::Deployments => {
                let actor = DeploymentController::new(client);
                spawn(self.name(), actor, server, tasks);
            }
            Self::ReplicaSets => {
                let actor = ReplicaSetController::new(client);
                spawn(self.name(), actor, server, tasks);
            }
            Self::EndpointSlices => {
                let actor = EndpointSliceController::new(client);
                spawn(self.name(), actor, server, tasks);
            }
            Self::Jobs => {
                let actor = JobController::new(client);
                spawn(self.name(), actor, server, tasks);
            }
        }
    }
}
