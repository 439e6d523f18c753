//! Homebrew formulas.

use std::fmt::Write as _;

use crate::krew::Download;
use crate::platform::Program;
use crate::release::Release;

/// The formula of a program; `texts` are the paths of its man pages and completions in the archives.
pub fn formula(
    release: &Release,
    program: &Program,
    archives: &[Download],
    texts: &[String],
    downloads: &str,
) -> String {
    let name = program.name;
    let mut text = format!(
        "class {} < Formula\n  desc \"{}\"\n  homepage \"{}\"\n  version \"{}\"\n  license \
         \"Apache-2.0\"\n",
        class(name),
        program.title,
        release.source,
        release.version,
    );
    for (os, block) in [("darwin", "on_macos"), ("linux", "on_linux")] {
        let built: Vec<_> = archives
            .iter()
            .filter(|archive| archive.platform.os == os)
            .collect();
        if built.is_empty() {
            continue;
        }
        // Writing to a string can't fail.
        let _ = write!(text, "\n  {block} do\n");
        for archive in built {
            let processor = match archive.platform.arch {
                "arm64" => "on_arm",
                _ => "on_intel",
            };
            let _ = write!(
                text,
                "    {processor} do\n      url \"{downloads}/{}\"\n      sha256 \"{}\"\n    end\n",
                archive.file, archive.digest,
            );
        }
        text.push_str("  end\n");
    }
    if archives
        .iter()
        .all(|archive| archive.platform.os != "darwin")
    {
        text.push_str("\n  depends_on :linux\n");
    }
    let _ = write!(text, "\n  def install\n    bin.install \"{name}\"\n");
    for path in texts {
        if let Some(line) = install(path) {
            let _ = writeln!(text, "    {line}");
        }
    }
    let _ = write!(
        text,
        "  end\n\n  test do\n    assert_match version.to_s, shell_output(\"#{{bin}}/{name} \
         --version\")\n  end\nend\n"
    );
    text
}

/// The line that installs a man page or completions; `None` for a shell that Homebrew doesn't know.
fn install(path: &str) -> Option<String> {
    let name = path.rsplit('/').next().unwrap_or(path);
    if path.starts_with("man/") {
        let section = name.rsplit('.').next().unwrap_or_default();
        Some(format!("man{section}.install \"{path}\""))
    } else if name.starts_with('_') {
        Some(format!("zsh_completion.install \"{path}\""))
    } else if let Some(command) = name.strip_suffix(".bash") {
        Some(format!(
            "bash_completion.install \"{path}\" => \"{command}\""
        ))
    } else if name.strip_suffix(".fish").is_some() {
        Some(format!("fish_completion.install \"{path}\""))
    } else {
        None
    }
}

/// Homebrew's name of the class: `kubectl-sts` is `KubectlSts`.
fn class(name: &str) -> String {
    let mut class = String::new();
    for part in name.split('-') {
        let mut letters = part.chars();
        class.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        class.push_str(letters.as_str());
    }
    class
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_homebrews_names() {
        assert_eq!(class("kube-test-control-plane"), "KubeTestControlPlane");
    }

    #[test]
    fn texts_go_where_their_readers_look() {
        let line = |path| install(path).unwrap_or_default();
        assert_eq!(line("man/x.8"), "man8.install \"man/x.8\"");
        assert_eq!(
            line("completions/_x"),
            "zsh_completion.install \"completions/_x\""
        );
        let bash = "bash_completion.install \"completions/x.bash\" => \"x\"";
        assert_eq!(line("completions/x.bash"), bash);
        assert_eq!(
            line("completions/x.fish"),
            "fish_completion.install \"completions/x.fish\""
        );
        assert_eq!(install("completions/x.ps1"), None);
    }
}
