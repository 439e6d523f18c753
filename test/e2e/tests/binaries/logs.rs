//! Tests of the controller's log: brief, complete, and in the formats of upstream.

use serde_json::{Value, json};

use crate::harness::{History, Kind, Plane, Signal, programs, set_with_claims};

/// Maximum number of log lines for a rollout of three pods, including start and end of the program.
const LINES_MAX: usize = 20;

/// Runs a controller until the set is complete; returns its log.
fn log_of_a_roll_out(
    plane: &Plane,
    history: &mut History,
    arguments: &[&str],
    begin: impl FnOnce(&Plane),
) -> Vec<String> {
    let mut controller = plane.controller_of(plane.controller_kubeconfig(), arguments);
    controller.logged("ready: caches are filled");
    begin(plane);
    history.until("a change of the set", |history| !history.is_complete("web"));
    history.until("the set to be complete", |history| {
        history.is_complete("web")
    });
    controller.logged("set is in its desired state");
    controller.signal(Signal::TERM);
    let finished = controller.wait();
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    finished.stderr
}

#[test]
fn rollout_of_three_pods_logs_few_lines() {
    let plane = Plane::start(&programs(), "20ms");
    let mut history = History::begin(&plane.api);
    let text = log_of_a_roll_out(&plane, &mut history, &["-v=2"], |plane| {
        plane.api.create(Kind::Set, &set_with_claims("web", 3));
    });
    assert!(text.len() <= LINES_MAX, "{text:#?}");
    for line in &text {
        assert!(line.starts_with('I') && line.contains("] \""), "{line}");
    }
    let notes: Vec<_> = text
        .iter()
        .filter_map(|line| line.split_once(" note="))
        .collect();
    let created = (0..3).flat_map(|ordinal| {
        [
            format!("Create Claim www-web-{ordinal} Pod web-{ordinal} in StatefulSet web success"),
            format!("Create Pod web-{ordinal} in StatefulSet web successful"),
        ]
    });
    let created: Vec<_> = created.map(|note| format!("{note:?}")).collect();
    let logged: Vec<_> = notes.iter().map(|(_, note)| *note).collect();
    assert_eq!(logged, created, "{text:#?}");

    let json = log_of_a_roll_out(
        &plane,
        &mut history,
        &["-v=2", "--logging-format=json"],
        |plane| {
            let image = json!([{"name": "c", "image": "busybox:2"}]);
            let patch = json!({"spec": {"template": {"spec": {"containers": image}}}});
            plane.api.merge(Kind::Set, "web", &patch);
        },
    );
    assert!(json.len() <= LINES_MAX, "{json:#?}");
    let mut notes = Vec::new();
    for line in &json {
        let line: Value = serde_json::from_str(line).unwrap();
        for member in ["ts", "caller", "msg", "v"] {
            assert!(!line[member].is_null(), "{line} lacks {member}");
        }
        if line["msg"] == "Event occurred" {
            assert_eq!(line["object"], "default/web");
            notes.push(line["note"].as_str().unwrap().to_owned());
        }
    }
    let expected = [2, 1, 0].into_iter().flat_map(|ordinal| {
        ["Delete", "Create"]
            .map(|verb| format!("{verb} Pod web-{ordinal} in StatefulSet web successful"))
    });
    assert_eq!(notes, expected.collect::<Vec<_>>());
}

#[test]
fn default_verbosity_logs_no_events() {
    let plane = Plane::start(&programs(), "20ms");
    let mut history = History::begin(&plane.api);
    let lines = log_of_a_roll_out(&plane, &mut history, &[], |plane| {
        plane.api.create(Kind::Set, &set_with_claims("web", 3));
    });
    assert!(
        lines.iter().all(|line| !line.contains("Event occurred")),
        "{lines:#?}"
    );
}
