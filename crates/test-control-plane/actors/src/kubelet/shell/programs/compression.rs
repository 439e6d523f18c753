//! `gzip` and its relatives.

use std::io::Read;

use flate2::Compression;
use flate2::read::{GzEncoder, MultiGzDecoder};

use super::super::session::Session;
use super::files::{fail, missing};
use super::options::Options;

/// Limit of unpacked data, in bytes.
const UNPACKED_MAX: u64 = 64 * 1024 * 1024;

/// The end of the names of packed files.
const ENDING: &str = ".gz";

/// Packs or unpacks files, which it replaces, or the input.
pub(super) async fn gzip(session: &mut Session, program: &str, arguments: &[&str]) {
    let options = Options::read(arguments, "S");
    let unpacks = program != "gzip" || options.has('d');
    let is_printed = program == "zcat" || options.has('c');
    let convert = if unpacks { unpacked } else { packed };
    if options.rest.is_empty() {
        let input = session.input().await;
        match convert(&input) {
            Some(bytes) => session.streams.write(&bytes).await,
            None => fail(session, &format!("{program}: invalid magic")).await,
        }
        return;
    }
    for path in &options.rest {
        let place = session.absolute(path);
        let Some(bytes) = session.files.read(&place) else {
            missing(session, &format!("{program}: {path}")).await;
            continue;
        };
        let other = match place.strip_suffix(ENDING) {
            Some(stem) if unpacks => Some(stem.to_owned()),
            None if !unpacks => Some(format!("{place}{ENDING}")),
            _ => None,
        };
        let Some(other) = other.or_else(|| is_printed.then(String::new)) else {
            fail(session, &format!("{program}: {path}: unknown suffix")).await;
            continue;
        };
        let Some(bytes) = convert(&bytes) else {
            fail(session, &format!("{program}: {path}: invalid magic")).await;
            continue;
        };
        if is_printed {
            session.streams.write(&bytes).await;
            continue;
        }
        session.files.write(other, bytes, false);
        if !options.has('k') {
            session.files.remove(&place);
        }
    }
}

fn packed(bytes: &[u8]) -> Option<Vec<u8>> {
    all(GzEncoder::new(bytes, Compression::default()))
}

/// Returns `None` for other data, and for more than the limit.
fn unpacked(bytes: &[u8]) -> Option<Vec<u8>> {
    let bytes = all(MultiGzDecoder::new(bytes).take(UNPACKED_MAX + 1))?;
    let is_small = u64::try_from(bytes.len()).is_ok_and(|length| length <= UNPACKED_MAX);
    is_small.then_some(bytes)
}

fn all(mut reader: impl Read) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).is_ok().then_some(bytes)
}
