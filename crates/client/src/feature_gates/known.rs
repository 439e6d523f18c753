//! The known gates, version by version.

use super::version::KubeVersion;

/// Maturity of a gate; `AllAlpha` and `AllBeta` select by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Not yet introduced in the emulated version.
    PreAlpha,
    Alpha,
    Beta,
    Ga,
    /// The behaviour of a later version, under a name of this project. No stage selects it.
    Preview,
}

impl Stage {
    /// Returns the stage's name in metrics and in the help.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::PreAlpha => "PREALPHA",
            Self::Alpha => "ALPHA",
            Self::Beta => "BETA",
            Self::Ga => "",
            Self::Preview => "PREVIEW",
        }
    }
}

/// A gate's stage and default from a version on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spec {
    since: KubeVersion,
    pub(super) stage: Stage,
    pub(super) default: bool,
    /// True if only the default is allowed.
    pub(super) locked: bool,
}

/// A feature gate.
pub(super) struct Gate {
    pub(super) name: &'static str,
    /// Sorted by version, oldest first.
    specs: &'static [Spec],
}

impl Gate {
    /// Returns the gate's spec in a version.
    ///
    /// Upstream: `featureSpecAtEmulationVersion`.
    pub(super) fn at(&self, version: KubeVersion) -> Spec {
        let newest = self.specs.iter().rfind(|spec| spec.since <= version);
        newest
            .copied()
            .unwrap_or_else(|| Spec::new(0, Stage::PreAlpha, false))
    }

    /// Returns true if a program of this version, but at least of upstream's, knows the gate.
    pub(super) fn is_known_at(&self, version: KubeVersion) -> bool {
        let newest = version.max(KubeVersion::UPSTREAM);
        self.specs.iter().any(|spec| spec.since <= newest)
    }
}

impl Spec {
    const fn new(since_minor: u32, stage: Stage, default: bool) -> Self {
        Self {
            since: KubeVersion::v1(since_minor),
            stage,
            default,
            locked: false,
        }
    }

    /// A gate locked to off, because this project lacks the behaviour.
    const fn refused(since_minor: u32, stage: Stage) -> Self {
        Self {
            locked: true,
            ..Self::new(since_minor, stage, false)
        }
    }

    /// A gate of this project, for what sets may opt in to, in every emulated version.
    const fn opt_in() -> Self {
        Self::new(0, Stage::Alpha, false)
    }

    /// A gate locked to on.
    const fn graduated(since_minor: u32) -> Self {
        Self {
            locked: true,
            ..Self::new(since_minor, Stage::Ga, true)
        }
    }
}

pub(super) const STALE_CONSISTENCY: &str = "StaleControllerConsistencyStatefulSet";
pub(super) const ATOMIC_FIFO: &str = "AtomicFIFO";

/// All gates, sorted by name.
pub(super) const GATES: [Gate; 19] = [
    Gate {
        name: ATOMIC_FIFO,
        specs: &[Spec::new(36, Stage::Beta, true)],
    },
    Gate {
        name: "ComponentFlagz",
        specs: &[
            Spec::new(32, Stage::Alpha, false),
            Spec::new(36, Stage::Beta, true),
        ],
    },
    Gate {
        name: "ComponentStatusz",
        specs: &[
            Spec::new(32, Stage::Alpha, false),
            Spec::new(36, Stage::Beta, true),
        ],
    },
    Gate {
        name: "ControllerManagerReleaseLeaderElectionLockOnExit",
        specs: &[Spec::new(36, Stage::Alpha, false)],
    },
    // This controller writes no lease candidates, so no other component may wait for them.
    Gate {
        name: "CoordinatedLeaderElection",
        specs: &[
            Spec::refused(31, Stage::Alpha),
            Spec::refused(33, Stage::Beta),
        ],
    },
    // The informers always behave as these two gates require, in every emulated version.
    Gate {
        name: "InOrderInformers",
        specs: &[Spec::graduated(30)],
    },
    Gate {
        name: "InformerResourceVersion",
        specs: &[Spec::graduated(30)],
    },
    Gate {
        name: "MaxUnavailableStatefulSet",
        specs: &[
            Spec::new(24, Stage::Alpha, false),
            Spec::new(35, Stage::Beta, false),
            Spec::new(37, Stage::Beta, true),
        ],
    },
    Gate {
        name: "PreviewParallelScaleDownFirst",
        specs: &[Spec::new(37, Stage::Preview, false)],
    },
    Gate {
        name: STALE_CONSISTENCY,
        specs: &[Spec::new(36, Stage::Beta, true)],
    },
    Gate {
        name: "StatefulSetClaimGrowth",
        specs: &[Spec::opt_in()],
    },
    Gate {
        name: "StatefulSetConditions",
        specs: &[Spec::opt_in()],
    },
    Gate {
        name: "StatefulSetInPlaceUpdate",
        specs: &[Spec::opt_in()],
    },
    Gate {
        name: "StatefulSetRecreateStrategy",
        specs: &[Spec::new(37, Stage::Alpha, false)],
    },
    Gate {
        name: "StatefulSetRemovalGate",
        specs: &[Spec::opt_in()],
    },
    Gate {
        name: "StatefulSetRepair",
        specs: &[Spec::opt_in()],
    },
    Gate {
        name: "StatefulSetRolloutControl",
        specs: &[Spec::opt_in()],
    },
    // Upstream backdates it to 1.0, so that it is on in every emulated version.
    Gate {
        name: "StatefulSetSemanticRevisionComparison",
        specs: &[Spec::new(0, Stage::Beta, true)],
    },
    Gate {
        name: "WatchListClient",
        specs: &[
            Spec::new(30, Stage::Beta, false),
            Spec::new(35, Stage::Beta, true),
        ],
    },
];

/// Lists a version's settable gates for the help:
/// `kube:Name=true|false (BETA - default=true)`.
///
/// Upstream: `featureGate.KnownFeatures`.
pub fn known_gates(version: KubeVersion) -> Vec<String> {
    let mut gates = vec![
        ("AllAlpha", Stage::Alpha, false),
        ("AllBeta", Stage::Beta, false),
    ];
    let known = GATES.iter().map(|gate| (gate.name, gate.at(version)));
    let free = known.filter(|(_, spec)| !spec.locked);
    gates.extend(free.map(|(name, spec)| (name, spec.stage, spec.default)));
    let mut lines: Vec<_> = gates
        .into_iter()
        .filter(|(_, stage, _)| matches!(stage, Stage::Alpha | Stage::Beta | Stage::Preview))
        .map(|(name, stage, default)| {
            let stage = stage.name();
            format!("kube:{name}=true|false ({stage} - default={default})")
        })
        .collect();
    lines.sort();
    lines
}
