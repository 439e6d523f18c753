//! Tests of the program behind `make run`: output and exit codes, without a terminal.

use std::path::Path;

use crate::harness::{Finished, Programs, Session, programs, root};

/// Paths of the example manifests.
fn examples() -> Vec<String> {
    let folder = root().join("docs/examples");
    let files = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<String> = files
        .map(|file| file.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "yaml")
        })
        .map(|path| path.to_str().unwrap().to_owned())
        .collect();
    paths.sort();
    paths
}

/// Runs a manifest to the end, with additional flags.
fn run(programs: &Programs, text: &str, flags: &[&str]) -> Finished {
    let folder = tempfile::tempdir().unwrap();
    let manifest = folder.path().join("bad.yaml");
    std::fs::write(&manifest, text).unwrap();
    Session::start(programs, &[flags, &[manifest.to_str().unwrap()]].concat()).wait()
}

#[test]
fn example_manifests_run_to_completion() {
    let programs = &programs();
    let examples = examples();
    assert!(examples.len() >= 5, "{examples:?}");
    std::thread::scope(|scope| {
        for path in &examples {
            scope.spawn(move || {
                let finished = Session::start(programs, &[path]).wait();
                assert_complete(path, &finished);
            });
        }
    });
}

/// Checks that the session succeeded, and that the last line about each set reports it complete.
fn assert_complete(path: &str, finished: &Finished) {
    assert_eq!(finished.code, Some(0), "{path}: {finished:#?}");
    assert_eq!(finished.stderr, [""; 0], "{path}");
    let last = finished.stdout.last().unwrap();
    assert!(last.starts_with("complete after "), "{path}: {last}");
    let text = std::fs::read_to_string(path).unwrap();
    let documents = text.split("\n---");
    let sets = documents
        .filter(|document| document.contains("kind: StatefulSet\n"))
        .count();
    assert!(sets > 0, "{path}");
    let mut last_lines = std::collections::BTreeMap::new();
    for line in &finished.stdout {
        let about_set = line.split_once(" s  set ").map(|(_, rest)| rest);
        if let Some((set, state)) = about_set.and_then(|rest| rest.split_once(": ")) {
            last_lines.insert(set, state);
        }
    }
    assert_eq!(last_lines.len(), sets, "{path}: {last_lines:?}");
    for (set, state) in last_lines {
        let replicas = state.split_once(" of ").unwrap().0;
        let complete = format!(
            "{replicas} of {replicas} ready, {replicas} available, {replicas} updated, revision "
        );
        let revision = state.strip_prefix(&complete);
        assert!(
            revision.is_some_and(|revision| !revision.contains(" to ")),
            "{path}: {set}: {state}"
        );
        assert_ne!(replicas, "0", "{path}: {set}");
    }
}

#[test]
fn bad_manifest_error_has_file_object_field_and_reason() {
    let set = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: web}\nspec:\n  \
               serviceName: web\n  selector: {matchLabels: {app: web}}\n  template:\n    \
               metadata: {labels: {app: web}}\n    \
               spec: {containers: [{name: c, image: busybox}]}\n";
    let programs = &programs();
    let nameless = set.replace("{name: web}", "{}");
    let mistyped = format!("{set}  replicas: three\n");
    let other_labels = set.replace("labels: {app: web}", "labels: {app: other}");
    let other_kind = set.replace("kind: StatefulSet", "kind: StatefulSets");
    std::thread::scope(|scope| {
        for (text, expected) in [
            (
                nameless.as_str(),
                [
                    "document 1, StatefulSet: ",
                    "metadata.name: ",
                    "Required value",
                ],
            ),
            (
                &mistyped,
                [
                    "document 1, StatefulSet web: ",
                    "spec.replicas",
                    "cannot unmarshal string into Go struct field",
                ],
            ),
            (
                &other_labels,
                [
                    "document 1, StatefulSet web: ",
                    "spec.template.metadata.labels: ",
                    "`selector` does not match template `labels`",
                ],
            ),
            (
                &other_kind,
                [
                    "document 1, StatefulSets web: ",
                    "kind: ",
                    "the server has no StatefulSets",
                ],
            ),
        ] {
            scope.spawn(move || {
                let Finished { code, stderr, .. } = run(programs, text, &[]);
                assert_eq!((code, stderr.len()), (Some(1), 1), "{stderr:#?}");
                let line = &stderr[0];
                assert!(line.starts_with("run: /"), "{line}");
                assert!(line.contains("/bad.yaml:1: "), "{line}");
                for part in expected {
                    assert!(line.contains(part), "{line} lacks {part:?}");
                }
            });
        }
    });
}

#[test]
fn misspelt_field_is_a_warning_with_its_location() {
    let web = include_str!("../../../../docs/examples/web.yaml");
    let typo = web.replace("  replicas: 3", "  replica: 3");
    assert_ne!(typo, web);
    let finished = run(&programs(), &typo, &[]);
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    let [warning] = finished.stderr.as_slice() else {
        panic!("{finished:#?}");
    };
    let expected = "/bad.yaml:16: document 2, StatefulSet web: unknown field \"spec.replica\"";
    assert!(warning.starts_with("warning: /"), "{warning}");
    assert!(warning.ends_with(expected), "{warning}");
    let last = finished.stdout.last().unwrap();
    assert!(last.starts_with("complete after "), "{last}");
}

#[test]
fn invalid_yaml_is_rejected_before_anything_starts() {
    let Finished {
        code,
        stdout,
        stderr,
    } = run(&programs(), "kind: StatefulSet\nspec: [\n", &[]);
    assert_eq!(
        (code, stderr.len(), stdout.len()),
        (Some(1), 1, 0),
        "{stderr:#?}"
    );
    assert!(stderr[0].contains("/bad.yaml:"), "{}", stderr[0]);
    assert!(stderr[0].contains(": not valid YAML: "), "{}", stderr[0]);
}

#[test]
fn missing_manifest_is_rejected_before_anything_starts() {
    let web = root().join("docs/examples/web.yaml");
    let manifests = [web.to_str().unwrap(), "/no/such.yaml"];
    let Finished {
        code,
        stdout,
        stderr,
    } = Session::start(&programs(), &manifests).wait();
    assert_eq!((code, stdout.len()), (Some(1), 0));
    let expected = "run: read /no/such.yaml: No such file or directory (os error 2)";
    assert_eq!(stderr, [expected]);
}

#[test]
fn timeout_reports_why_each_set_is_incomplete() {
    let web = include_str!("../../../../docs/examples/web.yaml");
    let labels = "      labels:\n        app: web\n    spec:\n      terminationGrace";
    assert!(web.contains(labels));
    let stuck = "      annotations:\n        kubelet.test-control-plane/outcome: never-ready\n";
    let Finished {
        code,
        stdout,
        stderr,
    } = run(
        &programs(),
        &web.replace(labels, &format!("{stuck}{labels}")),
        &["--timeout=2s"],
    );
    assert_eq!((code, stderr.len()), (Some(1), 2), "{stderr:#?}");
    let wait = "run: default/web is not complete after 2 s: pod web-0 is not ready: Running";
    assert!(stderr[0].starts_with(wait), "{}", stderr[0]);
    let logs = stderr[1].strip_prefix("run: the logs are in ").unwrap();
    assert!(Path::new(logs).is_absolute());
    assert!(stdout.iter().all(|line| !line.starts_with("complete")));
}

#[test]
fn interrupted_session_leaves_no_processes() {
    let web = root().join("docs/examples/web.yaml");
    let mut session = Session::start(&programs(), &["--pod-delay=1h", web.to_str().unwrap()]);
    let children = ["control plane", "controller"].map(|name| session.pid_of(name));
    session.said("applied        2 objects");
    for child in children {
        assert_eq!(rustix::process::test_kill_process(child), Ok(()));
    }
    session.interrupt();
    let finished = session.wait();
    assert_eq!(finished.code, Some(130), "{finished:#?}");
    assert_eq!(finished.stderr, [""; 0]);
    for child in children {
        let gone = rustix::process::test_kill_process(child);
        assert_eq!(gone, Err(rustix::io::Errno::SRCH));
    }
}
