//! Texts generated from the flag definitions: shell completions, the man page and the documentation
//! page.

use std::fmt::Write as _;

use super::global::Text;
use super::help::{sections, shown_default};
use super::{argv, command, foreign_flags, values};
use crate::program::PROGRAM;
use anyhow::Context as _;

/// Generates a text.
///
/// # Errors
///
/// The text can't be generated.
pub(crate) fn generate(text: Text) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    match text {
        Text::Completion(shell) => {
            clap_complete::generate(shell, &mut command(), PROGRAM, &mut bytes);
        }
        Text::Man => clap_mangen::Man::new(command())
            .section("8")
            .manual("Kubernetes")
            .render(&mut bytes)
            .context("write the man page")?,
        Text::Markdown => return Ok(markdown()),
    }
    String::from_utf8(bytes).context("read the generated text")
}

fn markdown() -> String {
    let mut page = format!(
        "# Flags of {PROGRAM}\n\n\
         <!-- Generated from the definition of the flags: make fmt -->\n\n\
         Use this page to look up a flag of the program, its default, and the flags of \
         kube-controller-manager that it rejects.\n\
         Names, defaults and syntax are those of kube-controller-manager: `--flag=value` and \
         `--flag value`, `--switch` and `--switch=false`, `_` for `-`.\n\
         `{PROGRAM} --generate=completion-bash` (or `-elvish`, `-fish`, `-powershell`, `-zsh`) prints \
         shell completions, and `--generate=man` a man page.\n"
    );
    let command = command();
    for (heading, flags) in sections(&command) {
        // Writing to a string can't fail.
        let _ = write!(
            page,
            "\n## {heading}\n\n| flag | kind | default | meaning |\n|---|---|---|---|\n"
        );
        for flag in flags {
            let letter = flag
                .get_short()
                .map_or_else(String::new, |letter| format!("`-{letter}`, "));
            let name = flag.get_long().unwrap_or_default();
            let kind = argv::value_name(flag);
            let default = match shown_default(flag) {
                Some(default) => format!("`{default}`"),
                None if kind == values::BOOL => "`false`".to_owned(),
                None if kind == "duration" => "`0s`".to_owned(),
                None => String::new(),
            };
            let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
            let help = cell(&help);
            let _ = writeln!(page, "| {letter}`--{name}` | {kind} | {default} | {help} |");
        }
    }
    page.push_str(
        "\n## Rejected flags\n\n\
         These flags of kube-controller-manager don't exist here; the program rejects each with one \
         line that gives the reason.\nA trailing `*` matches any suffix.\n\n",
    );
    for (whose, flags) in foreign_flags::all() {
        let flags: Vec<_> = flags.iter().map(|flag| format!("`--{flag}`")).collect();
        let _ = writeln!(page, "- {whose}: {}", flags.join(", "));
    }
    page
}

/// Escapes a text for a table cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
        .replace('<', "&lt;")
        .replace('*', "\\*")
        .replace('\n', "<br>")
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;
    use clap_complete::Shell;

    use super::*;

    #[test]
    fn every_text_lists_every_flag() {
        let shells = Shell::value_variants().iter().copied();
        let texts = shells
            .map(Text::Completion)
            .chain([Text::Man, Text::Markdown]);
        for text in texts {
            let generated = generate(text).unwrap();
            for flag in command().get_arguments().filter(|flag| !flag.is_hide_set()) {
                let name = flag.get_long().unwrap();
                let (name, escaped) = (name.to_owned(), name.replace('-', "\\-"));
                let named = generated.contains(&name) || generated.contains(&escaped);
                assert!(named, "{text:?}: {name}");
            }
            assert!(generated.ends_with('\n'), "{text:?}");
        }
    }
}
