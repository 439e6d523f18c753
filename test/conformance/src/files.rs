//! Reading files of cases: one JSON object a line, plain or gzip.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use anyhow::{Context, ensure};
use flate2::read::MultiGzDecoder;

/// The lines of a file; gzip is recognised by its first bytes, not by the file's name.
///
/// # Errors
///
/// The file can't be read, or holds no case.
pub fn lines(path: &Path) -> anyhow::Result<Vec<String>> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let mut bytes = Vec::new();
    let read = BufReader::new(file).read_to_end(&mut bytes);
    read.with_context(|| format!("cannot read {}", path.display()))?;
    let mut text = String::new();
    let decoded = if bytes.starts_with(&[0x1f, 0x8b]) {
        MultiGzDecoder::new(&*bytes).read_to_string(&mut text)
    } else {
        (&*bytes).read_to_string(&mut text)
    };
    decoded.with_context(|| format!("cannot decode {}", path.display()))?;
    let lines: Vec<String> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(str::to_owned)
        .collect();
    ensure!(!lines.is_empty(), "{} holds no case", path.display());
    Ok(lines)
}
