//! Static type check of an expression.
//!
//! Upstream: `checker` of cel-go

use std::collections::HashMap;

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr,
    SelectExpr, StructExpr, operators,
};

use super::names::without_dot;
use super::objects;
use super::overloads::{self, Overload, TYPE_PARAMETERS};
use super::types::{Substitutions, Type, is_wider};

/// The types of an expression's parts, by their ids.
pub(super) type Types = HashMap<u64, Type>;

/// A fault of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// The part at fault.
    pub(super) id: u64,
    /// The text.
    pub(super) text: String,
}

/// The state of a check.
struct Checker {
    /// True if expressions may make objects and patches.
    makes_objects: bool,
    /// Variables with their types, the innermost last.
    scope: Vec<(String, Type)>,
    substitutions: Substitutions,
    types: Types,
    faults: Vec<Fault>,
}

/// Returns the types of an expression's parts, given those of its variables, or its faults.
pub(super) fn check(
    expression: &IdedExpr,
    variables: &[(&str, Type)],
    makes_objects: bool,
) -> Result<Types, Vec<Fault>> {
    let mut checker = Checker {
        makes_objects,
        scope: variables
            .iter()
            .map(|(name, of)| ((*name).to_owned(), of.clone()))
            .collect(),
        substitutions: Substitutions::default(),
        types: HashMap::new(),
        faults: Vec::new(),
    };
    checker.check(expression);
    if !checker.faults.is_empty() {
        return Err(checker.faults);
    }
    let Checker {
        substitutions,
        types,
        ..
    } = checker;
    let settled = types.into_iter();
    Ok(settled
        .map(|(id, of)| (id, substitutions.settle(&of)))
        .collect())
}

impl Checker {
    fn fault(&mut self, id: u64, text: String) -> Type {
        self.faults.push(Fault { id, text });
        Type::Error
    }

    fn check(&mut self, part: &IdedExpr) -> Type {
        let of = match &part.expr {
            Expr::Literal(value) => of_literal(value),
            Expr::Ident(name) => self.name(part.id, name),
            Expr::Select(select) => self.select(part, select),
            Expr::Call(call) => self.call(part.id, call),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map),
            Expr::Comprehension(loop_) => self.comprehension(loop_),
            Expr::Struct(made) => self.made(part.id, made),
            Expr::Unspecified => Type::Error,
        };
        self.types.insert(part.id, of.clone());
        of
    }

    /// Returns the type of an object that the expression makes.
    ///
    /// Upstream: `checkCreateStruct` of cel-go, with the types of `DynamicTypeResolver`
    fn made(&mut self, id: u64, made: &StructExpr) -> Type {
        let name = made.type_name.as_str();
        if !self.makes_objects || !objects::is_type(name) {
            return self.undeclared(id, name);
        }
        for entry in &made.entries {
            let EntryExpr::StructField(field) = &entry.expr else {
                continue;
            };
            let found = self.check(&field.value);
            let found = self.unwrapped(field.value.id, found, field.optional);
            let Some(expected) = objects::field(name, &field.field) else {
                let text = if name == objects::PATCH {
                    // Upstream's type of patches has all fields, the unknown ones without a type.
                    let found = self.substitutions.settle(&found);
                    let of = &field.field;
                    format!("expected type of field '{of}' is '' but provided type is '{found}'")
                } else {
                    format!("undefined field '{}'", field.field)
                };
                self.fault(entry.id, text);
                continue;
            };
            if !self.substitutions.fit(&found, &expected) {
                let found = self.substitutions.settle(&found);
                let text = format!(
                    "expected type of field '{}' is '{expected}' but provided type is '{found}'",
                    field.field
                );
                self.fault(entry.id, text);
            }
        }
        Type::Made(name.into())
    }

    /// Returns the type of a variable or of a type's name.
    fn find(&self, name: &str) -> Option<Type> {
        let name = without_dot(name);
        let variable = self.scope.iter().rev().find(|(known, _)| known == name);
        if let Some((_, of)) = variable {
            return Some(of.clone());
        }
        let made =
            || (self.makes_objects && objects::is_type(name)).then(|| Type::Made(name.into()));
        let of = overloads::type_named(name).or_else(made)?;
        Some(Type::Meta(Box::new(of)))
    }

    fn name(&mut self, id: u64, name: &str) -> Type {
        match self.find(name) {
            Some(of) => of,
            None => self.undeclared(id, name),
        }
    }

    fn undeclared(&mut self, id: u64, name: &str) -> Type {
        self.fault(
            id,
            format!("undeclared reference to '{name}' (in container '')"),
        )
    }

    fn select(&mut self, part: &IdedExpr, select: &SelectExpr) -> Type {
        if !select.test
            && let Some(name) = qualified_name(part)
            && let Some(of) = self.find(&name)
        {
            return of;
        }
        let operand = self.check(&select.operand);
        let field = self.field(part.id, &operand, &select.field);
        if select.test { Type::Bool } else { field }
    }

    /// Returns the type of a field.
    ///
    /// Upstream: `checkSelectField`
    fn field(&mut self, id: u64, operand: &Type, name: &str) -> Type {
        let operand = self.substitutions.resolve(operand);
        let (inner, is_optional) = match &operand {
            Type::Optional(inner) => (inner.as_ref(), true),
            other => (other, false),
        };
        let found = match inner {
            Type::Map(_, value) => value.as_ref().clone(),
            Type::Object(of) => match of.field(name) {
                Some(of) => of.clone(),
                None => self.fault(id, format!("undefined field '{name}'")),
            },
            Type::Made(of) => match objects::field(of, name) {
                Some(of) => of,
                None => self.fault(id, format!("undefined field '{name}'")),
            },
            Type::Param(_) => {
                self.substitutions.fit(&Type::Dyn, inner);
                Type::Dyn
            }
            Type::Opaque(name) if !overloads::WITHOUT_FIELDS.contains(name) => {
                self.fault(id, format!("unexpected failed resolution of '{name}'"))
            }
            open if open.is_open() => Type::Dyn,
            other => {
                let text = format!("type '{other}' does not support field selection");
                self.fault(id, text);
                Type::Dyn
            }
        };
        if is_optional {
            Type::optional(found)
        } else {
            found
        }
    }

    fn call(&mut self, id: u64, call: &CallExpr) -> Type {
        if call.func_name == operators::OPT_SELECT {
            return self.optional_select(id, call);
        }
        let global = call.target.as_deref().and_then(qualified_name);
        let global = global.map(|prefix| format!("{prefix}.{}", call.func_name));
        let global = global.filter(|name| !overloads::named(name).is_empty());
        let target = call.target.as_deref().filter(|_| global.is_none());
        let mut arguments: Vec<Type> = Vec::new();
        let of_arguments: Vec<Type> = call.args.iter().map(|part| self.check(part)).collect();
        if let Some(target) = target {
            arguments.push(self.check(target));
        }
        arguments.extend(of_arguments);
        let name = global.as_deref().unwrap_or(&call.func_name);
        let known = overloads::named(name);
        let is_hidden = name == objects::ESCAPE && !self.makes_objects;
        if known.is_empty() || is_hidden {
            return self.undeclared(id, name);
        }
        if name == operators::LOGICAL_AND || name == operators::LOGICAL_OR {
            return self.logical(&call.args, &arguments);
        }
        let is_method = target.is_some();
        self.resolve(known, &arguments, is_method)
            .unwrap_or_else(|| {
                let shown = self.signature(&arguments, is_method);
                let text = format!("found no matching overload for '{name}' applied to '{shown}'");
                self.fault(id, text)
            })
    }

    /// Returns the type of a logical operation, which reports each operand at fault.
    fn logical(&mut self, operands: &[IdedExpr], types: &[Type]) -> Type {
        let mut result = Type::Bool;
        for (operand, found) in operands.iter().zip(types) {
            if !self.substitutions.fit(found, &Type::Bool) {
                result = self.fault(operand.id, mismatch(&Type::Bool, found));
            }
        }
        result
    }

    /// Returns the result of the overloads that fit.
    ///
    /// Upstream: `resolveOverload`
    fn resolve(&mut self, known: &[Overload], arguments: &[Type], is_method: bool) -> Option<Type> {
        let mut result: Option<Type> = None;
        for overload in known {
            if overload.is_method != is_method || overload.parameters.len() != arguments.len() {
                continue;
            }
            let fresh: Vec<Type> = (0..TYPE_PARAMETERS)
                .map(|_| self.substitutions.add())
                .collect();
            let mut own = |number: usize| fresh.get(number).cloned().unwrap_or(Type::Dyn);
            let parameters = overload.parameters.iter();
            let pairs: Vec<(Type, Type)> = arguments
                .iter()
                .cloned()
                .zip(parameters.map(|of| of.replaced(&mut own)))
                .collect();
            if !self.substitutions.fit_all(&pairs) {
                continue;
            }
            let found = overload.result.replaced(&mut own);
            let found = self.substitutions.resolve(&found);
            result = Some(match result {
                None => found,
                Some(before) if before == found => before,
                Some(_) => Type::Dyn,
            });
        }
        result
    }

    fn signature(&self, arguments: &[Type], is_method: bool) -> String {
        let shown: Vec<String> = arguments
            .iter()
            .map(|of| self.substitutions.settle(of).to_string())
            .collect();
        match shown.split_first() {
            Some((receiver, rest)) if is_method => format!("{receiver}.({})", rest.join(", ")),
            _ => format!("({})", shown.join(", ")),
        }
    }

    /// Returns the type of `operand.?member`.
    fn optional_select(&mut self, id: u64, call: &CallExpr) -> Type {
        let [operand, member] = call.args.as_slice() else {
            return Type::Error;
        };
        let Expr::Literal(LiteralValue::String(name)) = &member.expr else {
            return self.fault(id, "unsupported optional field selection".to_owned());
        };
        self.types.insert(member.id, Type::String);
        let operand = self.check(operand);
        match self.field(id, &operand, name.inner()) {
            Type::Optional(of) => Type::Optional(of),
            of => Type::optional(of),
        }
    }

    fn list(&mut self, list: &ListExpr) -> Type {
        let mut element: Option<Type> = None;
        for (index, part) in list.elements.iter().enumerate() {
            let found = self.check(part);
            let is_optional = list.optional_indices.contains(&index);
            let found = self.unwrapped(part.id, found, is_optional);
            element = Some(self.join(element, found));
        }
        Type::list(element.unwrap_or_else(|| self.substitutions.add()))
    }

    fn map(&mut self, map: &MapExpr) -> Type {
        let (mut keys, mut values) = (None, None);
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else {
                continue;
            };
            let key = self.check(&entry.key);
            keys = Some(self.join(keys, key));
            let value = self.check(&entry.value);
            let value = self.unwrapped(entry.value.id, value, entry.optional);
            values = Some(self.join(values, value));
        }
        let key = keys.unwrap_or_else(|| self.substitutions.add());
        Type::map(key, values.unwrap_or_else(|| self.substitutions.add()))
    }

    /// Returns the type of an element marked with `?`.
    fn unwrapped(&mut self, id: u64, found: Type, is_optional: bool) -> Type {
        if !is_optional {
            return found;
        }
        match self.substitutions.resolve(&found) {
            Type::Optional(inner) => *inner,
            open if open.is_open() => open,
            other => {
                let expected = Type::optional(other.clone());
                self.fault(id, mismatch(&expected, &other))
            }
        }
    }

    /// Returns the type of elements so far and another.
    fn join(&mut self, before: Option<Type>, found: Type) -> Type {
        match before {
            None => found,
            Some(before) if self.substitutions.fit(&before, &found) => {
                if is_wider(&before, &found) {
                    before
                } else {
                    found
                }
            }
            Some(_) => Type::Dyn,
        }
    }

    fn comprehension(&mut self, of: &ComprehensionExpr) -> Type {
        let found = self.check(&of.iter_range);
        let range = self.substitutions.resolve(&found);
        let (key, value) = match &range {
            Type::List(element) => (Type::Int, element.as_ref().clone()),
            Type::Map(key, value) => (key.as_ref().clone(), value.as_ref().clone()),
            Type::Param(_) => {
                self.substitutions.fit(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            open if open.is_open() => (Type::Dyn, Type::Dyn),
            other => {
                let text = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be \
                     list, map, or dynamic)"
                );
                self.fault(of.iter_range.id, text);
                (Type::Error, Type::Error)
            }
        };
        let accumulated = self.check(&of.accu_init);
        let outer = self.scope.len();
        self.scope.push((of.accu_var.clone(), accumulated.clone()));
        let inner = self.scope.len();
        if let Some(name) = &of.iter_var2 {
            self.scope.push((of.iter_var.clone(), key));
            self.scope.push((name.clone(), value));
        } else {
            let is_list = matches!(range, Type::List(_));
            let one = if is_list { value } else { key };
            self.scope.push((of.iter_var.clone(), one));
        }
        let condition = self.check(&of.loop_cond);
        self.expect(of.loop_cond.id, &condition, &Type::Bool);
        let step = self.check(&of.loop_step);
        self.expect(of.loop_step.id, &step, &accumulated);
        self.scope.truncate(inner);
        let result = self.check(&of.result);
        self.scope.truncate(outer);
        self.substitutions.resolve(&result)
    }

    fn expect(&mut self, id: u64, found: &Type, wanted: &Type) {
        if !self.substitutions.fit(found, wanted) {
            let found = self.substitutions.settle(found);
            let wanted = self.substitutions.settle(wanted);
            self.fault(id, mismatch(&wanted, &found));
        }
    }
}

fn mismatch(expected: &Type, found: &Type) -> String {
    format!("expected type '{expected}' but found '{found}'")
}

fn of_literal(value: &LiteralValue) -> Type {
    match value {
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::Bytes(_) => Type::Bytes,
        LiteralValue::Double(_) => Type::Double,
        LiteralValue::Int(_) => Type::Int,
        LiteralValue::Null => Type::Null,
        LiteralValue::String(_) => Type::String,
        LiteralValue::UInt(_) => Type::Uint,
    }
}

/// Returns the dotted name that an expression spells.
pub(super) fn qualified_name(part: &IdedExpr) -> Option<String> {
    match &part.expr {
        Expr::Ident(name) => Some(without_dot(name).to_owned()),
        Expr::Select(select) if !select.test => {
            let prefix = qualified_name(&select.operand)?;
            Some(format!("{prefix}.{}", select.field))
        }
        _ => None,
    }
}
