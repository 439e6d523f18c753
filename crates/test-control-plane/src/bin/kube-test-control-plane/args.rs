//! Command line flags, with kube-apiserver's names for its flags.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Parser};
use kube_test_control_plane::actors::parse_duration;
use kube_test_control_plane::auth::Authorization;
use kube_test_control_plane::{EmulatedVersion, ServerConfig, UnknownFields};

/// The actors by name, in the order in which they are listed.
pub(crate) const ACTORS: &str = "kubelet,scheduler,node-controller,pod-garbage-collector,\
                                 disruption-controller,deployment-controller,\
                                 replicaset-controller,endpointslice-controller,job-controller,\
                                 volume-binder,garbage-collector,namespace-controller";

/// An embedded Kubernetes control plane for tests and demos: no cluster, no containers.
#[derive(Debug, Parser)]
#[command(name = "kube-test-control-plane", version)]
#[expect(
    clippy::doc_markdown,
    reason = "--help prints these comments as they are"
)]
pub(crate) struct Args {
    /// The port to serve on; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    pub(crate) secure_port: u16,

    /// The loopback address to serve on.
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub(crate) bind_address: IpAddr,

    /// Port of the kubelets of all nodes, for clients that talk to nodes; 0 for a free one. The
    /// program then prints "kubelets URL" before "ready URL".
    #[arg(long, value_name = "N")]
    pub(crate) kubelet_port: Option<u16>,

    /// File for the administrator's kubeconfig.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig_out: Option<PathBuf>,

    /// The certificate to serve with, as PEM, followed by those that clients know it by. Without
    /// it, one is made.
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_cert_file: Option<PathBuf>,

    /// The private key of --tls-cert-file, as PEM.
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_private_key_file: Option<PathBuf>,

    /// Certificates of authorities, as PEM: clients with a certificate that one of them has signed
    /// are the user of its common name, in the groups of its organizations.
    #[arg(long, value_name = "FILE")]
    pub(crate) client_ca_file: Option<PathBuf>,

    /// Bearer tokens: lines of token,user,uid,"group1,group2".
    #[arg(long, value_name = "FILE")]
    pub(crate) token_auth_file: Option<PathBuf>,

    /// Authorizers: a list of RBAC, Node, AlwaysAllow and AlwaysDeny. The first that allows a
    /// request decides. Members of system:masters have every permission.
    #[arg(long, value_name = "LIST", default_value = "RBAC")]
    pub(crate) authorization_mode: Authorization,

    /// File to append every request to, one line of audit.k8s.io/v1 JSON each; - is the standard
    /// output.
    #[arg(long, value_name = "FILE")]
    pub(crate) audit_log_path: Option<PathBuf>,

    /// Fault plan, as JSON: the requests and watches that fail, and their faults.
    #[arg(long, value_name = "FILE")]
    pub(crate) fault_plan_file: Option<PathBuf>,

    /// Actors to run, separated by commas; an empty list runs none.
    #[arg(long, value_name = "LIST", default_value = ACTORS)]
    pub(crate) actors: String,

    /// Let kubelet and scheduler write events, as in a cluster.
    #[arg(long)]
    pub(crate) actor_events: bool,

    /// Time that a pod stays pending on its node, such as 500ms or 2s.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    pub(crate) start_delay: Duration,

    /// Time that a pod runs before it is ready, such as 500ms or 2s.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    pub(crate) ready_delay: Duration,

    /// Fields unknown to Kubernetes v1.36.2: prune drops them, as v1.36.2 does; keep stores them,
    /// as a newer server does.
    #[arg(long, value_name = "POLICY", default_value = "prune")]
    pub(crate) unknown_fields: UnknownFields,

    /// Version of Kubernetes to behave like, 1.36 or 1.37: the reported version, the strategies of
    /// stateful sets, and the defaults of the feature gates.
    #[arg(long, value_name = "VERSION", default_value = "1.36")]
    pub(crate) emulated_version: EmulatedVersion,

    /// Feature gates of the storage: MaxUnavailableStatefulSet=true|false (on since 1.37),
    /// StatefulSetRecreateStrategy=true|false (off, since 1.37), ShardedListAndWatch=true|false
    /// (off).
    #[arg(long, value_name = "GATES", default_value = "")]
    pub(crate) feature_gates: String,

    /// Number of changes kept for watches from an older version.
    #[arg(long, value_name = "N", default_value_t = ServerConfig::default().log_window)]
    pub(crate) log_window: usize,

    /// Log more; repeat for even more.
    #[arg(short, long, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "needs a number and a unit of ms, s, m or h".to_owned())
}
