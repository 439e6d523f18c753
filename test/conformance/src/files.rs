//! Reading files of cases, plain or gzip: one JSON object a line, or one list of them.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use anyhow::{Context, ensure};
use flate2::read::MultiGzDecoder;
use serde::de::DeserializeOwned;

/// The text of a file; gzip is recognised by its first bytes, not by the file's name.
///
/// # Errors
///
/// The file can't be read, or is no text.
pub fn text(path: &Path) -> anyhow::Result<String> {
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
    Ok(text)
}

/// The lines of a file that aren't blank.
///
/// # Errors
///
/// The file can't be read, or holds no case.
pub fn lines(path: &Path) -> anyhow::Result<Vec<String>> {
    let lines: Vec<String> = text(path)?
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(str::to_owned)
        .collect();
    ensure!(!lines.is_empty(), "{} holds no case", path.display());
    Ok(lines)
}

/// The cases of a file that holds one JSON list of them.
///
/// # Errors
///
/// The file can't be read, holds something else, or holds no case.
pub fn list<T: DeserializeOwned>(path: &Path, form: &str) -> anyhow::Result<Vec<T>> {
    let cases: Vec<T> = one(path, form)?;
    ensure!(!cases.is_empty(), "{} holds no case", path.display());
    Ok(cases)
}

/// What a file that is one JSON value holds.
///
/// # Errors
///
/// The file can't be read, or holds something else.
pub fn one<T: DeserializeOwned>(path: &Path, form: &str) -> anyhow::Result<T> {
    let text = text(path)?;
    serde_json::from_str(&text).with_context(|| format!("{} holds no {form}", path.display()))
}
