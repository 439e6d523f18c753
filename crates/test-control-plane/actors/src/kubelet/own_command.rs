//! A container's own command, run by the shell in virtual time: its output and its end.

use std::time::Duration;

use futures::FutureExt;
use jiff::Timestamp;
use kube_test_control_plane_api::members::list;

use super::answering::{command, environment};
use super::container::Container;
use super::run::PodRun;
use super::shell::{Input, Pause, Shell, Sink, Streams};

/// Limit of the virtual time of a container's own command.
const TIME_MAX: Duration = Duration::from_secs(600);

/// The end of a container's own command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exited {
    /// Time from the start of the container.
    pub(super) after: Duration,
    pub(super) code: i32,
}

/// Returns the lines that a container's own command writes, each with its time, and its end.
///
/// The end is unknown for a command that needs more than the shell has: other programs, files of
/// the image, values from elsewhere, or more time.
pub(super) fn run(
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
        && environment.len() == given + super::answering::OWN_VARIABLES;
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
