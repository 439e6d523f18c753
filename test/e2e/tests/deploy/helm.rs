//! Comparison of Helm's rendering of the chart with the built-in one.

use std::process::Command;

use e2e::deploy::{Chart, documents, folder};

use super::{NAME, OVERLAYS, by_key};

/// Path of Helm: `$HELM`, else `helm` on the path.
fn helm() -> Command {
    Command::new(std::env::var_os("HELM").unwrap_or_else(|| "helm".into()))
}

#[test]
fn helm_renders_the_chart_identically() {
    let chart = folder().join("helm").join(NAME);
    for (overlay, namespace) in OVERLAYS.into_iter().zip(["kube-system", NAME]) {
        let (_, who) = overlay.split_once('/').unwrap();
        let values = format!("values-{who}.yaml");
        let mut command = helm();
        command
            .args(["template", "statefulset", "--kube-version=1.36.2"])
            .args([
                "--set=serviceMonitor.enabled=true",
                "--namespace",
                namespace,
            ])
            .arg("--values")
            .arg(chart.join(&values))
            .arg(&chart);
        let output = command.output().unwrap_or_else(|error| {
            panic!("cannot run {command:?}: {error}; set HELM to the program")
        });
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        let rendered = documents(&String::from_utf8(output.stdout).unwrap(), &values);
        let ours = Chart::shipped()
            .with_file(&values)
            .with(serde_json::json!({"serviceMonitor": {"enabled": true}}));
        assert_eq!(by_key(rendered), by_key(ours.render(namespace)), "{who}");
    }
}
