//! Named formats of texts.
//!
//! Upstream: `Format` of `k8s.io/apiserver/pkg/cel/library`

use std::any::Any;

use cel::common::types::{CelList, CelOptional, CelString, Type};
use cel::common::value::{StaticVal, Val};
use cel::{DeclarationError, Env, ExecutionError, add_member_overload, add_overload};

use crate::go::{names, strfmt, url};

/// Returns the errors of a text.
type Errors = fn(&str) -> Vec<String>;

/// The formats by name: each returns the errors of a text.
const FORMATS: [(&str, Errors); 14] = [
    ("byte", |text| known("byte", text, "invalid base64")),
    ("date", |text| known("date", text, "invalid date")),
    ("datetime", |text| {
        known("datetime", text, "invalid datetime")
    }),
    ("dns1035Label", |text| owned(names::letter_label(text))),
    ("dns1035LabelPrefix", |text| {
        owned(names::letter_label(&without_dash(text)))
    }),
    ("dns1123Label", |text| owned(names::dns_label(text))),
    ("dns1123LabelPrefix", |text| {
        owned(names::dns_label(&without_dash(text)))
    }),
    ("dns1123Subdomain", |text| owned(names::dns_subdomain(text))),
    ("dns1123SubdomainPrefix", |text| {
        owned(names::dns_subdomain(&without_dash(text)))
    }),
    ("labelValue", |text| owned(names::label_value(text))),
    ("portName", |text| owned(names::port_name(text))),
    ("qualifiedName", names::qualified_name),
    ("uri", |text| {
        url::check_request(text).err().into_iter().collect()
    }),
    ("uuid", |text| {
        known("uuid", text, "does not match the UUID format")
    }),
];

/// The function behind `format.NAME()`, which takes the name.
pub(in crate::cel) const CONSTANT: &str = "@format";

/// A format: its place among all.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Format(usize);

opaque!(Format, FORMAT, "kubernetes.NamedFormat");

pub(super) fn add(environment: &mut Env) -> Result<(), DeclarationError> {
    environment.add_type(FORMAT.to_owned())?;
    add_overload!(environment,
        fn named: (CelString<'_>) -> CelOptional<'_>, name = "format.named")?;
    add_overload!(environment, fn by_name: (CelString<'_>) -> Result<Format>, name = "@format")?;
    add_member_overload!(environment, fn validate: (Format, CelString<'_>) -> CelOptional<'_>)
}

/// Returns the name of a format, if it is one.
pub(in crate::cel) fn constant(function: &str) -> Option<&str> {
    place(function).map(|_| function)
}

fn place(name: &str) -> Option<usize> {
    FORMATS.iter().position(|(known, _)| *known == name)
}

fn by_name(name: &CelString<'_>) -> Result<Format, ExecutionError> {
    let found = place(name.inner()).map(Format);
    found.ok_or_else(|| ExecutionError::undeclared_reference(name.inner()))
}

fn named<'v>(name: &CelString<'_>) -> CelOptional<'v> {
    place(name.inner()).map_or_else(CelOptional::none, |place| {
        CelOptional::of(Box::new(Format(place)))
    })
}

/// Returns the errors of a text, if it has any.
fn validate<'v>(format: &Format, text: &CelString<'_>) -> CelOptional<'v> {
    let errors = FORMATS
        .get(format.0)
        .map(|(_, errors)| errors(text.inner()));
    let errors = errors.unwrap_or_default();
    if errors.is_empty() {
        return CelOptional::none();
    }
    let errors = errors.into_iter();
    let errors: Vec<Box<dyn Val>> = errors
        .map(|error| Box::new(CelString::from(error)) as Box<dyn Val>)
        .collect();
    CelOptional::of(Box::new(CelList::from(errors)))
}

fn owned(errors: Vec<&str>) -> Vec<String> {
    errors.into_iter().map(str::to_owned).collect()
}

fn known(format: &str, text: &str, error: &str) -> Vec<String> {
    let is_wrong = !strfmt::matches(format, text);
    is_wrong.then(|| error.to_owned()).into_iter().collect()
}

/// Returns a prefix as a whole name: with a letter instead of a dash at its end.
///
/// Upstream: `maskTrailingDash`
fn without_dash(text: &str) -> String {
    match text.strip_suffix('-').filter(|rest| !rest.is_empty()) {
        Some(rest) => format!("{rest}a"),
        None => text.to_owned(),
    }
}
