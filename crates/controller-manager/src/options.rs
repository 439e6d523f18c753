//! What the program goes by: the flags, checked and in the types that the libraries take.

mod versions;

use std::num::NonZeroUsize;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use statefulset_client::config::{ProxyConfig, Source};
use statefulset_client::feature_gates::FeatureGates;

use crate::controllers;
use crate::flags::Flags;
use crate::flags::authentication::AuthenticationFlags;
use crate::flags::authorization::AuthorizationFlags;
use crate::flags::debugging::DebuggingFlags;
use crate::flags::generic::PROTOBUF;
use crate::flags::leader_election::LeaderElectionFlags;
use crate::flags::metrics::MetricsFlags;
use crate::flags::secure_serving::SecureServingFlags;
use crate::logging::Logging;

/// The rate that an explicit 0 stands for. Upstream: `rest.DefaultQPS`.
const QPS_OF_ZERO: f64 = 5.0;
/// The burst that an explicit 0 stands for. Upstream: `rest.DefaultBurst`.
const BURST_OF_ZERO: u32 = 10;

/// What the program goes by.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Options {
    /// Where the API server is, and who we are.
    pub(crate) source: Source,
    /// Whether the controller writes as its service account, and not with the credentials given.
    pub(crate) use_service_account_credentials: bool,
    /// How many sets are synced at once.
    pub(crate) concurrent_syncs: NonZeroUsize,
    /// Requests a second of each client on average; negative for no limit.
    pub(crate) qps: f64,
    /// Requests at once of each client.
    pub(crate) burst: u32,
    /// How often all cached objects are looked at again, at least; none means never.
    pub(crate) resync_period: Option<Duration>,
    /// How long to wait before the controller starts, to be stretched by a factor of up to 2.
    pub(crate) start_interval: Duration,
    /// How long the syncs in progress may take to finish at the end; none for any time.
    pub(crate) shutdown_timeout: Option<Duration>,
    /// What is turned on, and the version emulated.
    pub(crate) feature_gates: FeatureGates,
    /// How much is logged, and how.
    pub(crate) logging: Logging,
    /// What else the process shows of itself.
    pub(crate) debugging: DebuggingFlags,
    /// The lease.
    pub(crate) leader_election: LeaderElectionFlags,
    /// The program's own endpoints.
    pub(crate) secure_serving: SecureServingFlags,
    /// Who is let in to them.
    pub(crate) authentication: AuthenticationFlags,
    /// What they may do.
    pub(crate) authorization: AuthorizationFlags,
    /// What the metrics show.
    pub(crate) metrics: MetricsFlags,
    /// What the user should know about the flags, to be logged at the start.
    pub(crate) warnings: Vec<String>,
}

impl Options {
    /// Checks the flags.
    ///
    /// # Errors
    ///
    /// The first flag that asks for what can't be.
    ///
    /// Upstream: `KubeControllerManagerOptions.Validate`.
    pub(crate) fn resolve(flags: Flags) -> anyhow::Result<Self> {
        let generic = flags.generic;
        let syncs = flags.statefulset_controller.concurrent_statefulset_syncs;
        let concurrent_syncs = usize::try_from(syncs).ok().and_then(NonZeroUsize::new);
        let concurrent_syncs = concurrent_syncs.with_context(|| {
            format!("concurrent-statefulset-syncs must be greater than 0, but got {syncs}")
        })?;
        let burst = generic.kube_api_burst;
        let burst = u32::try_from(burst)
            .ok()
            .with_context(|| format!("kube-api-burst must be 0 or greater, but got {burst}"))?;
        let version = versions::emulation_version(&flags.features)?;
        let gates = flags.features.feature_gates;
        let feature_gates = FeatureGates::parse(&gates, version).map_err(|err| {
            anyhow!("invalid argument {gates:?} for \"--feature-gates\" flag: {err}")
        })?;
        let mut warnings = Vec::from_iter(controllers::check(&generic.controllers)?);
        flags.leader_election.validate()?;
        flags.secure_serving.validate()?;
        flags.authentication.validate()?;
        flags.metrics.validate()?;
        if generic.kube_api_content_type == PROTOBUF {
            warnings.push(format!(
                "--kube-api-content-type={PROTOBUF}: this program speaks JSON with the API server"
            ));
        }
        let not_zero = |duration: Duration| Some(duration).filter(|it| !it.is_zero());
        Ok(Self {
            source: Source {
                kubeconfig: flags.misc.kubeconfig,
                master: Some(flags.misc.master).filter(|master| !master.is_empty()),
                proxy: ProxyConfig::default(),
            },
            use_service_account_credentials: generic.use_service_account_credentials,
            concurrent_syncs,
            qps: if generic.kube_api_qps == 0.0 {
                QPS_OF_ZERO
            } else {
                generic.kube_api_qps
            },
            burst: if burst == 0 { BURST_OF_ZERO } else { burst },
            resync_period: not_zero(generic.min_resync_period),
            start_interval: generic.controller_start_interval,
            shutdown_timeout: not_zero(generic.controller_shutdown_timeout),
            feature_gates,
            logging: Logging {
                verbosity: flags.logs.verbosity,
                format: flags.logs.logging_format,
            },
            debugging: flags.debugging,
            leader_election: flags.leader_election,
            secure_serving: flags.secure_serving,
            authentication: flags.authentication,
            authorization: flags.authorization,
            metrics: flags.metrics,
            warnings,
        })
    }
}

#[cfg(test)]
mod tests;
