//! Programs that handle files.

use super::super::files::absolute;
use super::super::session::{NULL, Session, base_name};
use super::options::Options;

/// Limit of a file that `dd` writes, in bytes.
const SIZE_MAX: usize = 64 * 1024 * 1024;

/// Lists folders, one name per line.
pub(super) async fn ls(session: &mut Session, arguments: &[&str]) {
    let options = Options::read(arguments, "");
    let here = [session.folder.clone()];
    let paths = match options.rest.as_slice() {
        [] => here.iter().map(String::as_str).collect(),
        paths => paths.to_vec(),
    };
    for path in &paths {
        let place = session.absolute(path);
        let is_file = session.files.read(&place).is_some();
        if !is_file && !session.files.is_folder(&place) {
            missing(session, &format!("ls: {path}")).await;
            continue;
        }
        let mut names: Vec<String> = if is_file || options.has('d') {
            vec![(*path).to_owned()]
        } else {
            let names = session.files.names(&place).into_iter();
            names
                .filter(|name| options.has('a') || options.has('A') || !name.starts_with('.'))
                .collect()
        };
        if options.has('a') && !is_file {
            names.splice(0..0, [".".to_owned(), "..".to_owned()]);
        }
        if paths.len() > 1 && !is_file {
            session.line(&format!("{path}:")).await;
        }
        for name in names {
            let line = if options.has('l') {
                long_line(session, &place, &name, is_file)
            } else {
                name
            };
            session.line(&line).await;
        }
    }
}

fn long_line(session: &Session, folder: &str, name: &str, is_file: bool) -> String {
    let path = if is_file {
        folder.to_owned()
    } else {
        absolute(folder, name)
    };
    let time = session.now().strftime("%b %e %H:%M").to_string();
    match session.files.read(&path) {
        Some(bytes) => format!(
            "-rw-r--r--    1 root     root     {:9} {time} {name}",
            bytes.len()
        ),
        None => format!("drwxr-xr-x    2 root     root          4096 {time} {name}"),
    }
}

/// Creates folders.
pub(super) async fn mkdir(session: &mut Session, arguments: &[&str]) {
    let options = Options::read(arguments, "m");
    for path in &options.rest {
        let place = session.absolute(path);
        let exists = session.files.is_folder(&place) || session.files.read(&place).is_some();
        if exists && !options.has('p') {
            let message = format!("mkdir: can't create directory '{path}': File exists");
            fail(session, &message).await;
        } else {
            session.files.make_folder(&place);
        }
    }
}

/// Removes files, and with `-r` folders.
pub(super) async fn rm(session: &mut Session, arguments: &[&str]) {
    let options = Options::read(arguments, "");
    let is_recursive = options.has('r') || options.has('R');
    for path in &options.rest {
        let place = session.absolute(path);
        if session.files.read(&place).is_none() && session.files.is_folder(&place) && !is_recursive
        {
            fail(session, &format!("rm: '{path}' is a directory")).await;
        } else if !session.files.remove(&place) && !options.has('f') {
            missing(session, &format!("rm: can't remove '{path}'")).await;
        }
    }
}

/// Creates files that don't exist.
pub(super) fn touch(session: &Session, arguments: &[&str]) {
    for path in &Options::read(arguments, "drt").rest {
        let path = session.absolute(path);
        session.files.write(path, Vec::new(), true);
    }
}

/// Copies a file, or moves a file or a folder.
pub(super) async fn copy(session: &mut Session, arguments: &[&str], moves: bool) {
    let name = if moves { "mv" } else { "cp" };
    let options = Options::read(arguments, "");
    let [sources @ .., target] = options.rest.as_slice() else {
        fail(session, &format!("{name}: missing file operand")).await;
        return;
    };
    let target = session.absolute(target);
    for source in sources {
        let place = session.absolute(source);
        let found = session.files.below(&place);
        if found.is_empty() {
            missing(session, &format!("{name}: can't stat '{source}'")).await;
            continue;
        }
        let base = if session.files.is_folder(&target) {
            absolute(&target, base_name(&place))
        } else {
            target.clone()
        };
        for (path, bytes) in found {
            let rest = path.strip_prefix(&*place).unwrap_or_default();
            session.files.write(format!("{base}{rest}"), bytes, false);
        }
        if moves {
            session.files.remove(&place);
        }
    }
}

/// Copies blocks.
pub(super) async fn dd(session: &mut Session, arguments: &[&str]) {
    let operand = |name: &str| {
        let of = arguments.iter().rev().filter_map(|it| it.split_once('='));
        let mut of = of.filter(|(found, _)| *found == name);
        of.next().map(|(_, value)| value)
    };
    let (input, output) = (operand("if"), operand("of"));
    let number = |name| match operand(name) {
        Some(text) => bytes_of(text).map(Some),
        None => Some(None),
    };
    let (Some(block), Some(count)) = (number("bs"), number("count")) else {
        fail(session, "dd: invalid number").await;
        return;
    };
    let block = block.unwrap_or(512).max(1);
    let limit = count.map_or(SIZE_MAX, |count| count.saturating_mul(block).min(SIZE_MAX));
    let bytes = match input {
        Some("/dev/zero") => Some(vec![0; limit]),
        Some("/dev/urandom" | "/dev/random") => Some(noise(limit)),
        Some(NULL) => Some(Vec::new()),
        Some(path) => session.files.read(&session.absolute(path)),
        None => Some(session.input().await),
    };
    let Some(mut bytes) = bytes else {
        let path = input.unwrap_or_default();
        missing(session, &format!("dd: can't open '{path}'")).await;
        return;
    };
    bytes.truncate(limit);
    let (whole, part) = (bytes.len() / block, bytes.len() % block);
    let records = format!("{whole}+{}", usize::from(part > 0));
    let report = format!(
        "{records} records in\n{records} records out\n{} bytes copied\n",
        bytes.len()
    );
    match output {
        Some(NULL) => {}
        Some(path) => session.files.write(session.absolute(path), bytes, false),
        None => session.streams.write(&bytes).await,
    }
    session.streams.write_err(report.as_bytes()).await;
}

/// Reads a size such as `512`, `4k`, `1M` or `1MB`.
fn bytes_of(text: &str) -> Option<usize> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text.get(digits.len()..)? {
        "" | "c" => 1,
        "k" | "K" => 1024,
        "kB" | "KB" => 1000,
        "M" => 1024 * 1024,
        "MB" => 1_000_000,
        "G" => 1024 * 1024 * 1024,
        _ => return None,
    };
    digits.parse::<usize>().ok()?.checked_mul(unit)
}

/// Returns bytes without a visible pattern, always the same.
fn noise(length: usize) -> Vec<u8> {
    let mut state: u64 = 0x2545_f491_4f6c_dd1d;
    let mut byte = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(&mut byte).take(length).collect()
}

/// Reports a file that the session hasn't written; the image may have it.
pub(super) async fn missing(session: &mut Session, what: &str) {
    session.is_uncertain = true;
    fail(session, &format!("{what}: No such file or directory")).await;
}

/// Reports a failure.
pub(super) async fn fail(session: &mut Session, message: &str) {
    session.status = 1;
    session
        .streams
        .write_err(format!("{message}\n").as_bytes())
        .await;
}
