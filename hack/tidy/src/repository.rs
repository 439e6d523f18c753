//! The files of the repository.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context as _;

/// One text file: its path from the repository's root, with `/`, and its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Path from the root, `crates/history/src/lib.rs`.
    pub path: String,
    /// The whole content.
    pub text: String,
}

impl SourceFile {
    /// Creates a file, for tests.
    pub fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    /// Last part of the path.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Returns true for a path that ends in `.extension`.
    pub fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.path)
            .extension()
            .is_some_and(|found| found == extension)
    }
}

/// Root, paths and text files of the repository.
#[derive(Debug)]
pub struct Repository {
    /// Root folder.
    pub root: PathBuf,
    /// Every path, sorted, including binary files.
    pub paths: Vec<String>,
    /// Every UTF-8 file, sorted by path.
    pub files: Vec<SourceFile>,
}

impl Repository {
    /// Reads the repository of this package.
    ///
    /// In a git checkout these are the tracked files and the new files that are not ignored; in an
    /// unpacked archive all files except `target`.
    ///
    /// # Errors
    /// A folder or file is unreadable.
    pub fn collect() -> anyhow::Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .nth(2)
            .context("find the repository's root above hack/tidy")?
            .to_path_buf();
        let mut paths = match git_files(&root) {
            Some(paths) => paths,
            None => walk(&root, "")?,
        };
        paths.sort();
        paths.dedup();
        paths.retain(|path| root.join(path).is_file());
        let mut files = Vec::new();
        for path in &paths {
            let bytes = std::fs::read(root.join(path)).with_context(|| format!("read {path}"))?;
            if let Ok(text) = String::from_utf8(bytes) {
                files.push(SourceFile {
                    path: path.clone(),
                    text,
                });
            }
        }
        Ok(Self { root, paths, files })
    }

    /// The file at `path`.
    pub fn file(&self, path: &str) -> Option<&SourceFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The files whose name ends in `.extension`.
    pub fn with_extension(&self, extension: &str) -> Vec<SourceFile> {
        self.files
            .iter()
            .filter(|file| file.has_extension(extension))
            .cloned()
            .collect()
    }
}

/// Folder of a path of the repository.
pub fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Path of `name` in `folder`, with `.` and `..` resolved.
pub fn join(folder: &str, name: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in name.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn git_files(root: &Path) -> Option<Vec<String>> {
    if !root.join(".git").exists() {
        return None;
    }
    let output = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root)
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let listing = String::from_utf8(output.stdout).ok()?;
    Some(
        listing
            .split('\0')
            .filter(|path| !path.is_empty())
            .map(str::to_owned)
            .collect(),
    )
}

fn walk(root: &Path, below: &str) -> anyhow::Result<Vec<String>> {
    let folder = root.join(below);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if below.is_empty() {
            name.clone()
        } else {
            format!("{below}/{name}")
        };
        if !entry.file_type()?.is_dir() {
            found.push(path);
        } else if name != ".git" && name != "target" {
            found.extend(walk(root, &path)?);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_names_and_extensions() {
        let file = SourceFile::new("docs/architecture.md", "");
        assert_eq!(file.name(), "architecture.md");
        assert!(file.has_extension("md"));
        assert!(!file.has_extension("d"));
    }

    #[test]
    fn names_resolve_from_their_folder() {
        assert_eq!(join(folder("docs/a/b.md"), "../c.md"), "docs/c.md");
        assert_eq!(join(folder("README.md"), "./docs/c.md"), "docs/c.md");
        assert_eq!(join("docs", "../../c.md"), "c.md");
    }

    #[test]
    fn archive_walk_skips_build_output() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let found = walk(root, "").expect("the package's folder is readable");
        assert!(found.contains(&"src/repository.rs".to_owned()));
        assert!(!found.iter().any(|path| path.contains("target/")));
    }
}
