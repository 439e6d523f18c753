//! The rules of validation as data: a check per line, in the files in `rules/`.
//!
//! A block per type of the schema has a line per check, in the order of the reference's errors. A
//! name after a slash distinguishes several blocks of one type.
//!
//! ```text
//! ContainerPort
//!   name: optional, port-name, unique
//!   containerPort: required, range 1 65535
//! ```
//!
//! A line begins with a member: its name, a dotted path, or `.` for the object itself; ` as ` gives
//! another name for errors. Its clauses run in order, until one finds an error or excuses the
//! value. The text after ` -- ` is the detail of the last clause's errors.
//!
//! | clause | effect |
//! |---|---|
//! | `present` | excuses null |
//! | `optional` | excuses Go's zero value |
//! | `on-create` | excuses updates |
//! | `with MEMBER` | excuses objects without this member |
//! | `if MEMBER=A\|B`, `unless MEMBER=A\|B` | excuses objects by the text of this member |
//! | `elements`, `values` | applies the rest to each element, with or without its index in errors |
//! | `in BLOCK` | applies the block of a type |
//! | `by FUNCTION` | calls a function |
//! | `required`, `invalid`, `forbidden` | reports a zero value, or any value |
//! | `enum A B` | reports other texts; with a detail, as invalid |
//! | `range MIN MAX`, `min MIN` | reports other numbers; absent counts as zero |
//! | `longest N` | reports texts of more bytes |
//! | `filled-text` | reports an empty text as invalid |
//! | `unique` | reports an earlier element's value |
//! | `immutable`, `sealed` | reports changes, as invalid or forbidden |
//! | others | report a wrong syntax |
//!
//! Upstream: `ValidateLabelSelector`, `ValidateLabelSelectorRequirement`, `ValidateLabelName`,
//! `ValidateStorageClass`, `ValidateStorageClassUpdate`, `ValidatePodStatusUpdate`,
//! `validateContainersOnlyForPod`, `ValidateHostAliases`, `validateAffinity`,
//! `ValidateNodeSelectorTerm`, `validateContainerPorts`, `validateResizePolicy`, `ValidateEnv`,
//! `validateConfigMapKeySelector`, `validateSecretKeySelector`, `validateReadinessGates`,
//! `validateLivenessProbe`, `validateReadinessProbe`, `validateStartupProbe`, `validateLifecycle`,
//! `validateKeyToPath`, `validateEndpointAddress`, `ValidateRoleBindingSubject`.

mod checks;
mod parse;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use super::place::{Errors, Place};
use checks::{Check, Guard, Hook, Syntax};

/// The parsed rules. They are immutable.
static RULES: LazyLock<Rules> = LazyLock::new(parse::parse);

/// All blocks by name.
#[derive(Debug, Default)]
struct Rules {
    blocks: BTreeMap<&'static str, Vec<Row>>,
    /// Lines that failed to parse; a test verifies that there are none.
    unread: Vec<&'static str>,
}

/// The check of one member.
#[derive(Debug)]
struct Row {
    /// The path of the member; `None` for the object itself.
    member: Option<&'static str>,
    /// The member's name in errors.
    shown: &'static str,
    clauses: Vec<Clause>,
}

/// A step of a check.
#[derive(Debug)]
enum Clause {
    /// Ends the check without an error if the value is excused.
    Guard(Guard, Words),
    /// Reports errors.
    Check(Check, Words),
    /// Reports a wrong syntax.
    Syntax(Syntax),
    /// Calls a function.
    By(Hook),
    /// Applies the next clauses to each element of a list.
    Elements,
    /// As `Elements`, with errors that name the list.
    Values,
    /// Applies the rules of a type.
    In(&'static str),
    /// Reports each value that an earlier element of the list has as well.
    Unique,
}

/// The words of a clause.
#[derive(Clone, Debug, Default)]
struct Words {
    args: Vec<&'static str>,
    /// The detail of errors; empty for the check's own.
    detail: &'static str,
}

/// The values of `unique` members in the elements of a list.
type Seen = BTreeSet<(&'static str, String)>;

/// Applies the block of this name, if there is one.
pub(super) fn check(block: &str, place: &Place<'_>, errors: &mut Errors) {
    check_element(block, place, &mut Seen::new(), errors);
}

fn check_element(block: &str, place: &Place<'_>, seen: &mut Seen, errors: &mut Errors) {
    for row in RULES.blocks.get(block).into_iter().flatten() {
        match row.member {
            Some(member) => {
                let value = place.member_as(member, row.shown);
                row.run(&row.clauses, place, &value, seen, errors);
            }
            None => row.run(&row.clauses, place, place, seen, errors),
        }
    }
}

impl Row {
    /// Runs clauses on a value of the object `of`.
    fn run(
        &self,
        clauses: &[Clause],
        of: &Place<'_>,
        value: &Place<'_>,
        seen: &mut Seen,
        errors: &mut Errors,
    ) {
        let before = errors.len();
        for (i, clause) in clauses.iter().enumerate() {
            let rest = &clauses[i + 1..];
            match clause {
                Clause::Guard(guard, words) if guard(of, value, &words.args) => {}
                Clause::Guard(..) => return,
                Clause::Check(check, words) => check(value, &words.args, words.detail, errors),
                Clause::Syntax(wrong) => value.invalid_for(wrong(value.text()), errors),
                Clause::By(hook) => hook(value, errors),
                Clause::In(block) => check_element(block, value, seen, errors),
                Clause::Unique => {
                    if !seen.insert((self.shown, value.text().to_owned())) {
                        errors.push(value.duplicate());
                    }
                }
                Clause::Elements => {
                    let mut seen = Seen::new();
                    let each = |element| self.run(rest, of, &element, &mut seen, errors);
                    return value.elements().for_each(each);
                }
                Clause::Values => {
                    let mut seen = Seen::new();
                    let each = |element| self.run(rest, of, &element, &mut seen, errors);
                    return value.values().for_each(each);
                }
            }
            if errors.len() > before {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kube_apimachinery::schema::{self, Type};
    use serde_json::json;

    use super::*;

    fn type_of(block: &str) -> Option<&'static Type> {
        schema::find_type(block).or_else(|| schema::find_type(block.split('/').next()?))
    }

    #[test]
    fn every_line_is_read() {
        assert_eq!(RULES.unread, Vec::<&str>::new());
    }

    #[test]
    fn every_block_is_a_type_and_every_member_exists() {
        for (block, rows) in &RULES.blocks {
            let of = type_of(block).unwrap_or_else(|| panic!("type {block}"));
            for row in rows {
                let mut at = Some(of);
                for step in row.member.into_iter().flat_map(|path| path.split('.')) {
                    let Some(holder) = at else { continue };
                    let field = holder.field(step);
                    at = field
                        .unwrap_or_else(|| panic!("{block}: {step}"))
                        .object_type();
                }
            }
        }
    }

    #[test]
    fn every_named_block_exists() {
        for row in RULES.blocks.values().flatten() {
            for clause in &row.clauses {
                if let Clause::In(block) = clause {
                    assert!(RULES.blocks.contains_key(block), "{block}");
                }
            }
        }
    }

    #[test]
    fn requirement_values_must_match_the_operator() {
        let selector = json!({
            "matchLabels": {"a": "b c"},
            "matchExpressions": [
                {"key": "a", "operator": "In"},
                {"key": "a", "operator": "Exists", "values": ["x"]},
                {"key": "", "operator": "X", "values": ["-"]},
                {"key": "a", "operator": "NotIn", "values": ["x"]},
            ],
        });
        let mut errors = Vec::new();
        let place = Place::new(&selector, "spec.selector");
        check("LabelSelector", &place, &mut errors);
        let fields: Vec<&str> = errors
            .iter()
            .filter_map(|error| error.field.strip_prefix("spec.selector."))
            .collect();
        assert_eq!(
            fields,
            [
                "matchLabels",
                "matchExpressions[0].values",
                "matchExpressions[1].values",
                "matchExpressions[2].operator",
                "matchExpressions[2].key",
                "matchExpressions[2].key",
                "matchExpressions[2].values[0]",
            ]
        );
    }
}
