//! The Helm chart, rendered with custom values.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::template::Templates;
use super::{documents, folder};

/// The chart with its values.
#[derive(Debug)]
pub struct Chart {
    folder: PathBuf,
    metadata: Value,
    values: Value,
}

#[expect(
    clippy::missing_panics_doc,
    reason = "a test harness panics on failures"
)]
impl Chart {
    /// Loads the shipped chart with its default values.
    pub fn shipped() -> Self {
        let folder = folder().join("helm/statefulset-controller-manager");
        let metadata = one(&folder.join("Chart.yaml"));
        let values = one(&folder.join("values.yaml"));
        Self {
            folder,
            metadata,
            values,
        }
    }

    /// The values.
    pub fn values(&self) -> &Value {
        &self.values
    }

    /// Overrides values with a file of the chart, like `--values`.
    #[must_use]
    pub fn with_file(self, name: &str) -> Self {
        let over = one(&self.folder.join(name));
        self.with(over)
    }

    /// Overrides values.
    #[must_use]
    pub fn with(mut self, over: Value) -> Self {
        lay_over(&mut self.values, over);
        self
    }

    /// The chart of another release, whose templates are the same.
    #[must_use]
    pub fn with_version(mut self, version: &str) -> Self {
        for member in ["version", "appVersion"] {
            self.metadata[member] = json!(version);
        }
        self
    }

    /// Objects of an installation into a namespace, in the order of the files.
    pub fn render(&self, namespace: &str) -> Vec<Value> {
        let context = json!({
            "Values": self.values,
            "Release": {"Name": "statefulset", "Namespace": namespace},
            "Chart": {"Name": self.metadata["name"], "AppVersion": self.metadata["appVersion"]},
        });
        let mut files: Vec<PathBuf> = std::fs::read_dir(self.folder.join("templates"))
            .expect("the chart has templates")
            .map(|entry| entry.expect("the folder can be read").path())
            .collect();
        files.sort();
        let mut templates = Templates::default();
        for file in &files {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            templates.add(&name, &read(file));
        }
        let manifests = files.iter().filter(|file| {
            let extension = file.extension();
            extension.is_some_and(|extension| extension == "yaml")
        });
        let rendered = manifests.flat_map(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            documents(&templates.render(&name, &context), &name)
        });
        rendered.collect()
    }
}

/// Merges maps; replaces other values.
fn lay_over(below: &mut Value, over: Value) {
    match (below, over) {
        (Value::Object(below), Value::Object(over)) => {
            for (member, value) in over {
                lay_over(below.entry(member).or_insert(Value::Null), value);
            }
        }
        (below, over) => *below = over,
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn one(path: &Path) -> Value {
    let mut all = documents(&read(path), &path.display().to_string());
    assert_eq!(all.len(), 1, "{}", path.display());
    all.remove(0)
}
