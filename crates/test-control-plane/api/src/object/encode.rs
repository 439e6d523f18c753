//! Encoding of objects as JSON text like Go's: fields in Go's declaration order, Go's escapes, raw
//! text verbatim.

use kube_apimachinery::json::{may_need_escapes, write_go, write_go_str};
use kube_apimachinery::schema::{Kind, Type};
use serde_json::{Map, Value};

use crate::go::json::held;
use crate::go::json::read::Expect;
use crate::managed_fields::sorted_fields;

/// The text of an object, and a flag for held raw text in it.
pub(super) struct Encoder {
    pub(super) text: Vec<u8>,
    pub(super) has_held: bool,
    /// Offset of the fields after the kind and apiVersion of a Go type, which come first.
    pub(super) after_type_meta: usize,
}

/// The owner of the `managedFields` around a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    Root,
    Metadata,
    Inside,
}

/// Returns the place of a field in the text of an object: kind, apiVersion, then the type's fields.
pub(super) fn place(of: &Type, name: &str) -> (u8, usize) {
    match name {
        "kind" => (0, 0),
        "apiVersion" => (1, 0),
        _ => {
            let declared = of.fields.iter().position(|field| field.name == name);
            (2, declared.unwrap_or(usize::MAX))
        }
    }
}

impl Encoder {
    /// Appends the field `name` of an object of type `of`.
    pub(super) fn root_member(&mut self, of: Option<&'static Type>, name: &str, value: &Value) {
        self.name(name);
        let expect = of.map_or(Expect::Anything, Expect::Object);
        self.member(expect, Scope::Root, name, value);
    }

    /// Appends a field's name and a colon.
    pub(super) fn name(&mut self, name: &str) {
        self.string(name);
        self.text.push(b':');
    }

    fn member(&mut self, expect: Expect, scope: Scope, name: &str, value: &Value) {
        let scope = match (scope, name) {
            (Scope::Root, "metadata") | (Scope::Metadata, _) => Scope::Metadata,
            _ => Scope::Inside,
        };
        self.value(expect.step(name), scope, value);
    }

    fn value(&mut self, expect: Expect, scope: Scope, value: &Value) {
        match (expect, value) {
            (Expect::One(Kind::Raw), Value::String(text)) => {
                self.has_held = true;
                self.text.extend_from_slice(&held::json(text));
            }
            (Expect::One(Kind::Raw), value) if scope == Scope::Metadata => self.fields(value),
            (Expect::Object(_) | Expect::Either(_) | Expect::Map(_), Value::Object(members)) => {
                self.object(expect, scope, members);
            }
            (Expect::List(kind), Value::Array(elements)) => {
                self.elements(Expect::of(kind), scope, elements);
            }
            (Expect::Either(of), Value::Array(elements)) => {
                self.elements(Expect::Object(of), scope, elements);
            }
            (_, value) => self.generic(value),
        }
    }

    fn elements(&mut self, expect: Expect, scope: Scope, elements: &[Value]) {
        self.text.push(b'[');
        for (index, element) in elements.iter().enumerate() {
            if index > 0 {
                self.text.push(b',');
            }
            self.value(expect, scope, element);
        }
        self.text.push(b']');
    }

    fn object(&mut self, expect: Expect, scope: Scope, members: &Map<String, Value>) {
        let mut members: Vec<(&String, &Value)> = members.iter().collect();
        if let Expect::Object(found) | Expect::Either(found) = expect {
            let declared = |name: &str| found.fields.iter().position(|field| field.name == name);
            members.sort_by_cached_key(|(name, _)| declared(name).unwrap_or(usize::MAX));
        }
        self.text.push(b'{');
        for (index, (name, value)) in members.into_iter().enumerate() {
            if index > 0 {
                self.text.push(b',');
            }
            self.name(name);
            self.member(expect, scope, name, value);
        }
        self.text.push(b'}');
    }

    /// Encodes a field set, with entries sorted by path element.
    fn fields(&mut self, value: &Value) {
        let Value::Object(members) = value else {
            return self.generic(value);
        };
        self.text.push(b'{');
        for (index, (name, value)) in sorted_fields(members).into_iter().enumerate() {
            if index > 0 {
                self.text.push(b',');
            }
            self.name(name);
            self.fields(value);
        }
        self.text.push(b'}');
    }

    fn string(&mut self, text: &str) {
        if !may_need_escapes(text) {
            self.text.push(b'"');
            self.text.extend_from_slice(text.as_bytes());
            self.text.push(b'"');
            return;
        }
        let mut quoted = String::with_capacity(text.len() + 2);
        write_go_str(text, &mut quoted);
        self.text.extend_from_slice(quoted.as_bytes());
    }

    fn generic(&mut self, value: &Value) {
        if let Value::String(text) = value {
            return self.string(text);
        }
        let mut text = String::new();
        write_go(value, &mut text);
        self.text.extend_from_slice(text.as_bytes());
    }
}
