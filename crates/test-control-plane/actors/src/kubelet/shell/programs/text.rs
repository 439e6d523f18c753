//! Programs that print parts of texts, and facts about the container.

use jiff::Timestamp;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use regex::bytes::{Regex, RegexBuilder};

use super::super::session::Session;
use super::files::{fail, missing};
use super::options::Options;

/// Lines that `head` and `tail` print by default.
const LINES: usize = 10;

/// The texts of files, or of the input, each with its name.
async fn texts(session: &mut Session, program: &str, paths: &[&str]) -> Vec<(String, Vec<u8>)> {
    if paths.is_empty() {
        return vec![(String::new(), session.input().await)];
    }
    let mut texts = Vec::new();
    for path in paths {
        let found = match *path {
            "-" => Some(session.input().await),
            path => session.files.read(&session.absolute(path)),
        };
        match found {
            Some(bytes) => texts.push(((*path).to_owned(), bytes)),
            None => missing(session, &format!("{program}: {path}")).await,
        }
    }
    texts
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

/// Prints the first lines or bytes of files, or with `is_tail` the last ones.
pub(super) async fn ends(session: &mut Session, arguments: &[&str], is_tail: bool) {
    let program = if is_tail { "tail" } else { "head" };
    // `-3` means `-n 3`.
    let first = arguments.first().and_then(|it| it.strip_prefix('-'));
    let (short, arguments) = match first.and_then(|digits| digits.parse().ok()) {
        Some(count) => (Some(count), &arguments[1..]),
        None => (None, arguments),
    };
    let options = Options::read(arguments, "nc");
    let value = |letter| options.values(letter).last().map(str::parse::<usize>);
    let (count, is_bytes) = match (value('c'), value('n')) {
        (Some(count), _) => (count.ok(), true),
        (None, Some(count)) => (count.ok(), false),
        (None, None) => (Some(short.unwrap_or(LINES)), false),
    };
    let Some(count) = count else {
        fail(session, &format!("{program}: invalid number")).await;
        return;
    };
    for (_, bytes) in texts(session, program, &options.rest).await {
        let pieces = if is_bytes {
            bytes.chunks(1).collect()
        } else {
            lines(&bytes)
        };
        let skipped = if is_tail {
            pieces.len().saturating_sub(count)
        } else {
            0
        };
        let part: Vec<&[u8]> = pieces.into_iter().skip(skipped).take(count).collect();
        session.streams.write(&part.concat()).await;
    }
}

/// Counts lines, words and bytes.
pub(super) async fn wc(session: &mut Session, arguments: &[&str]) {
    let options = Options::read(arguments, "");
    let is_whole = !['l', 'w', 'c'].iter().any(|letter| options.has(*letter));
    for (name, bytes) in texts(session, "wc", &options.rest).await {
        let text = String::from_utf8_lossy(&bytes);
        let counts = [
            ('l', text.matches('\n').count()),
            ('w', text.split_whitespace().count()),
            ('c', bytes.len()),
        ];
        let wanted = counts
            .iter()
            .filter(|(letter, _)| is_whole || options.has(*letter));
        let columns: Vec<String> = wanted.map(|(_, count)| count.to_string()).collect();
        let line = match columns.as_slice() {
            [column] => column.clone(),
            columns => {
                let columns = columns.iter().map(|column| format!("{column:>9}"));
                columns.collect::<Vec<_>>().join(" ")
            }
        };
        let line = format!("{line} {name}");
        session.line(line.trim_end()).await;
    }
}

/// Prints the lines that match a pattern. Its status is 0 if there are any.
pub(super) async fn grep(session: &mut Session, arguments: &[&str]) {
    let options = Options::read(arguments, "em");
    let mut rest = options.rest.as_slice();
    let mut patterns: Vec<&str> = options.values('e').collect();
    if let ([], [pattern, files @ ..]) = (patterns.as_slice(), rest) {
        patterns = vec![pattern];
        rest = files;
    }
    let expressions: Option<Vec<Regex>> = patterns
        .iter()
        .map(|pattern| expression(pattern, &options))
        .collect();
    let Some(expressions) = expressions.filter(|it| !it.is_empty()) else {
        fail(session, "grep: bad regex").await;
        session.status = 2;
        return;
    };
    let (mut found, has_names) = (false, rest.len() > 1 && !options.has('h'));
    for (name, bytes) in texts(session, "grep", rest).await {
        let prefix = if has_names {
            format!("{name}:")
        } else {
            String::new()
        };
        let all = lines(&bytes).into_iter().enumerate();
        let matching: Vec<(usize, &[u8])> = all
            .map(|(i, line)| (i, line.strip_suffix(b"\n").unwrap_or(line)))
            .filter(|(_, line)| expressions.iter().any(|it| it.is_match(line)) != options.has('v'))
            .collect();
        found |= !matching.is_empty();
        if options.has('q') {
            continue;
        }
        if options.has('c') {
            session.line(&format!("{prefix}{}", matching.len())).await;
            continue;
        }
        if options.has('l') {
            if !matching.is_empty() {
                session.line(&name).await;
            }
            continue;
        }
        for (i, line) in matching {
            let number = if options.has('n') {
                format!("{}:", i + 1)
            } else {
                String::new()
            };
            let line = [prefix.as_bytes(), number.as_bytes(), line, b"\n"].concat();
            session.streams.write(&line).await;
        }
    }
    if session.status == 0 {
        session.status = i32::from(!found);
    } else {
        session.status = 2;
    }
}

/// Compiles a pattern: fixed text with `-F`, extended with `-E`, else basic.
fn expression(pattern: &str, options: &Options<'_>) -> Option<Regex> {
    let pattern = if options.has('F') {
        regex::escape(pattern)
    } else if options.has('E') {
        pattern.to_owned()
    } else {
        from_basic(pattern)
    };
    let pattern = if options.has('x') {
        format!("^(?:{pattern})$")
    } else if options.has('w') {
        format!(r"\b(?:{pattern})\b")
    } else {
        pattern
    };
    let mut builder = RegexBuilder::new(&pattern);
    builder.case_insensitive(options.has('i')).build().ok()
}

/// Returns the extended form of a basic pattern, in which these characters are special only after a
/// backslash.
fn from_basic(pattern: &str) -> String {
    let mut extended = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '+' | '?' | '|' | '(' | ')' | '{' | '}' => extended.extend(['\\', c]),
            '\\' => match chars.next() {
                Some(special @ ('+' | '?' | '|' | '(' | ')' | '{' | '}')) => extended.push(special),
                Some(other) => extended.extend(['\\', other]),
                None => extended.push_str(r"\\"),
            },
            c => extended.push(c),
        }
    }
    extended
}

/// Prints the time in UTC: the current one, or with `-d` another one.
pub(super) async fn date(session: &mut Session, arguments: &[&str]) {
    let options = Options::read(arguments, "d");
    let mut time = Some(session.now());
    let mut format = match (options.has('I'), options.has('R')) {
        (true, _) => "%Y-%m-%d",
        (_, true) => "%a, %d %b %Y %H:%M:%S +0000",
        _ => "%a %b %e %H:%M:%S UTC %Y",
    };
    // Other operands would set the clock.
    let times = options
        .values('d')
        .map(|text| (text, instant(text, session.now())));
    let operands = options.rest.iter().map(|text| (*text, None));
    for (text, found) in times.chain(operands) {
        match text.strip_prefix('+') {
            Some(wanted) => format = wanted,
            None if found.is_some() => time = found,
            None => return fail(session, &format!("date: invalid date '{text}'")).await,
        }
    }
    let zoned = time.unwrap_or_default().to_zoned(TimeZone::UTC);
    match strtime::format(format, &zoned) {
        Ok(text) => session.line(&text).await,
        Err(_) => fail(session, &format!("date: invalid format '+{format}'")).await,
    }
}

/// Reads `now`, `@` with Unix seconds, or a time as in RFC 3339.
fn instant(text: &str, now: Timestamp) -> Option<Timestamp> {
    match text.strip_prefix('@') {
        Some(seconds) => Timestamp::from_second(seconds.parse().ok()?).ok(),
        None if text == "now" => Some(now),
        None => text.parse().ok(),
    }
}

/// Prints for how long the session runs.
pub(super) async fn uptime(session: &mut Session) {
    let now = session.now();
    let minutes = now.duration_since(session.began).as_mins();
    let clock = now.strftime("%H:%M:%S");
    let line = format!(" {clock} up {minutes} min,  load average: 0.00, 0.00, 0.00");
    session.line(&line).await;
}

/// Prints the user, who is root.
pub(super) async fn id(session: &mut Session, arguments: &[&str]) {
    let options = Options::read(arguments, "");
    let line = match (options.has('u') || options.has('g'), options.has('n')) {
        (true, true) => "root",
        (true, false) => "0",
        _ => "uid=0(root) gid=0(root) groups=0(root)",
    };
    session.line(line).await;
}

/// Prints the system.
pub(super) async fn uname(session: &mut Session, arguments: &[&str]) {
    let options = Options::read(arguments, "");
    let host = session
        .variables
        .get("HOSTNAME")
        .cloned()
        .unwrap_or_default();
    let parts = [
        ('s', "Linux"),
        ('n', &*host),
        ('r', "6.1.0"),
        ('v', "#1 SMP"),
        ('m', "x86_64"),
        ('o', "GNU/Linux"),
    ];
    let is_bare = !parts.iter().any(|(letter, _)| options.has(*letter)) && !options.has('a');
    let wanted = parts.iter().filter(|(letter, _)| {
        options.has('a') || options.has(*letter) || is_bare && *letter == 's'
    });
    let words: Vec<&str> = wanted.map(|(_, part)| *part).collect();
    session.line(&words.join(" ")).await;
}
