//! A release of stand-ins for the programs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use release::archive::Entry;
use release::opened::{gunzip, untar};
use release::pack::{Inputs, pack};
use release::release::Release;
use release::seal::{Build, seal};
use serde_json::Value;
use tempfile::TempDir;

/// The version of the workspace, which the chart has too.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Address of the downloads.
pub(crate) const DOWNLOADS: &str = "https://downloads.invalid";

/// The targets for which the fixture has programs, and the programs.
const BUILT: [(&str, &[&str]); 3] = [
    (
        "x86_64-unknown-linux-gnu",
        &[
            "statefulset-controller-manager",
            "kubectl-sts",
            "kube-test-control-plane",
        ],
    ),
    (
        "aarch64-unknown-linux-gnu",
        &["statefulset-controller-manager", "kubectl-sts"],
    ),
    ("x86_64-pc-windows-gnu", &["kubectl-sts.exe"]),
];

/// A packed and sealed release.
pub(crate) struct Packed {
    folder: TempDir,
}

pub(crate) fn release() -> Release {
    Release {
        version: VERSION.to_owned(),
        commit: "0123456789abcdef0123456789abcdef01234567".to_owned(),
        seconds: 1_760_000_000,
        source: "https://source.invalid/statefulset".to_owned(),
    }
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

impl Packed {
    /// Packs the stand-ins.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let below = |name: &str| folder.path().join(name);
        for (target, programs) in BUILT {
            std::fs::create_dir_all(below("programs").join(target)).unwrap();
            std::fs::create_dir_all(below("bills").join(target)).unwrap();
            for program in programs {
                let content = format!("{program} for {target}\n");
                std::fs::write(below("programs").join(target).join(program), content).unwrap();
                let bill = format!("{}.cdx.json", program.trim_end_matches(".exe"));
                std::fs::write(below("bills").join(target).join(bill), "{}\n").unwrap();
            }
        }
        let completions = below("texts/kubectl-sts/completions");
        std::fs::create_dir_all(&completions).unwrap();
        std::fs::write(completions.join("kubectl-sts.bash"), "complete\n").unwrap();
        std::fs::create_dir(below("out")).unwrap();
        let inputs = Inputs {
            root: root(),
            programs: below("programs"),
            bills: below("bills"),
            texts: below("texts"),
            downloads: DOWNLOADS.to_owned(),
            images: Some("registry.invalid/team".to_owned()),
        };
        pack(&release(), &inputs, &below("out")).unwrap();
        let build = Build {
            compiler: "rustc 1.89.0",
            lock_file: &root().join("Cargo.lock"),
            not_built: "kubectl-sts x86_64-apple-darwin needs macOS\n",
        };
        seal(&release(), &build, &below("out")).unwrap();
        Self { folder }
    }

    /// The folder of the artefacts.
    pub(crate) fn folder(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    /// An artefact's content.
    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        let path = self.folder().join(name);
        std::fs::read(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// An artefact's text.
    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    /// An artefact's JSON.
    pub(crate) fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&self.read(name)).unwrap()
    }

    /// All artefacts by name.
    pub(crate) fn all(&self) -> BTreeMap<String, Vec<u8>> {
        let files = std::fs::read_dir(self.folder()).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        names.map(|name| (name.clone(), self.read(&name))).collect()
    }
}

/// The files of a compressed archive, by path.
pub(crate) fn unpack(bytes: &[u8]) -> BTreeMap<String, Entry> {
    untar(&gunzip(bytes).unwrap()).unwrap()
}
