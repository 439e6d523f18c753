//! An expression of a policy.

use std::sync::Arc;

use super::environment::Environment;
use crate::cel::objects::{OBJECT, PATCH};
use crate::cel::{Program, Type};

/// The types that the result of an expression may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Returns {
    /// Any.
    Anything,
    /// True or false.
    Bool,
    /// A text.
    Text,
    /// A text or null.
    TextOrNull,
    /// A whole object, made by the expression.
    Object,
    /// A list of operations of a JSON patch.
    Patch,
}

/// The reason why an expression has no program.
#[derive(Clone, Debug)]
pub(crate) enum CompileError {
    /// It is wrong.
    Invalid(String),
    /// One of its constants has no value, which upstream doesn't expect of a checked expression.
    Internal(String),
}

impl CompileError {
    fn text(&self) -> &str {
        match self {
            Self::Invalid(text) | Self::Internal(text) => text,
        }
    }
}

/// A compiled expression.
#[derive(Clone, Debug)]
pub(crate) struct Expression {
    source: Arc<str>,
    /// The program with the type of its result, or the error.
    compiled: Result<(Program, Type), CompileError>,
}

impl Expression {
    /// Compiles an expression.
    ///
    /// Upstream: `CompileCELExpression`
    pub(crate) fn compile(source: &str, environment: &Environment, returns: Returns) -> Self {
        Self {
            source: source.into(),
            compiled: compile(source, environment, returns),
        }
    }

    /// Returns the text.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// Returns the program, or the text of the compiler's error.
    pub(super) fn program(&self) -> Result<&Program, &str> {
        match &self.compiled {
            Ok((program, _)) => Ok(program),
            Err(error) => Err(error.text()),
        }
    }

    /// Returns the compiler's error.
    pub(crate) fn error(&self) -> Option<&CompileError> {
        self.compiled.as_ref().err()
    }

    /// Returns the type of the result; `None` if the expression is wrong.
    pub(crate) fn result_type(&self) -> Option<&Type> {
        self.compiled.as_ref().ok().map(|(_, of)| of)
    }
}

fn compile(
    source: &str,
    environment: &Environment,
    returns: Returns,
) -> Result<(Program, Type), CompileError> {
    let failed = |text| CompileError::Invalid(format!("compilation failed: {text}"));
    let program = Program::parse(source).map_err(failed)?;
    let declared = environment.declared();
    let of = program.result_type(&declared, environment.makes_objects);
    let of = of.map_err(failed)?;
    let expected = match (returns, &of) {
        (Returns::Anything, _)
        | (Returns::Bool, Type::Bool)
        | (Returns::Text | Returns::TextOrNull, Type::String)
        | (Returns::TextOrNull, Type::Null) => return instantiated(program, of),
        (Returns::Object, Type::Made(name)) if **name == *OBJECT => {
            return instantiated(program, of);
        }
        (Returns::Patch, Type::List(inner)) if **inner == Type::Made(PATCH.into()) => {
            return instantiated(program, of);
        }
        (Returns::Object, _) => "Object",
        (Returns::Patch, _) => "list(JSONPatch)",
        (Returns::Bool, _) => "bool",
        (Returns::Text, _) => "string",
        (Returns::TextOrNull, _) => "one of [string null_type]",
    };
    let text = format!("must evaluate to {expected} but got {}", name(&of));
    Err(CompileError::Invalid(text))
}

fn instantiated(program: Program, of: Type) -> Result<(Program, Type), CompileError> {
    let failed = |text| format!("program instantiation failed: {text}");
    let found = program.instantiate();
    found.map_err(|text| CompileError::Internal(failed(text)))?;
    Ok((program, of))
}

/// Returns the name of a type as cel-go's `Type.String` does, which differs from that in faults.
fn name(of: &Type) -> String {
    match of {
        Type::Null => "null_type".to_owned(),
        Type::Timestamp => "google.protobuf.Timestamp".to_owned(),
        Type::Duration => "google.protobuf.Duration".to_owned(),
        Type::List(of) => format!("list({})", name(of)),
        Type::Map(key, value) => format!("map({}, {})", name(key), name(value)),
        Type::Optional(of) => format!("optional_type({})", name(of)),
        Type::Meta(of) => format!("type({})", name(of)),
        other => other.to_string(),
    }
}
