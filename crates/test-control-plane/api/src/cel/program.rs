//! Compiled expressions.

use std::borrow::Cow;
use std::sync::Arc;

use cel::Context;
use cel::common::ast::IdedExpr;
use cel::common::types::{CelBool, CelString};
use cel::common::value::CowVal;

use super::check::{self, Fault};
use super::display::{self, Location};
use super::environment::ENVIRONMENT;
use super::failure::text_of;
pub(crate) use super::library::meter::LIMIT_EXCEEDED;
use super::library::meter::{CHARGE, METER, Meter};
use super::lower::Reads;
use super::names::{OLD, OWN, without_dot};
use super::scope::Scope;
use super::shape::Shape;
use super::types::Type;
use super::values::Value;
use super::{cost, literals, lower, plan};

/// The largest length of an expression, in characters.
const LENGTH_MAX: usize = 10_000;

/// The largest nesting of an expression.
///
/// Upstream: `maxRecursionDepth` of cel-go's parser
const DEPTH_MAX: usize = 250;

/// The stack, in bytes, for an expression of any nesting.
const PARSER_STACK: usize = 64 << 20;

/// Stack in bytes for deeply nested expressions.
const DEEP_STACK: usize = 32 << 20;

/// Nesting depth above which an expression needs `DEEP_STACK`.
const DEEP: usize = 24;

/// The tokens that may follow an operand.
const OPERATORS: [&str; 17] = [
    "'=='", "'!='", "'in'", "'<'", "'<='", "'>='", "'>'", "'&&'", "'||'", "'['", "'.'", "'-'",
    "'?'", "'+'", "'*'", "'/'", "'%'",
];

/// The type of an expression's result, as far as rules need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Text,
    Other,
}

/// A checked expression.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checked {
    /// The type of the result.
    pub(crate) kind: Kind,
    /// The largest cost, in units of upstream.
    pub(crate) cost: u64,
}

/// The result of an evaluation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Bool(bool),
    Text(String),
    Other,
}

/// The values of a rule's variables.
#[derive(Debug)]
pub(crate) struct Variables<'a> {
    /// The value.
    pub(crate) own: &'a Value,
    /// The value before an update.
    pub(crate) old: Option<&'a Value>,
    /// True if a part of a value is unreadable.
    pub(crate) has_unreadable: bool,
}

/// The result of an evaluation, with its cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Evaluation {
    /// The result. The text of an error is that of upstream, such as `no such key: x`.
    pub(crate) outcome: Result<Outcome, String>,
    /// The cost, in units of upstream. Sizes of texts and lists count in loops alone.
    pub(crate) cost: u64,
}

/// A parsed expression.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    parsed: Arc<cel::Program>,
    /// The expression for the interpreter, and the cost of evaluating it without its loops.
    lowered: Arc<IdedExpr>,
    cost: u64,
    source: Arc<str>,
    /// The names that the expression reads, among them those of its loops.
    names: Arc<[String]>,
    /// True if the expression has loops, which count their cost.
    has_loops: bool,
    is_deep: bool,
}

impl Program {
    /// Parses an expression.
    ///
    /// # Errors
    ///
    /// The syntax is wrong; the text shows where.
    pub(crate) fn parse(source: &str) -> Result<Self, String> {
        let first = Location { line: 1, column: 1 };
        let length = source.chars().count();
        if length > LENGTH_MAX {
            let text = format!(
                "expression code point size exceeds limit: size: {length}, limit {LENGTH_MAX}"
            );
            return Err(display::one("", first, &text));
        }
        stacker::grow(PARSER_STACK, || {
            let found = Self::parse_any(source)?;
            let depth = depth(found.parsed.expression());
            if depth > DEPTH_MAX {
                let text = format!("expression recursion limit exceeded: {DEPTH_MAX}");
                return Err(display::one(source, first, &text));
            }
            let is_deep = depth > DEEP;
            let root = found.parsed.expression();
            let (lowered, cost) = (
                Arc::new(lower::lower(root, Reads::Plain)),
                lower::cost(root),
            );
            let read = root.references();
            let names = read.variables();
            Ok(Self {
                has_loops: lowered.references().has_function(CHARGE),
                names: names
                    .into_iter()
                    .map(without_dot)
                    .map(str::to_owned)
                    .collect(),
                lowered,
                cost,
                is_deep,
                ..found
            })
        })
    }

    /// Runs a function that recurses into the expression.
    fn on_stack<T>(&self, run: impl FnOnce() -> T) -> T {
        if self.is_deep {
            stacker::grow(DEEP_STACK, run)
        } else {
            run()
        }
    }

    /// Parses an expression of any nesting.
    fn parse_any(source: &str) -> Result<Self, String> {
        let program = ENVIRONMENT.compile(source).map_err(|faults| {
            let messages: Vec<String> = faults
                .errors
                .iter()
                .map(|fault| {
                    let (line, column) = fault.pos;
                    let location = Location {
                        line: usize::try_from(line).unwrap_or(1).max(1),
                        column: usize::try_from(column).unwrap_or(1).max(1),
                    };
                    let message = without_operators(&fault.msg);
                    if source.is_empty() {
                        return format!("ERROR: <input>:1:0: {message}");
                    }
                    display::one(source, location, &message)
                })
                .collect();
            messages.join("\n")
        })?;
        Ok(Self {
            parsed: Arc::new(program),
            lowered: Arc::default(),
            cost: 0,
            source: source.into(),
            names: Arc::default(),
            has_loops: true,
            is_deep: true,
        })
    }

    /// Returns true if the expression reads the value before an update.
    pub(crate) fn reads_old(&self) -> bool {
        self.reads(OLD)
    }

    /// Returns true if the expression reads a variable. One of a loop may have the same name.
    pub(crate) fn reads(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    /// Checks types and literals, with variables of this shape. The value before an update is
    /// optional where `is_optional` is true.
    ///
    /// # Errors
    ///
    /// An expression doesn't fit; the text shows where.
    pub(crate) fn check(&self, shape: &Shape, is_optional: bool) -> Result<Checked, String> {
        self.on_stack(|| self.check_here(shape, is_optional))
    }

    fn check_here(&self, shape: &Shape, is_optional: bool) -> Result<Checked, String> {
        let old = if is_optional {
            Type::optional(shape.of.clone())
        } else {
            shape.of.clone()
        };
        let root = self.parsed.expression();
        let variables = [(OWN, shape.of.clone()), (OLD, old)];
        let types = self.types(&variables, false)?;
        let kind = match types.get(&root.id) {
            Some(Type::Bool) => Kind::Bool,
            Some(Type::String) => Kind::Text,
            _ => Kind::Other,
        };
        let cost = cost::largest(root, &types, shape);
        Ok(Checked { kind, cost })
    }

    fn to_display_string(&self, faults: &[Fault]) -> String {
        display::to_display_string(&self.source, faults, |fault| {
            let offset = self.parsed.source_info().offset_for(fault.id);
            let start = offset.and_then(|(start, _)| usize::try_from(start).ok());
            Location::of(&self.source, start.unwrap_or(0))
        })
    }

    /// Checks types and literals with these variables, and returns the type of the result. The
    /// expression may make objects and patches only if `makes_objects` is true.
    ///
    /// # Errors
    ///
    /// An expression doesn't fit; the text shows where.
    pub(crate) fn result_type(
        &self,
        declared: &[(&str, Type)],
        makes_objects: bool,
    ) -> Result<Type, String> {
        self.on_stack(|| {
            let types = self.types(declared, makes_objects)?;
            let root = self.parsed.expression();
            Ok(types.get(&root.id).cloned().unwrap_or(Type::Dyn))
        })
    }

    /// Computes the constants of a checked expression.
    ///
    /// # Errors
    ///
    /// One has no value.
    pub(crate) fn instantiate(&self) -> Result<(), String> {
        self.on_stack(|| plan::check(self.parsed.expression()))
    }

    fn types(
        &self,
        declared: &[(&str, Type)],
        makes_objects: bool,
    ) -> Result<check::Types, String> {
        let root = self.parsed.expression();
        let types = check::check(root, declared, makes_objects)
            .map_err(|faults| self.to_display_string(&faults))?;
        let mut faults = Vec::new();
        literals::check(root, &types, &mut faults);
        if !faults.is_empty() {
            return Err(self.to_display_string(&faults));
        }
        Ok(types)
    }

    /// Evaluates the expression with the variables of a scope and its own, unless that costs too
    /// much. Returns the value or upstream's text of the error, and the cost in units of upstream.
    pub(crate) fn run<'a>(
        &self,
        scope: &Scope,
        own: impl IntoIterator<Item = (&'a str, Value)>,
    ) -> (Result<Value, String>, u64) {
        let meter = Meter::default();
        meter.charge(self.cost);
        let mut context = scope.context().new_inner_scope();
        for (name, value) in own {
            context.add_variable_as_val(name, value);
        }
        if self.has_loops {
            context.add_variable_as_val(METER, Box::new(meter.clone()));
        }
        let found = self.on_stack(|| {
            let found = cel::Value::resolve_val(&self.lowered, &context);
            found
                .map(CowVal::into_owned)
                .map_err(|error| text_of(&error))
        });
        if meter.is_exceeded() {
            return (Err(LIMIT_EXCEEDED.to_owned()), meter.spent());
        }
        (found, meter.spent())
    }

    /// Evaluates the expression, unless that costs too much.
    pub(crate) fn evaluate(&self, variables: &Variables<'_>) -> Evaluation {
        let meter = Meter::default();
        meter.charge(self.cost);
        let mut context = Context::with_env(Arc::clone(&ENVIRONMENT));
        context.add_variable_as_val(OWN, variables.own.clone_as_boxed());
        if let Some(old) = variables.old {
            context.add_variable_as_val(OLD, old.clone_as_boxed());
        }
        if self.has_loops {
            context.add_variable_as_val(METER, Box::new(meter.clone()));
        }
        let outcome = self.on_stack(|| {
            if variables.has_unreadable {
                let root = self.parsed.expression();
                evaluate(&lower::lower(root, Reads::Checked), &context)
            } else {
                evaluate(&self.lowered, &context)
            }
        });
        // The operators `&&` and `||` may hide the error.
        let outcome = if meter.is_exceeded() {
            Err(LIMIT_EXCEEDED.to_owned())
        } else {
            outcome
        };
        Evaluation {
            outcome,
            cost: meter.spent(),
        }
    }
}

fn evaluate(expression: &IdedExpr, context: &Context<'_, '_>) -> Result<Outcome, String> {
    let found = cel::Value::resolve_val(expression, context);
    let found = found.map_err(|error| text_of(&error))?;
    let is_true = found.downcast_ref::<CelBool>().map(|found| *found.inner());
    let text = found.downcast_ref::<CelString<'_>>();
    Ok(match (is_true, text) {
        (Some(is_true), _) => Outcome::Bool(is_true),
        (None, Some(text)) => Outcome::Text(text.inner().to_owned()),
        (None, None) => Outcome::Other,
    })
}

/// Returns a message of the parser without the operators in its list of expected tokens: Go's
/// parser has left the loops over operators where it compares the token.
fn without_operators(message: &str) -> Cow<'_, str> {
    let Some((before, list)) = message.split_once(" expecting {") else {
        return Cow::Borrowed(message);
    };
    let list = list.strip_suffix('}').unwrap_or(list);
    if !OPERATORS.iter().all(|operator| list.contains(operator)) {
        return Cow::Borrowed(message);
    }
    let expected: Vec<&str> = list
        .split(", ")
        .filter(|token| !OPERATORS.contains(token))
        .collect();
    Cow::Owned(match expected.as_slice() {
        [token] => format!("{before} expecting {token}"),
        tokens => format!("{before} expecting {{{}}}", tokens.join(", ")),
    })
}

/// Returns the nesting of an expression.
fn depth(part: &IdedExpr) -> usize {
    let mut deepest = 0;
    literals::each_inner(part, &mut |inner| deepest = deepest.max(depth(inner)));
    deepest + 1
}
