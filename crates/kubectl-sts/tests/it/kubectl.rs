//! The kubectl commands that `why` prints, as requests.

use serde_json::{Value, json};

use crate::stage::Stage;

/// Runs one printed command as kubectl does.
pub(crate) async fn kubectl(stage: &Stage, line: &str) {
    let words = split(line);
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert_eq!(words.remove(0), "kubectl", "{line}");
    if words[0] == "-n" {
        assert_eq!(words[1], "default", "{line}");
        words.drain(..2);
    }
    let flags: Vec<&str> = words
        .iter()
        .copied()
        .filter(|word| word.starts_with("--"))
        .collect();
    let flag = |name: &str| {
        let prefix = format!("--{name}=");
        flags
            .iter()
            .find_map(|flag| flag.strip_prefix(prefix.as_str()))
    };
    words.retain(|word| !word.starts_with("--"));
    match words.as_slice() {
        ["delete", kind, names @ ..] => {
            let grace = flag("grace-period").map(|grace| grace.parse::<i64>().expect("a number"));
            let options = json!({"gracePeriodSeconds": grace});
            for name in names {
                stage
                    .ask("DELETE", &path(kind, name), "application/json", &options)
                    .await;
            }
        }
        ["patch", kind, name, "-p", patch] => {
            let patch: Value = serde_json::from_str(patch).expect("the patch is JSON");
            let format = match flag("type") {
                Some("json") => "application/json-patch+json",
                Some("merge") => "application/merge-patch+json",
                other => panic!("patch type {other:?}"),
            };
            stage.ask("PATCH", &path(kind, name), format, &patch).await;
        }
        ["scale", kind, name] => {
            let replicas: i64 = flag("replicas")
                .expect("replicas")
                .parse()
                .expect("a number");
            let patch = json!({"spec": {"replicas": replicas}});
            stage.patch(&path(kind, name), &patch).await;
        }
        ["rollout", "undo", set] => {
            let set = set.strip_prefix("statefulset/").expect("a set");
            undo(stage, set, flag("to-revision").expect("a revision")).await;
        }
        ["uncordon", nodes @ ..] => {
            for node in nodes {
                let done = stage.plane.nodes().uncordon(node).await;
                done.unwrap_or_else(|error| panic!("{error}"));
            }
        }
        ["taint", "node", nodes @ .., taint] => {
            for node in nodes {
                change_taint(stage, node, taint).await;
            }
        }
        ["label", "node", name, labels @ ..] => {
            for label in labels {
                let (key, value) = label.split_once('=').expect("a label");
                let patch = json!({"metadata": {"labels": {key: value}}});
                stage.patch(&format!("/api/v1/nodes/{name}"), &patch).await;
            }
        }
        ["create", "serviceaccount", name] => {
            let account = json!({"metadata": {"name": name}});
            let path = "/api/v1/namespaces/default/serviceaccounts";
            stage.create(path, &account).await;
        }
        ["annotate", "statefulset", name, annotation] => {
            let (key, value) = annotation.split_once('=').expect("an annotation");
            let patch = json!({"metadata": {"annotations": {key: value}}});
            stage.patch(&path("statefulset", name), &patch).await;
        }
        other => panic!("unknown command {other:?}"),
    }
}

async fn change_taint(stage: &Stage, node: &str, taint: &str) {
    let nodes = stage.plane.nodes();
    let done = if let Some(key) = taint.strip_suffix('-') {
        nodes.untaint(node, key).await
    } else {
        let (key, rest) = taint.split_once('=').expect("a value");
        let (value, effect) = rest.split_once(':').expect("an effect");
        nodes.taint(node, key, value, effect).await
    };
    done.unwrap_or_else(|error| panic!("{error}"));
}

/// Applies the template of a revision, as kubectl does.
async fn undo(stage: &Stage, set: &str, number: &str) {
    let path = "/apis/apps/v1/namespaces/default/controllerrevisions";
    let list = stage
        .ask("GET", path, "application/json", &Value::Null)
        .await;
    let mut revisions = list["items"].as_array().expect("a list").iter();
    let number: i64 = number.parse().expect("a number");
    let wanted = revisions.find(|it| it["revision"] == number);
    let data = &wanted.expect("the revision exists")["data"];
    let path = format!("/apis/apps/v1/namespaces/default/statefulsets/{set}");
    let format = "application/strategic-merge-patch+json";
    stage.ask("PATCH", &path, format, data).await;
}

fn path(kind: &str, name: &str) -> String {
    match kind {
        "pod" => format!("/api/v1/namespaces/default/pods/{name}"),
        "pvc" => format!("/api/v1/namespaces/default/persistentvolumeclaims/{name}"),
        "pv" => format!("/api/v1/persistentvolumes/{name}"),
        "resourcequota" => format!("/api/v1/namespaces/default/resourcequotas/{name}"),
        "statefulset" => format!("/apis/apps/v1/namespaces/default/statefulsets/{name}"),
        other => panic!("unknown kind {other}"),
    }
}

/// Splits a command as a shell does, with single quotes.
fn split(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for c in line.chars() {
        match c {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            c => words.last_mut().expect("a word").push(c),
        }
    }
    words
}
