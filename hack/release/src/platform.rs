//! The platforms and programs of a release.

/// A platform with its names in Rust and in Go, whose names images, krew and Homebrew use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Platform {
    /// Rust's name, `x86_64-unknown-linux-gnu`.
    pub triple: &'static str,
    /// Go's name of the system: `linux`, `darwin` or `windows`.
    pub os: &'static str,
    /// Go's name of the processor: `amd64` or `arm64`.
    pub arch: &'static str,
}

const fn platform(triple: &'static str, os: &'static str, arch: &'static str) -> Platform {
    Platform { triple, os, arch }
}

/// All platforms, in the order in which artefacts are listed.
pub const PLATFORMS: [Platform; 5] = [
    platform("x86_64-unknown-linux-gnu", "linux", "amd64"),
    platform("aarch64-unknown-linux-gnu", "linux", "arm64"),
    platform("x86_64-apple-darwin", "darwin", "amd64"),
    platform("aarch64-apple-darwin", "darwin", "arm64"),
    platform("x86_64-pc-windows-gnu", "windows", "amd64"),
];

impl Platform {
    /// The name in file names, `linux-amd64`.
    pub fn name(&self) -> String {
        format!("{}-{}", self.os, self.arch)
    }

    /// The name of a program's file.
    pub fn file_name(&self, program: &str) -> String {
        let extension = if self.os == "windows" { ".exe" } else { "" };
        format!("{program}{extension}")
    }
}

/// A program of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// The name of its file.
    pub name: &'static str,
    /// One sentence without a full stop, at most 80 characters, which Homebrew accepts.
    pub title: &'static str,
    /// The image's additional settings, for a program that has an image.
    pub image: Option<ImageOf>,
}

/// What differs between the images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageOf {
    /// The port that the program listens on by default; `None` if it takes a free one.
    pub port: Option<u16>,
}

/// All programs.
pub const PROGRAMS: [Program; 3] = [
    Program {
        name: "statefulset-controller-manager",
        title: "Kubernetes' StatefulSet controller, outside kube-controller-manager",
        image: Some(ImageOf { port: Some(10257) }),
    },
    Program {
        name: "kubectl-sts",
        title: "Explain stuck StatefulSets and preview changes to them",
        image: None,
    },
    Program {
        name: "kube-test-control-plane",
        title: "Kubernetes control plane for tests, without containers",
        image: Some(ImageOf { port: None }),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_go() {
        assert_eq!(PLATFORMS[1].name(), "linux-arm64");
        assert_eq!(PLATFORMS[0].file_name("kubectl-sts"), "kubectl-sts");
        assert_eq!(PLATFORMS[4].file_name("kubectl-sts"), "kubectl-sts.exe");
    }

    #[test]
    fn titles_fit_homebrew() {
        for program in PROGRAMS {
            assert!(program.title.len() <= 80, "{}", program.title);
            assert!(!program.title.ends_with('.'), "{}", program.title);
        }
    }
}
