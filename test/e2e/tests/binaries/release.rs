//! The artefacts of a release, in the folder `RELEASE`, installed and started.

use std::path::{Path, PathBuf};
use std::process::Command;

use release::platform::{PLATFORMS, PROGRAMS, Platform};

use crate::harness::programs;
use crate::image::{arch, assert_image_works};

/// The size that an image may have, in bytes.
const IMAGE_MAX: usize = 25 * 1024 * 1024;

fn folder() -> PathBuf {
    let folder = std::env::var_os("RELEASE").filter(|folder| !folder.is_empty());
    let folder = folder.unwrap_or_else(|| panic!("set RELEASE to the folder of a release"));
    PathBuf::from(folder)
}

fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

#[test]
fn image_serves_in_an_empty_root() {
    let name = format!("{}-{}-image.tar", PROGRAMS[0].name, version());
    let archive = std::fs::read(folder().join(name)).unwrap();
    assert!(archive.len() <= IMAGE_MAX, "{} bytes", archive.len());
    assert_image_works(&archive, &programs());
}

/// Runs a program of another processor with an emulator.
fn emulated(program: &Path, platform: &Platform) -> Command {
    if platform.arch == arch() {
        return Command::new(program);
    }
    let emulator = std::env::var_os("QEMU_AARCH64");
    let mut command = Command::new(emulator.unwrap_or_else(|| "qemu-aarch64-static".into()));
    command.arg(program);
    command
}

#[test]
fn every_archive_for_linux_installs_and_starts() {
    let mut count = 0;
    for program in PROGRAMS {
        for platform in PLATFORMS.into_iter().filter(|it| it.os == "linux") {
            let name = format!("{}-{}-{}", program.name, version(), platform.name());
            let archive = folder().join(format!("{name}.tar.gz"));
            if !archive.is_file() {
                continue;
            }
            let to = tempfile::tempdir().unwrap();
            let mut tar = Command::new("tar");
            tar.arg("-xzf").arg(&archive).arg("-C").arg(to.path());
            assert!(tar.status().unwrap().success(), "{name}");
            let path = to.path().join(&name).join(program.name);
            let output = emulated(&path, &platform).arg("--version").output();
            let output = output.unwrap_or_else(|error| {
                panic!("cannot run {name}: {error}; install qemu-user-static or set QEMU_AARCH64")
            });
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{name}: {output:?}");
            assert!(text.contains(version()), "{name}: {text}");
            count += 1;
        }
    }
    assert!(count >= PROGRAMS.len(), "only {count} archives");
}

#[test]
fn downloads_pass_their_verification() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hack/release/verify.sh");
    let output = Command::new(script).arg(folder()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}
