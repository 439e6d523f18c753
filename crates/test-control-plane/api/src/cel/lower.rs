//! Lowering for the interpreter: expands two-variable comprehensions, orders map iteration, and
//! inserts cost counters.

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue,
    MapEntryExpr, MapExpr, SelectExpr, StructExpr, operators,
};

use super::library::format;
use super::library::meter::{CHARGE, METER};
use super::library::open::OPEN;
use super::library::places::{INDEX_OF, LAST_INDEX_OF};
use super::library::readable::READ;
use super::library::regex::MATCHES;
use super::library::two_variables::{ORDERED, PAIRS};
use super::literals::each_inner;
use super::names::{OLD, OWN, without_dot};
use super::objects::MAKE;

/// The costs of lists and maps that an expression makes.
const LIST: u64 = 10;
const MAP: u64 = 30;

/// The cost of an object that an expression makes.
const STRUCT: u64 = 40;

/// A part of a pair: the variable of the pair, and the place in it.
type PartOfPair = (String, i64);

/// How an expression reads variables, fields and elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Reads {
    /// All of them are readable.
    #[default]
    Plain,
    /// Some aren't, so the expression checks each one. Only a test of presence doesn't read.
    Checked,
}

#[derive(Default)]
struct Lowering {
    reads: Reads,
    /// The names around a part, the innermost last; some are parts of a pair.
    names: Vec<(String, Option<PartOfPair>)>,
}

/// Returns the expression for the interpreter.
pub(super) fn lower(expression: &IdedExpr, reads: Reads) -> IdedExpr {
    let names = Vec::new();
    Lowering { reads, names }.part(expression)
}

/// Returns the cost of evaluating an expression once, without its loops.
pub(super) fn cost(part: &IdedExpr) -> u64 {
    let mut inner = 0;
    match &part.expr {
        Expr::Comprehension(of) => {
            return cost(&of.iter_range) + cost(&of.accu_init) + cost(&of.result);
        }
        Expr::Call(call) if call.func_name == operators::CONDITIONAL => {
            let mut costs = call.args.iter().map(cost);
            let condition = costs.next().unwrap_or(0);
            return condition + costs.max().unwrap_or(0);
        }
        _ => each_inner(part, &mut |part| inner += cost(part)),
    }
    inner
        + match &part.expr {
            Expr::List(_) => LIST,
            Expr::Map(_) => MAP,
            Expr::Struct(_) => STRUCT,
            Expr::Call(call)
                if [operators::LOGICAL_AND, operators::LOGICAL_OR]
                    .contains(&call.func_name.as_str()) =>
            {
                0
            }
            Expr::Literal(_) => 0,
            _ => 1,
        }
}

fn at(id: u64, expr: Expr) -> IdedExpr {
    IdedExpr { id, expr }
}

fn call(id: u64, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    let func_name = name.to_owned();
    let target = None;
    at(
        id,
        Expr::Call(CallExpr {
            func_name,
            target,
            args,
        }),
    )
}

fn number(id: u64, value: i64) -> IdedExpr {
    at(id, Expr::Literal(LiteralValue::Int(value.into())))
}

fn charged(cost: u64, part: IdedExpr) -> IdedExpr {
    let id = part.id;
    let meter = at(id, Expr::Ident(METER.to_owned()));
    let cost = number(id, i64::try_from(cost).unwrap_or(i64::MAX));
    call(id, CHARGE, vec![meter, cost, part])
}

/// Returns the function that replaces one of the interpreter's, which behaves otherwise than upstream's,
/// by the number of arguments with the target.
fn replacement(name: &str, arguments: usize) -> Option<&'static str> {
    match (name, arguments) {
        ("dyn", 1) => Some(OPEN),
        ("matches", 2) => Some(MATCHES),
        ("indexOf", 3) => Some(INDEX_OF),
        ("lastIndexOf", 3) => Some(LAST_INDEX_OF),
        _ => None,
    }
}

impl Lowering {
    fn part(&mut self, part: &IdedExpr) -> IdedExpr {
        let expr = match &part.expr {
            Expr::Ident(name) => return self.name(part.id, name),
            Expr::Select(select) => {
                let found = Expr::Select(SelectExpr {
                    operand: Box::new(self.part(&select.operand)),
                    ..select.clone()
                });
                return self.read(at(part.id, found), !select.test);
            }
            Expr::Call(call) => {
                let found = at(part.id, self.call(part.id, call));
                return self.read(found, call.func_name == operators::INDEX);
            }
            Expr::List(list) => {
                let mut list = list.clone();
                for element in &mut list.elements {
                    *element = self.part(element);
                }
                Expr::List(list)
            }
            Expr::Map(map) => {
                let mut map = map.clone();
                for entry in &mut map.entries {
                    if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                        entry.key = self.part(&entry.key);
                        entry.value = self.part(&entry.value);
                    }
                }
                Expr::Map(map)
            }
            Expr::Struct(made) => self.made(part.id, made),
            Expr::Comprehension(of) => {
                Expr::Comprehension(Box::new(self.comprehension(part.id, of)))
            }
            other => other.clone(),
        };
        at(part.id, expr)
    }

    /// Checks the value of a part, if that is one to read.
    fn read(&self, part: IdedExpr, is_read: bool) -> IdedExpr {
        match self.reads {
            Reads::Checked if is_read => call(part.id, READ, vec![part]),
            _ => part,
        }
    }

    /// Returns the call that makes an object.
    fn made(&mut self, id: u64, made: &StructExpr) -> Expr {
        let text = |text: &str| {
            let text = LiteralValue::String(text.to_owned().into());
            at(id, Expr::Literal(text))
        };
        let mut entries = Vec::new();
        for entry in &made.entries {
            if let EntryExpr::StructField(field) = &entry.expr {
                let member = MapEntryExpr {
                    key: text(&field.field),
                    value: self.part(&field.value),
                    optional: field.optional,
                };
                entries.push(IdedEntryExpr {
                    id: entry.id,
                    expr: EntryExpr::MapEntry(member),
                });
            }
        }
        let members = at(id, Expr::Map(MapExpr { entries }));
        call(id, MAKE, vec![text(&made.type_name), members]).expr
    }

    fn name(&self, id: u64, name: &str) -> IdedExpr {
        let name = without_dot(name);
        let known = self.names.iter().rev().find(|(known, _)| known == name);
        let Some((_, Some((pair, place)))) = known else {
            // The names of results begin with `@`, those of namespaces are unknown.
            let is_read = [OLD, OWN].contains(&name) || known.is_some() && !name.starts_with('@');
            return self.read(at(id, Expr::Ident(name.to_owned())), is_read);
        };
        let pair = at(id, Expr::Ident(pair.clone()));
        let part = call(id, operators::INDEX, vec![pair, number(id, *place)]);
        self.read(part, true)
    }

    fn call(&mut self, id: u64, of: &CallExpr) -> Expr {
        let target = of.target.as_deref();
        let is_of_formats = matches!(target.map(|target| &target.expr), Some(Expr::Ident(name)) if name == "format");
        if let Some(name) = format::constant(&of.func_name).filter(|_| is_of_formats) {
            let name = LiteralValue::String(name.to_owned().into());
            return Expr::Call(CallExpr {
                func_name: format::CONSTANT.to_owned(),
                target: None,
                args: vec![at(id, Expr::Literal(name))],
            });
        }
        let mut args: Vec<IdedExpr> = of.args.iter().map(|part| self.part(part)).collect();
        let target = target.map(|target| self.part(target));
        let Some(own) = replacement(&of.func_name, args.len() + usize::from(target.is_some()))
        else {
            return Expr::Call(CallExpr {
                func_name: of.func_name.clone(),
                target: target.map(Box::new),
                args,
            });
        };
        args.splice(0..0, target);
        call(id, own, args).expr
    }

    fn comprehension(&mut self, id: u64, of: &ComprehensionExpr) -> ComprehensionExpr {
        // An empty list only binds a name.
        let is_loop = !matches!(&of.iter_range.expr, Expr::List(list) if list.elements.is_empty());
        let range = self.part(&of.iter_range);
        let accu_init = self.part(&of.accu_init);
        let outer = self.names.len();
        self.names.push((of.accu_var.clone(), None));
        let (iter_var, iter_range) = if let Some(second) = &of.iter_var2 {
            let pair = format!("@pair{id}");
            self.names
                .push((of.iter_var.clone(), Some((pair.clone(), 0))));
            self.names.push((second.clone(), Some((pair.clone(), 1))));
            (pair, call(id, PAIRS, vec![range]))
        } else {
            self.names.push((of.iter_var.clone(), None));
            let range = if is_loop {
                call(id, ORDERED, vec![range])
            } else {
                range
            };
            (of.iter_var.clone(), range)
        };
        let mut loop_cond = self.part(&of.loop_cond);
        let mut loop_step = self.part(&of.loop_step);
        self.names.truncate(outer + 1);
        let result = self.part(&of.result);
        self.names.truncate(outer);
        if is_loop {
            let each = cost(&of.loop_cond).saturating_add(cost(&of.loop_step));
            if matches!(loop_cond.expr, Expr::Literal(_)) {
                charge_step(&mut loop_step, each);
            } else {
                loop_cond = charged(each, loop_cond);
            }
        }
        ComprehensionExpr {
            iter_range,
            iter_var,
            iter_var2: None,
            accu_var: of.accu_var.clone(),
            accu_init,
            loop_cond,
            loop_step,
            result,
        }
    }
}

/// Lets a step count its cost, without a change of its form: the interpreter appends in place.
fn charge_step(step: &mut IdedExpr, cost: u64) {
    let Expr::Call(call) = &mut step.expr else {
        return;
    };
    let inner = if call.func_name == operators::CONDITIONAL {
        call.args.first_mut()
    } else {
        call.args.last_mut()
    };
    let inner = match inner {
        Some(IdedExpr {
            expr: Expr::List(list),
            ..
        }) if call.func_name == operators::ADD => list.elements.first_mut(),
        other => other,
    };
    if let Some(inner) = inner {
        *inner = charged(cost, std::mem::take(inner));
    }
}
