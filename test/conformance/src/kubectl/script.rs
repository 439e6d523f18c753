//! Parser of handwritten sessions.
//!
//! ```text
//! # A line of explanation. Blank lines don't count.
//! file web.yaml
//!   The file's lines, indented by two spaces.
//! settle
//! $ kubectl get pods -o name
//! pod/web-0
//! $ kubectl get pods nope
//! ! Error from server (NotFound): pods "nope" not found
//! exit 1
//! EDITOR=$DIR/editor
//! $ kubectl edit configmap c
//! configmap/c edited
//! watch
//! $ kubectl get configmaps --watch-only --no-headers
//! d 0 <age>
//! during
//! $ kubectl create configmap d
//! configmap/d created
//! end
//! ```
//!
//! A command is followed by the lines that it prints, with `!` before lines of standard error, and
//! by its exit code if it isn't 0. `settle` and variables precede their command. A watching command
//! is stopped after the steps during it.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail, ensure};

use super::session::{Session, Step};

/// Parses a script.
///
/// # Errors
///
/// A malformed line, or no command.
pub fn parse(text: &str) -> anyhow::Result<Session> {
    let mut parser = Parser::default();
    for (index, line) in text.lines().enumerate() {
        let read = parser.line(line);
        read.with_context(|| format!("line {}: {line}", index + 1))?;
    }
    ensure!(parser.outer.is_none(), "the last watch has no end");
    ensure!(!parser.steps.is_empty(), "no command");
    Ok(Session {
        files: parser.files,
        steps: parser.steps,
    })
}

#[derive(Default)]
struct Parser {
    files: BTreeMap<String, String>,
    /// File whose lines are being read.
    file: Option<String>,
    steps: Vec<Step>,
    /// Steps before and including the current watch, while the steps during it are read.
    outer: Option<Vec<Step>>,
    settle: bool,
    watch: bool,
    environment: BTreeMap<String, String>,
}

impl Parser {
    fn line(&mut self, line: &str) -> anyhow::Result<()> {
        if let Some(content) = self.file.as_ref().and_then(|_| line.strip_prefix("  ")) {
            self.content(content);
            return Ok(());
        }
        if line.trim().is_empty() {
            self.content("");
            return Ok(());
        }
        self.file = None;
        if line.starts_with('#') {
            return Ok(());
        }
        if let Some(command) = line.strip_prefix("$ ") {
            return self.command(command);
        }
        if let Some(name) = line.strip_prefix("file ") {
            self.files.insert(name.to_owned(), String::new());
            self.file = Some(name.to_owned());
            return Ok(());
        }
        match line {
            "settle" => self.settle = true,
            "watch" => self.watch = true,
            "during" => {
                ensure!(self.outer.is_none(), "nested watch");
                let watch = self.last()?;
                ensure!(
                    watch.during.is_some(),
                    "the previous command is not a watch"
                );
                self.outer = Some(std::mem::take(&mut self.steps));
            }
            "end" => {
                let outer = self.outer.take().context("no watch to end")?;
                let during = std::mem::replace(&mut self.steps, outer);
                self.last()?.during = Some(during);
            }
            _ => self.other(line)?,
        }
        Ok(())
    }

    fn content(&mut self, line: &str) {
        if let Some(file) = self.file.as_ref().and_then(|name| self.files.get_mut(name)) {
            file.push_str(line);
            file.push('\n');
        }
    }

    fn command(&mut self, command: &str) -> anyhow::Result<()> {
        ensure!(command.starts_with("kubectl "), "only kubectl is supported");
        self.steps.push(Step {
            command: command.to_owned(),
            settle: std::mem::take(&mut self.settle),
            environment: std::mem::take(&mut self.environment),
            during: std::mem::take(&mut self.watch).then(Vec::new),
            ..Step::default()
        });
        Ok(())
    }

    /// Parses a variable, an exit code, or output.
    fn other(&mut self, line: &str) -> anyhow::Result<()> {
        if let Some((name, value)) = line.split_once('=')
            && !name.is_empty()
            && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
        {
            self.environment.insert(name.to_owned(), value.to_owned());
            return Ok(());
        }
        let step = self.last()?;
        if let Some(code) = line.strip_prefix("exit ") {
            step.exit = code.parse().context("invalid exit code")?;
            return Ok(());
        }
        let (stream, text) = match line.strip_prefix('!') {
            Some(text) => (&mut step.stderr, text),
            None => (&mut step.stdout, line),
        };
        stream.push_str(text.trim());
        stream.push('\n');
        Ok(())
    }

    fn last(&mut self) -> anyhow::Result<&mut Step> {
        match self.steps.last_mut() {
            Some(step) => Ok(step),
            None => bail!("no command before it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(command: &str, exit: i32, stdout: &str, stderr: &str) -> Step {
        Step {
            command: command.to_owned(),
            exit,
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
            ..Step::default()
        }
    }

    #[test]
    fn files_commands_and_output_parse() {
        let session = parse(
            "# About.\nfile a.yaml\n  a:\n    b: 1\n\n  # kept\n\nsettle\n$ kubectl get a\nx  y\n\n\
             ! bad\nexit 1\nEDITOR=e\n$ kubectl edit a\n",
        )
        .unwrap();
        let file = "a:\n  b: 1\n\n# kept\n\n";
        assert_eq!(session.files["a.yaml"], file);
        let mut first = step("kubectl get a", 1, "x  y\n", "bad\n");
        first.settle = true;
        let mut second = step("kubectl edit a", 0, "", "");
        second.environment = BTreeMap::from([("EDITOR".to_owned(), "e".to_owned())]);
        assert_eq!(session.steps, [first, second]);
    }

    #[test]
    fn steps_during_a_watch_belong_to_it() {
        let session = parse(
            "watch\n$ kubectl get a -w\nx\nduring\n$ kubectl delete a\ngone\nend\n$ kubectl version",
        )
        .unwrap();
        let mut watch = step("kubectl get a -w", 0, "x\n", "");
        watch.during = Some(vec![step("kubectl delete a", 0, "gone\n", "")]);
        assert_eq!(session.steps, [watch, step("kubectl version", 0, "", "")]);
    }

    #[test]
    fn malformed_lines_are_reported() {
        for (text, expected) in [
            ("", "no command"),
            ("web 1/1", "line 1: web 1/1: no command before it"),
            ("$ rm -r x", "line 1: $ rm -r x: only kubectl is supported"),
            ("end", "line 1: end: no watch to end"),
            (
                "$ kubectl a\nduring",
                "line 2: during: the previous command is not a watch",
            ),
            ("watch\n$ kubectl a\nduring\n", "the last watch has no end"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(format!("{error:#}"), expected);
        }
    }
}
