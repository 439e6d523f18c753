//! Argument vectors and what they mean.

use super::*;

fn parsed(arguments: &[&str]) -> anyhow::Result<Invocation> {
    parse(arguments.iter())
}

fn flags(arguments: &[&str]) -> Flags {
    match parsed(arguments).unwrap() {
        Invocation::Run(flags) => flags,
        other => panic!("{arguments:?}: {other:?}"),
    }
}

#[test]
fn without_arguments_everything_has_the_default_of_the_reference() {
    let flags = flags(&[]);
    assert_eq!(flags, Flags::default());
    assert!(flags.leader_elect);
    assert_eq!(flags.min_resync_period, Duration::from_secs(43_200));
}

#[test]
fn a_value_follows_after_an_equals_sign_or_in_the_next_argument() {
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
        let expected = Flags {
            kubeconfig: "a=b".to_owned(),
            kube_api_burst: 7,
            verbosity: 5,
            ..Flags::default()
        };
        assert_eq!(flags(arguments), expected, "{arguments:?}");
    }
}

#[test]
fn a_switch_has_its_value_only_after_an_equals_sign() {
    assert!(flags(&["--leader-elect"]).leader_elect);
    assert!(flags(&["--leader-elect=T"]).leader_elect);
    assert!(!flags(&["--leader-elect=false"]).leader_elect);
    assert!(!flags(&["--leader_elect=0"]).leader_elect);
    let error = parsed(&["--leader-elect", "false"])
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with("does not take any arguments, got [\"false\"]"),
        "{error}"
    );
}

#[test]
fn all_kinds_of_values_are_read() {
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
    ]);
    let expected = Flags {
        master: "https://host:6443".to_owned(),
        concurrent_statefulset_syncs: 9,
        kube_api_qps: -1.0,
        min_resync_period: Duration::ZERO,
        feature_gates: "A=true,B=false,C=true".to_owned(),
        controllers: Some("*,-x".to_owned()),
        logging_format: Format::Json,
        verbosity: -3,
        ..Flags::default()
    };
    assert_eq!(flags, expected);
}

#[test]
fn help_and_version_are_asked_for() {
    assert_eq!(parsed(&["--help", "x"]).unwrap(), Invocation::Help);
    assert_eq!(parsed(&["-h"]).unwrap(), Invocation::Help);
    assert_eq!(parsed(&["-hv4"]).unwrap(), Invocation::Help);
    assert_eq!(
        parsed(&["--version", "--kubeconfig=x"]).unwrap(),
        Invocation::Version
    );
    assert_eq!(
        parsed(&["--version=false"]).unwrap(),
        Invocation::Run(Flags::default())
    );
}

#[test]
fn the_help_names_each_flag_once() {
    let help = help();
    for flag in &FLAGS {
        let lines = help.lines().filter(|line| {
            line.contains("--")
                && line
                    .trim_start()
                    .split([' ', ','])
                    .any(|word| word == format!("--{}", flag.name))
                && !line.starts_with("        ")
        });
        assert_eq!(lines.count(), 1, "--{}\n{help}", flag.name);
    }
}

#[test]
fn each_mistake_is_told_in_one_line() {
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
            "invalid argument \"loud\" for \"-v, --v\" flag: must be a whole number of 32 bits",
        ),
        (
            &["--leader-elect=maybe"],
            "invalid argument \"maybe\" for \"--leader-elect\" flag: must be true or false",
        ),
        (
            &["--kube-api-burst", "99999999999"],
            "invalid argument \"99999999999\" for \"--kube-api-burst\" flag: \
             must be a whole number of 32 bits",
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
