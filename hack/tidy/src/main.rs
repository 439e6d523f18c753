//! Rewrites the generated lines of pages, the upstream map, and the list of mutants.

use anyhow::Context as _;
use tidy::repository::Repository;
use tidy::upstream::{map, rows, status};
use tidy::{code_lines, generated, mutants::page as mutants};

fn main() -> anyhow::Result<()> {
    let repository = Repository::collect()?;
    let sources = repository.with_extension("rs");
    let line = status::line(&rows::parse(rows::UPSTREAM_TESTS)?);
    write_line(&repository, "README.md", status::MARKER, &line)?;
    let line = code_lines::line(&sources);
    write_line(&repository, code_lines::PAGE, code_lines::MARKER, &line)?;
    let functions = map::parse(map::UPSTREAM_FUNCTIONS)?;
    write(&repository, map::PAGE, &map::page(&functions, &sources))?;
    let seeds = repository.file(mutants::FIRST_SEEDS);
    let seeds = seeds.with_context(|| format!("find {}", mutants::FIRST_SEEDS))?;
    let page = mutants::page(&repository.with_extension("patch"), &seeds.text)?;
    write(&repository, mutants::PAGE, &page)
}

/// Writes the line after a page's marker.
fn write_line(repository: &Repository, path: &str, marker: &str, line: &str) -> anyhow::Result<()> {
    let page = repository
        .file(path)
        .with_context(|| format!("find {path}"))?;
    let text = generated::rewrite(&page.text, marker, line);
    write(
        repository,
        path,
        &text.with_context(|| format!("rewrite {path}"))?,
    )
}

/// Writes a changed file.
fn write(repository: &Repository, path: &str, text: &str) -> anyhow::Result<()> {
    if repository.file(path).is_some_and(|file| file.text == text) {
        return Ok(());
    }
    std::fs::write(repository.root.join(path), text).with_context(|| format!("write {path}"))
}
