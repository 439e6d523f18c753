//! The files and folders of a container: those of its image that a rule gives, and those that the
//! shell has written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Folders of every image.
const FOLDERS: [&str; 12] = [
    "/bin", "/dev", "/etc", "/home", "/lib", "/proc", "/root", "/run", "/sys", "/tmp", "/usr",
    "/var",
];

/// The files of a container, by absolute path. Its sessions share them.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Files(Arc<Mutex<Content>>);

#[derive(Debug, Default)]
struct Content {
    files: BTreeMap<String, Vec<u8>>,
    folders: BTreeSet<String>,
}

impl Files {
    fn content(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a file of the image.
    pub(in super::super) fn add(&self, path: &str, text: &str) {
        self.write(absolute("/", path), text.as_bytes().to_vec(), false);
    }

    pub(super) fn read(&self, path: &str) -> Option<Vec<u8>> {
        self.content().files.get(path).cloned()
    }

    /// Returns the file with this path, or the files below it, with their paths.
    pub(super) fn below(&self, path: &str) -> Vec<(String, Vec<u8>)> {
        let content = self.content();
        let found = content.files.iter().filter(|(found, _)| is_at(found, path));
        found
            .map(|(path, bytes)| (path.clone(), bytes.clone()))
            .collect()
    }

    pub(super) fn write(&self, path: String, bytes: Vec<u8>, append: bool) {
        let mut content = self.content();
        let file = content.files.entry(path).or_default();
        if !append {
            file.clear();
        }
        file.extend(bytes);
    }

    pub(super) fn make_folder(&self, path: &str) {
        self.content().folders.insert(path.to_owned());
    }

    /// Removes a file, or a folder with its content. Returns true if it existed.
    pub(super) fn remove(&self, path: &str) -> bool {
        let mut content = self.content();
        let before = content.files.len() + content.folders.len();
        content.files.retain(|found, _| !is_at(found, path));
        content.folders.retain(|found| !is_at(found, path));
        content.files.len() + content.folders.len() < before
    }

    /// Reports whether a folder certainly exists.
    pub(super) fn is_folder(&self, path: &str) -> bool {
        let content = self.content();
        let is_inside = |found: &String| found != path && is_at(found, path);
        path == "/"
            || FOLDERS.contains(&path)
            || content.folders.iter().any(|found| is_at(found, path))
            || content.files.keys().any(is_inside)
    }

    /// Returns the names in a folder.
    pub(super) fn names(&self, folder: &str) -> BTreeSet<String> {
        let content = self.content();
        let start = format!("{}/", folder.trim_end_matches('/'));
        let all = FOLDERS.into_iter();
        let all = all.chain(content.folders.iter().map(String::as_str));
        let all = all.chain(content.files.keys().map(String::as_str));
        let inside = all.filter_map(|path| path.strip_prefix(&*start));
        let names = inside.filter_map(|rest| rest.split('/').next());
        names.map(str::to_owned).collect()
    }
}

/// Reports whether a path is this one or below it.
fn is_at(found: &str, path: &str) -> bool {
    let rest = found.strip_prefix(path.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the absolute form of a path in a folder.
pub(super) fn absolute(folder: &str, path: &str) -> String {
    let whole = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{folder}/{path}")
    };
    let mut parts = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_absolute() {
        for (folder, path, expected) in [
            ("/", "a", "/a"),
            ("/tmp", "a/b", "/tmp/a/b"),
            ("/tmp", "../etc/./x", "/etc/x"),
            ("/tmp", "/a//b/", "/a/b"),
            ("/", "..", "/"),
        ] {
            assert_eq!(absolute(folder, path), expected, "{folder} {path}");
        }
    }

    #[test]
    fn removed_folder_takes_its_content_along() {
        let files = Files::default();
        files.make_folder("/a/b");
        files.write("/a/b/c".to_owned(), Vec::new(), false);
        files.write("/ab".to_owned(), Vec::new(), false);
        assert!(files.is_folder("/a") && files.names("/a").contains("b"));
        assert!(files.remove("/a"));
        assert!(!files.is_folder("/a") && !files.remove("/a"));
        assert!(files.read("/ab").is_some());
    }
}
