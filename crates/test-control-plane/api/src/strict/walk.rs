//! The search for unknown and repeated fields of a body, in text order.

use std::collections::BTreeSet;
use std::fmt;

use kube_apimachinery::schema::Kind as ValueKind;

use crate::go::json::cursor::{Cursor, push_index};
use crate::go::json::read::Expect;
use crate::go::json::syntax_error;
use crate::kinds::{Kind, type_in};
use crate::patch::MEMBERS;
use crate::settings::EmulatedVersion;

/// Maximum number of reported findings.
///
/// Upstream: `saveStrictError` of `sigs.k8s.io/json`
const FINDINGS_MAX: usize = 100;

/// A finding, with the path of the field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// The schema doesn't know the field.
    Unknown(String),
    /// The field is repeated in its object.
    Repeated(String),
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(path) => write!(f, "unknown field {path:?}"),
            Self::Repeated(path) => write!(f, "duplicate field {path:?}"),
        }
    }
}

/// Finds repeated fields, and those that a version doesn't know. Returns none for invalid JSON,
/// which the decoder reports.
pub(super) fn walk(kind: &Kind, version: EmulatedVersion, text: &[u8]) -> Vec<Finding> {
    let found = type_in(kind, version.schema());
    run(found.map_or(Expect::Anything, Expect::Object), text)
}

/// Finds repeated fields in any JSON text.
pub(super) fn repeated(text: &[u8]) -> Vec<Finding> {
    run(Expect::Anything, text)
}

/// Finds repeated and unknown fields of the operations of a JSON patch.
pub(super) fn operations(text: &[u8]) -> Vec<Finding> {
    if syntax_error(text).is_some() {
        return Vec::new();
    }
    let mut walk = Walk::new(text);
    let mut more = walk.cursor.open(b'[', b']');
    for index in 0.. {
        if !more {
            break;
        }
        push_index(&mut walk.path, index);
        if walk.cursor.peek() == b'{' {
            walk.members(&|name| MEMBERS.contains(&name), Expect::Anything, 1);
        } else {
            walk.cursor.raw();
        }
        walk.path.clear();
        more = walk.cursor.next(b']');
    }
    walk.found
}

/// Returns true if JSON text has repeated fields.
pub fn has_repeated(text: &[u8]) -> bool {
    !repeated(text).is_empty()
}

fn run(expect: Expect, text: &[u8]) -> Vec<Finding> {
    if syntax_error(text).is_some() {
        return Vec::new();
    }
    let mut walk = Walk::new(text);
    walk.value(expect, 0);
    walk.found
}

/// Maximum depth of the search.
const DEPTH_MAX: usize = 200;

/// The position and the findings of the search.
struct Walk<'a> {
    cursor: Cursor<'a>,
    path: String,
    found: Vec<Finding>,
}

impl<'a> Walk<'a> {
    fn new(text: &'a [u8]) -> Self {
        Self {
            cursor: Cursor::new(text),
            path: String::new(),
            found: Vec::new(),
        }
    }

    fn note(&mut self, finding: Finding) {
        if self.found.len() < FINDINGS_MAX && !self.found.contains(&finding) {
            self.found.push(finding);
        }
    }

    fn value(&mut self, expect: Expect, depth: usize) {
        // The search skips fields that Go stores verbatim or decodes by hand.
        let is_raw = matches!(
            expect,
            Expect::One(ValueKind::Raw) | Expect::Json | Expect::Either(_)
        ) || depth > DEPTH_MAX;
        match self.cursor.peek() {
            b'{' if !is_raw => match expect {
                Expect::Object(found) => {
                    self.members(&|name| found.field(name).is_some(), expect, depth);
                }
                _ => self.members(&|_| true, expect, depth),
            },
            b'[' if !is_raw => self.list(expect, depth),
            _ => {
                self.cursor.raw();
            }
        }
    }

    fn members(&mut self, is_known: &dyn Fn(&str) -> bool, expect: Expect, depth: usize) {
        let mut seen = BTreeSet::new();
        let holder = self.path.len();
        let mut more = self.cursor.open(b'{', b'}');
        while more {
            let name = self.cursor.name();
            if holder > 0 {
                self.path.push('.');
            }
            self.path.push_str(&name);
            let is_unknown = !is_known(&name);
            let inner = expect.step(&name);
            let is_repeated = !seen.insert(name);
            if is_repeated || is_unknown {
                let path = self.path.clone();
                self.note(if is_repeated {
                    Finding::Repeated(path)
                } else {
                    Finding::Unknown(path)
                });
                self.cursor.raw();
            } else {
                self.value(inner, depth + 1);
            }
            self.path.truncate(holder);
            more = self.cursor.next(b'}');
        }
    }

    fn list(&mut self, expect: Expect, depth: usize) {
        let expect = match expect {
            Expect::List(kind) => Expect::of(kind),
            _ => Expect::Anything,
        };
        let holder = self.path.len();
        let mut more = self.cursor.open(b'[', b']');
        for index in 0.. {
            if !more {
                break;
            }
            push_index(&mut self.path, index);
            self.value(expect, depth + 1);
            self.path.truncate(holder);
            more = self.cursor.next(b']');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(kind: &str, text: &str) -> Vec<String> {
        let version = if kind == "StatefulSet" {
            "apps/v1"
        } else {
            "v1"
        };
        let kind = crate::kinds::by_kind(version, kind).unwrap();
        walk(kind, EmulatedVersion::default(), text.as_bytes())
            .iter()
            .map(Finding::to_string)
            .collect()
    }

    #[test]
    fn repeated_members_are_found_at_any_depth() {
        let text = r#"{"a":{"b":1,"b":2},"c":[{"d":1},{"d":1,"d":null}],"e":"x"}"#;
        let found: Vec<String> = repeated(text.as_bytes())
            .iter()
            .map(Finding::to_string)
            .collect();
        let expected = ["duplicate field \"a.b\"", "duplicate field \"c[1].d\""];
        assert_eq!(found, expected);
        assert!(repeated(b"no json").is_empty());
    }

    #[test]
    fn findings_are_unique_and_limited() {
        let twice = r#"{"a":1,"a":2,"a":3}"#;
        assert_eq!(repeated(twice.as_bytes()).len(), 1);
        let many: Vec<String> = (0..200).map(|i| format!("\"m{i}\":1")).collect();
        let found = found("ConfigMap", &format!("{{{}}}", many.join(",")));
        assert_eq!(found.len(), FINDINGS_MAX);
        assert_eq!(found[99], "unknown field \"m99\"");
    }

    #[test]
    fn unknown_members_are_found_in_text_order() {
        let text = r#"{"kind":"StatefulSet","spec":{"template":{"spec":{"containers":[
            {"name":"c","imagee":{"x":1},"resources":{"limits":{"any":1}}}]}},"replica":3,
            "replicas":1,"replicas":2},"metadata":{"labels":{"any":"x"}},"Spec":{}}"#;
        let expected = [
            "unknown field \"spec.template.spec.containers[0].imagee\"",
            "unknown field \"spec.replica\"",
            "duplicate field \"spec.replicas\"",
            "unknown field \"Spec\"",
        ];
        assert_eq!(found("StatefulSet", text), expected);
    }

    #[test]
    fn members_of_all_kinds_are_known() {
        let unknown = crate::kinds::KINDS
            .iter()
            .filter(|kind| type_in(kind, EmulatedVersion::default().schema()).is_none());
        let unknown: Vec<&str> = unknown.map(|kind| &*kind.kind).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        let text = r#"{"dat":{},"data":{"a":"b"},"metadata":{"label":{}}}"#;
        let expected = ["unknown field \"dat\"", "unknown field \"metadata.label\""];
        assert_eq!(found("ConfigMap", text), expected);
        let text = r#"{"spec":{"container":[]},"status":{"any":1},"stat":1}"#;
        let expected = [
            "unknown field \"spec.container\"",
            "unknown field \"status.any\"",
            "unknown field \"stat\"",
        ];
        assert_eq!(found("Pod", text), expected);
        let expected = ["unknown field \"any\""];
        assert_eq!(found("Event", r#"{"any":1}"#), expected);
    }
}
