//! Start with definitions of custom resources, and creation of these.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use kube_test_control_plane::TestControlPlane;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::requests::{CREATED, CREATES, create, create_maps};
use crate::report::{Report, Row};
use crate::timing::milliseconds;

/// Number of definitions.
const DEFINITIONS: usize = 10;
/// Number of starts; the fastest one counts.
const STARTS: usize = 10;
/// Path of the custom resources that are created.
const WIDGETS: &str = "/apis/bench.example.com/v1/namespaces/default/widgets0";

/// Measures the start and the creates.
pub(super) async fn measure(report: &mut Report) -> anyhow::Result<()> {
    let folder = tempfile::tempdir().context("create a folder")?;
    for number in 0..DEFINITIONS {
        let file = folder.path().join(format!("{number}.yaml"));
        fs::write(&file, definition(number).to_string()).context("write a definition")?;
    }
    let (mut with, mut without) = (Duration::MAX, Duration::MAX);
    for _ in 0..STARTS {
        with = with.min(start(Some(folder.path())).await?);
        without = without.min(start(None).await?);
    }
    report.add(Row {
        what: format!(
            "control plane: ready in process with {DEFINITIONS} definitions (aim: 10 ms)"
        ),
        value: milliseconds(with),
        baseline: milliseconds(without),
        baseline_name: "without definitions",
        unit: "ms",
        bound: None,
    });
    let (mut custom, mut maps) = (Duration::MAX, Duration::MAX);
    for _ in 0..CREATES {
        let plane = TestControlPlane::builder().crds_from(folder.path());
        let plane = plane.try_start().await?;
        let begun = Instant::now();
        create(plane.server(), WIDGETS, widgets()).await?;
        custom = custom.min(begun.elapsed());
        let begun = Instant::now();
        create_maps(plane.server(), "map", CREATED).await?;
        maps = maps.min(begun.elapsed());
        plane.stop().await;
    }
    let each = |time: Duration| time.as_secs_f64() * 1e6 / CREATED as f64;
    report.add(Row {
        what: "control plane: create a custom resource of 1 kB, 16 in flight (aim: 125 µs)"
            .to_owned(),
        value: each(custom),
        baseline: each(maps),
        baseline_name: "a config map as large",
        unit: "µs",
        bound: None,
    });
    Ok(())
}

async fn start(definitions: Option<&Path>) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let mut builder = TestControlPlane::builder();
    if let Some(folder) = definitions {
        builder = builder.crds_from(folder);
    }
    let plane = builder.try_start().await?;
    let took = begun.elapsed();
    plane.stop().await;
    Ok(took)
}

/// A definition with fields of every type, a default, a column and the status subresource.
fn definition(number: usize) -> Value {
    let plural = format!("widgets{number}");
    let text = json!({"type": "string", "maxLength": 1000});
    let schema = json!({"type": "object", "required": ["spec"], "properties": {
        "spec": {"type": "object", "required": ["text"], "properties": {
            "text": text,
            "size": {"type": "integer", "minimum": 1, "default": 1},
            "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
            "parts": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {
                    "name": text, "port": {"x-kubernetes-int-or-string": true},
                }},
            },
            "labels": {"type": "object", "additionalProperties": text},
        }},
        "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
    }});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.bench.example.com")},
        "spec": {
            "group": "bench.example.com",
            "names": {"plural": plural, "kind": format!("Widget{number}")},
            "scope": "Namespaced",
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                ],
            }],
        },
    })
}

/// Custom resources of 1 kB.
fn widgets() -> impl Iterator<Item = Bytes> {
    let text = "x".repeat(800);
    (0..CREATED).map(move |number| {
        let widget = json!({
            "apiVersion": "bench.example.com/v1",
            "kind": "Widget0",
            "metadata": {"name": format!("widget-{number}"), "labels": {"app": "bench"}},
            "spec": {
                "text": text,
                "parts": [{"name": "a", "port": 80}, {"name": "b", "port": "http"}],
                "labels": {"app": "bench"},
            },
        });
        Bytes::from(widget.to_string())
    })
}
