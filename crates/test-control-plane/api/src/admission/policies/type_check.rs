//! Warnings about the expressions of a `ValidatingAdmissionPolicy`, whose types are checked against
//! the schemas of the matched kinds.
//!
//! Upstream: `TypeChecker` of `k8s.io/apiserver/pkg/admission/plugin/policy/validating`

mod known_kinds;
mod matched;
mod schemas;

use serde_json::Value;

use super::environment::{Authorizers, Environment};
use crate::cel::{Program, Type};
use crate::members::{list, text};
pub use known_kinds::KnownKinds;

/// A warning about an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionWarning {
    /// The path of the expression.
    pub field_ref: String,
    /// The faults, for each kind where the expression has any.
    pub warning: String,
}

/// A kind with the variables of the expressions about its objects.
struct Context {
    /// The kind in messages.
    kind: String,
    variables: Vec<(&'static str, Type)>,
}

/// Returns the warnings about a policy's validations and their messages. Match conditions, variables
/// and audit annotations get none.
///
/// Upstream: `TypeChecker.Check`
pub fn type_check(policy: &Value, known: KnownKinds<'_>) -> Vec<ExpressionWarning> {
    let spec = policy.get("spec").unwrap_or(&Value::Null);
    let contexts = contexts(spec, known);
    let mut warnings = Vec::new();
    for (index, validation) in list(spec, "validations").enumerate() {
        for field in ["expression", "messageExpression"] {
            let source = text(validation, field);
            if field == "messageExpression" && source.is_empty() {
                continue;
            }
            let warning = check(source, &contexts);
            if !warning.is_empty() {
                warnings.push(ExpressionWarning {
                    field_ref: format!("spec.validations[{index}].{field}"),
                    warning,
                });
            }
        }
    }
    warnings
}

/// Returns the faults of an expression in each context.
///
/// Upstream: `CheckExpression`, `TypeCheckingResults.String`
fn check(source: &str, contexts: &[Context]) -> String {
    let parsed = Program::parse(source);
    let faults = contexts.iter().filter_map(|context| {
        let checked = parsed.as_ref().map_err(Clone::clone);
        let checked = checked.and_then(|program| program.result_type(&context.variables, false));
        let fault = checked.err()?;
        Some(format!("{}: {fault}\n", context.kind))
    });
    faults.collect::<Vec<_>>().join("\n")
}

/// Returns the contexts of a policy, one for each matched kind with a schema.
///
/// Upstream: `CreateContext`
fn contexts(spec: &Value, known: KnownKinds<'_>) -> Vec<Context> {
    let params = spec.get("paramKind").filter(|kind| kind.is_object());
    let params = params.map(|kind| {
        let (version, kind) = (text(kind, "apiVersion"), text(kind, "kind"));
        let mut kinds = known.kinds.iter();
        let found = kinds.find(|known| known.kind == kind && known.api_version() == version);
        let of = found.and_then(|kind| schemas::of_kind(kind, known));
        of.unwrap_or_default()
    });
    let variables = list(spec, "variables").map(|variable| {
        let program = Program::parse(text(variable, "expression"));
        (text(variable, "name"), program.ok())
    });
    let variables: Vec<_> = variables.collect();
    let kinds = matched::kinds(spec, known.kinds);
    let contexts = kinds.into_iter().filter_map(|kind| {
        let object = schemas::of_kind(kind, known)?;
        let mut environment = Environment {
            object,
            params: params.clone(),
            authorizers: Authorizers::Plain,
            variables: Some(Vec::new()),
            ..Environment::default()
        };
        for (name, program) in &variables {
            let declared = environment.declared();
            let program = program.as_ref();
            let of = program.and_then(|program| program.result_type(&declared, false).ok());
            environment.add_variable(name, of.as_ref());
        }
        let (group, version, name) = (&kind.group, &kind.version, &kind.kind);
        Some(Context {
            kind: format!("{group}/{version}, Kind={name}"),
            variables: environment.declared(),
        })
    });
    contexts.collect()
}
