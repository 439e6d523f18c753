//! What the program goes by: the flags, checked and in the types that the libraries take.

use std::num::NonZeroUsize;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail, ensure};
use statefulset_client::config::Source;
use statefulset_client::feature_gates::FeatureGates;

use crate::flags::Flags;
use crate::logging::Logging;

/// The names of the controller; the second is the one of old.
///
/// Upstream: `ControllersByName`, `ControllerAliases`.
const CONTROLLER_NAMES: [&str; 2] = ["statefulset-controller", "statefulset"];
/// The rate that an explicit 0 stands for. Upstream: `rest.DefaultQPS`.
const QPS_OF_ZERO: f64 = 5.0;
/// The burst that an explicit 0 stands for. Upstream: `rest.DefaultBurst`.
const BURST_OF_ZERO: u32 = 10;

/// What the program goes by.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Options {
    /// Where the API server is, and who we are.
    pub(crate) source: Source,
    /// How many sets are synced at once.
    pub(crate) concurrent_syncs: NonZeroUsize,
    /// Requests a second of each client on average; negative for no limit.
    pub(crate) qps: f64,
    /// Requests at once of each client.
    pub(crate) burst: u32,
    /// How often all cached objects are looked at again, at least; none means never.
    pub(crate) resync_period: Option<Duration>,
    /// What is turned on.
    pub(crate) feature_gates: FeatureGates,
    /// How much is logged, and how.
    pub(crate) logging: Logging,
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
        let syncs = flags.concurrent_statefulset_syncs;
        let concurrent_syncs = usize::try_from(syncs).ok().and_then(NonZeroUsize::new);
        let concurrent_syncs = concurrent_syncs.with_context(|| {
            format!("concurrent-statefulset-syncs must be greater than 0, but got {syncs}")
        })?;
        let burst = u32::try_from(flags.kube_api_burst);
        let burst = burst.ok().with_context(|| {
            format!(
                "kube-api-burst must be 0 or greater, but got {}",
                flags.kube_api_burst
            )
        })?;
        let gates = flags.feature_gates;
        let feature_gates = FeatureGates::parse(&gates).map_err(|err| {
            anyhow!("invalid argument {gates:?} for \"--feature-gates\" flag: {err}")
        })?;
        check_controllers(flags.controllers.as_deref().unwrap_or("*"))?;
        ensure!(
            !flags.leader_elect,
            "--leader-elect=true is not supported yet: pass --leader-elect=false, and see to it \
             that no other StatefulSet controller runs"
        );
        let given = |text: String| Some(text).filter(|text| !text.is_empty());
        Ok(Self {
            source: Source {
                kubeconfig: given(flags.kubeconfig).map(Into::into),
                master: given(flags.master),
            },
            concurrent_syncs,
            qps: if flags.kube_api_qps == 0.0 {
                QPS_OF_ZERO
            } else {
                flags.kube_api_qps
            },
            burst: if burst == 0 { BURST_OF_ZERO } else { burst },
            resync_period: Some(flags.min_resync_period).filter(|period| !period.is_zero()),
            feature_gates,
            logging: Logging {
                verbosity: flags.verbosity,
                format: flags.logging_format,
            },
        })
    }
}

/// Checks that the list names nothing unknown and leaves this controller on. The first entry that
/// concerns it counts; a name counts before `*`.
///
/// Upstream: `IsControllerEnabled`.
fn check_controllers(list: &str) -> anyhow::Result<()> {
    let mut enabled = None;
    let mut all = false;
    for entry in list
        .split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
    {
        if entry == "*" {
            all = true;
            continue;
        }
        let name = entry.strip_prefix('-').unwrap_or(entry);
        if !CONTROLLER_NAMES.contains(&name) {
            bail!("{name:?} is not in the list of known controllers");
        }
        enabled.get_or_insert(!entry.starts_with('-'));
    }
    ensure!(
        enabled.unwrap_or(all),
        "--controllers={list} leaves nothing to run: this program has only {:?}",
        CONTROLLER_NAMES[0]
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::{Invocation, parse};
    use crate::logging::Format;

    fn resolved(arguments: &[&str]) -> anyhow::Result<Options> {
        match parse(arguments.iter())? {
            Invocation::Run(flags) => Options::resolve(flags),
            other => panic!("{arguments:?}: {other:?}"),
        }
    }

    fn default_options() -> Options {
        Options {
            source: Source::default(),
            concurrent_syncs: NonZeroUsize::new(5).unwrap(),
            qps: 20.0,
            burst: 30,
            resync_period: Some(Duration::from_secs(43_200)),
            feature_gates: FeatureGates::default(),
            logging: Logging {
                verbosity: 0,
                format: Format::Text,
            },
        }
    }

    #[test]
    fn arguments_resolve_to_options() {
        let with = |change: fn(&mut Options)| {
            let mut options = default_options();
            change(&mut options);
            options
        };
        let table: [(&[&str], Options); 8] = [
            (&[], default_options()),
            (
                &["--kubeconfig=a/b", "--master", "https://h"],
                with(|options| {
                    options.source = Source {
                        kubeconfig: Some("a/b".into()),
                        master: Some("https://h".into()),
                    };
                }),
            ),
            (&["--kube-api-qps=0.5"], with(|options| options.qps = 0.5)),
            (
                &["--kube-api-qps=0", "--kube-api-burst=0"],
                with(|options| (options.qps, options.burst) = (5.0, 10)),
            ),
            (
                &["--min-resync-period=0"],
                with(|options| options.resync_period = None),
            ),
            (
                &["--feature-gates=MaxUnavailableStatefulSet=true"],
                with(|options| options.feature_gates.max_unavailable_stateful_set = true),
            ),
            (
                &["-v=4", "--logging-format=json"],
                with(|options| {
                    options.logging = Logging {
                        verbosity: 4,
                        format: Format::Json,
                    };
                }),
            ),
            (
                &["--controllers=statefulset,-statefulset-controller,*"],
                default_options(),
            ),
        ];
        for (arguments, expected) in table {
            let arguments = [&["--leader-elect=false"], arguments].concat();
            assert_eq!(resolved(&arguments).unwrap(), expected, "{arguments:?}");
        }
    }

    #[test]
    fn each_mistake_is_told_in_one_line() {
        let off = "--leader-elect=false";
        for (arguments, expected) in [
            (
                ["--concurrent-statefulset-syncs=0", off],
                "concurrent-statefulset-syncs must be greater than 0, but got 0",
            ),
            (
                ["--concurrent-statefulset-syncs=-2", off],
                "concurrent-statefulset-syncs must be greater than 0, but got -2",
            ),
            (
                ["--kube-api-burst=-1", off],
                "kube-api-burst must be 0 or greater, but got -1",
            ),
            (
                ["--feature-gates=A", off],
                "invalid argument \"A\" for \"--feature-gates\" flag: missing bool value for A",
            ),
            (
                ["--feature-gates=AllAlpha=x", off],
                "invalid argument \"AllAlpha=x\" for \"--feature-gates\" flag: invalid value of \
                 AllAlpha=x, err: strconv.ParseBool: parsing \"x\": invalid syntax",
            ),
            (
                ["--controllers=foo", off],
                "\"foo\" is not in the list of known controllers",
            ),
            (
                ["--controllers=*,-statefulset", off],
                "--controllers=*,-statefulset leaves nothing to run: \
                 this program has only \"statefulset-controller\"",
            ),
            (
                ["--kubeconfig=x", "--leader-elect"],
                "--leader-elect=true is not supported yet: pass --leader-elect=false, and see to \
                 it that no other StatefulSet controller runs",
            ),
        ] {
            let error = resolved(&arguments).unwrap_err().to_string();
            assert_eq!(error, expected, "{arguments:?}");
        }
    }
}
