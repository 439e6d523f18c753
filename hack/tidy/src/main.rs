//! Rewrites generated files, or lists unclear wording.
//!
//! Without arguments it rewrites the status line of the README and the upstream map. `english` prints
//! the number of findings per folder, `english FOLDER` the findings below it.

use std::io::{self, Write as _};

use anyhow::{Context as _, bail};
use tidy::{
    plain_english,
    repository::{Repository, SourceFile},
    status, upstream_map, upstream_rows,
};

fn main() -> anyhow::Result<()> {
    let repository = Repository::collect()?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        [] => rewrite(&repository),
        ["english"] => list(&repository.files),
        ["english", folder] => print(plain_english::below(&repository.files, folder)),
        _ => bail!("usage: tidy [english [FOLDER]]"),
    }
}

fn rewrite(repository: &Repository) -> anyhow::Result<()> {
    let sources = repository.with_extension("rs");
    let line = status::line(upstream_rows::UPSTREAM_TESTS, &sources)?;
    let readme = repository.file("README.md").context("find README.md")?;
    write(
        repository,
        "README.md",
        &status::rewrite(&readme.text, &line)?,
    )?;
    write(
        repository,
        upstream_map::PAGE,
        &upstream_map::page(&sources),
    )
}

/// Prints the number of findings per folder.
fn list(files: &[SourceFile]) -> anyhow::Result<()> {
    let counts = plain_english::counts(files).into_iter();
    print(counts.map(|(folder, count)| format!("{count:6}  {folder}")))
}

fn print(lines: impl IntoIterator<Item = String>) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    for line in lines {
        writeln!(out, "{line}").context("write to the standard output")?;
    }
    Ok(())
}

/// Writes a changed file.
fn write(repository: &Repository, path: &str, text: &str) -> anyhow::Result<()> {
    if repository.file(path).is_some_and(|file| file.text == text) {
        return Ok(());
    }
    std::fs::write(repository.root.join(path), text).with_context(|| format!("write {path}"))
}
