//! A container's own command, run by the shell in virtual time: its output and its end.

use std::time::Duration;

use futures::FutureExt;
use jiff::Timestamp;
use kube_test_control_plane_api::members::{list, text};
use serde_json::Value;

use super::container::{Container, Exited};
use super::log::ContainerLog;
use super::run::{Now, PodRun};
use super::shell::{Input, Pause, Shell, Sink, Streams};

/// Limit of the virtual time of a container's own command.
const TIME_MAX: Duration = Duration::from_secs(600);

/// Returns the lines that a container's own command writes, each with its time, and its end.
///
/// The end is unknown for a command that needs more than the shell has: other programs, files of
/// the image, values from elsewhere, or more time.
fn own_command(
    container: &Container,
    run: &PodRun,
    now: Timestamp,
) -> (Vec<(Duration, String)>, Option<Exited>) {
    let command = command(&container.spec);
    if container.spec["stdin"] == true || !Shell::can_run(&command) {
        return (Vec::new(), None);
    }
    let pause = Pause::Virtual(Duration::ZERO, TIME_MAX);
    let sink = Sink::Timed(Vec::new());
    let streams = Streams::new(Input::Empty, sink, Sink::Merged, pause, None);
    let environment = environment(&container.spec, run);
    let given = list(&container.spec, "env").count();
    let is_complete = list(&container.spec, "envFrom").next().is_none()
        && environment.len() == given + OWN_VARIABLES;
    let mut shell = Shell::new(environment, container.files.clone(), streams, now);
    // It never waits: its time is virtual.
    let Some(code) = shell.run(&command).now_or_never() else {
        return (Vec::new(), None);
    };
    let is_known = is_complete && !shell.is_uncertain();
    let (parts, after) = shell.into_streams().into_timed();
    (lines(parts), is_known.then_some(Exited { after, code }))
}

/// Joins written pieces to lines, each with the time of its first piece.
fn lines(parts: Vec<(Duration, Vec<u8>)>) -> Vec<(Duration, String)> {
    let mut lines: Vec<(Duration, String)> = Vec::new();
    let mut is_open = false;
    for (time, bytes) in parts {
        for piece in String::from_utf8_lossy(&bytes).split_inclusive('\n') {
            let text = piece.trim_end_matches('\n');
            match lines.last_mut().filter(|_| is_open) {
                Some((_, line)) => line.push_str(text),
                None => lines.push((time, text.to_owned())),
            }
            is_open = !piece.ends_with('\n');
        }
    }
    lines
}

/// Number of variables in the environment of every container.
pub(super) const OWN_VARIABLES: usize = 3;

/// Returns a container's environment. Variables from config maps, secrets and resource fields are
/// omitted.
pub(super) fn environment(spec: &Value, run: &PodRun) -> Vec<(String, String)> {
    let own: [(&str, String); OWN_VARIABLES] = [
        ("HOSTNAME", run.key.name.to_string()),
        ("KUBERNETES_SERVICE_HOST", run.service_host.to_string()),
        ("KUBERNETES_SERVICE_PORT", "443".to_owned()),
    ];
    let own = own.map(|(name, value)| (name.to_owned(), value));
    let given = list(spec, "env").filter_map(|variable| {
        let name = text(variable, "name").to_owned();
        if let Some(value) = variable.get("value") {
            return Some((name, value.as_str()?.to_owned()));
        }
        let field = variable
            .pointer("/valueFrom/fieldRef/fieldPath")?
            .as_str()?;
        let value = match field {
            "metadata.name" => run.key.name.to_string(),
            "metadata.namespace" => run.key.namespace.to_string(),
            "metadata.uid" => run.uid.to_string(),
            "spec.nodeName" => run.node.to_string(),
            "status.podIP" => run.pod_ip.clone().unwrap_or_default(),
            "status.hostIP" => run.host_ip.clone(),
            _ => return None,
        };
        Some((name, value))
    });
    own.into_iter().chain(given).collect()
}

/// Returns a container's own command with its arguments.
pub(super) fn command(spec: &Value) -> Vec<String> {
    let words = list(spec, "command").chain(list(spec, "args"));
    words
        .filter_map(|word| word.as_str().map(str::to_owned))
        .collect()
}

/// Gives a container that starts the files of its image. Returns its log, and its end if that is
/// known: those of its script, or else those of its own command.
pub(super) fn begin_log(
    run: &PodRun,
    container: &Container,
    now: Now<'_>,
) -> (ContainerLog, Option<Exited>) {
    for (path, content) in &run.behaviour.files {
        container.files.add(path, content);
    }
    let scripted = run.behaviour.log.iter().filter(|line| {
        let is_meant = |name: &String| *name == container.name;
        line.container.as_ref().is_none_or(is_meant)
    });
    let mut script: Vec<(Duration, String)> = scripted
        .zip(0..)
        .map(|(line, nth)| (run.draw(line.after, "log", nth, now), line.text.clone()))
        .collect();
    let mut end = None;
    if script.is_empty() {
        (script, end) = own_command(container, run, now.timestamp);
    }
    let at = |after| {
        let began = now.timestamp;
        began.saturating_add(after).unwrap_or(began)
    };
    let lines = script.into_iter().map(|(after, text)| (at(after), text));
    (ContainerLog::new(lines), end)
}
