//! Readers of case files, plain or gzip: one JSON object per line, or one list.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use anyhow::{Context, ensure};
use flate2::read::MultiGzDecoder;
use serde::de::DeserializeOwned;

/// Text of a file; gzip is detected by its first bytes, not by the file name.
///
/// # Errors
///
/// The file can't be read, or is not text.
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

/// Non-blank lines of a file.
///
/// # Errors
///
/// The file can't be read, or has no case.
pub fn lines(path: &Path) -> anyhow::Result<Vec<String>> {
    let lines: Vec<String> = text(path)?
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(str::to_owned)
        .collect();
    ensure!(!lines.is_empty(), "{} has no case", path.display());
    Ok(lines)
}

/// Cases of a file with a JSON list.
///
/// # Errors
///
/// The file can't be read, has another format, or has no case.
pub fn list<T: DeserializeOwned>(path: &Path, form: &str) -> anyhow::Result<Vec<T>> {
    let cases: Vec<T> = one(path, form)?;
    ensure!(!cases.is_empty(), "{} has no case", path.display());
    Ok(cases)
}

/// Content of a file with a single JSON value.
///
/// # Errors
///
/// The file can't be read, or has another format.
pub fn one<T: DeserializeOwned>(path: &Path, form: &str) -> anyhow::Result<T> {
    let text = text(path)?;
    serde_json::from_str(&text)
        .with_context(|| format!("cannot parse {} as {form}", path.display()))
}
