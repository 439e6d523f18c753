//! Objects in files, as for `kubectl apply -f`.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde_json::Value;

/// File extensions read from a directory, like kubectl's.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// An object of a file.
#[derive(Clone, Debug)]
pub(crate) struct Manifest {
    /// The file, and the number of the document in it, from 1.
    pub(crate) place: String,
    /// The object.
    pub(crate) value: Value,
}

/// A reason why a file can't be applied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// A file or a folder can't be read.
    #[error("read {}: {source}", path.display())]
    Read {
        /// The file or the folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Parsing a document failed: it is no Kubernetes object.
    #[error("{place}: {source}")]
    Document {
        /// The file and the document.
        place: String,
        /// The fault.
        #[source]
        source: DocumentError,
    },
    /// The server refuses an object.
    #[error("{place}: apply {object}: {message}")]
    Refused {
        /// The file and the document.
        place: String,
        /// Kind and name.
        object: String,
        /// The server's message.
        message: String,
    },
    /// No definition is in the files.
    #[error("{}: contains no CustomResourceDefinition", path.display())]
    NoDefinition {
        /// The file or the folder.
        path: PathBuf,
    },
}

/// A reason why a document is no Kubernetes object.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// The document is no YAML.
    #[error("not valid YAML: {}", one_line(.0))]
    Yaml(#[source] Box<serde_saphyr::Error>),
    /// The object lacks a required field.
    #[error("the object has no {0}")]
    NoField(&'static str),
}

impl Manifest {
    /// Returns a field of the object as text; empty if there is none.
    pub(crate) fn text(&self, pointer: &str) -> &str {
        let found = self.value.pointer(pointer).and_then(Value::as_str);
        found.unwrap_or_default()
    }

    /// Returns true for a definition of a custom resource.
    pub(crate) fn is_definition(&self) -> bool {
        self.text("/kind") == "CustomResourceDefinition"
    }

    /// Returns the kind and the name, for messages.
    pub(crate) fn object(&self) -> String {
        format!("{} {}", self.text("/kind"), self.text("/metadata/name"))
    }

    /// Returns an error of this object.
    pub(crate) fn refused(&self, message: impl Into<String>) -> ManifestError {
        ManifestError::Refused {
            place: self.place.clone(),
            object: self.object(),
            message: message.into(),
        }
    }
}

/// Reads the objects of a file, or of the files of a folder by name. Folders within are left out, as
/// kubectl does.
pub(crate) fn read(path: &Path) -> Result<Vec<Manifest>, ManifestError> {
    let failed = |source| ManifestError::Read {
        path: path.to_owned(),
        source,
    };
    if !path.is_dir() {
        let text = fs::read_to_string(path).map_err(failed)?;
        return parse(&path.display().to_string(), &text);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        let extension = file.extension().and_then(|it| it.to_str());
        if file.is_file() && extension.is_some_and(|it| EXTENSIONS.contains(&it)) {
            files.push(file);
        }
    }
    files.sort();
    let read: Result<Vec<_>, _> = files.iter().map(|file| read(file)).collect();
    Ok(read?.into_iter().flatten().collect())
}

/// Parses the documents of a file.
fn parse(file: &str, text: &str) -> Result<Vec<Manifest>, ManifestError> {
    let mut found = Vec::new();
    for (index, document) in documents(text).into_iter().enumerate() {
        let place = format!("{file}: document {}", index + 1);
        // As in kubectl, 0755 is octal.
        let options = serde_saphyr::options! { legacy_octal_numbers: true, with_snippet: false };
        let value: Value = serde_saphyr::from_str_with_options(&document, options)
            .map_err(|error| fault(&place, DocumentError::Yaml(Box::new(error))))?;
        if !value.is_null() {
            collect(&place, value, &mut found)?;
        }
    }
    Ok(found)
}

/// Splits a text at lines that begin with `---`.
fn documents(text: &str) -> Vec<String> {
    let mut documents = vec![String::new()];
    for line in text.lines() {
        let rest = line.strip_prefix("---");
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t'])) {
            documents.push(String::new());
        } else if let Some(document) = documents.last_mut() {
            document.push_str(line);
            document.push('\n');
        }
    }
    let is_blank = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    documents.retain(|document| !document.lines().all(is_blank));
    documents
}

/// Adds an object, or the items of a list.
fn collect(place: &str, value: Value, found: &mut Vec<Manifest>) -> Result<(), ManifestError> {
    let field = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
    for (pointer, name) in [("/apiVersion", "apiVersion"), ("/kind", "kind")] {
        if field(pointer).is_none_or(str::is_empty) {
            return Err(fault(place, DocumentError::NoField(name)));
        }
    }
    if field("/kind") == Some("List") {
        let items = value.get("items").and_then(Value::as_array);
        let items = items.cloned().unwrap_or_default();
        return items
            .into_iter()
            .try_for_each(|item| collect(place, item, found));
    }
    if field("/metadata/name").is_none_or(str::is_empty) {
        return Err(fault(place, DocumentError::NoField("metadata.name")));
    }
    found.push(Manifest {
        place: place.to_owned(),
        value,
    });
    Ok(())
}

fn fault(place: &str, source: DocumentError) -> ManifestError {
    ManifestError::Document {
        place: place.to_owned(),
        source,
    }
}

fn one_line(error: &serde_saphyr::Error) -> String {
    let text = error.to_string();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_and_lists_give_their_objects() {
        let text = "# a comment\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n--- \n\
                    kind: List\napiVersion: v1\nitems:\n- {kind: Secret, apiVersion: v1, metadata: \
                    {name: b}}\n---\n";
        let found = parse("f.yaml", text).unwrap();
        let shown: Vec<String> = found
            .iter()
            .map(|it| format!("{}: {}", it.place, it.object()))
            .collect();
        let wanted = [
            "f.yaml: document 1: ConfigMap a",
            "f.yaml: document 2: Secret b",
        ];
        assert_eq!(shown, wanted);
    }

    #[test]
    fn faults_name_file_and_document() {
        for (text, wanted) in [
            (
                "kind: A",
                "f.yaml: document 1: the object has no apiVersion",
            ),
            (
                "a: 1\n---\nb: [",
                "f.yaml: document 1: the object has no apiVersion",
            ),
            (
                "apiVersion: v1\nkind: A\n",
                "f.yaml: document 1: the object has no metadata.name",
            ),
        ] {
            let error = parse("f.yaml", text).unwrap_err();
            assert_eq!(error.to_string(), wanted);
        }
        let error = parse("f.yaml", "a: [").unwrap_err().to_string();
        assert!(
            error.starts_with("f.yaml: document 1: not valid YAML: "),
            "{error}"
        );
        assert!(!error.contains('\n'), "{error}");
    }
}
