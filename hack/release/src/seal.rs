//! What describes all files of a release: the provenance, the checksums and `MANIFEST`.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, ensure};

use crate::archive::{read, read_folder};
use crate::digest::Digest;
use crate::provenance::statement;
use crate::release::Release;

/// Name of the provenance.
pub const PROVENANCE: &str = "provenance.intoto.json";
/// Name of the checksums, in the format of `sha256sum`.
pub const CHECKSUMS: &str = "SHA256SUMS";
/// Name of the list of the files, their sizes and digests, and of what is missing.
pub const MANIFEST: &str = "MANIFEST";

/// Where a build happened, as far as it is stated.
#[derive(Clone, Debug)]
pub struct Build<'a> {
    /// Name and version of the compiler.
    pub compiler: &'a str,
    /// The dependencies' lock file.
    pub lock_file: &'a Path,
    /// Lines `PROGRAM TARGET REASON` of what wasn't built.
    pub not_built: &'a str,
}

/// Writes the three files into the folder of the artefacts.
pub fn seal(release: &Release, build: &Build<'_>, folder: &Path) -> anyhow::Result<()> {
    let own = [PROVENANCE, CHECKSUMS, MANIFEST];
    let mut files: Vec<(String, u64, Digest)> = Vec::new();
    for entry in read_folder(folder)? {
        if !own.contains(&entry.path.as_str()) {
            files.push((
                entry.path,
                entry.bytes.len() as u64,
                Digest::of(&entry.bytes),
            ));
        }
    }
    ensure!(!files.is_empty(), "{} has no files", folder.display());
    let subjects: Vec<_> = files
        .iter()
        .map(|(name, _, digest)| (name.clone(), digest.clone()))
        .collect();
    let lock_file = Digest::of(&read(build.lock_file)?);
    let statement = statement(release, build.compiler, &lock_file, &subjects);
    let statement = format!("{statement:#}\n");
    write(folder, PROVENANCE, statement.as_bytes())?;
    let size = statement.len() as u64;
    files.push((
        PROVENANCE.to_owned(),
        size,
        Digest::of(statement.as_bytes()),
    ));

    let mut checksums = String::new();
    for (name, _, digest) in &files {
        // Writing to a string can't fail.
        let _ = writeln!(checksums, "{digest}  {name}");
    }
    write(folder, CHECKSUMS, checksums.as_bytes())?;
    let size = checksums.len() as u64;
    files.push((CHECKSUMS.to_owned(), size, Digest::of(checksums.as_bytes())));
    write(
        folder,
        MANIFEST,
        manifest(release, build, &files).as_bytes(),
    )
}

fn manifest(release: &Release, build: &Build<'_>, files: &[(String, u64, Digest)]) -> String {
    let mut text = format!(
        "version {}\ncommit {}\ncompiler {}\n\n",
        release.version, release.commit, build.compiler
    );
    for (name, size, digest) in files {
        let _ = writeln!(text, "{size:>9} {digest} {name}");
    }
    for line in build.not_built.lines() {
        let mut words = line.splitn(3, ' ');
        let mut word = || words.next().unwrap_or_default();
        let _ = writeln!(text, "not built: {} for {}: {}", word(), word(), word());
    }
    text
}

/// Writes a file of the release.
pub(crate) fn write(folder: &Path, name: &str, bytes: &[u8]) -> anyhow::Result<()> {
    let path = folder.join(name);
    std::fs::write(&path, bytes).with_context(|| format!("write {}", path.display()))
}
