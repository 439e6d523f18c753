//! What the user typed, by the rules of Go's pflag package.
//!
//! The rules are few, and clap's are others: here a switch takes a value only after `=`, an
//! underscore is a dash, and every mistake is told in one line.

mod table;

use std::ffi::OsString;
use std::time::Duration;

use anyhow::{anyhow, bail};

use crate::PROGRAM;
use crate::logging::Format;
pub(crate) use table::help;
use table::{FLAGS, Flag};

/// What the program was called for.
#[derive(Debug, PartialEq)]
pub(crate) enum Invocation {
    /// To run.
    Run(Flags),
    /// To print the help.
    Help,
    /// To print the version.
    Version,
}

/// The value of each flag, as typed or by default, not yet checked against each other.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Flags {
    pub(crate) kubeconfig: String,
    pub(crate) master: String,
    pub(crate) leader_elect: bool,
    pub(crate) controllers: Option<String>,
    pub(crate) concurrent_statefulset_syncs: i32,
    pub(crate) kube_api_qps: f64,
    pub(crate) kube_api_burst: i32,
    pub(crate) min_resync_period: Duration,
    pub(crate) feature_gates: String,
    pub(crate) verbosity: i32,
    pub(crate) logging_format: Format,
    help: bool,
    version: bool,
}

impl Default for Flags {
    fn default() -> Self {
        Self {
            kubeconfig: String::new(),
            master: String::new(),
            leader_elect: true,
            controllers: None,
            concurrent_statefulset_syncs: 5,
            kube_api_qps: 20.0,
            kube_api_burst: 30,
            min_resync_period: Duration::from_secs(12 * 3600),
            feature_gates: String::new(),
            verbosity: 0,
            logging_format: Format::Text,
            help: false,
            version: false,
        }
    }
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
    let mut flags = Flags::default();
    let mut positional = Vec::new();
    let mut rest = texts.iter().map(String::as_str);
    while let Some(argument) = rest.next() {
        if argument == "--" {
            positional.extend(rest);
            break;
        }
        if let Some(long) = argument.strip_prefix("--") {
            parse_long(argument, long, &mut rest, &mut flags)?;
        } else if let Some(short) = argument.strip_prefix('-').filter(|it| !it.is_empty()) {
            parse_short(argument, short, &mut rest, &mut flags)?;
        } else {
            positional.push(argument);
        }
    }
    if flags.help {
        return Ok(Invocation::Help);
    }
    if flags.version {
        return Ok(Invocation::Version);
    }
    if positional.iter().any(|argument| !argument.is_empty()) {
        let quoted: Vec<_> = positional
            .iter()
            .map(|argument| format!("{argument:?}"))
            .collect();
        bail!(
            "{PROGRAM:?} does not take any arguments, got [{}]",
            quoted.join(" ")
        );
    }
    Ok(Invocation::Run(flags))
}

fn parse_long<'a>(
    argument: &str,
    long: &'a str,
    rest: &mut impl Iterator<Item = &'a str>,
    flags: &mut Flags,
) -> anyhow::Result<()> {
    if long.starts_with(['-', '=']) {
        bail!("bad flag syntax: {argument}; {SEE_HELP}");
    }
    let (name, value) = match long.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (long, None),
    };
    let name = name.replace('_', "-");
    let Some(flag) = FLAGS.iter().find(|flag| flag.name == name) else {
        bail!("unknown flag: --{name}; {SEE_HELP}");
    };
    let value = match (value, flag.is_switch()) {
        (Some(value), _) => value,
        (None, true) => "true",
        (None, false) => rest
            .next()
            .ok_or_else(|| anyhow!("flag needs an argument: --{name}; {SEE_HELP}"))?,
    };
    set(flag, value, flags)
}

/// Reads one-letter flags, of which only the last can have a value: `-v4`, `-v=4`, `-v 4`.
fn parse_short<'a>(
    argument: &str,
    short: &'a str,
    rest: &mut impl Iterator<Item = &'a str>,
    flags: &mut Flags,
) -> anyhow::Result<()> {
    let mut letters = short;
    while let Some(letter) = letters.chars().next() {
        let Some(flag) = FLAGS.iter().find(|flag| flag.letter == Some(letter)) else {
            bail!("unknown shorthand flag: {letter:?} in {argument}; {SEE_HELP}");
        };
        letters = &letters[letter.len_utf8()..];
        let value = if let Some(value) = letters.strip_prefix('=') {
            letters = "";
            value
        } else if flag.is_switch() {
            "true"
        } else if letters.is_empty() {
            rest.next().ok_or_else(|| {
                anyhow!("flag needs an argument: {letter:?} in {argument}; {SEE_HELP}")
            })?
        } else {
            std::mem::take(&mut letters)
        };
        set(flag, value, flags)?;
    }
    Ok(())
}

fn set(flag: &Flag, value: &str, flags: &mut Flags) -> anyhow::Result<()> {
    (flag.set)(flags, value).map_err(|allowed| {
        let letter = flag
            .letter
            .map_or_else(String::new, |letter| format!("-{letter}, "));
        let name = flag.name;
        anyhow!("invalid argument {value:?} for \"{letter}--{name}\" flag: must be {allowed}")
    })
}

const SEE_HELP: &str = "see --help";

#[cfg(test)]
mod tests;
