//! The rules of validation as data: a check per line, in the files in `tables/`.
//!
//! A block per type of the schema has a line per check, in the order of upstream's errors. A
//! name after a slash distinguishes several blocks of one type.
//!
//! ```text
//! ContainerPort
//!   name: optional, port-name, unique
//!   containerPort: required, range 1 65535
//! ```
//!
//! A line begins with a field: its name, a dotted path, or `.` for the object itself; ` as ` gives
//! another name for errors, in which `.` is the object and each leading `^` goes up one level. Its
//! clauses run in order, until one finds an error or excuses the value. The text after ` -- ` is the
//! detail of the last clause's errors.
//!
//! | clause | effect |
//! |---|---|
//! | `present` | excuses null |
//! | `optional` | excuses Go's zero value |
//! | `on-create`, `on-update` | excuses updates, or creates |
//! | `with A B`, `absent A B` | excuses objects without one of these fields, or with one |
//! | `empty` | excuses all but Go's zero value |
//! | `filled FIELD`, `without FIELD` | excuses objects in which this field is empty, or filled |
//! | `some A B`, `several A B` | excuses objects without one, or two, of these fields |
//! | `differ A B` | excuses objects in which these fields are equal |
//! | `over FIELD N` | excuses objects in which this number is at most N |
//! | `if FIELD=A\|B`, `unless FIELD=A\|B` | excuses objects by the value of this field |
//! | `changed`, `added` | excuses the stored value, or an element of the stored list |
//! | `like A B`, `unlike A B` | excuses texts by their form, in which a `*` at an end means any text |
//! | `longer N`, `shorter N` | excuses other texts by their bytes, or lists by their elements |
//! | `negative`, `not-positive` | excuses other quantities |
//! | `pod`, `template`, `unnamed` | excuses pod templates, pods, or pods whose controller names them |
//! | `unless-stored BLOCK`, `if-stored BLOCK` | excuses values if the stored object breaks or keeps this block |
//! | `elements`, `values` | applies the rest to each element, with or without its index in errors |
//! | `entries` | applies the rest to each value of a map |
//! | `in BLOCK` | applies the block of a type |
//! | `by FUNCTION` | calls a function |
//! | `source NOUN`, `source-as NOUN NAME` | excuses absent fields, and forbids all but the first present one of the block, by another name |
//! | `some-source` | reports that no `source` of the block is present |
//! | `required`, `given`, `missing` | reports a zero value, null, or any value, as missing |
//! | `single` | reports lists of no or several elements, as missing |
//! | `invalid`, `forbidden`, `warn` | reports any value |
//! | `invalid-as JSON`, `invalid-here` | reports any value, and shows another one or none |
//! | `unsupported A B` | reports any value |
//! | `enum A B` | reports other texts; with a detail, as invalid |
//! | `range MIN MAX`, `min MIN`, `max MAX` | reports other numbers; absent counts as zero |
//! | `at-most FIELD`, `at-least FIELD`, `above FIELD` | reports a number by that of another field |
//! | `too-long N`, `most N` | reports texts of more bytes, lists of more elements |
//! | `only A B` | forbids all other fields of an object |
//! | `filled-text` | reports an empty text as invalid |
//! | `unique` | reports an earlier element's value; with a detail, as invalid |
//! | `not-less` | reports a number below the stored one |
//! | `immutable`, `sealed` | reports changes, as invalid or forbidden |
//! | others | report a wrong syntax |
//!
//! A field in a condition may begin with carets, which go up in the object. In `if` and `unless` it may
//! begin with `spec:`, which means the spec of the pod around it, or with `old:`, which means the stored
//! value.
//!
//! The engine knows no kind: the functions of `by`, and further checks and guards, are passed in.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use super::place::{Blocks, Context, Errors, Place, Pod, Shown};

/// Returns true if the value of an object needs the next checks.
pub(in crate::validation) type Guard = fn(of: &Place<'_>, value: &Place<'_>, args: &[&str]) -> bool;

/// Reports the errors of a value.
pub(in crate::validation) type Check = fn(&Place<'_>, args: &[&str], detail: &str, &mut Errors);

/// Returns the errors of a text.
pub(super) type Syntax = fn(&str) -> Vec<&'static str>;

/// Reports the errors of a value that no other clause describes.
pub(in crate::validation) type Hook = fn(&Place<'_>, &mut Errors);

/// The functions that rules call by name.
#[derive(Clone, Copy, Debug)]
pub(in crate::validation) struct Functions {
    /// The functions of `by`.
    pub hooks: &'static [(&'static str, Hook)],
    /// Checks besides those of the engine.
    pub checks: &'static [(&'static str, Check)],
    /// Guards besides those of the engine.
    pub guards: &'static [(&'static str, Guard)],
}

/// All blocks by name.
#[derive(Debug)]
pub(in crate::validation) struct Rules {
    pub(super) blocks: BTreeMap<&'static str, Rows>,
}

/// The checks of a block, parsed when they are first used.
pub(super) type Rows = LazyLock<Vec<Row>, Box<dyn FnOnce() -> Vec<Row> + Send>>;

/// The check of one field.
#[derive(Debug)]
pub(super) struct Row {
    /// The path of the field; `None` for the object itself.
    pub(super) member: Option<&'static str>,
    /// The field's name in errors.
    pub(super) shown: Shown<'static>,
    pub(super) clauses: Vec<Clause>,
}

/// A step of a check.
#[derive(Debug)]
pub(super) enum Clause {
    /// Ends the check without an error if the value is excused.
    Guard(Guard, Words),
    /// Ends the check if the stored object breaks the block, or if it doesn't.
    Stored { breaks: bool, block: &'static str },
    /// Reports errors.
    Check(Check, Words),
    /// Reports a wrong syntax; with a detail instead of the syntax's own.
    Syntax(Syntax, Words),
    /// Calls a function.
    By(Hook),
    /// Applies the next clauses to each element of a list.
    Elements,
    /// As `Elements`, with errors that name the list.
    Values,
    /// Applies the next clauses to each value of a map.
    Entries,
    /// Applies the rules of a type.
    In(&'static str),
    /// Allows one source per object: the noun of sources, and the name of others in errors.
    Source(&'static str, Option<&'static str>),
    /// Reports an object without a source.
    SomeSource(Words),
    /// Reports each value that an earlier element of the list has as well.
    Unique(Words),
}

/// The words of a clause.
#[derive(Clone, Debug, Default)]
pub(super) struct Words {
    pub(super) args: Vec<&'static str>,
    /// The detail of errors; empty for the check's own.
    pub(super) detail: &'static str,
}

/// The values of `unique` fields in the elements of a list.
type Seen = BTreeSet<(&'static str, String)>;

/// The findings of the rows of a block so far.
struct State<'s> {
    seen: &'s mut Seen,
    has_source: bool,
}

impl Blocks for Rules {
    fn check(&self, block: &str, place: &Place<'_>, errors: &mut Errors) {
        self.check_element(block, place, &mut Seen::new(), errors);
    }

    fn has(&self, block: &str) -> bool {
        self.blocks.contains_key(block)
    }

    fn breaks(&self, block: &str, place: &Place<'_>) -> bool {
        let mut errors = Errors::new();
        self.check(block, place, &mut errors);
        !errors.is_empty()
    }
}

impl Rules {
    fn check_element(&self, block: &str, place: &Place<'_>, seen: &mut Seen, errors: &mut Errors) {
        let mut state = State {
            seen,
            has_source: false,
        };
        let rows = self.blocks.get(block).map(|rows| rows.as_slice());
        for row in rows.unwrap_or_default() {
            match row.member {
                Some(member) => {
                    let value = place.member_shown(member, row.shown);
                    self.run(row, &row.clauses, place, &value, &mut state, errors);
                }
                None if row.shown == Shown::default() => {
                    self.run(row, &row.clauses, place, place, &mut state, errors);
                }
                None => {
                    let value = place.member_shown("", row.shown);
                    self.run(row, &row.clauses, place, &value, &mut state, errors);
                }
            }
        }
    }

    /// Runs clauses on a value of the object `of`.
    fn run(
        &self,
        row: &Row,
        clauses: &[Clause],
        of: &Place<'_>,
        value: &Place<'_>,
        state: &mut State<'_>,
        errors: &mut Errors,
    ) {
        let before = errors.len();
        for (i, clause) in clauses.iter().enumerate() {
            let rest = &clauses[i + 1..];
            let mut each = |elements: &mut dyn Iterator<Item = Place<'_>>| {
                let mut state = State {
                    seen: &mut Seen::new(),
                    has_source: false,
                };
                for element in elements {
                    self.run(row, rest, of, &element, &mut state, errors);
                }
            };
            match clause {
                Clause::Guard(guard, words) if guard(of, value, &words.args) => {}
                Clause::Stored { breaks, block } if self.stored(of.context, block) == *breaks => {}
                Clause::Guard(..) | Clause::Stored { .. } => return,
                Clause::Elements => return each(&mut value.elements()),
                Clause::Values => return each(&mut value.values()),
                Clause::Entries => return each(&mut value.entries().map(|(_, value)| value)),
                Clause::Check(check, words) => check(value, &words.args, words.detail, errors),
                Clause::Syntax(wrong, words) => {
                    let found = wrong(value.text());
                    match words.detail {
                        "" => value.invalid_for(found, errors),
                        detail if !found.is_empty() => errors.push(value.invalid(detail)),
                        _ => {}
                    }
                }
                Clause::By(hook) => hook(value, errors),
                Clause::In(block) => self.check_element(block, value, state.seen, errors),
                Clause::Source(..) if !value.is_present() => return,
                Clause::Source(noun, name) if state.has_source => {
                    let detail = format!("may not specify more than 1 {noun} type");
                    errors.push(match name {
                        Some(name) => of.member_as("", name).forbidden(&detail),
                        None => value.forbidden(&detail),
                    });
                }
                Clause::Source(..) => state.has_source = true,
                Clause::SomeSource(_) if state.has_source => {}
                Clause::SomeSource(words) => errors.push(value.required(words.detail)),
                Clause::Unique(words) => {
                    let is_new = state
                        .seen
                        .insert((row.member.unwrap_or_default(), value.text().to_owned()));
                    match words.detail {
                        _ if is_new => {}
                        "" => errors.push(value.duplicate()),
                        detail => errors.push(value.invalid(detail)),
                    }
                }
            }
            if errors.len() > before {
                return;
            }
        }
    }

    /// Returns true if the stored object, or the stored spec of the pod, breaks a block.
    fn stored(&self, context: &Context<'_>, block: &str) -> bool {
        let is_of_pod = block.starts_with("PodSpec");
        let old = match context.pod {
            Some(pod) if is_of_pod => pod.old,
            _ => context.old,
        };
        old.is_some_and(|old| {
            let pod = context.pod.map(|pod| Pod {
                spec: if is_of_pod { old } else { pod.spec },
                old: None,
                ..pod
            });
            let context = &Context {
                old: None,
                pod,
                ..*context
            };
            self.breaks(block, &Place::root(context, old, None, ""))
        })
    }
}

#[cfg(test)]
impl Rules {
    /// Returns the blocks that a line names but that don't exist.
    pub(in crate::validation) fn missing(&self) -> Vec<&'static str> {
        let mut missing = Vec::new();
        for row in self.blocks.values().flat_map(|rows| rows.iter()) {
            for clause in &row.clauses {
                if let Clause::In(block) | Clause::Stored { block, .. } = clause
                    && !self.blocks.contains_key(block)
                {
                    missing.push(*block);
                }
            }
        }
        missing
    }

    /// Returns the fields of each block.
    pub(in crate::validation) fn members(
        &self,
    ) -> impl Iterator<Item = (&'static str, Option<&'static str>)> {
        let blocks = self.blocks.iter();
        blocks.flat_map(|(block, rows)| rows.iter().map(|row| (*block, row.member)))
    }
}
