//! Rewrites the status line of the README and the upstream map.

use anyhow::Context as _;
use tidy::repository::Repository;
use tidy::upstream::{map, rows, status};

fn main() -> anyhow::Result<()> {
    let repository = Repository::collect()?;
    let sources = repository.with_extension("rs");
    let line = status::line(&rows::parse(rows::UPSTREAM_TESTS)?);
    let readme = repository.file("README.md").context("find README.md")?;
    write(
        &repository,
        "README.md",
        &status::rewrite(&readme.text, &line)?,
    )?;
    let functions = map::parse(map::UPSTREAM_FUNCTIONS)?;
    write(&repository, map::PAGE, &map::page(&functions, &sources))
}

/// Writes a changed file.
fn write(repository: &Repository, path: &str, text: &str) -> anyhow::Result<()> {
    if repository.file(path).is_some_and(|file| file.text == text) {
        return Ok(());
    }
    std::fs::write(repository.root.join(path), text).with_context(|| format!("write {path}"))
}
