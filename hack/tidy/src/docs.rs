//! Markdown pages: one title each, no dead links or anchors, no page without a link to it.

pub mod pages;

use std::collections::BTreeSet;

use crate::{
    Findings,
    repository::{SourceFile, folder, join},
};

/// Checks every Markdown file; `paths` are all files of the repository.
pub fn check(files: &[SourceFile], paths: &[String]) -> Findings {
    let mut known: BTreeSet<&str> = paths.iter().map(String::as_str).collect();
    for path in paths {
        let mut outer = folder(path);
        while !outer.is_empty() {
            known.insert(outer);
            outer = folder(outer);
        }
    }
    let mut findings = Findings::new();
    let mut linked: BTreeSet<String> = BTreeSet::new();
    for file in files {
        let titles = prose(&file.text)
            .filter(|line| line.starts_with("# "))
            .count();
        if titles != 1 {
            findings.push(format!(
                "{}: {titles} titles; a page has one # line",
                file.path
            ));
        }
        for (link, anchor) in links(&file.text) {
            let target = match link {
                "" => file.path.clone(),
                link => join(folder(&file.path), link),
            };
            if !known.contains(target.as_str()) {
                findings.push(format!("{}: dead link to {link}", file.path));
            }
            let page = files.iter().find(|page| page.path == target);
            if page.is_some_and(|page| !anchor.is_empty() && !has_anchor(&page.text, anchor)) {
                findings.push(format!("{}: dead anchor {link}#{anchor}", file.path));
            }
            if target != file.path {
                linked.insert(target);
            }
        }
    }
    for file in files.iter().filter(|file| file.path.starts_with("docs/")) {
        if !linked.contains(&file.path) {
            findings.push(format!("{}: no page links to it", file.path));
        }
    }
    findings
}

/// Lines outside code fences.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    text.lines().scan(false, |fenced, line| {
        let fence = line.trim_start().starts_with("```");
        *fenced ^= fence;
        Some(if *fenced || fence { "" } else { line })
    })
}

/// Targets of links inside the repository, with their anchors.
fn links(text: &str) -> Vec<(&str, &str)> {
    prose(text)
        .flat_map(|line| line.split("](").skip(1))
        .filter_map(|rest| rest.split(')').next())
        .filter(|link| !link.contains("://"))
        .map(|link| link.split_once('#').unwrap_or((link, "")))
        .collect()
}

/// Targets of links that leave the page's folder.
pub fn outward_links(text: &str) -> impl Iterator<Item = &str> {
    let links = links(text).into_iter().map(|(link, _)| link);
    links.filter(|link| link.starts_with("../"))
}

/// Returns true if a heading of the page has the anchor, as derived by GitHub.
fn has_anchor(page: &str, anchor: &str) -> bool {
    let mut headings = prose(page).filter(|line| line.starts_with('#'));
    headings.any(|heading| {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading
            .chars()
            .filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
        let derived: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        derived == anchor
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, text: &str) -> SourceFile {
        SourceFile::new(path, text)
    }

    fn check_pages(pages: &[SourceFile]) -> Findings {
        let paths: Vec<String> = pages.iter().map(|page| page.path.clone()).collect();
        check(pages, &paths)
    }

    #[test]
    fn linked_pages_with_one_title_pass() {
        let pages = [
            page(
                "README.md",
                "# A\n[b](docs/b.md#a-part), [web](https://example.com#x), [d](docs/), [a](#a)\n",
            ),
            page(
                "docs/b.md",
                "# B\n```sh\n# not a title\n```\n[a](../README.md)\n## A `part`\n",
            ),
        ];
        assert_eq!(check_pages(&pages), Findings::new());
    }

    #[test]
    fn second_titles_dead_links_and_lost_pages_are_found() {
        let pages = [
            page("README.md", "# A\n# B\n[x](x.md), [c](#c)\n"),
            page("docs/b.md", "# B\n"),
        ];
        assert_eq!(
            check_pages(&pages),
            [
                "README.md: 2 titles; a page has one # line",
                "README.md: dead link to x.md",
                "README.md: dead anchor #c",
                "docs/b.md: no page links to it",
            ]
        );
    }
}
