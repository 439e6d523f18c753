//! `OpenAPI` documents: in v3 one per group version, built on the first request; in v2 one of all.

mod custom;
mod parameters;
mod paths;
mod schemas;
pub mod v2;

use std::sync::{Arc, LazyLock, OnceLock};

use bytes::Bytes;
use ring::digest;
use serde_json::{Map, Value, json};

use crate::kinds::{self, KINDS, Kind};
use crate::settings::EmulatedVersion;

/// The document of a group version.
#[derive(Debug)]
pub struct Document {
    /// The document as JSON.
    pub text: Bytes,
    /// Its hash, which versions the URL.
    pub hash: String,
    /// Its URL, with the hash.
    pub url: String,
}

/// A group version and its document, once it is built.
#[derive(Debug)]
struct Slot {
    emulated: EmulatedVersion,
    rows: Vec<Arc<Kind>>,
    document: OnceLock<Document>,
}

impl Slot {
    fn document(&self) -> &Document {
        self.document
            .get_or_init(|| Document::of(self.group_version(), &self.rows, self.emulated))
    }

    fn group_version(&self) -> (&str, &str) {
        let first = self.rows.first();
        first.map_or(("", ""), |row| (&row.group, &row.version))
    }
}

/// The documents of some rows of the table of kinds.
#[derive(Debug, Default)]
pub struct Documents(Vec<Slot>);

/// The built-in rows never change, so the documents of a version don't either.
static REFERENCE: LazyLock<Documents> =
    LazyLock::new(|| Documents::of(KINDS.iter(), EmulatedVersion::V1_36));
static NEWEST: LazyLock<Documents> =
    LazyLock::new(|| Documents::of(KINDS.iter(), EmulatedVersion::V1_37));

/// Returns the documents of the built-in kinds in a version.
fn built_in(emulated: EmulatedVersion) -> &'static Documents {
    match emulated {
        EmulatedVersion::V1_36 => &REFERENCE,
        EmulatedVersion::V1_37 => &NEWEST,
    }
}

impl Documents {
    /// Makes the documents of rows in a version. Each is built on its first request.
    pub fn of<'a>(rows: impl Iterator<Item = &'a Arc<Kind>>, emulated: EmulatedVersion) -> Self {
        let rows: Vec<&Arc<Kind>> = rows.collect();
        let served = kinds::group_versions(rows.iter().copied()).into_iter();
        let slots = served.map(|(group, version)| {
            let own = rows.iter().copied();
            let own = own.filter(|row| row.group == group && row.version == version);
            Slot {
                emulated,
                rows: own.map(Arc::clone).collect(),
                document: OnceLock::new(),
            }
        });
        Self(slots.collect())
    }

    fn get(&self, group: &str, version: &str) -> Option<&Document> {
        let mut slots = self.0.iter();
        slots
            .find(|slot| slot.group_version() == (group, version))
            .map(Slot::document)
    }
}

/// Returns the URLs of the documents of built-in and of custom resources by group version, as JSON.
pub fn index(of_custom: &Documents, emulated: EmulatedVersion) -> String {
    let served = built_in(emulated).0.iter().chain(&of_custom.0).map(|slot| {
        let url = json!({"serverRelativeURL": slot.document().url});
        (name(slot.group_version()), url)
    });
    json!({"paths": served.collect::<Map<_, _>>()}).to_string()
}

/// Returns the document of a group version, if it is served.
pub fn document<'a>(
    of_custom: &'a Documents,
    emulated: EmulatedVersion,
    group: &str,
    version: &str,
) -> Option<&'a Document> {
    let found = built_in(emulated).get(group, version);
    found.or_else(|| of_custom.get(group, version))
}

/// Returns the document of all built-in and custom resources in `OpenAPI` v2.
pub fn v2(of_custom: &Documents, emulated: EmulatedVersion) -> Value {
    let slots = built_in(emulated).0.iter().chain(&of_custom.0);
    let documents = slots.map(|slot| assemble(slot.group_version(), &slot.rows, emulated));
    v2::of(documents, &format!("1.{}", emulated.minor()))
}

impl Document {
    fn of(group_version: (&str, &str), rows: &[Arc<Kind>], emulated: EmulatedVersion) -> Self {
        let text = assemble(group_version, rows, emulated).to_string();
        let hash = hash(text.as_bytes());
        Self {
            url: format!("/openapi/v3/{}?hash={hash}", name(group_version)),
            text: text.into(),
            hash,
        }
    }
}

fn assemble(group_version: (&str, &str), rows: &[Arc<Kind>], emulated: EmulatedVersion) -> Value {
    let mut schemas = schemas::of(group_version, rows, emulated.schema());
    let mut info = json!({"title": "Kubernetes", "version": emulated.git_version()});
    for kind in rows {
        if let Some(resource) = &kind.custom {
            custom::add(&mut schemas, kind, resource);
            info = json!({"title": "Kubernetes CRD Swagger", "version": "v0.1.0"});
        }
    }
    json!({
        "openapi": "3.0.0",
        "info": info,
        "paths": paths::of(rows, &schemas),
        "components": {"schemas": schemas},
    })
}

fn name((group, version): (&str, &str)) -> String {
    if group.is_empty() {
        format!("api/{version}")
    } else {
        format!("apis/{group}/{version}")
    }
}

/// Hashes a text as Kubernetes does: SHA-512 in upper-case hexadecimal digits.
pub fn hash(text: &[u8]) -> String {
    let hash = digest::digest(&digest::SHA512, text);
    let mut text = String::with_capacity(2 * hash.as_ref().len());
    for byte in hash.as_ref() {
        for digit in [byte >> 4, byte & 0xf] {
            let digit = char::from_digit(digit.into(), 16).unwrap_or_default();
            text.push(digit.to_ascii_uppercase());
        }
    }
    text
}
