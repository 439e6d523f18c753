//! A run from start to shutdown.

use std::{
    collections::BTreeMap,
    io::{Stdout, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::Context as _;
use kube::Client;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    task::JoinSet,
    time::Instant,
};

use crate::{
    apply::Applier,
    children::{Process, shell_command},
    kubeconfig,
    manifest::{self, Document},
    options::Options,
    terminal::{Screen, is_interactive},
    view,
    waiting::waits_for,
    watch,
    world::{Change, Key, Observed},
};

/// Time limit for the control plane's first response.
const START_MAX: Duration = Duration::from_secs(60);

/// Interval of the checks for that response.
const START_POLL: Duration = Duration::from_millis(50);

/// Interval between two redraws of the table.
const REDRAW: Duration = Duration::from_millis(100);

/// Delay until a pod starts, and again until it is ready, at a terminal.
const POD_DELAY: Duration = Duration::from_millis(500);

/// Exit code after an interrupt without a terminal: 128 plus the number of SIGINT.
const INTERRUPTED: u8 = 130;

/// Outcome of a session, except for errors that need no logs.
enum End {
    /// Every set is complete.
    Complete,
    /// The user interrupted it.
    Interrupted,
    /// Failures, one line each.
    Broken(Vec<String>),
}

/// Runs a session. The children have ended when this returns.
///
/// # Errors
/// A manifest is invalid or a program cannot be started, in one line.
pub(crate) async fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let documents = read_manifests(options)?;
    let folder = tempfile::Builder::new()
        .prefix("statefulset-run-")
        .tempdir()
        .context("create a folder for the kubeconfig and the logs")?;
    let mut interrupts = Interrupts::install()?;
    let mut session = Session::start(options, folder.path())?;
    let outcome = tokio::select! {
        outcome = session.play(&documents) => outcome,
        () = interrupts.next() => Ok(End::Interrupted),
    };
    session.stop().await;
    match outcome? {
        End::Interrupted if session.once => Ok(ExitCode::from(INTERRUPTED)),
        End::Complete | End::Interrupted => Ok(ExitCode::SUCCESS),
        End::Broken(lines) => {
            let mut errors = std::io::stderr();
            for line in lines {
                writeln!(errors, "run: {}", manifest::one_line(&line))?;
            }
            writeln!(errors, "run: the logs are in {}", folder.keep().display())?;
            Ok(ExitCode::FAILURE)
        }
    }
}

fn read_manifests(options: &Options) -> anyhow::Result<Vec<Document>> {
    let mut documents = Vec::new();
    for path in &options.manifests {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(|| format!("read {name}"))?;
        documents.extend(manifest::parse(&name, &text)?);
    }
    Ok(documents)
}

/// The signals that end a session.
struct Interrupts([Signal; 3]);

impl Interrupts {
    fn install() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("listen for signals");
        let hangup = listen(SignalKind::hangup())?;
        Ok(Self([
            listen(SignalKind::interrupt())?,
            listen(SignalKind::terminate())?,
            hangup,
        ]))
    }

    async fn next(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

/// Child processes, screen and settings.
struct Session<'a> {
    options: &'a Options,
    folder: &'a Path,
    kubeconfig: PathBuf,
    control_plane: Process,
    /// Started once the control plane has written its kubeconfig.
    controller: Option<Process>,
    screen: Screen<Stdout>,
    interactive: bool,
    once: bool,
    started: Instant,
}

impl<'a> Session<'a> {
    /// Starts the control plane.
    fn start(options: &'a Options, folder: &'a Path) -> anyhow::Result<Self> {
        let kubeconfig = folder.join("kubeconfig");
        let interactive = is_interactive();
        let delay = options.pod_delay.unwrap_or(if interactive {
            POD_DELAY
        } else {
            Duration::ZERO
        });
        let delay = format!("{}ms", delay.as_millis());
        let arguments = [
            "--secure-port=0".to_owned(),
            format!("--kubeconfig-out={}", kubeconfig.display()),
            "--unknown-fields=keep".to_owned(),
            format!("--start-delay={delay}"),
            format!("--ready-delay={delay}"),
            "--actor-events".to_owned(),
            // The session runs the controller as a separate process.
            "--actors=*,-statefulset-controller".to_owned(),
        ];
        let program = std::path::absolute(&options.control_plane)?;
        let control_plane = Process::start("control plane", &program, &arguments, folder)?;
        Ok(Self {
            options,
            folder,
            kubeconfig,
            control_plane,
            controller: None,
            screen: Screen::new(std::io::stdout()),
            interactive,
            once: options.once || !interactive,
            started: Instant::now(),
        })
    }

    /// Runs the controller, the manifest and the view.
    async fn play(&mut self, documents: &[Document]) -> anyhow::Result<End> {
        let client = tokio::select! {
            client = connect(&self.kubeconfig) => client?,
            status = self.control_plane.ended() => {
                return Ok(End::Broken(vec![self.control_plane.exit_report(status)]));
            }
        };
        let kubeconfig = kubeconfig::of_controller(&client, &self.kubeconfig).await?;
        let command = self.start_controller(&kubeconfig)?;
        self.introduce(&command)?;
        let mut applier = Applier::new(client.clone());
        let mut sets = Vec::new();
        for document in documents {
            let created = applier.create(document).await;
            for warning in applier.take_warnings() {
                writeln!(std::io::stderr(), "warning: {warning}")?;
            }
            sets.extend(created?);
        }
        self.screen
            .say(&format!("{:<14} {} objects", "applied", documents.len()))?;
        self.watch(&client, &sets, &command).await
    }

    /// Starts the controller and returns the command that restarts it.
    fn start_controller(&mut self, kubeconfig: &Path) -> anyhow::Result<String> {
        let arguments = [
            "--kubeconfig".to_owned(),
            kubeconfig.display().to_string(),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
        ];
        let program = std::path::absolute(&self.options.controller)?;
        let controller = Process::start("controller", &program, &arguments, self.folder)?;
        self.controller = Some(controller);
        Ok(shell_command(&program, &arguments))
    }

    /// Prints the processes and the commands to use them.
    fn introduce(&mut self, command: &str) -> anyhow::Result<()> {
        let kubeconfig = self.kubeconfig.display();
        let mut lines = Vec::new();
        for process in std::iter::once(&self.control_plane).chain(&self.controller) {
            let log = process.log.display();
            lines.push(format!(
                "{:<14} pid {}, log {log}",
                process.name, process.pid
            ));
        }
        lines.push(format!("{:<14} {kubeconfig}", "kubeconfig"));
        lines.push(format!(
            "{:<14} kubectl --kubeconfig {kubeconfig} get pods",
            "list pods"
        ));
        let curl = kubeconfig::curl_command(&self.kubeconfig, self.folder)?;
        lines.push(format!("{:<14} {curl}", ""));
        lines.push(format!("{:<14} {command}", "restart with"));
        lines.iter().try_for_each(|line| self.screen.say(line))?;
        Ok(())
    }

    /// Shows changes until the end of the session.
    async fn watch(&mut self, client: &Client, sets: &[Key], command: &str) -> anyhow::Result<End> {
        let mut tasks = JoinSet::new();
        let mut changes = watch::start(client, &mut tasks);
        let mut world = Observed::default();
        let mut shown = BTreeMap::new();
        let mut redraw = tokio::time::interval(REDRAW);
        let deadline = Instant::now() + self.options.timeout;
        loop {
            if self.once && sets.iter().all(|set| waits_for(set, &world).is_none()) {
                self.show(&world, &mut shown)?;
                let seconds = self.started.elapsed().as_secs_f32();
                self.screen.say(&format!("complete after {seconds:.1} s"))?;
                return Ok(End::Complete);
            }
            tokio::select! {
                Some(change) = changes.recv() => self.take(change, &mut world, &mut shown)?,
                status = self.control_plane.ended() => {
                    return Ok(End::Broken(vec![self.control_plane.exit_report(status)]));
                }
                report = controller_ended(self.controller.as_mut()) => {
                    self.screen.say(&format!("{report}; start it again with: {command}"))?;
                }
                _ = redraw.tick(), if self.interactive => self.show(&world, &mut shown)?,
                () = tokio::time::sleep_until(deadline), if self.once => {
                    return Ok(self.timed_out(sets, &world));
                }
            }
        }
    }

    /// Applies a change, and shows it at once unless the table is redrawn.
    fn take(
        &mut self,
        change: Change,
        world: &mut Observed,
        shown: &mut BTreeMap<String, String>,
    ) -> anyhow::Result<()> {
        world.apply(change);
        if self.interactive {
            Ok(())
        } else {
            self.show(world, shown)
        }
    }

    /// Shows the changes since `shown`.
    fn show(
        &mut self,
        world: &Observed,
        shown: &mut BTreeMap<String, String>,
    ) -> anyhow::Result<()> {
        if self.interactive {
            self.screen.redraw(view::table(world))?;
            return Ok(());
        }
        let lines = view::lines(world);
        let seconds = self.started.elapsed().as_secs_f32();
        for change in view::changes(shown, &lines) {
            self.screen.say(&format!("{seconds:6.1} s  {change}"))?;
        }
        *shown = lines;
        Ok(())
    }

    /// Reasons of the incomplete sets.
    fn timed_out(&self, sets: &[Key], world: &Observed) -> End {
        let seconds = self.options.timeout.as_secs();
        let waits = sets.iter().filter_map(|set| {
            let wait = waits_for(set, world)?;
            Some(format!("{set} is not complete after {seconds} s: {wait}"))
        });
        End::Broken(waits.collect())
    }

    /// Kills and reaps the children.
    async fn stop(&mut self) {
        if let Some(controller) = &mut self.controller {
            controller.stop().await;
        }
        self.control_plane.stop().await;
    }
}

/// Waits for the controller's end, and reports it.
async fn controller_ended(controller: Option<&mut Process>) -> String {
    match controller {
        Some(controller) => {
            let status = controller.ended().await;
            controller.exit_report(status)
        }
        None => std::future::pending().await,
    }
}

/// Waits until the kubeconfig is written and its server responds.
async fn connect(kubeconfig: &Path) -> anyhow::Result<Client> {
    let deadline = Instant::now() + START_MAX;
    loop {
        let attempt = try_connect(kubeconfig).await;
        match attempt {
            Ok(client) => return Ok(client),
            Err(error) if Instant::now() > deadline => {
                return Err(error.context("wait for the control plane"));
            }
            Err(_) => tokio::time::sleep(START_POLL).await,
        }
    }
}

async fn try_connect(kubeconfig: &Path) -> anyhow::Result<Client> {
    let client = kubeconfig::client(kubeconfig).await?;
    client
        .apiserver_version()
        .await
        .context("ask the control plane for its version")?;
    Ok(client)
}
