//! `conformance FORM FILE...` replays recorded behaviour of one form: exit code 0 if all cases pass, 1
//! if some fail, 2 if a file can't be read or nothing can be run.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;
use clap::{Args, Parser, Subcommand};
use conformance::apiserver::Against;
use conformance::kubectl::Programs;
use conformance::remote::{Certificates, Remote};
use conformance::report::Report;
use conformance::{
    apiserver, json_patches, kubectl, metrics, objects, odd, revisions, settled, sync,
};

/// Replays recorded behaviour of upstream.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    form: Form,
}

/// Formats of recorded files.
#[derive(Subcommand)]
enum Form {
    /// Revision data, names, hashes, labels, pods and claims of fuzzed sets.
    Revisions {
        /// Files with one case per line, plain or gzip.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// One sync on a frozen cluster.
    Sync {
        /// Files with one case per line, plain or gzip.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Settled clusters of upstream.
    Settled {
        /// Files with one case per line, plain or gzip.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Requests and responses of an API server, replayed against the embedded one or another.
    ///
    /// On another server each case gets a namespace, which is deleted afterwards. That server
    /// should run no controllers and no admission plugins beyond those of the recordings, and have
    /// RBAC enabled for cases about roles.
    Apiserver {
        /// Files with a list of cases, plain or gzip.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        #[command(flatten)]
        server: Server,

        /// Token to send for the recorded token `stscontrollertoken`: that of the service account
        /// kube-system/statefulset-controller, bound to the role
        /// system:controller:statefulset-controller. By default `stscontrollertoken` itself is
        /// sent, which a server may know from its token file.
        #[arg(long, value_name = "TOKEN", requires = "url")]
        sts_token: Option<String>,
    },
    /// Policies, webhooks, expansion of claims and resizing of pods, in the form of `apiserver`.
    ///
    /// Another server needs the same settings as for `apiserver`. Policies and webhook
    /// configurations stay behind on it.
    Admission {
        /// Files with a list of cases, plain or gzip.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        #[command(flatten)]
        server: Server,

        /// Token to send for the recorded token `stscontrollertoken`, see `apiserver`.
        #[arg(long, value_name = "TOKEN", requires = "url")]
        sts_token: Option<String>,
    },
    /// JSON patches of one object, replayed against the embedded API server or another.
    ///
    /// Another server gets and loses the object in its namespace `default`, once for each case.
    JsonPatches {
        /// Files with the object and a list of cases, plain or gzip.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        #[command(flatten)]
        server: Server,
    },
    /// Sessions of kubectl, replayed against the shipped control plane and controller.
    Kubectl {
        /// Files with one session each, plain or gzip.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        #[command(flatten)]
        programs: GivenPrograms,
    },
    /// Scrapes of `/metrics`, compared except for values with a scrape of the shipped controller,
    /// or of another program.
    Metrics {
        /// Files with one scrape each, plain or gzip.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        #[command(flatten)]
        program: Server,
    },
    /// Writes of single objects, replayed against embedded servers: validation, defaults, pruned
    /// fields and warnings.
    Objects {
        /// Files with one case per line, plain or gzip.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Names of the revisions of sets, as the embedded server defaults and prunes their templates.
    RevisionNames {
        /// Files with one case per line, plain or gzip.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Odd objects: their stored bytes are served to the real controller alongside an ordinary set.
    Odd {
        /// Files with one case per line, plain or gzip.
        #[arg(required = true)]
        files: Vec<PathBuf>,

        /// Replay the requests against the embedded API server instead, and compare its responses.
        #[arg(long)]
        server_side: bool,
    },
}

/// A server other than the runner's own.
#[derive(Args)]
struct Server {
    /// URL of a server to use instead of the runner's own.
    #[arg(long = "server", value_name = "URL", requires = "token")]
    url: Option<String>,

    /// Bearer token for requests that specify no other: of a user with all permissions; for a
    /// scraped program, of a user who may read `/metrics`.
    #[arg(long, value_name = "TOKEN", requires = "url")]
    token: Option<String>,

    /// Certificate authorities (PEM) that verify the server's certificate. Required for a server on
    /// another machine, unless verification is disabled; on this machine the default is no
    /// verification.
    #[arg(long, value_name = "FILE", requires = "url")]
    ca: Option<PathBuf>,

    /// Don't verify the server's certificate, on any machine.
    #[arg(long, requires = "url", conflicts_with = "ca")]
    insecure_skip_tls_verify: bool,
}

impl Server {
    /// The server; `None` for the runner's own.
    fn remote(&self) -> anyhow::Result<Option<Remote>> {
        let (Some(url), Some(token)) = (&self.url, &self.token) else {
            return Ok(None);
        };
        let certificates = match &self.ca {
            Some(path) => Certificates::Authority(path.clone()),
            None => Certificates::Unchecked,
        };
        let remote = Remote::new(url, token, &certificates)?;
        ensure!(
            self.ca.is_some() || self.insecure_skip_tls_verify || remote.is_loopback(),
            "{url} is not on this machine: verify its certificate with --ca FILE, or pass \
             --insecure-skip-tls-verify"
        );
        Ok(Some(remote))
    }

    fn against(&self, sts_token: Option<&str>) -> anyhow::Result<Against> {
        Ok(match (self.remote()?, sts_token) {
            (None, _) => Against::Embedded,
            (Some(remote), None) => Against::Remote(remote),
            (Some(remote), Some(token)) => Against::Remote(remote.with_controller_token(token)),
        })
    }
}

/// Given paths of programs, which are neither searched nor built.
#[derive(Args)]
struct GivenPrograms {
    /// kubectl; by default $KUBECTL, else kubectl.1.32, else a kubectl of at least 1.30.
    #[arg(long, value_name = "PATH")]
    kubectl: Option<PathBuf>,

    /// The program kube-test-control-plane; built by default.
    #[arg(long, value_name = "PATH")]
    control_plane: Option<PathBuf>,

    /// The program statefulset-controller-manager; built by default.
    #[arg(long, value_name = "PATH")]
    controller: Option<PathBuf>,
}

impl GivenPrograms {
    fn find(self) -> anyhow::Result<Programs> {
        Programs::find(self.kubectl.as_deref(), self.control_plane, self.controller)
    }
}

fn main() -> ExitCode {
    let run = match Arguments::parse().form {
        Form::Revisions { files } => Report::of(&files, revisions::run),
        Form::Sync { files } => Report::of(&files, sync::run),
        Form::Settled { files } => Report::of(&files, settled::run),
        Form::Apiserver {
            files,
            server,
            sts_token,
        }
        | Form::Admission {
            files,
            server,
            sts_token,
        } => server
            .against(sts_token.as_deref())
            .and_then(|against| apiserver::run(&files, &against)),
        Form::JsonPatches { files, server } => server
            .against(None)
            .and_then(|against| json_patches::run(&files, &against)),
        Form::Kubectl { files, programs } => programs
            .find()
            .and_then(|programs| kubectl::run(&files, &programs)),
        Form::Metrics { files, program } => program
            .remote()
            .and_then(|remote| metrics::scrape(remote.as_ref()))
            .and_then(|scrape| metrics::run(&files, &scrape)),
        Form::Objects { files } => objects::run(&files),
        Form::RevisionNames { files } => objects::run_revision_names(&files),
        Form::Odd {
            files,
            server_side: true,
        } => odd::run_server_side(&files),
        Form::Odd { files, .. } => odd::run_controller(&files),
    };
    match run {
        Ok(report) => report.print(),
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "the runner's output")]
            {
                eprintln!("conformance: {error:#}");
            }
            ExitCode::from(2)
        }
    }
}
