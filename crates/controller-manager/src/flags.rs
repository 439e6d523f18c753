//! What the user typed: the flags of kube-controller-manager that concern this program, under its
//! names and with its defaults.
//!
//! The flags, their texts and the reading of values are clap's; the shape of the argument vector is
//! that of Go's pflag package (see [`argv`]), and every mistake is told in one line.

pub(crate) mod authentication;
pub(crate) mod authorization;
pub(crate) mod debugging;
pub(crate) mod features;
pub(crate) mod generic;
pub(crate) mod leader_election;
pub(crate) mod logs;
pub(crate) mod metrics;
pub(crate) mod misc;
pub(crate) mod secure_serving;
pub(crate) mod statefulset_controller;

mod argv;
mod foreign_flags;
mod generate;
mod global;
mod help;
mod shown;
mod values;

use std::error::Error as _;
use std::ffi::OsString;

use anyhow::{anyhow, bail};
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory as _, FromArgMatches as _};
use statefulset_client::feature_gates::KubeVersion;
use statefulset_client::feature_gates::known_gates;

use crate::PROGRAM;
pub(crate) use generate::{Text, generate};
pub(crate) use help::help;
pub(crate) use shown::shown;

/// What the program was called for.
#[derive(Debug, PartialEq)]
pub(crate) enum Invocation {
    /// To run.
    Run(Box<Flags>),
    /// To print the help.
    Help,
    /// To print the version.
    Version,
    /// To print something for packagers.
    Generate(Text),
}

/// The value of each flag, as typed or by default, not yet checked against each other. The groups
/// stand in the order of the help.
#[derive(Debug, Clone, PartialEq, clap::Parser)]
#[command(
    version,
    about = "The Kubernetes StatefulSet controller as a program of its own.",
    disable_help_flag = true,
    disable_version_flag = true,
    no_binary_name = true
)]
pub(crate) struct Flags {
    #[command(flatten)]
    pub(crate) debugging: debugging::DebuggingFlags,
    #[command(flatten)]
    pub(crate) generic: generic::GenericFlags,
    #[command(flatten)]
    pub(crate) leader_election: leader_election::LeaderElectionFlags,
    #[command(flatten)]
    pub(crate) features: features::FeatureFlags,
    #[command(flatten)]
    pub(crate) secure_serving: secure_serving::SecureServingFlags,
    #[command(flatten)]
    pub(crate) authentication: authentication::AuthenticationFlags,
    #[command(flatten)]
    pub(crate) authorization: authorization::AuthorizationFlags,
    #[command(flatten)]
    pub(crate) statefulset_controller: statefulset_controller::StatefulSetControllerFlags,
    #[command(flatten)]
    pub(crate) metrics: metrics::MetricsFlags,
    #[command(flatten)]
    pub(crate) logs: logs::LogsFlags,
    #[command(flatten)]
    pub(crate) misc: misc::MiscFlags,
    #[command(flatten)]
    global: global::GlobalFlags,
}

/// Reads an argument vector without the program's name.
///
/// # Errors
///
/// A flag is unknown, lacks its value or has one that it can't have, or something is no flag.
///
/// Upstream: `FlagSet.Parse`.
pub(crate) fn parse(
    arguments: impl Iterator<Item = impl Into<OsString>>,
) -> anyhow::Result<Invocation> {
    let mut texts = Vec::new();
    for argument in arguments {
        let text = argument.into().into_string();
        texts.push(text.map_err(|argument| {
            anyhow!("argument \"{}\" is not valid UTF-8", argument.display())
        })?);
    }
    let mut command = command();
    let arguments = argv::read(&command, &texts)?;
    let flags = command
        .try_get_matches_from_mut(arguments.flags)
        .and_then(|matches| Flags::from_arg_matches(&matches))
        .map_err(|err| bad_value(&command, &err))?;
    if flags.global.help {
        return Ok(Invocation::Help);
    }
    if flags.global.version {
        return Ok(Invocation::Version);
    }
    if let Some(text) = flags.global.generate {
        return Ok(Invocation::Generate(text));
    }
    let positional = arguments.positional;
    if positional.iter().any(|argument| !argument.is_empty()) {
        let quoted: Vec<_> = positional.iter().map(|it| format!("{it:?}")).collect();
        bail!(
            "{PROGRAM:?} does not take any arguments, got [{}]",
            quoted.join(" ")
        );
    }
    Ok(Invocation::Run(Box::new(flags)))
}

/// All flags. A boolean is a switch: its value may be left out. The gates are listed where they are
/// set.
fn command() -> clap::Command {
    Flags::command().mut_args(|arg| {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        // Clap takes the last full stop away.
        let arg = if arg.get_long() == Some("feature-gates") {
            let gates = known_gates(KubeVersion::REFERENCE);
            arg.help(format!("{help}:\n{}", gates.join("\n")))
        } else {
            arg.help(format!("{help}."))
        };
        if argv::value_name(&arg) == values::BOOL {
            return arg
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true");
        }
        arg
    })
}

/// Tells of a value that a flag can't have, as Go's flags do.
fn bad_value(command: &clap::Command, error: &clap::Error) -> anyhow::Error {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    };
    let flag = text(ContextKind::InvalidArg);
    // Clap names the flag with its value, as in `--flag <int>` or `--flag[=<bool>]`.
    let flag = flag.split([' ', '[', '=']).next().unwrap_or_default();
    let letter = command
        .get_arguments()
        .find(|arg| arg.get_long() == flag.strip_prefix("--"))
        .and_then(clap::Arg::get_short)
        .map_or_else(String::new, |letter| format!("-{letter}, "));
    let reason = error
        .source()
        .map_or_else(|| error.kind().to_string(), ToString::to_string);
    let value = text(ContextKind::InvalidValue);
    anyhow!("invalid argument {value:?} for \"{letter}{flag}\" flag: {reason}")
}

#[cfg(test)]
mod tests;
