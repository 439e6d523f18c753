//! Scripts that stand in for kube-apiserver and etcd.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use kube_test_control_plane::cluster::{Assets, ClusterError};
use tempfile::TempDir;

/// A script that runs until it is stopped.
pub(crate) const RUNS: &str = "exec sleep 600";

/// A folder with scripts. Each first writes its process id and its flags to files next to itself.
pub(crate) struct StandIns {
    folder: TempDir,
}

impl StandIns {
    /// Writes both scripts.
    pub(crate) fn new(kube_apiserver: &str, etcd: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, script) in [("kube-apiserver", kube_apiserver), ("etcd", etcd)] {
            let path = folder.path().join(name);
            let notes = "echo $$ >> \"$0.pids\"\nprintf '%s\\n' \"$@\" > \"$0.flags\"";
            std::fs::write(&path, format!("#!/bin/sh\n{notes}\n{script}\n")).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        }
        Self { folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn assets(&self) -> Result<Assets, ClusterError> {
        Assets::in_folder(self.folder())
    }

    /// Returns the process ids of all runs of a program.
    pub(crate) fn pids(&self, program: &str) -> Vec<u32> {
        let notes = std::fs::read_to_string(self.notes(program, "pids")).unwrap_or_default();
        notes.lines().map(|line| line.parse().unwrap()).collect()
    }

    /// Returns a flag's value in the last run of a program.
    pub(crate) fn flag(&self, program: &str, flag: &str) -> Option<String> {
        let notes = std::fs::read_to_string(self.notes(program, "flags")).unwrap();
        let start = format!("--{flag}=");
        let value = |line: &str| line.strip_prefix(&start).map(str::to_owned);
        // As in the real programs, the last occurrence wins.
        notes.lines().rev().find_map(value)
    }

    /// Reports whether all started processes have ended.
    pub(crate) fn are_gone(&self) -> bool {
        let mut pids = self.pids("kube-apiserver");
        pids.extend(self.pids("etcd"));
        pids.iter().all(|pid| {
            let pid = rustix::process::Pid::from_raw(i32::try_from(*pid).unwrap());
            rustix::process::test_kill_process(pid.unwrap()).is_err()
        })
    }

    fn notes(&self, program: &str, kind: &str) -> PathBuf {
        self.folder.path().join(format!("{program}.{kind}"))
    }
}

/// Reads a kept log and removes its folder.
pub(crate) fn take_log(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap();
    std::fs::remove_dir_all(log.parent().unwrap()).unwrap();
    text
}
