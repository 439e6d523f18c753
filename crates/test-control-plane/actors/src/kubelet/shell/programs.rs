//! The programs of the shell.

mod compression;
mod files;
mod options;
mod text;

use std::time::Duration;

use super::archive::tar;
use super::session::{Flow, NULL, Session};

/// The names of the programs.
const PROGRAMS: [&str; 43] = [
    ":", "[", "cat", "cd", "chmod", "chown", "cp", "date", "dd", "echo", "env", "exit", "export",
    "false", "grep", "gunzip", "gzip", "head", "hostname", "id", "ls", "mkdir", "mv", "printenv",
    "printf", "pwd", "read", "rm", "seq", "sleep", "stty", "sync", "tail", "tar", "test", "touch",
    "true", "tty", "uname", "uptime", "wc", "whoami", "zcat",
];

/// Limit of the numbers of `seq`.
const NUMBERS_MAX: i64 = 10_000;

/// Reports whether the program exists.
pub(super) fn exist(name: &str) -> bool {
    PROGRAMS.contains(&name)
}

/// Runs a program, and sets its status.
pub(super) async fn program(session: &mut Session, name: &str, arguments: &[String]) -> Flow {
    let before = session.status;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    session.status = 0;
    match name {
        "echo" => echo(session, &arguments).await,
        "printf" => printf(session, &arguments).await,
        "cat" => cat(session, &arguments).await,
        "seq" => seq(session, &arguments).await,
        "read" => read(session, &arguments).await,
        "env" | "printenv" => print_environment(session, &arguments).await,
        "hostname" => {
            let name = session
                .variables
                .get("HOSTNAME")
                .cloned()
                .unwrap_or_default();
            session.line(&name).await;
        }
        "pwd" => {
            let folder = session.folder.clone();
            session.line(&folder).await;
        }
        "cd" => {
            let folder = arguments.first().copied().unwrap_or("/root");
            session.folder = session.absolute(folder);
        }
        "ls" => files::ls(session, &arguments).await,
        "mkdir" => files::mkdir(session, &arguments).await,
        "rm" => files::rm(session, &arguments).await,
        "touch" => files::touch(session, &arguments),
        "cp" => files::copy(session, &arguments, false).await,
        "mv" => files::copy(session, &arguments, true).await,
        "dd" => files::dd(session, &arguments).await,
        "head" => text::ends(session, &arguments, false).await,
        "tail" => text::ends(session, &arguments, true).await,
        "wc" => text::wc(session, &arguments).await,
        "grep" => text::grep(session, &arguments).await,
        "gzip" | "gunzip" | "zcat" => compression::gzip(session, name, &arguments).await,
        "date" => text::date(session, &arguments).await,
        "uptime" => text::uptime(session).await,
        "id" => text::id(session, &arguments).await,
        "whoami" => session.line("root").await,
        "uname" => text::uname(session, &arguments).await,
        "tar" => tar(session, &arguments).await,
        "stty" => print_size(session, &arguments).await,
        "tty" if session.streams.terminal().is_some() => session.line("/dev/pts/0").await,
        "tty" => {
            session.line("not a tty").await;
            session.status = 1;
        }
        "sleep" => return sleep(session, &arguments).await,
        "exit" => {
            let code = arguments.first().map(|code| code.parse().unwrap_or(2));
            session.status = code.unwrap_or(before) & 0xff;
            return Flow::Exit;
        }
        "export" => {
            let pairs = arguments.iter().filter_map(|it| it.split_once('='));
            let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
            session.variables.extend(pairs);
        }
        "test" | "[" => session.status = i32::from(!test(session, &arguments)),
        "true" | ":" | "chmod" | "chown" | "sync" => {}
        "false" => session.status = 1,
        unknown => {
            session.is_uncertain = true;
            session.complain(&format!("{unknown}: not found")).await;
            session.status = 127;
        }
    }
    Flow::Next
}

async fn echo(session: &mut Session, arguments: &[&str]) {
    match arguments {
        ["-n", text @ ..] => session.streams.write(text.join(" ").as_bytes()).await,
        ["-e", text @ ..] => session.line(&unescaped(&text.join(" "))).await,
        text => session.line(&text.join(" ")).await,
    }
}

async fn printf(session: &mut Session, arguments: &[&str]) {
    let Some((format, values)) = arguments.split_first() else {
        session.status = 2;
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
        session.streams.write(text.as_bytes()).await;
        if !used || values.len() == 0 {
            return;
        }
    }
}

async fn cat(session: &mut Session, files: &[&str]) {
    let files = if files.is_empty() { &["-"] } else { files };
    for file in files {
        match *file {
            "-" | "/dev/stdin" => loop {
                let bytes = session.streams.read().await;
                if bytes.is_empty() {
                    break;
                }
                session.streams.write(&bytes).await;
            },
            NULL => {}
            path => show(session, path).await,
        }
    }
}

async fn show(session: &mut Session, path: &str) {
    if let Some(bytes) = session.files.read(&session.absolute(path)) {
        session.streams.write(&bytes).await;
    } else {
        session.is_uncertain = true;
        let line = format!("cat: can't open '{path}': No such file or directory\n");
        session.streams.write_err(line.as_bytes()).await;
        session.status = 1;
    }
}

async fn seq(session: &mut Session, arguments: &[&str]) {
    let numbers: Vec<i64> = arguments.iter().filter_map(|it| it.parse().ok()).collect();
    let (first, last) = match numbers.as_slice() {
        [last] => (1, *last),
        [first, last] => (*first, *last),
        _ => {
            session.status = 1;
            return;
        }
    };
    for number in first..=last.min(first.saturating_add(NUMBERS_MAX)) {
        session.line(&number.to_string()).await;
    }
}

async fn read(session: &mut Session, names: &[&str]) {
    let Some(line) = session.streams.read_line().await else {
        session.status = 1;
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
        session
            .variables
            .insert((*name).to_owned(), word.to_owned());
        rest = after.trim_start();
    }
}

async fn print_environment(session: &mut Session, names: &[&str]) {
    if let [name] = names {
        match session.variables.get(*name).cloned() {
            Some(value) => session.line(&value).await,
            None => session.status = 1,
        }
        return;
    }
    let lines: Vec<String> = session
        .variables
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    for line in lines {
        session.line(&line).await;
    }
}

async fn print_size(session: &mut Session, arguments: &[&str]) {
    match (session.streams.terminal(), arguments) {
        (None, _) => {
            let line = b"stty: standard input: Not a tty\n";
            session.streams.write_err(line).await;
            session.status = 1;
        }
        (Some(size), ["size"]) => {
            let line = format!("{} {}", size.height, size.width);
            session.line(&line).await;
        }
        _ => {}
    }
}

async fn sleep(session: &mut Session, arguments: &[&str]) -> Flow {
    let seconds = arguments.first().and_then(|text| match *text {
        "infinity" => Some(f64::MAX),
        text => text.trim_end_matches('s').parse::<f64>().ok(),
    });
    let Some(seconds) = seconds.filter(|seconds| *seconds >= 0.0) else {
        let text = arguments.first().copied().unwrap_or_default();
        let line = format!("sleep: invalid number '{text}'\n");
        session.streams.write_err(line.as_bytes()).await;
        session.status = 1;
        return Flow::Next;
    };
    let time = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    if session.streams.is_live() && !time.is_zero() {
        session.steps = 0;
    }
    if session.streams.sleep(time).await {
        Flow::Next
    } else {
        session.is_uncertain = true;
        Flow::Exit
    }
}

fn test(session: &mut Session, arguments: &[&str]) -> bool {
    let arguments = match arguments {
        [inner @ .., "]"] => inner,
        all => all,
    };
    let number = |text: &str| text.parse::<i64>().unwrap_or(0);
    match arguments {
        ["!", rest @ ..] => !test(session, rest),
        ["-n", text] | [text] => !text.is_empty(),
        ["-z", text] => text.is_empty(),
        ["-f" | "-e" | "-s", path] => {
            let exists = session.files.read(&session.absolute(path)).is_some();
            session.is_uncertain |= !exists;
            exists
        }
        ["-d", path] => {
            let exists = session.files.is_folder(&session.absolute(path));
            session.is_uncertain |= !exists;
            exists
        }
        ["-t", _] => session.streams.terminal().is_some(),
        [a, "=" | "==", b] => a == b,
        [a, "!=", b] => a != b,
        [a, "-eq", b] => number(a) == number(b),
        [a, "-ne", b] => number(a) != number(b),
        [a, "-lt", b] => number(a) < number(b),
        [a, "-le", b] => number(a) <= number(b),
        [a, "-gt", b] => number(a) > number(b),
        [a, "-ge", b] => number(a) >= number(b),
        _ => {
            session.is_uncertain = true;
            false
        }
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
