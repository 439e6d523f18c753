//! The programs of the shell.

mod files;
mod options;
mod text;

use std::time::Duration;

use super::{Flow, NULL, Shell};

/// The names of the programs.
const PROGRAMS: [&str; 39] = [
    ":", "[", "cat", "cd", "chmod", "chown", "cp", "date", "dd", "echo", "env", "exit", "export",
    "false", "grep", "head", "hostname", "id", "ls", "mkdir", "mv", "printenv", "printf", "pwd",
    "read", "rm", "seq", "sleep", "stty", "sync", "tail", "tar", "test", "touch", "true", "tty",
    "uname", "wc", "whoami",
];

/// Limit of the numbers of `seq`.
const NUMBERS_MAX: i64 = 10_000;

/// Reports whether the program exists.
pub(super) fn exist(name: &str) -> bool {
    PROGRAMS.contains(&name)
}

impl Shell {
    /// Runs a program, and sets its status.
    pub(super) async fn program(&mut self, name: &str, arguments: &[String]) -> Flow {
        let before = self.status;
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.status = 0;
        match name {
            "echo" => self.echo(&arguments).await,
            "printf" => self.printf(&arguments).await,
            "cat" => self.cat(&arguments).await,
            "seq" => self.seq(&arguments).await,
            "read" => self.read(&arguments).await,
            "env" | "printenv" => self.print_environment(&arguments).await,
            "hostname" => {
                let name = self.variables.get("HOSTNAME").cloned().unwrap_or_default();
                self.line(&name).await;
            }
            "pwd" => {
                let folder = self.folder.clone();
                self.line(&folder).await;
            }
            "cd" => {
                let folder = arguments.first().copied().unwrap_or("/root");
                self.folder = self.absolute(folder);
            }
            "ls" => files::ls(self, &arguments).await,
            "mkdir" => files::mkdir(self, &arguments).await,
            "rm" => files::rm(self, &arguments).await,
            "touch" => files::touch(self, &arguments),
            "cp" => files::copy(self, &arguments, false).await,
            "mv" => files::copy(self, &arguments, true).await,
            "dd" => files::dd(self, &arguments).await,
            "head" => text::ends(self, &arguments, false).await,
            "tail" => text::ends(self, &arguments, true).await,
            "wc" => text::wc(self, &arguments).await,
            "grep" => text::grep(self, &arguments).await,
            "date" => text::date(self, &arguments).await,
            "id" => text::id(self, &arguments).await,
            "whoami" => self.line("root").await,
            "uname" => text::uname(self, &arguments).await,
            "tar" => self.tar(&arguments).await,
            "stty" => self.print_size(&arguments).await,
            "tty" if self.streams.terminal().is_some() => self.line("/dev/pts/0").await,
            "tty" => {
                self.line("not a tty").await;
                self.status = 1;
            }
            "sleep" => return self.sleep(&arguments).await,
            "exit" => {
                let code = arguments.first().map(|code| code.parse().unwrap_or(2));
                self.status = code.unwrap_or(before) & 0xff;
                return Flow::Exit;
            }
            "export" => {
                let pairs = arguments.iter().filter_map(|it| it.split_once('='));
                let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
                self.variables.extend(pairs);
            }
            "test" | "[" => self.status = i32::from(!self.test(&arguments)),
            "true" | ":" | "chmod" | "chown" | "sync" => {}
            "false" => self.status = 1,
            unknown => {
                self.is_uncertain = true;
                self.complain(&format!("{unknown}: not found")).await;
                self.status = 127;
            }
        }
        Flow::Next
    }

    pub(super) async fn line(&mut self, text: &str) {
        self.streams.write(format!("{text}\n").as_bytes()).await;
    }

    async fn echo(&mut self, arguments: &[&str]) {
        match arguments {
            ["-n", text @ ..] => self.streams.write(text.join(" ").as_bytes()).await,
            ["-e", text @ ..] => self.line(&unescaped(&text.join(" "))).await,
            text => self.line(&text.join(" ")).await,
        }
    }

    async fn printf(&mut self, arguments: &[&str]) {
        let Some((format, values)) = arguments.split_first() else {
            self.status = 2;
            return;
        };
        let format = unescaped(format);
        let mut values = values.iter();
        loop {
            let mut text = String::new();
            let mut rest = format.as_str();
            let mut used = false;
            while let Some((before, after)) = rest.split_once('%') {
                text.push_str(before);
                let mut chars = after.chars();
                match chars.next() {
                    Some('s' | 'd') => {
                        text.push_str(values.next().copied().unwrap_or_default());
                        used = true;
                    }
                    Some('%') => text.push('%'),
                    other => {
                        text.push('%');
                        text.extend(other);
                    }
                }
                rest = chars.as_str();
            }
            text.push_str(rest);
            self.streams.write(text.as_bytes()).await;
            if !used || values.len() == 0 {
                return;
            }
        }
    }

    async fn cat(&mut self, files: &[&str]) {
        let files = if files.is_empty() { &["-"] } else { files };
        for file in files {
            match *file {
                "-" | "/dev/stdin" => loop {
                    let bytes = self.streams.read().await;
                    if bytes.is_empty() {
                        break;
                    }
                    self.streams.write(&bytes).await;
                },
                NULL => {}
                path => self.show(path).await,
            }
        }
    }

    async fn show(&mut self, path: &str) {
        if let Some(bytes) = self.files.read(&self.absolute(path)) {
            self.streams.write(&bytes).await;
        } else {
            self.is_uncertain = true;
            let line = format!("cat: can't open '{path}': No such file or directory\n");
            self.streams.write_err(line.as_bytes()).await;
            self.status = 1;
        }
    }

    async fn seq(&mut self, arguments: &[&str]) {
        let numbers: Vec<i64> = arguments.iter().filter_map(|it| it.parse().ok()).collect();
        let (first, last) = match numbers.as_slice() {
            [last] => (1, *last),
            [first, last] => (*first, *last),
            _ => {
                self.status = 1;
                return;
            }
        };
        for number in first..=last.min(first.saturating_add(NUMBERS_MAX)) {
            self.line(&number.to_string()).await;
        }
    }

    async fn read(&mut self, names: &[&str]) {
        let Some(line) = self.streams.read_line().await else {
            self.status = 1;
            return;
        };
        let line = String::from_utf8_lossy(&line);
        let mut rest = line.trim();
        let names: Vec<&str> = names.iter().filter(|it| **it != "-r").copied().collect();
        for (i, name) in names.iter().enumerate() {
            let (word, after) = if i + 1 == names.len() {
                (rest, "")
            } else {
                rest.split_once(char::is_whitespace).unwrap_or((rest, ""))
            };
            self.variables.insert((*name).to_owned(), word.to_owned());
            rest = after.trim_start();
        }
    }

    async fn print_environment(&mut self, names: &[&str]) {
        if let [name] = names {
            match self.variables.get(*name).cloned() {
                Some(value) => self.line(&value).await,
                None => self.status = 1,
            }
            return;
        }
        let lines: Vec<String> = self
            .variables
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        for line in lines {
            self.line(&line).await;
        }
    }

    async fn print_size(&mut self, arguments: &[&str]) {
        match (self.streams.terminal(), arguments) {
            (None, _) => {
                let line = b"stty: standard input: Not a tty\n";
                self.streams.write_err(line).await;
                self.status = 1;
            }
            (Some(size), ["size"]) => {
                let line = format!("{} {}", size.height, size.width);
                self.line(&line).await;
            }
            _ => {}
        }
    }

    async fn sleep(&mut self, arguments: &[&str]) -> Flow {
        let seconds = arguments.first().and_then(|text| match *text {
            "infinity" => Some(f64::MAX),
            text => text.trim_end_matches('s').parse::<f64>().ok(),
        });
        let Some(seconds) = seconds.filter(|seconds| *seconds >= 0.0) else {
            let text = arguments.first().copied().unwrap_or_default();
            let line = format!("sleep: invalid number '{text}'\n");
            self.streams.write_err(line.as_bytes()).await;
            self.status = 1;
            return Flow::Next;
        };
        let time = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        if self.streams.is_live() && !time.is_zero() {
            self.steps = 0;
        }
        if self.streams.sleep(time).await {
            Flow::Next
        } else {
            self.is_uncertain = true;
            Flow::Exit
        }
    }

    fn test(&mut self, arguments: &[&str]) -> bool {
        let arguments = match arguments {
            [inner @ .., "]"] => inner,
            all => all,
        };
        let number = |text: &str| text.parse::<i64>().unwrap_or(0);
        match arguments {
            ["!", rest @ ..] => !self.test(rest),
            ["-n", text] | [text] => !text.is_empty(),
            ["-z", text] => text.is_empty(),
            ["-f" | "-e" | "-s", path] => {
                let exists = self.files.read(&self.absolute(path)).is_some();
                self.is_uncertain |= !exists;
                exists
            }
            ["-d", path] => {
                let exists = self.files.is_folder(&self.absolute(path));
                self.is_uncertain |= !exists;
                exists
            }
            ["-t", _] => self.streams.terminal().is_some(),
            [a, "=" | "==", b] => a == b,
            [a, "!=", b] => a != b,
            [a, "-eq", b] => number(a) == number(b),
            [a, "-ne", b] => number(a) != number(b),
            [a, "-lt", b] => number(a) < number(b),
            [a, "-le", b] => number(a) <= number(b),
            [a, "-gt", b] => number(a) > number(b),
            [a, "-ge", b] => number(a) >= number(b),
            _ => {
                self.is_uncertain = true;
                false
            }
        }
    }
}

/// Reads the whole input.
async fn input(shell: &mut Shell) -> Vec<u8> {
    let mut input = Vec::new();
    loop {
        let bytes = shell.streams.read().await;
        if bytes.is_empty() {
            return input;
        }
        input.extend(bytes);
    }
}

/// Replaces `\n`, `\t` and `\\`.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('\\') | None => out.push('\\'),
            Some(other) => out.extend(['\\', other]),
        }
    }
    out
}
