//! The command line.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use kube_apimachinery::go_duration;
use statefulset_fence::NamespaceSelector;

use crate::release::Release;

/// Explains StatefulSets, recreates them, and controls what they opt in to. Only `fence`, `pause`,
/// `resume`, `step`, `resize`, `clean` and `recreate` write to the cluster.
#[derive(Debug, Parser)]
#[command(name = "kubectl-sts", bin_name = "kubectl sts", version)]
pub struct Cli {
    /// The kubeconfig file; by default $KUBECONFIG or ~/.kube/config
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,
    /// The namespace; by default that of the context
    #[arg(short, long, global = true, value_name = "NAME")]
    pub namespace: Option<String>,
    /// The output format
    #[arg(short, long, global = true, value_enum, default_value_t)]
    pub output: Output,
    /// Colours in text
    #[arg(long, global = true, value_enum, default_value_t)]
    pub color: Color,
    /// The question.
    #[command(subcommand)]
    pub command: Command,
}

/// A question.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Lists the revisions of a set, with their changes and the pods that run them
    History {
        /// The set
        #[arg(value_parser = set_name)]
        name: String,
    },
    /// Compares the pod templates of two revisions
    Diff {
        /// The set
        #[arg(value_parser = set_name)]
        name: String,
        /// The older revision, by number or name; by default the one before the newer
        from: Option<String>,
        /// The newer revision, by number or name; by default the latest
        to: Option<String>,
    },
    /// Explains why sets are not complete, with the commands that resolve it
    ///
    /// One name gives the details. Several names, or none for all sets that are not settled, give a
    /// table; -o json and -o yaml hold the details of every set.
    Why {
        /// The sets
        #[arg(value_parser = set_name)]
        names: Vec<String>,
        /// Includes all namespaces
        #[arg(short = 'A', long, conflicts_with = "names")]
        all_namespaces: bool,
    },
    /// Shows what a change would do, without making it
    ///
    /// The exit code is 2 if data would be lost, or if several pods are ready now and none would
    /// be at some point, except by scaling to 0.
    Plan(PlanArguments),
    /// Shows what happened to a set: revisions, pods, restarts, events and writers
    Timeline {
        /// The set
        #[arg(value_parser = set_name)]
        name: String,
        /// Prints one SVG picture instead
        #[arg(long, conflicts_with = "output")]
        svg: bool,
    },
    /// Shows the pods of a set, again after every change, until it is settled
    Watch {
        /// The set
        #[arg(value_parser = set_name)]
        name: String,
        /// Shows the current state only
        #[arg(long)]
        once: bool,
    },
    /// Waits until a set is complete, available or stalled
    ///
    /// The exit code is 0 when it is, 2 if the set is stuck for a cause that waiting does not
    /// resolve, and 3 at the time limit.
    Wait {
        /// The set
        #[arg(value_parser = set_name)]
        name: String,
        /// The state to wait for
        #[arg(long = "for", value_enum, default_value_t, value_name = "STATE")]
        goal: Goal,
        /// The time limit, such as 10m; 0 checks once, a negative one means a week
        #[arg(long, default_value = "30s", value_name = "DURATION", value_parser = time_limit)]
        #[arg(allow_hyphen_values = true)]
        timeout: Duration,
    },
    /// Checks that the cluster is ready to switch to this controller; run it before and after the
    /// switch
    ///
    /// With --to, it checks instead what an upgrade of a cluster with the built-in controller does
    /// to the sets. The exit code is 2 if something is left to do, or couldn't be read.
    Preflight {
        /// The Kubernetes version to upgrade to, such as 1.37 or 1.34.2
        #[arg(long, value_name = "VERSION", value_parser = release)]
        to: Option<Release>,
    },
    /// Shows the result of a shadow: the decisions that differ from another controller's
    ///
    /// The namespace is that of the shadow's pod. The exit code is 2 if a decision differs.
    ShadowReport {
        /// A saved report, instead of the one of the running shadow
        #[arg(short, long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Manages the fence of a cluster whose built-in controller can't be disabled
    ///
    /// The exit code is 2 if the fence doesn't stand, or the proof fails.
    #[command(subcommand)]
    Fence(FenceCommand),
    /// Pauses the rollout of a set, with an opt-in of this controller
    ///
    /// It shows what the controller would still do, then writes the annotations.
    Pause(RolloutArguments),
    /// Continues the rollout of a set to its last pod
    Resume(RolloutArguments),
    /// Updates the next pods of a set, then stops
    Step {
        /// The set
        #[command(flatten)]
        set: RolloutArguments,
        /// The number of pods
        #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
        by: i32,
    },
    /// Lets the claims of a set grow, with an opt-in of this controller
    ///
    /// It shows the claims, writes the annotations, and follows the claims. The exit code is 2 if a claim
    /// can't grow, and 3 at the time limit.
    Resize(ResizeArguments),
    /// Removes what opt-ins left on sets and pods, before the built-in controller takes over
    ///
    /// These are conditions in the status, and labels of pods whose removal was requested. Without
    /// names it cleans all sets of the namespace.
    Clean {
        /// The sets
        #[arg(value_parser = set_name)]
        names: Vec<String>,
        /// Removes the annotations as well, so that the running controller writes nothing again
        #[arg(long)]
        annotations: bool,
    },
    /// Recreates a set to change immutable fields, while its pods run
    ///
    /// It shows which pods would restart, deletes the set without its pods, creates it again, and
    /// waits until its controller has adopted every pod. An interrupted recreation is ended with
    /// --continue or --restore. The exit code is 2 if a pod or claim isn't as planned.
    Recreate(RecreateArguments),
    /// Prints the completions of a shell
    Completion {
        /// The shell
        shell: Shell,
    },
    /// Writes the man pages of all commands
    Man {
        /// The folder for the pages
        folder: PathBuf,
    },
}

impl Command {
    /// The names of the sets that the command explains or changes, except by a recreation.
    pub(crate) fn sets(&self) -> Vec<&str> {
        let name = match self {
            Self::Why { names, .. } | Self::Clean { names, .. } => {
                return names.iter().map(String::as_str).collect();
            }
            Self::Plan(arguments) => arguments.name.as_ref(),
            Self::History { name }
            | Self::Diff { name, .. }
            | Self::Timeline { name, .. }
            | Self::Watch { name, .. }
            | Self::Wait { name, .. } => Some(name),
            Self::Pause(set) | Self::Resume(set) | Self::Step { set, .. } => Some(&set.name),
            Self::Resize(arguments) => Some(&arguments.name),
            Self::Preflight { .. }
            | Self::ShadowReport { .. }
            | Self::Fence(_)
            | Self::Recreate(_)
            | Self::Completion { .. }
            | Self::Man { .. } => None,
        };
        name.map(String::as_str).into_iter().collect()
    }
}

/// A change of a set's rollout.
#[derive(Args, Clone, Debug)]
pub struct RolloutArguments {
    /// The set
    #[arg(value_parser = set_name)]
    pub name: String,
    /// Shows what would happen, and writes nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// New sizes of a set's claims.
#[derive(Args, Clone, Debug)]
pub struct ResizeArguments {
    /// The set
    #[arg(value_parser = set_name)]
    pub name: String,
    /// A claim template and the size of its claims, such as data=20Gi
    #[arg(value_name = "TEMPLATE=SIZE", required = true)]
    pub sizes: Vec<String>,
    /// Lets the controller restart pods whose volumes need that to grow
    #[arg(long)]
    pub with_pod: bool,
    /// Shows the claims, and writes nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The time limit, such as 10m; a negative one means a week
    #[arg(long, default_value = "10m", value_name = "DURATION", value_parser = time_limit)]
    #[arg(allow_hyphen_values = true)]
    pub timeout: Duration,
}

/// The help of `--set`. In a comment, the brackets would be a link.
const SET_HELP: &str = "A field and its new value; may be repeated\n\nPaths begin at the spec, and name \
                        list elements in brackets: \
                        volumeClaimTemplates[data].spec.resources.requests.storage=20Gi";

/// A recreation, or the end of an interrupted one.
#[derive(Args, Clone, Debug)]
#[command(group(clap::ArgGroup::new("change").required(true).multiple(true)))]
pub struct RecreateArguments {
    /// The set
    #[arg(value_parser = set_name, required_unless_present = "file")]
    pub name: Option<String>,
    /// A manifest with the new set, applied as by kubectl apply
    #[arg(short, long, value_name = "FILE", group = "change")]
    pub file: Option<PathBuf>,
    /// A field and its new value; may be repeated
    #[arg(long, value_name = "FIELD=VALUE", group = "change", long_help = SET_HELP)]
    pub set: Vec<String>,
    /// The end of an interrupted recreation
    #[command(flatten)]
    pub end: RecreateEnd,
    /// Shows what would happen, and writes nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Accepts that pods restart or are removed, as the plan shows
    #[arg(long)]
    pub allow_restarts: bool,
    /// The time limit, such as 10m; a negative one means a week
    #[arg(long, default_value = "5m", value_name = "DURATION", value_parser = time_limit)]
    #[arg(allow_hyphen_values = true)]
    pub timeout: Duration,
}

/// The end of an interrupted recreation.
#[derive(Args, Clone, Copy, Debug)]
pub struct RecreateEnd {
    /// Goes on with an interrupted recreation
    #[arg(long = "continue", group = "change", requires = "name")]
    #[arg(conflicts_with_all = ["file", "set", "dry_run", "allow_restarts"])]
    pub goes_on: bool,
    /// Goes back to the set before an interrupted recreation
    #[arg(long, group = "change", requires = "name")]
    #[arg(conflicts_with_all = ["file", "set", "dry_run", "allow_restarts", "goes_on"])]
    pub restore: bool,
}

/// A command about the fence. These commands write to the cluster.
#[derive(Debug, Subcommand)]
pub enum FenceCommand {
    /// Creates the admission policies and their bindings, or restores them
    Install(FenceArguments),
    /// Deletes the policies and bindings, once no namespace has the label
    Uninstall,
    /// Checks the policies, and tries them in each labelled namespace
    Status,
    /// Proves that only one controller acts, with a set in each of two temporary namespaces
    Prove {
        /// The namespace to hand over
        #[arg(value_name = "NAMESPACE")]
        namespace: String,
    },
    /// Hands a namespace back to the built-in controller, and wakes it
    Release {
        /// The namespace
        #[arg(value_name = "NAMESPACE")]
        namespace: String,
    },
}

/// The settings of the policies.
#[derive(Args, Clone, Debug)]
pub struct FenceArguments {
    /// The service account of this program
    #[arg(long, value_name = "NAMESPACE:NAME", value_parser = account)]
    #[arg(default_value = "kube-system:statefulset-controller-manager")]
    pub account: (String, String),
    /// The label of the namespaces that this program serves, as in its flag
    #[arg(long, value_name = "KEY=VALUE", default_value_t)]
    pub namespace_selector: NamespaceSelector,
}

/// Accepts a service account.
fn account(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
            Ok((namespace.to_owned(), name.to_owned()))
        }
        _ => Err("expected NAMESPACE:NAME".to_owned()),
    }
}

/// A change to plan. Several parts are made in the order of these fields.
#[derive(Args, Clone, Debug, Default)]
pub struct PlanArguments {
    /// The set
    #[arg(value_parser = set_name, required_unless_present = "file", conflicts_with = "file")]
    pub name: Option<String>,
    /// A manifest with the set, applied as by kubectl apply
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Another number of pods
    #[arg(long, value_name = "N")]
    pub replicas: Option<i32>,
    /// Another image of a container; may be repeated
    #[arg(long, value_name = "CONTAINER=IMAGE")]
    pub image: Vec<String>,
    /// A strategic merge patch as JSON or YAML
    #[arg(long, value_name = "PATCH")]
    pub patch: Option<String>,
    /// The number of the revision to go back to
    #[arg(long, value_name = "REVISION")]
    pub rollback: Option<i64>,
}

/// A state of a set to wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Goal {
    /// All pods are available in the update revision, and nothing is left to do
    #[default]
    Complete,
    /// All pods are available, in any revision
    Available,
    /// The set is stuck for a cause that waiting does not resolve
    Stalled,
}

impl Goal {
    /// The state as the flag spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Available => "available",
            Self::Stalled => "stalled",
        }
    }
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
    /// For programs.
    Yaml,
}

/// Use of colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Accepts versions of Kubernetes 1.
fn release(text: &str) -> Result<Release, String> {
    let expected = || "expected a version such as 1.37 or 1.34.2".to_owned();
    Release::parse(text).ok_or_else(expected)
}

/// The time limit that a negative one stands for, as with kubectl.
const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

/// Accepts Go's durations, as kubectl does.
fn time_limit(text: &str) -> Result<Duration, String> {
    let limit = go_duration::parse_clamped(text)?;
    Ok(if text.starts_with('-') { WEEK } else { limit })
}

/// Accepts `web`, and as kubectl does `sts/web` and `statefulset/web`.
fn set_name(text: &str) -> Result<String, String> {
    let name = match text.split_once('/') {
        None => text,
        Some(("sts" | "statefulset" | "statefulsets" | "statefulset.apps", name)) => name,
        Some((kind, _)) => return Err(format!("{kind} is not a StatefulSet")),
    };
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    if name.is_empty() || !name.chars().all(is_name) {
        return Err("expected the name of a StatefulSet".to_owned());
    }
    Ok(name.to_owned())
}

/// The completions of a shell for the program's own name, which kubectl can also call.
pub fn completion(shell: Shell) -> String {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "kubectl-sts", &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Writes the man pages of all commands into an existing folder.
///
/// # Errors
///
/// A page can't be written.
pub fn man(folder: &Path) -> anyhow::Result<()> {
    clap_mangen::generate_to(Cli::command(), folder)
        .with_context(|| format!("write the man pages to the folder {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_may_be_named_with_their_kind() {
        assert_eq!(set_name("web"), Ok("web".to_owned()));
        assert_eq!(set_name("sts/web"), Ok("web".to_owned()));
        assert_eq!(set_name("statefulset.apps/web"), Ok("web".to_owned()));
        let error = Err("deployment is not a StatefulSet".to_owned());
        assert_eq!(set_name("deployment/web"), error);
        for bad in ["", "sts/", "../pods", "Web", "a b"] {
            assert!(set_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn time_limits_are_those_of_kubectl() {
        assert_eq!(time_limit("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(time_limit("0"), Ok(Duration::ZERO));
        assert_eq!(time_limit("-1s"), Ok(WEEK));
        assert!(time_limit("soon").is_err());
        let cli = Cli::try_parse_from(["kubectl-sts", "wait", "web", "--timeout=-1s"]);
        assert!(cli.is_ok(), "{cli:?}");
    }

    #[test]
    fn completions_name_every_command() {
        let text = completion(Shell::Bash);
        for command in Cli::command().get_subcommands() {
            assert!(text.contains(command.get_name()), "{}", command.get_name());
        }
    }

    #[test]
    fn every_command_has_a_man_page() {
        let folder = tempfile::tempdir().unwrap();
        man(folder.path()).unwrap();
        for command in Cli::command().get_subcommands() {
            let page = folder
                .path()
                .join(format!("kubectl-sts-{}.1", command.get_name()));
            let page = std::fs::read_to_string(&page).unwrap();
            assert!(page.contains(command.get_name()), "{page}");
        }
        let missing = man(&folder.path().join("missing")).unwrap_err();
        assert!(missing.to_string().contains("missing"), "{missing}");
    }

    #[test]
    fn recreations_need_one_change_or_one_end() {
        let parsed = |line: &str| {
            let words = ["kubectl-sts", "recreate"].into_iter();
            Cli::try_parse_from(words.chain(line.split_whitespace())).is_ok()
        };
        for line in [
            "web --set serviceName=db --set replicas=3 --dry-run",
            "-f web.yaml --set serviceName=db --allow-restarts",
            "web -f web.yaml",
            "web --continue --timeout 10m",
            "sts/web --restore",
        ] {
            assert!(parsed(line), "{line}");
        }
        for line in [
            "web",
            "--set serviceName=db",
            "--continue",
            "web --continue --restore",
            "web --continue --set serviceName=db",
            "web --restore -f web.yaml",
            "web --restore --dry-run",
        ] {
            assert!(!parsed(line), "{line}");
        }
    }

    #[test]
    fn global_flags_may_follow_the_command() {
        let cli = Cli::try_parse_from(["kubectl-sts", "history", "web", "-n", "db", "-o", "json"]);
        let cli = cli.expect("the command line parses");
        assert_eq!(cli.namespace.as_deref(), Some("db"));
        assert_eq!(cli.output, Output::Json);
    }
}
