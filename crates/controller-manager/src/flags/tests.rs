//! Tests of argument parsing.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use rustls::{CipherSuite, NamedGroup, ProtocolVersion};
use statefulset_client::rest::MediaType;

use super::*;
use crate::flags::secure_serving::SniCertKey;
use crate::logging::Format;
use crate::options::Options;

fn parsed(arguments: &[&str]) -> anyhow::Result<Invocation> {
    parse(arguments.iter())
}

fn flags(arguments: &[&str]) -> Flags {
    match parsed(arguments).unwrap() {
        Invocation::Run(flags) => *flags,
        other => panic!("{arguments:?}: {other:?}"),
    }
}

/// The defaults with a change.
fn defaults_with(change: impl FnOnce(&mut Flags)) -> Flags {
    let mut flags = flags(&[]);
    change(&mut flags);
    flags
}

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|&text| text.to_owned()).collect()
}

#[test]
fn flag_definitions_are_valid() {
    command().debug_assert();
}

#[test]
fn defaults_match_the_reference() {
    let expected = Flags {
        debugging: debugging::DebuggingFlags {
            profiling: true,
            contention_profiling: false,
        },
        generic: generic::GenericFlags {
            min_resync_period: Duration::from_secs(43_200),
            // The only default that differs.
            kube_api_content_type: MediaType::Protobuf,
            kube_api_qps: 20.0,
            kube_api_burst: 30,
            controller_start_interval: Duration::ZERO,
            controller_shutdown_timeout: Duration::from_secs(10),
            controllers: texts(&["*"]),
            use_service_account_credentials: false,
        },
        leader_election: leader_election::LeaderElectionFlags {
            leader_elect: true,
            leader_elect_lease_duration: Duration::from_secs(15),
            leader_elect_renew_deadline: Duration::from_secs(10),
            leader_elect_retry_period: Duration::from_secs(2),
            leader_elect_resource_lock: "leases".to_owned(),
            leader_elect_resource_name: "kube-controller-manager".to_owned(),
            leader_elect_resource_namespace: "kube-system".to_owned(),
        },
        features: features::FeatureFlags {
            feature_gates: String::new(),
            emulated_version: Vec::new(),
            min_compatibility_version: Vec::new(),
        },
        secure_serving: secure_serving::SecureServingFlags {
            bind_address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            secure_port: 10257,
            cert_dir: None,
            tls_cert_file: None,
            tls_private_key_file: None,
            tls_sni_cert_key: Vec::new(),
            tls_min_version: ProtocolVersion::TLSv1_2,
            tls_cipher_suites: Vec::new(),
            tls_curve_preferences: Vec::new(),
            disable_http2_serving: false,
            http2_max_streams_per_connection: 0,
            permit_address_sharing: false,
            permit_port_sharing: false,
        },
        authentication: authentication::AuthenticationFlags {
            authentication_kubeconfig: None,
            authentication_skip_lookup: false,
            authentication_token_webhook_cache_ttl: Duration::from_secs(10),
            authentication_tolerate_lookup_failure: false,
            client_ca_file: None,
            requestheader_allowed_names: Vec::new(),
            requestheader_client_ca_file: None,
            requestheader_extra_headers_prefix: texts(&["x-remote-extra-"]),
            requestheader_group_headers: texts(&["x-remote-group"]),
            requestheader_uid_headers: Vec::new(),
            requestheader_username_headers: texts(&["x-remote-user"]),
        },
        authorization: authorization::AuthorizationFlags {
            authorization_always_allow_paths: texts(&["/healthz", "/readyz", "/livez"]),
            authorization_kubeconfig: None,
            authorization_webhook_cache_authorized_ttl: Duration::from_secs(10),
            authorization_webhook_cache_unauthorized_ttl: Duration::from_secs(10),
        },
        statefulset_controller: statefulset_controller::StatefulSetControllerFlags {
            concurrent_statefulset_syncs: 5,
            shard: String::new(),
            namespace_selector: String::new(),
            opt_in_defaults: String::new(),
            shadow: false,
        },
        metrics: metrics::MetricsFlags {
            allow_metric_labels: Vec::new(),
            disabled_metrics: Vec::new(),
            show_hidden_metrics_for_version: String::new(),
        },
        logs: logs::LogsFlags {
            verbosity: 0,
            logging_format: Format::Text,
            log_flush_frequency: Duration::from_secs(5),
        },
        misc: misc::MiscFlags {
            kubeconfig: None,
            master: String::new(),
        },
        global: global::GlobalFlags {
            help: false,
            version: false,
            generate: None,
        },
    };
    assert_eq!(flags(&[]), expected);
}

#[test]
fn values_follow_an_equals_sign_or_a_space() {
    for arguments in [
        ["--kubeconfig=a=b", "--kube-api-burst=7", "--v=5"].as_slice(),
        &["--kubeconfig", "a=b", "--kube-api-burst", "7", "--v", "5"],
        &["--kubeconfig", "a=b", "--kube_api_burst", "7", "-v=5"],
        &["-v", "5", "--kube-api-burst=7", "--kubeconfig=a=b"],
        &[
            "-v5",
            "--kube-api-burst=1",
            "--kube-api-burst=7",
            "--kubeconfig=a=b",
            "",
        ],
    ] {
        let expected = defaults_with(|flags| {
            flags.misc.kubeconfig = Some("a=b".into());
            flags.generic.kube_api_burst = 7;
            flags.logs.verbosity = 5;
        });
        assert_eq!(flags(arguments), expected, "{arguments:?}");
    }
}

#[test]
fn values_may_look_like_flags() {
    let expected = defaults_with(|flags| {
        flags.misc.master = "--kube_config=x".to_owned();
        flags.generic.kube_api_qps = -1.0;
    });
    let arguments = ["--master", "--kube_config=x", "--kube-api-qps", "-1"];
    assert_eq!(flags(&arguments), expected);
}

#[test]
fn booleans_take_values_only_after_an_equals_sign() {
    let leader_elect = |argument| flags(&[argument]).leader_election.leader_elect;
    assert!(leader_elect("--leader-elect"));
    assert!(leader_elect("--leader-elect=T"));
    assert!(!leader_elect("--leader-elect=false"));
    assert!(!leader_elect("--leader_elect=0"));
    let error = parsed(&["--leader-elect", "false"])
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with("does not take any arguments, got [\"false\"]"),
        "{error}"
    );
}

#[test]
fn every_type_of_value_parses() {
    let flags = flags(&[
        "--master=https://host:6443",
        "--concurrent-statefulset-syncs=9",
        "--kube-api-qps=-1",
        "--min-resync-period=0s",
        "--feature-gates=A=true",
        "--feature-gates=B=false,C=true",
        "--controllers=*",
        "--controllers=-x",
        "--logging-format=json",
        "--v=-3",
        "--bind-address=::1",
        "--tls-cert-file=",
        "--tls-sni-cert-key=a.crt,a.key",
        "--tls-sni-cert-key=b.crt,b.key:*.b.example,b.example",
        "--tls-min-version=VersionTLS13",
        "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305,TLS_AES_128_GCM_SHA256",
        "--tls-curve-preferences=29,23",
        "--authorization-always-allow-paths=",
        "--requestheader-allowed-names=front,proxy",
        "--allow-metric-labels=workqueue_depth,name=statefulset,other",
        "--allow-metric-labels=\"a,b=c,d\",\"e,f=g\"",
    ]);
    let expected = defaults_with(|flags| {
        flags.misc.master = "https://host:6443".to_owned();
        flags.statefulset_controller.concurrent_statefulset_syncs = 9;
        flags.generic.kube_api_qps = -1.0;
        flags.generic.min_resync_period = Duration::ZERO;
        flags.features.feature_gates = "A=true,B=false,C=true".to_owned();
        flags.generic.controllers = texts(&["*", "-x"]);
        flags.logs.logging_format = Format::Json;
        flags.logs.verbosity = -3;
        let serving = &mut flags.secure_serving;
        serving.bind_address = "::1".parse().unwrap();
        serving.tls_sni_cert_key = vec![
            SniCertKey {
                certificate: "a.crt".into(),
                key: "a.key".into(),
                names: Vec::new(),
            },
            SniCertKey {
                certificate: "b.crt".into(),
                key: "b.key".into(),
                names: texts(&["*.b.example", "b.example"]),
            },
        ];
        serving.tls_min_version = ProtocolVersion::TLSv1_3;
        serving.tls_cipher_suites = vec![
            CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
            CipherSuite::TLS13_AES_128_GCM_SHA256,
        ];
        serving.tls_curve_preferences = vec![NamedGroup::X25519, NamedGroup::secp256r1];
        flags.authorization.authorization_always_allow_paths = Vec::new();
        flags.authentication.requestheader_allowed_names = texts(&["front", "proxy"]);
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        flags.metrics.allow_metric_labels = vec![
            vec![pair("workqueue_depth,name", "statefulset,other")],
            vec![pair("a,b", "c,d"), pair("e,f", "g")],
        ];
    });
    assert_eq!(flags, expected);
    let allowed = flags.metrics.allowed_values();
    assert_eq!(allowed[&("a", "b")], ["c", "d"].into());
    assert_eq!(allowed.len(), 3);
}

#[test]
fn help_version_and_generate_parse() {
    assert_eq!(
        parsed(&["--generate=man"]).unwrap(),
        Invocation::Generate(Text::Man)
    );
    assert_eq!(parsed(&["--generate=man", "-h"]).unwrap(), Invocation::Help);
    assert_eq!(parsed(&["--help", "x"]).unwrap(), Invocation::Help);
    assert_eq!(parsed(&["-h"]).unwrap(), Invocation::Help);
    assert_eq!(parsed(&["-hv4"]).unwrap(), Invocation::Help);
    assert_eq!(
        parsed(&["--version", "--kubeconfig=x"]).unwrap(),
        Invocation::Version
    );
    assert_eq!(
        parsed(&["--version=false"]).unwrap(),
        Invocation::Run(Box::new(flags(&[])))
    );
}

#[test]
fn help_lists_each_flag_once_in_its_section() {
    let help = help();
    let command = command();
    for flag in command.get_arguments().filter(|flag| !flag.is_hide_set()) {
        let name = flag.get_long().unwrap();
        let lines: Vec<_> = help.lines().collect();
        let at: Vec<_> = (0..lines.len())
            .filter(|&at| {
                let mut words = lines[at].trim_start().split([' ', ',']);
                lines[at].starts_with("  ")
                    && !lines[at].starts_with("        ")
                    && words.any(|word| word == format!("--{name}"))
            })
            .collect();
        assert_eq!(at.len(), 1, "--{name}\n{help}");
        let heading = lines[..at[0]]
            .iter()
            .rfind(|line| line.ends_with(" flags:"));
        let expected = format!("{}:", flag.get_help_heading().unwrap());
        assert_eq!(heading, Some(&expected.as_str()), "--{name}");
    }
}

#[test]
fn help_sections_match_the_reference() {
    let help = help();
    let sections: Vec<_> = help
        .lines()
        .filter_map(|line| line.strip_suffix(" flags:"))
        .collect();
    let expected = [
        "Debugging",
        "Generic",
        "Secure serving",
        "Authentication",
        "Authorization",
        "Statefulset-controller",
        "Metrics",
        "Logs",
        "Misc",
        "Global",
    ];
    assert_eq!(sections, expected);
    let flag = "\n      --concurrent-statefulset-syncs int\n                \
                Number of StatefulSets to sync in parallel. (default 5)\n";
    assert!(help.contains(flag), "{help}");
    assert!(help.contains("\n  -v, --v int\n"), "{help}");
    let gate = "\n                \
                kube:MaxUnavailableStatefulSet=true|false (BETA - default=false)\n";
    assert!(help.contains(gate), "{help}");
    assert!(help.contains("\n      --leader-elect\n"), "{help}");
    assert!(help.lines().all(|line| line.len() <= 90), "{help}");
}

#[test]
fn each_mistake_is_reported_in_one_line() {
    for (arguments, expected) in [
        (["--nope"].as_slice(), "unknown flag: --nope; see --help"),
        (&["--nope=1"], "unknown flag: --nope; see --help"),
        (&["-x"], "unknown shorthand flag: 'x' in -x; see --help"),
        (
            &["-v4", "-hx"],
            "unknown shorthand flag: 'x' in -hx; see --help",
        ),
        (&["---v"], "bad flag syntax: ---v; see --help"),
        (&["--=1"], "bad flag syntax: --=1; see --help"),
        (
            &["--kubeconfig"],
            "flag needs an argument: --kubeconfig; see --help",
        ),
        (&["-v"], "flag needs an argument: 'v' in -v; see --help"),
        (
            &["--v=loud"],
            "invalid argument \"loud\" for \"-v, --v\" flag: must be a 32-bit integer",
        ),
        (
            &["--leader-elect=maybe"],
            "invalid argument \"maybe\" for \"--leader-elect\" flag: must be true or false",
        ),
        (
            &["--kube-api-burst", "99999999999"],
            "invalid argument \"99999999999\" for \"--kube-api-burst\" flag: \
             must be a 32-bit integer",
        ),
        (
            &["--kube-api-qps=NaN"],
            "invalid argument \"NaN\" for \"--kube-api-qps\" flag: must be a number",
        ),
        (
            &["--min-resync-period=12"],
            "invalid argument \"12\" for \"--min-resync-period\" flag: \
             must be a duration of 0s or more, such as 12h or 1h30m",
        ),
        (
            &["--bind-address=x"],
            "invalid argument \"x\" for \"--bind-address\" flag: failed to parse IP: \"x\"",
        ),
        (
            &["--tls-min-version=VersionTLS14"],
            "invalid argument \"VersionTLS14\" for \"--tls-min-version\" flag: \
             unknown tls version \"VersionTLS14\"",
        ),
        (
            &["--tls-min-version=VersionTLS10"],
            "invalid argument \"VersionTLS10\" for \"--tls-min-version\" flag: \
             must be VersionTLS12 or VersionTLS13; older versions are not safe",
        ),
        (
            &["--tls-cipher-suites=TLS_AES_128_GCM_SHA256,RC4"],
            "invalid argument \"TLS_AES_128_GCM_SHA256,RC4\" for \"--tls-cipher-suites\" flag: \
             Cipher suite RC4 not supported or doesn't exist",
        ),
        (
            &["--tls-curve-preferences=25"],
            "invalid argument \"25\" for \"--tls-curve-preferences\" flag: must be numbers of \
             key exchanges: 23 (P-256), 24 (P-384), 29 (X25519)",
        ),
        (
            &["--tls-sni-cert-key=a.crt"],
            "invalid argument \"a.crt\" for \"--tls-sni-cert-key\" flag: \
             expected comma separated certificate and key file paths",
        ),
        (
            &["--allow-metric-labels=a,b"],
            "invalid argument \"a,b\" for \"--allow-metric-labels\" flag: \
             a,b must be formatted as key=value",
        ),
        (
            &["--kube-api-content-type=text/plain"],
            "invalid argument \"text/plain\" for \"--kube-api-content-type\" flag: \
             must be application/vnd.kubernetes.protobuf or application/json",
        ),
        (
            &["--allocate_node_cidrs=true"],
            "--allocate-node-cidrs belongs to the node-ipam-controller, which this program does \
             not run; remove the flag",
        ),
        (
            &["--logging-format=xml"],
            "invalid argument \"xml\" for \"--logging-format\" flag: must be text or json",
        ),
        (
            &["x", "--v=1", "--", "--v"],
            "\"statefulset-controller-manager\" does not take any arguments, got [\"x\" \"--v\"]",
        ),
        (
            &["-"],
            "\"statefulset-controller-manager\" does not take any arguments, got [\"-\"]",
        ),
    ] {
        let error = parsed(arguments).unwrap_err().to_string();
        assert_eq!(error, expected, "{arguments:?}");
    }
}

#[test]
fn default_manifest_flags_are_accepted_or_explained() {
    for (argument, taken) in [
        ("--allocate-node-cidrs=true", false),
        ("--authentication-kubeconfig=/etc/kubernetes/c.conf", true),
        ("--authorization-kubeconfig=/etc/kubernetes/c.conf", true),
        ("--bind-address=127.0.0.1", true),
        ("--client-ca-file=/etc/kubernetes/pki/ca.crt", true),
        ("--cluster-cidr=10.0.0.0/16", false),
        ("--cluster-name=kubernetes", false),
        (
            "--cluster-signing-cert-file=/etc/kubernetes/pki/ca.crt",
            false,
        ),
        (
            "--cluster-signing-key-file=/etc/kubernetes/pki/ca.key",
            false,
        ),
        ("--controllers=*,bootstrapsigner,tokencleaner", true),
        ("--feature-gates=", true),
        ("--kubeconfig=/etc/kubernetes/c.conf", true),
        ("--leader-elect=true", true),
        ("--node-cidr-mask-size=24", false),
        (
            "--requestheader-client-ca-file=/etc/kubernetes/pki/f.crt",
            true,
        ),
        ("--root-ca-file=/etc/kubernetes/pki/ca.crt", false),
        ("--service-account-private-key-file=/etc/sa.key", false),
        ("--service-cluster-ip-range=10.96.0.0/12", false),
        ("--terminated-pod-gc-threshold=100", false),
        ("--use-service-account-credentials=true", true),
    ] {
        let resolved = parsed(&[argument]).and_then(|invocation| match invocation {
            Invocation::Run(flags) => Options::resolve(*flags),
            other => panic!("{argument}: {other:?}"),
        });
        match resolved {
            Ok(_) => assert!(taken, "{argument}"),
            Err(error) => {
                let error = error.to_string();
                let reasoned = error.ends_with("; remove the flag");
                assert!(!taken && reasoned, "{argument}: {error}");
            }
        }
    }
}
