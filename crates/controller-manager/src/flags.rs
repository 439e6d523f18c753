//! Command-line flags: those of kube-controller-manager that apply to this program, with the same
//! names and defaults.
//!
//! clap holds the flags, their help texts and their value parsers; the argument syntax is that of
//! Go's pflag package (see [`argv`]). Every mistake is reported in one line.

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

use crate::program::PROGRAM;
pub(crate) use generate::generate;
pub(crate) use global::Text;
pub(crate) use help::help;
pub(crate) use shown::shown;

/// Action that the command line requests.
#[derive(Debug, PartialEq)]
pub(crate) enum Invocation {
    /// Run the controller.
    Run(Box<Flags>),
    /// Print the help.
    Help,
    /// Print the version.
    Version,
    /// Print a generated text for packagers.
    Generate(Text),
}

/// Flag values as typed or by default, before they are checked against each other. The groups are
/// in the order of the help.
#[derive(Debug, Clone, PartialEq, clap::Parser)]
#[command(
    version,
    about = "The Kubernetes StatefulSet controller as a standalone program.",
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

/// Parses an argument vector without the program's name.
///
/// # Errors
///
/// An unknown flag, a missing or invalid value, or a positional argument.
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

/// All flags. The value of a boolean flag is optional. The help of `--feature-gates` lists the
/// gates.
fn command() -> clap::Command {
    Flags::command().mut_args(|arg| {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        // clap strips the final full stop.
        let arg = if arg.get_long() == Some("feature-gates") {
            let gates = known_gates(KubeVersion::UPSTREAM);
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

/// Reports an invalid value in the words of Go's flags.
fn bad_value(command: &clap::Command, error: &clap::Error) -> anyhow::Error {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    };
    let flag = text(ContextKind::InvalidArg);
    // clap prints the flag with its value, as in `--flag <int>` or `--flag[=<bool>]`.
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
