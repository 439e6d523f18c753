//! The help text, by the sections of kube-controller-manager.

use std::fmt::Write as _;

use clap::{Arg, Command};

use super::{argv, command, values};
use crate::program::PROGRAM;

/// Maximum line length, in characters.
const WIDTH: usize = 90;
/// Indentation of the flag descriptions.
const INDENT: &str = "                ";

/// Text that `--help` prints.
pub(crate) fn help() -> String {
    let command = command();
    let about = command.get_about().map(ToString::to_string);
    let mut text = format!(
        "{}\n\nUsage:\n  {PROGRAM} [flags]\n",
        about.unwrap_or_default()
    );
    for (heading, flags) in sections(&command) {
        // Writing to a string can't fail.
        let _ = write!(text, "\n{heading}:\n\n");
        for flag in flags {
            let letter = flag
                .get_short()
                .map_or_else(|| "    ".to_owned(), |letter| format!("-{letter}, "));
            let name = flag.get_long().unwrap_or_default();
            let kind = Some(argv::value_name(flag)).filter(|kind| *kind != values::BOOL);
            let kind = kind.map_or_else(String::new, |kind| format!(" {kind}"));
            let _ = writeln!(text, "  {letter}--{name}{kind}");
            let mut what = flag.get_help().map(ToString::to_string).unwrap_or_default();
            if let Some(default) = shown_default(flag) {
                let _ = write!(what, " (default {default})");
            }
            for paragraph in what.lines() {
                for line in wrapped(paragraph, WIDTH - INDENT.len()) {
                    let _ = writeln!(text, "{INDENT}{line}");
                }
            }
        }
    }
    text.truncate(text.trim_end().len());
    text
}

/// Help sections in order, with their flags sorted by name.
pub(super) fn sections(command: &Command) -> Vec<(String, Vec<&Arg>)> {
    let mut sections: Vec<(String, Vec<&Arg>)> = Vec::new();
    for flag in command.get_arguments().filter(|flag| !flag.is_hide_set()) {
        let heading = flag.get_help_heading().unwrap_or_default();
        match sections.iter_mut().find(|(known, _)| known == heading) {
            Some((_, flags)) => flags.push(flag),
            None => sections.push((heading.to_owned(), vec![flag])),
        }
    }
    for (_, flags) in &mut sections {
        flags.sort_by_key(|flag| flag.get_long());
    }
    sections
}

/// Default value of a flag, unless it is empty.
pub(super) fn shown_default(flag: &Arg) -> Option<String> {
    let default = flag.get_default_values().first()?.to_str()?;
    let silent = default.is_empty()
        || default == "0s"
        || (default == "false" && argv::value_name(flag) == values::BOOL);
    (!silent).then(|| default.to_owned())
}

/// Wraps a text at word boundaries into lines of at most `width` characters.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last().map_or(0, |line| line.chars().count());
        if last > 0 && last + 1 + word.chars().count() > width {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}
