//! `tar`, with which `kubectl cp` copies files, and its format (ustar).

use super::files::absolute;
use super::session::Session;

/// Length of a block in bytes.
const BLOCK: usize = 512;

/// Limit of an archive in bytes.
const ARCHIVE_MAX: usize = 64 * 1024 * 1024;

/// A file in an archive: its path without a leading slash, and its content.
type Entry = (String, Vec<u8>);

/// The task of a call.
#[derive(Debug, Default, PartialEq, Eq)]
struct Task<'a> {
    creates: bool,
    folder: &'a str,
    paths: Vec<&'a str>,
}

impl<'a> Task<'a> {
    /// Reads arguments such as `-xmf - -C /tmp` and `cf - /tmp/file`; `None` for others.
    fn of(arguments: &[&'a str]) -> Option<Self> {
        let mut task = Self::default();
        let mut letters = None;
        let mut arguments = arguments.iter().copied();
        while let Some(argument) = arguments.next() {
            match argument {
                "-C" => task.folder = arguments.next()?,
                long if long.starts_with("--") => {}
                path if letters.is_some() => task.paths.push(path),
                short => letters = Some(short.trim_start_matches('-')),
            }
        }
        let letters = letters.filter(|it| it.contains('f'))?;
        task.creates = letters.contains('c');
        if !task.creates && !letters.contains('x') || task.paths.first() != Some(&"-") {
            return None;
        }
        task.paths.remove(0);
        Some(task)
    }
}

/// Creates an archive on the output, or unpacks one from the input.
pub(super) async fn tar(session: &mut Session, arguments: &[&str]) {
    let Some(task) = Task::of(arguments) else {
        fail_tar(session, "only -c and -x with -f - are supported").await;
        return;
    };
    if task.creates {
        pack(session, &task).await;
    } else {
        unpack(session, &task).await;
    }
}

async fn fail_tar(session: &mut Session, message: &str) {
    session.is_uncertain = true;
    session.status = 1;
    let line = format!("tar: {message}\n");
    session.streams.write_err(line.as_bytes()).await;
}

async fn pack(session: &mut Session, task: &Task<'_>) {
    let mut archive = Vec::new();
    if task.paths.iter().any(|path| path.starts_with('/')) {
        let line = b"tar: removing leading '/' from member names\n";
        session.streams.write_err(line).await;
    }
    let folder = session.absolute(task.folder);
    for path in &task.paths {
        let place = absolute(&folder, path);
        let found = session.files.below(&place);
        if found.is_empty() {
            fail_tar(session, &format!("{path}: No such file or directory")).await;
        }
        let given = path.trim_start_matches('/').trim_end_matches('/');
        for (path, content) in found {
            // Names in the archive begin with the given path.
            let rest = path.strip_prefix(&*place).unwrap_or_default();
            let name = &format!("{given}{rest}");
            match header(name, content.len()) {
                Some(header) => {
                    archive.extend(header);
                    archive.extend(&content);
                    archive.resize(archive.len().next_multiple_of(BLOCK), 0);
                }
                None => fail_tar(session, &format!("{name}: name too long")).await,
            }
        }
    }
    archive.extend([0; 2 * BLOCK]);
    session.streams.write(&archive).await;
}

async fn unpack(session: &mut Session, task: &Task<'_>) {
    let mut archive = Vec::new();
    loop {
        let bytes = session.streams.read().await;
        if bytes.is_empty() {
            break;
        }
        archive.extend(bytes);
        if archive.len() > ARCHIVE_MAX {
            fail_tar(session, "archive too large").await;
            return;
        }
    }
    match entries(&archive) {
        Some(entries) => {
            let folder = session.absolute(task.folder);
            for (name, content) in entries {
                session
                    .files
                    .write(absolute(&folder, &name), content, false);
            }
        }
        None => fail_tar(session, "short read").await,
    }
}

/// Returns the header of a file; `None` if its name doesn't fit.
fn header(name: &str, size: usize) -> Option<[u8; BLOCK]> {
    let mut header = [0; BLOCK];
    let mut put = |at: usize, text: &[u8]| {
        let end = at + text.len();
        if let Some(field) = header.get_mut(at..end) {
            field.copy_from_slice(text);
        }
    };
    if name.len() <= 100 {
        put(0, name.as_bytes());
    } else {
        let cut = name.match_indices('/').map(|(at, _)| at);
        let (prefix, rest) = cut
            .map(|at| (&name[..at], &name[at + 1..]))
            .find(|(prefix, rest)| prefix.len() <= 155 && rest.len() <= 100)?;
        put(0, rest.as_bytes());
        put(345, prefix.as_bytes());
    }
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{size:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Some(header)
}

/// Returns the files of an archive; `None` if it is incomplete or malformed.
fn entries(archive: &[u8]) -> Option<Vec<Entry>> {
    let mut entries = Vec::new();
    let mut rest = archive;
    let mut long_name: Option<String> = None;
    while !rest.is_empty() {
        let (header, after) = rest.split_at_checked(BLOCK)?;
        if header.iter().all(|byte| *byte == 0) {
            break;
        }
        let size = usize::from_str_radix(field(header, 124, 12).trim(), 8).ok()?;
        let content = after.get(..size)?;
        rest = after.get(size.next_multiple_of(BLOCK)..)?;
        let prefix = field(header, 345, 155);
        let name = field(header, 0, 100);
        let name = if prefix.is_empty() {
            name
        } else {
            format!("{prefix}/{name}")
        };
        match header[156] {
            b'x' => long_name = extended_path(content),
            b'0' | 0 => {
                let name = long_name.take().unwrap_or(name);
                let name = name.trim_start_matches("./").trim_start_matches('/');
                entries.push((name.to_owned(), content.to_vec()));
            }
            _ => long_name = None,
        }
    }
    Some(entries)
}

fn field(header: &[u8], at: usize, length: usize) -> String {
    let bytes = header.get(at..at + length).unwrap_or_default();
    let end = bytes.iter().position(|byte| *byte == 0);
    let bytes = &bytes[..end.unwrap_or(bytes.len())];
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the path in an extended header, whose records are `LENGTH KEY=VALUE`.
fn extended_path(records: &[u8]) -> Option<String> {
    let records = String::from_utf8_lossy(records);
    let mut paths = records.lines().filter_map(|record| {
        let (_, pair) = record.split_once(' ')?;
        pair.strip_prefix("path=").map(str::to_owned)
    });
    paths.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_keep_names_and_content() {
        let long = format!("{}/{}", "a".repeat(120), "b".repeat(90));
        for (name, content) in [("tmp/a", b"x".as_slice()), (&long, &[7; 1000]), ("e", b"")] {
            let mut archive = header(name, content.len()).unwrap().to_vec();
            archive.extend(content);
            archive.resize(archive.len().next_multiple_of(BLOCK), 0);
            archive.extend([0; 2 * BLOCK]);
            let expected = vec![(name.to_owned(), content.to_vec())];
            assert_eq!(entries(&archive), Some(expected), "{name}");
        }
        assert_eq!(header(&"a".repeat(300), 1), None);
        assert_eq!(entries(&[1; 100]), None);
    }

    #[test]
    fn arguments_name_the_task() {
        for (arguments, expected) in [
            (&["-xmf", "-", "-C", "/tmp"][..], Some((false, "/tmp", 0))),
            (&["cf", "-", "/tmp/a"], Some((true, "", 1))),
            (&["--no-same-owner", "-xmf", "-"], Some((false, "", 0))),
            (&["tf", "-"], None),
            (&["xf", "file.tar"], None),
            (&[], None),
        ] {
            let task = Task::of(arguments);
            let found = task.map(|task| (task.creates, task.folder, task.paths.len()));
            assert_eq!(found, expected, "{arguments:?}");
        }
    }
}
