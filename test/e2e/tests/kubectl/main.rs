//! kubectl sessions against the shipped programs: output and exit codes.
//!
//! They need kubectl, so they are built only with the feature `kubectl`: `make test-e2e`.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use conformance::kubectl::{Programs, run_session, script};

/// Defines a test for each session, named after its file.
macro_rules! sessions {
    ($($name:ident),* $(,)?) => {
        const SESSIONS: &[&str] = &[$(stringify!($name)),*];

        $(
            #[test]
            fn $name() {
                let text = include_str!(concat!("sessions/", stringify!($name), ".session"));
                assert_session_passes(text);
            }
        )*
    };
}

sessions! {
    applying,
    changing,
    containers,
    creating,
    custom,
    deleting,
    draining,
    reading,
    refusing,
    rollouts,
}

fn assert_session_passes(text: &str) {
    let session = script::parse(text).unwrap_or_else(|error| panic!("{error:#}"));
    let programs = Programs::find(None, None, None).unwrap_or_else(|error| panic!("{error:#}"));
    let report = run_session(&session, &programs).unwrap_or_else(|error| panic!("{error:#}"));
    let failed: Vec<String> = report
        .failed
        .iter()
        .map(|verdict| format!("$ {}\n  {}", verdict.id, verdict.differences.join("\n  ")))
        .collect();
    assert!(failed.is_empty(), "\n{}", failed.join("\n"));
    assert!(report.passed > 0);
}

/// A program that is stopped at the end of the test.
struct Running {
    program: Child,
    /// Kept open: the system ends a program that writes to a closed pipe.
    _output: BufReader<ChildStdout>,
}

impl Running {
    /// Starts a program. Returns it with the first line that it prints.
    fn start(command: &mut Command) -> std::io::Result<(Self, String)> {
        let mut program = command.stdout(Stdio::piped()).spawn()?;
        let output = program.stdout.take();
        let output = output.ok_or(std::io::ErrorKind::BrokenPipe)?;
        let mut output = BufReader::new(output);
        let mut line = String::new();
        let read = output.read_line(&mut line);
        let running = Self {
            program,
            _output: output,
        };
        read?;
        Ok((running, line))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

#[test]
fn port_forward_carries_data() {
    let programs = Programs::find(None, None, None).unwrap_or_else(|error| panic!("{error:#}"));
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let mut plane = Command::new(&programs.control_plane);
    let (_plane, line) = Running::start(plane.arg("--kubeconfig-out").arg(&kubeconfig)).unwrap();
    assert!(line.starts_with("ready "), "{line}");
    let kubectl = |arguments: &str| {
        let mut command = Command::new(&programs.kubectl);
        command.args(arguments.split(' '));
        command.env("KUBECONFIG", &kubeconfig);
        command
    };
    for arguments in [
        "run p --image=busybox --port=8080",
        "wait --for=condition=Ready pod/p --timeout=10s",
    ] {
        let output = kubectl(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let (_forward, line) = Running::start(&mut kubectl("port-forward pod/p :8080")).unwrap();
    let address = line.strip_prefix("Forwarding from ").unwrap_or_default();
    let (address, _) = address.split_once(" -> ").unwrap_or_default();
    let sent = "ping".repeat(100_000);
    for _ in 0..2 {
        let mut connection = TcpStream::connect(address).unwrap();
        let mut writer = connection.try_clone().unwrap();
        let text = sent.clone();
        let write = std::thread::spawn(move || writer.write_all(text.as_bytes()));
        let mut received = vec![0; sent.len()];
        connection.read_exact(&mut received).unwrap();
        assert!(received == sent.as_bytes());
        write.join().unwrap().unwrap();
    }
}

#[test]
fn every_session_has_a_test() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kubectl/sessions");
    let there: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let run: BTreeSet<String> = SESSIONS
        .iter()
        .map(|name| format!("{name}.session"))
        .collect();
    assert_eq!(there, run);
}
