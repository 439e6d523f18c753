//! A shell with a few programs, in place of the programs of a container's image.
//!
//! It serves `exec` with the streams of a client, and runs the script of a container's own command
//! in virtual time for the container's log.

mod archive;
mod files;
mod parse;
mod programs;
mod session;
mod streams;

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;

pub(super) use files::Files;
use parse::{Body, Command, Joint, List, Piece, Pipeline, Redirect, Word};
use session::{Flow, NULL, Session, base_name};
pub(super) use streams::{Input, Pause, Sink, Streams};

/// Maximum number of commands between two inputs or pauses, or in a script in virtual time; stops
/// endless loops.
const STEPS_MAX: u32 = 10_000;

/// Maximum nesting of scripts and substitutions.
const NESTED_MAX: u32 = 20;

/// The names under which the shell itself is called.
const SHELLS: [&str; 4] = ["sh", "bash", "ash", "dash"];

/// A session of the shell.
#[derive(Debug)]
pub(super) struct Shell {
    session: Session,
}

impl Shell {
    /// Opens a session with a container's environment and files, which begins at this time.
    pub(super) fn new(
        environment: impl IntoIterator<Item = (String, String)>,
        files: Files,
        streams: Streams,
        began: Timestamp,
    ) -> Self {
        Self {
            session: Session {
                variables: environment.into_iter().collect(),
                files,
                folder: "/".to_owned(),
                streams,
                began,
                status: 0,
                steps: 0,
                nested: 0,
                is_uncertain: false,
            },
        }
    }

    /// Reports whether a program of this name exists.
    pub(super) fn knows(command: &[String]) -> bool {
        command.first().is_some_and(|program| {
            let name = base_name(program);
            SHELLS.contains(&name) || programs::exist(name)
        })
    }

    /// Reports whether a command without input runs here: one of the programs, or a script.
    pub(super) fn can_run(command: &[String]) -> bool {
        let Some((program, arguments)) = command.split_first() else {
            return false;
        };
        let name = base_name(program);
        programs::exist(name)
            || SHELLS.contains(&name) && arguments.iter().any(|it| is_command_flag(it))
    }

    /// Reports whether a real container might have behaved differently.
    pub(super) fn is_uncertain(&self) -> bool {
        self.session.is_uncertain
    }

    /// Runs a program with its arguments. Returns its exit code.
    pub(super) async fn run(&mut self, command: &[String]) -> i32 {
        self.call(command).await;
        self.session.status
    }

    /// Returns the streams, with the captured text.
    pub(super) fn into_streams(self) -> Streams {
        self.session.streams
    }

    /// Runs the commands that the input contains, line by line.
    fn interact(&mut self) -> BoxFuture<'_, Flow> {
        async move {
            let mut script = String::new();
            loop {
                self.session.streams.prompt(script.is_empty()).await;
                let Some(line) = self.session.streams.read_line().await else {
                    return Flow::Next;
                };
                self.session.steps = 0;
                script.push_str(&String::from_utf8_lossy(&line));
                if parse::is_incomplete(&script) {
                    continue;
                }
                if self.script(&std::mem::take(&mut script)).await == Flow::Exit {
                    return Flow::Exit;
                }
            }
        }
        .boxed()
    }

    async fn script(&mut self, script: &str) -> Flow {
        self.session.is_uncertain |= parse::starts_jobs(script);
        match parse::parse(script) {
            Ok(list) => self.list(&list).await,
            Err(message) => {
                self.session.is_uncertain = true;
                self.session.complain(&message).await;
                self.session.status = 2;
                Flow::Next
            }
        }
    }

    fn list<'a>(&'a mut self, list: &'a List) -> BoxFuture<'a, Flow> {
        async move {
            for (joint, pipeline) in list {
                let runs = match joint {
                    Joint::Always => true,
                    Joint::AfterSuccess => self.session.status == 0,
                    Joint::AfterFailure => self.session.status != 0,
                };
                if runs && self.pipeline(pipeline).await == Flow::Exit {
                    return Flow::Exit;
                }
            }
            Flow::Next
        }
        .boxed()
    }

    async fn pipeline(&mut self, commands: &Pipeline) -> Flow {
        let [command] = commands.as_slice() else {
            let last = commands.len() - 1;
            for (i, command) in commands.iter().enumerate() {
                if i < last {
                    let out = self.session.streams.replace_out(Sink::captured());
                    self.command(command).await;
                    let written = self.session.streams.replace_out(out).into_bytes();
                    self.session.streams.push_input(Input::text(written));
                } else {
                    self.command(command).await;
                }
                if i > 0 {
                    self.session.streams.pop_input(usize::from(i < last));
                }
            }
            // Each command of a pipeline runs in a separate process.
            return Flow::Next;
        };
        self.command(command).await
    }

    async fn command(&mut self, command: &Command) -> Flow {
        self.session.steps += 1;
        if self.session.steps > STEPS_MAX {
            self.session.complain("too many commands").await;
            self.session.is_uncertain = true;
            self.session.status = 124;
            return Flow::Exit;
        }
        if command.redirects.is_empty() {
            return self.body(&command.body).await;
        }
        let mut undo = Vec::new();
        for redirect in &command.redirects {
            match self.redirect(redirect).await {
                Ok(back) => undo.push(back),
                Err(message) => {
                    self.session.complain(&message).await;
                    self.session.status = 1;
                    self.undo(undo);
                    return Flow::Next;
                }
            }
        }
        let flow = self.body(&command.body).await;
        self.undo(undo);
        flow
    }

    /// Redirects a stream. Returns how to undo it.
    async fn redirect(&mut self, redirect: &Redirect) -> Result<Undo, String> {
        Ok(match redirect {
            Redirect::OutToErr => Undo::Routes(self.session.streams.route_out_to_err()),
            Redirect::ErrToOut => Undo::Routes(self.session.streams.route_err_to_out()),
            Redirect::Out { file, append } => {
                let path = self.text(file).await;
                let before = self.session.streams.replace_out(Sink::captured());
                Undo::Out {
                    before,
                    path,
                    append: *append,
                }
            }
            Redirect::Err { file } => {
                let path = self.text(file).await;
                let before = self.session.streams.replace_err(Sink::captured());
                Undo::Err { before, path }
            }
            Redirect::In { file } => {
                let path = self.text(file).await;
                let text = if path == NULL {
                    Vec::new()
                } else {
                    let found = self.session.files.read(&self.session.absolute(&path));
                    self.session.is_uncertain |= found.is_none();
                    found.ok_or_else(|| format!("can't open {path}: no such file"))?
                };
                self.session.streams.push_input(Input::text(text));
                Undo::In
            }
        })
    }

    fn undo(&mut self, undo: Vec<Undo>) {
        for back in undo.into_iter().rev() {
            let (path, bytes, append) = match back {
                Undo::Routes(routes) => {
                    self.session.streams.set_routes(routes);
                    continue;
                }
                Undo::In => {
                    self.session.streams.pop_input(0);
                    continue;
                }
                Undo::Out {
                    before,
                    path,
                    append,
                } => (path, self.session.streams.replace_out(before), append),
                Undo::Err { before, path } => {
                    (path, self.session.streams.replace_err(before), false)
                }
            };
            if path != NULL {
                let path = self.session.absolute(&path);
                self.session.files.write(path, bytes.into_bytes(), append);
            }
        }
    }

    fn body<'a>(&'a mut self, body: &'a Body) -> BoxFuture<'a, Flow> {
        async move {
            match body {
                Body::Simple(words) => self.simple(words).await,
                Body::Group(list) => self.list(list).await,
                Body::Subshell(list) => {
                    self.list(list).await;
                    Flow::Next
                }
                Body::For(name, words, list) => {
                    for value in self.words(words).await {
                        self.session.variables.insert(name.clone(), value);
                        if self.list(list).await == Flow::Exit {
                            return Flow::Exit;
                        }
                    }
                    Flow::Next
                }
                Body::While(condition, list) => loop {
                    if self.list(condition).await == Flow::Exit {
                        return Flow::Exit;
                    }
                    if self.session.status != 0 {
                        self.session.status = 0;
                        return Flow::Next;
                    }
                    self.session.steps += 1;
                    if self.list(list).await == Flow::Exit {
                        return Flow::Exit;
                    }
                    if self.session.steps > STEPS_MAX {
                        self.session.is_uncertain = true;
                        return Flow::Exit;
                    }
                },
                Body::If(condition, then, otherwise) => {
                    if self.list(condition).await == Flow::Exit {
                        return Flow::Exit;
                    }
                    if self.session.status == 0 {
                        self.list(then).await
                    } else {
                        self.session.status = 0;
                        self.list(otherwise).await
                    }
                }
            }
        }
        .boxed()
    }

    /// Sets variables, and runs the program after them.
    async fn simple(&mut self, words: &[Word]) -> Flow {
        let mut words = words;
        while let [first, rest @ ..] = words {
            let Some((name, value)) = assignment(first) else {
                break;
            };
            let value = self.text(&value).await;
            self.session.variables.insert(name, value);
            words = rest;
            self.session.status = 0;
        }
        let command = self.words(words).await;
        if command.is_empty() {
            return Flow::Next;
        }
        self.call(&command).await
    }

    /// Runs a shell or another program.
    fn call<'a>(&'a mut self, command: &'a [String]) -> BoxFuture<'a, Flow> {
        async move {
            let Some((program, arguments)) = command.split_first() else {
                return Flow::Next;
            };
            let name = base_name(program);
            if !SHELLS.contains(&name) {
                return programs::program(&mut self.session, name, arguments).await;
            }
            self.session.nested += 1;
            if self.session.nested > NESTED_MAX {
                self.session.complain("shells nested too deeply").await;
                self.session.is_uncertain = true;
                self.session.status = 2;
            } else {
                let script = arguments
                    .iter()
                    .skip_while(|it| !is_command_flag(it))
                    .nth(1);
                match script {
                    Some(script) => self.script(script).await,
                    None => self.interact().await,
                };
            }
            self.session.nested -= 1;
            Flow::Next
        }
        .boxed()
    }

    /// Expands words, and splits unquoted values at blanks.
    async fn words(&mut self, words: &[Word]) -> Vec<String> {
        let mut found = Vec::new();
        for word in words {
            let mut current: Option<String> = None;
            for piece in word {
                let (value, quoted) = self.piece(piece).await;
                if quoted {
                    current.get_or_insert_default().push_str(&value);
                    continue;
                }
                let mut parts = value.split_whitespace();
                if value.starts_with(char::is_whitespace) {
                    found.extend(current.take());
                }
                if let Some(first) = parts.next() {
                    current.get_or_insert_default().push_str(first);
                }
                for part in parts {
                    found.extend(current.replace(part.to_owned()));
                }
                if value.ends_with(char::is_whitespace) {
                    found.extend(current.take());
                }
            }
            found.extend(current);
        }
        found
    }

    /// Expands a word without splitting it.
    async fn text(&mut self, word: &[Piece]) -> String {
        let mut text = String::new();
        for piece in word {
            text.push_str(&self.piece(piece).await.0);
        }
        text
    }

    /// Expands a piece. Returns its value, and true if blanks don't split it.
    async fn piece(&mut self, piece: &Piece) -> (String, bool) {
        match piece {
            Piece::Text(text) => (text.clone(), true),
            Piece::Variable { name, quoted } if name == "?" => {
                (self.session.status.to_string(), *quoted)
            }
            Piece::Variable { name, quoted } => {
                let (name, default) = name.split_once(":-").unwrap_or((name, ""));
                let value = self
                    .session
                    .variables
                    .get(name)
                    .filter(|value| !value.is_empty());
                (value.map_or(default, String::as_str).to_owned(), *quoted)
            }
            Piece::Output { script, quoted } => {
                self.session.nested += 1;
                let mut text = String::new();
                if self.session.nested <= NESTED_MAX {
                    let out = self.session.streams.replace_out(Sink::captured());
                    self.boxed_script(script).await;
                    let written = self.session.streams.replace_out(out).into_bytes();
                    text = String::from_utf8_lossy(&written).into_owned();
                }
                self.session.nested -= 1;
                text.truncate(text.trim_end_matches('\n').len());
                (text, *quoted)
            }
        }
    }

    fn boxed_script<'a>(&'a mut self, script: &'a str) -> BoxFuture<'a, Flow> {
        self.script(script).boxed()
    }
}

/// State that undoes a redirection.
enum Undo {
    Routes(streams::Routes),
    In,
    Out {
        before: Sink,
        path: String,
        append: bool,
    },
    Err {
        before: Sink,
        path: String,
    },
}

/// Returns the name and the value of an assignment.
fn assignment(word: &[Piece]) -> Option<(String, Word)> {
    let Some((Piece::Text(first), rest)) = word.split_first() else {
        return None;
    };
    let (name, value) = first.split_once('=')?;
    let is_name = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let mut pieces = vec![Piece::Text(value.to_owned())];
    pieces.extend(rest.iter().cloned());
    is_name.then(|| (name.to_owned(), pieces))
}

/// Returns true for `-c`, also among other letters.
fn is_command_flag(argument: &str) -> bool {
    argument.starts_with('-') && !argument.starts_with("--") && argument.ends_with('c')
}

#[cfg(test)]
mod tests;
