//! Tests of flag validation and conversion.

use statefulset_client::feature_gates::KubeVersion;

use super::*;
use crate::flags::{Invocation, parse};
use crate::logging::Format;

fn flags(arguments: &[&str]) -> anyhow::Result<Flags> {
    match parse(arguments.iter())? {
        Invocation::Run(flags) => Ok(*flags),
        other => panic!("{arguments:?}: {other:?}"),
    }
}

fn resolved(arguments: &[&str]) -> anyhow::Result<Options> {
    Options::resolve(flags(arguments)?)
}

#[test]
fn namespace_selector_is_one_label_and_excludes_other_scopes() {
    let options = resolved(&["--namespace-selector=team=a"]).unwrap();
    let selector = options.namespace_selector.unwrap();
    assert_eq!(selector.to_string(), "team=a");
    let label = "--namespace-selector=a=b";
    for (arguments, expected) in [
        (
            &["--namespace-selector=a,b"][..],
            r#"invalid argument "a,b" for "--namespace-selector" flag: must be one label, KEY=VALUE"#,
        ),
        (
            &[label, "--shard=0/2"],
            "--namespace-selector excludes --shard: the policies name one account",
        ),
        (
            &[label, "--shadow"],
            "--namespace-selector excludes --shadow: a shadow compares all namespaces",
        ),
        (
            &[label, "--use-service-account-credentials"],
            "--namespace-selector excludes --use-service-account-credentials: the policies could \
             not tell this program from the built-in controller",
        ),
    ] {
        let error = resolved(arguments).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn opt_in_defaults_need_their_gates() {
    let gates = "--feature-gates=StatefulSetRepair=true";
    let options = resolved(&[gates, "--opt-in-defaults=repair=evict"]).unwrap();
    assert_eq!(options.opt_in_defaults, "repair=evict".parse().unwrap());
    for (defaults, expected) in [
        (
            "paused=true",
            "invalid argument \"paused=true\" for \"--opt-in-defaults\" flag: paused needs the \
             feature gate StatefulSetRolloutControl",
        ),
        (
            "repair=often",
            "invalid argument \"repair=often\" for \"--opt-in-defaults\" flag: invalid value \
             \"often\" of repair: expected none, evict or delete",
        ),
    ] {
        let argument = format!("--opt-in-defaults={defaults}");
        let error = resolved(&[gates, &argument]).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

fn default_options() -> Options {
    let flags = flags(&["--leader-elect=false"]).unwrap();
    Options {
        source: Source::default(),
        use_service_account_credentials: false,
        shadow: false,
        concurrent_syncs: NonZeroUsize::new(5).unwrap(),
        shard: None,
        namespace_selector: None,
        qps: 20.0,
        burst: 30,
        media_type: MediaType::Protobuf,
        resync_period: Some(Duration::from_secs(43_200)),
        start_interval: Duration::ZERO,
        shutdown_timeout: Some(Duration::from_secs(10)),
        feature_gates: FeatureGates::default(),
        opt_in_defaults: OptInDefaults::default(),
        logging: Logging {
            verbosity: 0,
            format: Format::Text,
        },
        debugging: flags.debugging,
        leader_election: flags.leader_election,
        secure_serving: flags.secure_serving,
        authentication: flags.authentication,
        authorization: flags.authorization,
        metrics: flags.metrics,
        warnings: Vec::new(),
    }
}

#[test]
fn arguments_resolve_to_options() {
    let with = |change: fn(&mut Options)| {
        let mut options = default_options();
        change(&mut options);
        options
    };
    let table: [(&[&str], Options); 15] = [
        (&[], default_options()),
        (
            &["--shard=1/2"],
            with(|options| options.shard = Some("1/2".parse().unwrap())),
        ),
        (
            &["--kubeconfig=a/b", "--master", "https://h"],
            with(|options| {
                options.source = Source::default()
                    .kubeconfig(std::path::PathBuf::from("a/b"))
                    .master("https://h".to_owned());
            }),
        ),
        (
            &["--use-service-account-credentials"],
            with(|options| options.use_service_account_credentials = true),
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
            &[
                "--controller-start-interval=3s",
                "--controller-shutdown-timeout=0",
            ],
            with(|options| {
                options.start_interval = Duration::from_secs(3);
                options.shutdown_timeout = None;
            }),
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
        (
            &["--emulated-version=kube=1.34", "--feature-gates=AllAlpha=1"],
            with(|options| {
                options.feature_gates = FeatureGates::at(KubeVersion::v1(34))
                    .with_opt_ins()
                    .max_unavailable_stateful_set(true)
                    .component_flagz(true)
                    .component_statusz(true);
            }),
        ),
        (
            &["--kube-api-content-type=application/json"],
            with(|options| options.media_type = MediaType::Json),
        ),
        (
            &["--kube-api-content-type="],
            with(|options| options.media_type = MediaType::Json),
        ),
        (
            &["--kube-api-content-type=application/vnd.kubernetes.protobuf"],
            default_options(),
        ),
    ];
    for (arguments, expected) in table {
        let arguments = [&["--leader-elect=false"], arguments].concat();
        assert_eq!(resolved(&arguments).unwrap(), expected, "{arguments:?}");
    }
}

#[test]
fn each_mistake_is_reported_in_one_line() {
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
            ["--shard=2/2", off],
            "invalid argument \"2/2\" for \"--shard\" flag: expected INDEX/COUNT, with an index from 0 \
             below a count of at most 64",
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
            [
                "--emulated-version=1.35",
                "--feature-gates=StaleControllerConsistencyStatefulSet=1",
            ],
            "invalid argument \"StaleControllerConsistencyStatefulSet=1\" for \
             \"--feature-gates\" flag: cannot set feature gate \
             StaleControllerConsistencyStatefulSet to true, \
             feature is PreAlpha at emulated version 1.35",
        ),
        (
            ["--emulated-version=1.38", off],
            "emulation version 1.38 is not between [1.33, 1.37]",
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
            ["--leader-elect-resource-lock=endpoints", "--leader-elect"],
            "resourceLock value must be \"leases\"",
        ),
        (
            ["--leader-elect-renew-deadline=15s", "--leader-elect"],
            "leaseDuration must be greater than renewDeadline",
        ),
        (
            ["--secure-port=65536", off],
            "--secure-port 65536 must be between 0 and 65535, inclusive. \
             0 for turning off secure port",
        ),
        (
            ["--secure-port=-1", off],
            "--secure-port -1 must be between 0 and 65535, inclusive. \
             0 for turning off secure port",
        ),
        (
            ["--tls-private-key-file=x", off],
            "--tls-cert-file and --tls-private-key-file must be given together",
        ),
        (
            ["--requestheader-group-headers=a,,b", off],
            "empty value in \"requestheader-group-headers\"",
        ),
        (
            ["--show-hidden-metrics-for-version=1.34", off],
            "--show-hidden-metrics-for-version must be omitted or have the value '1.35'. \
             Only the previous minor version is allowed",
        ),
        (
            ["--allow-metric-labels=workqueue_depth=a", off],
            "--allow-metric-labels must have a list of kv pair with format \
             `metricName,labelName=labelValue, labelValue,...`",
        ),
    ] {
        let error = resolved(&arguments).unwrap_err().to_string();
        assert_eq!(error, expected, "{arguments:?}");
    }
}

#[test]
fn leader_election_flags_are_validated_only_if_enabled() {
    let checked = |arguments: &[&str]| {
        let flags = flags(arguments).unwrap().leader_election;
        flags.validate().map_err(|err| err.to_string())
    };
    for (arguments, expected) in [
        (
            ["--leader-elect-resource-lock=endpoints"].as_slice(),
            "resourceLock value must be \"leases\"",
        ),
        (
            &["--leader-elect-lease-duration=10s"],
            "leaseDuration must be greater than renewDeadline",
        ),
        (
            &["--leader-elect-retry-period=9s"],
            "renewDeadline must be greater than retryPeriod*JitterFactor",
        ),
        (
            &["--leader-elect-retry-period=0"],
            "retryPeriod must be greater than zero",
        ),
        (
            &["--leader-elect-resource-name="],
            "--leader-elect-resource-name must not be empty",
        ),
        (
            &["--leader-elect-resource-namespace="],
            "--leader-elect-resource-namespace must not be empty",
        ),
    ] {
        assert_eq!(
            checked(arguments),
            Err(expected.to_owned()),
            "{arguments:?}"
        );
        let off = [&["--leader-elect=false"], arguments].concat();
        assert_eq!(checked(&off), Ok(()), "{off:?}");
    }
    assert_eq!(checked(&[]), Ok(()));
}
