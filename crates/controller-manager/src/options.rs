//! Program options: the flags, validated and converted to the types of the libraries.

mod versions;

use std::num::NonZeroUsize;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use statefulset_client::config::Source;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::rest::MediaType;
use statefulset_client::shard::Shard;
use statefulset_controller::fence::NamespaceSelector;
use statefulset_controller::opt_ins::OptInDefaults;

use crate::controllers;
use crate::flags::Flags;
use crate::flags::authentication::AuthenticationFlags;
use crate::flags::authorization::AuthorizationFlags;
use crate::flags::debugging::DebuggingFlags;
use crate::flags::leader_election::LeaderElectionFlags;
use crate::flags::metrics::MetricsFlags;
use crate::flags::secure_serving::SecureServingFlags;
use crate::logging::Logging;

/// Rate that an explicit 0 selects. Upstream: `rest.DefaultQPS`.
const QPS_OF_ZERO: f64 = 5.0;
/// Burst that an explicit 0 selects. Upstream: `rest.DefaultBurst`.
const BURST_OF_ZERO: u32 = 10;

/// Validated program options.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Options {
    /// Address of the API server, and credentials.
    pub(crate) source: Source,
    /// True if the controller writes as its service account instead of with the given credentials.
    pub(crate) use_service_account_credentials: bool,
    /// True to compare decisions with another controller instead of leading.
    pub(crate) shadow: bool,
    /// Number of sets synced in parallel.
    pub(crate) concurrent_syncs: NonZeroUsize,
    /// The namespaces to serve; `None` for all.
    pub(crate) shard: Option<Shard>,
    /// The label of the namespaces to serve; `None` for all.
    pub(crate) namespace_selector: Option<NamespaceSelector>,
    /// Preferred format of watched objects.
    pub(crate) media_type: MediaType,
    /// Average requests per second of each client; negative for no limit.
    pub(crate) qps: f64,
    /// Largest burst of requests of each client.
    pub(crate) burst: u32,
    /// Minimum period between syncs of all cached objects; `None` for never.
    pub(crate) resync_period: Option<Duration>,
    /// Delay before the controller starts, multiplied later by a random factor from 1 to 2.
    pub(crate) start_interval: Duration,
    /// Time limit for syncs in progress on shutdown; `None` for no limit.
    pub(crate) shutdown_timeout: Option<Duration>,
    /// Feature gates, and the emulated version.
    pub(crate) feature_gates: FeatureGates,
    /// Choices of sets that make none.
    pub(crate) opt_in_defaults: OptInDefaults,
    /// Verbosity and format of the log.
    pub(crate) logging: Logging,
    /// Debugging endpoints.
    pub(crate) debugging: DebuggingFlags,
    /// Leader election.
    pub(crate) leader_election: LeaderElectionFlags,
    /// Endpoints of the program's own port.
    pub(crate) secure_serving: SecureServingFlags,
    /// Authentication on that port.
    pub(crate) authentication: AuthenticationFlags,
    /// Authorization on that port.
    pub(crate) authorization: AuthorizationFlags,
    /// Filters of the metrics page.
    pub(crate) metrics: MetricsFlags,
    /// Warnings about the flags, to be logged at startup.
    pub(crate) warnings: Vec<String>,
}

impl Options {
    /// Validates the flags.
    ///
    /// # Errors
    ///
    /// The first invalid flag.
    ///
    /// Upstream: `KubeControllerManagerOptions.Validate`.
    pub(crate) fn resolve(flags: Flags) -> anyhow::Result<Self> {
        let generic = &flags.generic;
        let syncs = flags.statefulset_controller.concurrent_statefulset_syncs;
        let concurrent_syncs = usize::try_from(syncs).ok().and_then(NonZeroUsize::new);
        let concurrent_syncs = concurrent_syncs.with_context(|| {
            format!("concurrent-statefulset-syncs must be greater than 0, but got {syncs}")
        })?;
        let shard = Some(&flags.statefulset_controller.shard).filter(|shard| !shard.is_empty());
        let shard = shard.map(|shard| {
            let parsed = shard.parse::<Shard>();
            parsed.map_err(|err| anyhow!("invalid argument {shard:?} for \"--shard\" flag: {err}"))
        });
        let shard = shard.transpose()?;
        let namespace_selector = namespace_selector(&flags)?;
        let burst = generic.kube_api_burst;
        let burst = u32::try_from(burst)
            .ok()
            .with_context(|| format!("kube-api-burst must be 0 or greater, but got {burst}"))?;
        let version = versions::emulation_version(&flags.features)?;
        let gates = flags.features.feature_gates;
        let feature_gates = FeatureGates::parse(&gates, version).map_err(|err| {
            anyhow!("invalid argument {gates:?} for \"--feature-gates\" flag: {err}")
        })?;
        let opt_in_defaults =
            opt_in_defaults(&flags.statefulset_controller.opt_in_defaults, feature_gates)?;
        let warnings = Vec::from_iter(controllers::check(&generic.controllers)?);
        flags.leader_election.validate()?;
        flags.secure_serving.validate()?;
        flags.authentication.validate()?;
        flags.metrics.validate()?;
        let not_zero = |duration: Duration| Some(duration).filter(|it| !it.is_zero());
        Ok(Self {
            source: Source::default()
                .kubeconfig(flags.misc.kubeconfig)
                .master(Some(flags.misc.master).filter(|master| !master.is_empty())),
            shadow: flags.statefulset_controller.shadow,
            use_service_account_credentials: generic.use_service_account_credentials,
            concurrent_syncs,
            shard,
            namespace_selector,
            media_type: generic.kube_api_content_type,
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
            opt_in_defaults,
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

/// Parses the choices of sets that make none.
///
/// # Errors
///
/// One of them has no meaning, or its feature gate is off.
fn opt_in_defaults(text: &str, gates: FeatureGates) -> anyhow::Result<OptInDefaults> {
    let invalid = |reason: String| {
        anyhow!("invalid argument {text:?} for \"--opt-in-defaults\" flag: {reason}")
    };
    let defaults = text.parse::<OptInDefaults>();
    let defaults = defaults.map_err(|err| invalid(err.to_string()))?;
    if let Some(carrier) = defaults.disabled(gates).next() {
        let (name, gate) = (carrier.name(), carrier.gate());
        return Err(invalid(format!("{name} needs the feature gate {gate}")));
    }
    Ok(defaults)
}

/// Parses the label of the namespaces to serve.
///
/// # Errors
///
/// It isn't one label, or another flag contradicts it.
fn namespace_selector(flags: &Flags) -> anyhow::Result<Option<NamespaceSelector>> {
    let text = &flags.statefulset_controller.namespace_selector;
    if text.is_empty() {
        return Ok(None);
    }
    let selector = text.parse::<NamespaceSelector>().map_err(|err| {
        anyhow!("invalid argument {text:?} for \"--namespace-selector\" flag: {err}")
    })?;
    let contradictions = [
        (
            !flags.statefulset_controller.shard.is_empty(),
            "shard",
            "the policies name one account",
        ),
        (
            flags.statefulset_controller.shadow,
            "shadow",
            "a shadow compares all namespaces",
        ),
        (
            flags.generic.use_service_account_credentials,
            "use-service-account-credentials",
            "the policies could not tell this program from the built-in controller",
        ),
    ];
    for (is_given, flag, reason) in contradictions {
        if is_given {
            bail!("--namespace-selector excludes --{flag}: {reason}");
        }
    }
    Ok(Some(selector))
}

#[cfg(test)]
mod tests;
