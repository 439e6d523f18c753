//! Rewrites what the repository generates: the status line of the README.

use anyhow::Context as _;
use tidy::{repository::Repository, status};

fn main() -> anyhow::Result<()> {
    let repository = Repository::collect()?;
    let line = status::line(status::UPSTREAM_TESTS, &repository.with_extension("rs"))?;
    let readme = repository.file("README.md").context("find README.md")?;
    let rewritten = status::rewrite(&readme.text, &line)?;
    if rewritten != readme.text {
        std::fs::write(repository.root.join("README.md"), rewritten).context("write README.md")?;
    }
    Ok(())
}
