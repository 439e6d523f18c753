//! The shape of the argument vector, by the rules of Go's pflag package.
//!
//! They are few, and clap's are others: here a switch takes a value only after `=`, any other flag
//! takes the next argument whatever it looks like, an underscore is a dash, and a list that is
//! given several times grows. What comes out is `--name=value` for each flag, which clap reads alike.

use anyhow::{anyhow, bail};
use clap::{Arg, Command};

use super::{foreign_flags, values};

/// What to do about a flag that isn't understood.
const SEE_HELP: &str = "see --help";

/// An argument vector.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Arguments {
    /// Each flag as `--name=value`, in the order given.
    pub(super) flags: Vec<String>,
    /// What is no flag.
    pub(super) positional: Vec<String>,
}

/// Reads an argument vector.
///
/// # Errors
///
/// A flag is unknown, belongs to another program, or lacks its value.
pub(super) fn read(command: &Command, texts: &[String]) -> anyhow::Result<Arguments> {
    let mut reader = Reader {
        command,
        values: Vec::new(),
    };
    let mut positional = Vec::new();
    let mut rest = texts.iter().map(String::as_str);
    while let Some(argument) = rest.next() {
        if argument == "--" {
            positional.extend(rest.map(str::to_owned));
            break;
        }
        if let Some(long) = argument.strip_prefix("--") {
            reader.read_long(argument, long, &mut rest)?;
        } else if let Some(short) = argument.strip_prefix('-').filter(|it| !it.is_empty()) {
            reader.read_short(argument, short, &mut rest)?;
        } else {
            positional.push(argument.to_owned());
        }
    }
    let flags = reader.values.into_iter();
    Ok(Arguments {
        flags: flags
            .map(|(name, value)| format!("--{name}={value}"))
            .collect(),
        positional,
    })
}

/// The kind of a flag's value; it also is its name in the help.
pub(super) fn value_name(arg: &Arg) -> &str {
    let names = arg.get_value_names().unwrap_or_default();
    names.first().map_or("", |name| name.as_str())
}

/// What has been read so far.
struct Reader<'a> {
    command: &'a Command,
    /// Names of flags, each with its value.
    values: Vec<(String, String)>,
}

impl<'a> Reader<'a> {
    fn read_long<'t>(
        &mut self,
        argument: &str,
        long: &'t str,
        rest: &mut impl Iterator<Item = &'t str>,
    ) -> anyhow::Result<()> {
        if long.starts_with(['-', '=']) {
            bail!("bad flag syntax: {argument}; {SEE_HELP}");
        }
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        let name = name.replace('_', "-");
        let Some(arg) = self.find(|arg| arg.get_long() == Some(name.as_str())) else {
            if let Some(reason) = foreign_flags::why_not(&name) {
                bail!("--{name} {reason}");
            }
            bail!("unknown flag: --{name}; {SEE_HELP}");
        };
        let value = match value {
            Some(value) => value,
            None if is_switch(arg) => "true",
            None => rest
                .next()
                .ok_or_else(|| anyhow!("flag needs an argument: --{name}; {SEE_HELP}"))?,
        };
        self.put(arg, value);
        Ok(())
    }

    /// Reads one-letter flags, of which only the last can have a value: `-v4`, `-v=4`, `-v 4`.
    fn read_short<'t>(
        &mut self,
        argument: &str,
        short: &'t str,
        rest: &mut impl Iterator<Item = &'t str>,
    ) -> anyhow::Result<()> {
        let mut letters = short;
        loop {
            let mut characters = letters.chars();
            let Some(letter) = characters.next() else {
                return Ok(());
            };
            let Some(arg) = self.find(|arg| arg.get_short() == Some(letter)) else {
                bail!("unknown shorthand flag: {letter:?} in {argument}; {SEE_HELP}");
            };
            letters = characters.as_str();
            let value = if let Some(value) = letters.strip_prefix('=') {
                letters = "";
                value
            } else if is_switch(arg) {
                "true"
            } else if letters.is_empty() {
                rest.next().ok_or_else(|| {
                    anyhow!("flag needs an argument: {letter:?} in {argument}; {SEE_HELP}")
                })?
            } else {
                std::mem::take(&mut letters)
            };
            self.put(arg, value);
        }
    }

    fn find(&self, is_it: impl Fn(&Arg) -> bool) -> Option<&'a Arg> {
        self.command.get_arguments().find(|arg| is_it(arg))
    }

    /// Adds a flag. The last value of a flag counts, but lists grow.
    fn put(&mut self, arg: &Arg, value: &str) {
        let name = arg.get_long().unwrap_or_default();
        let kind = value_name(arg);
        let old = self.values.iter_mut().find(|(old, _)| old == name);
        match old {
            Some((_, list)) if values::JOINED.contains(&kind) => {
                if !list.is_empty() {
                    list.push(',');
                }
                list.push_str(value);
            }
            Some((_, old)) if !values::REPEATED.contains(&kind) => value.clone_into(old),
            _ => self.values.push((name.to_owned(), value.to_owned())),
        }
    }
}

fn is_switch(arg: &Arg) -> bool {
    value_name(arg) == values::BOOL
}
