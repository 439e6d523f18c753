//! Macros with two variables, and the order of maps.
//!
//! Upstream: `TwoVarComprehensions` of `cel-go/ext`

use std::cmp::Ordering;
use std::collections::HashMap;

use cel::common::ast::{
    CallExpr, ComprehensionExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr, operators,
};
use cel::common::types::{CelInt, CelList, CelMap, CelMapKey, DYN_TYPE, MAP_TYPE};
use cel::common::value::{CowVal, Val};
use cel::parser::{Macro, MacroExprHelper};
use cel::{DeclarationError, Env, ExecutionError, ParseError};

/// The function that returns the keys of a map in order, and any other value as it is.
pub(in crate::cel) const ORDERED: &str = "@ordered";

/// The function that returns the pairs of index and element, or of key and value.
pub(in crate::cel) const PAIRS: &str = "@pairs";

/// The function that returns a map with one more entry, or with those of another.
const INSERT: &str = "cel.@mapInsert";

/// The accumulator variable.
const ACCUMULATOR: &str = "@result";

type Answer<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

/// The parts of a comprehension that macros differ in.
struct Parts {
    start: Expr,
    condition: IdedExpr,
    step: IdedExpr,
    result: IdedExpr,
}

/// Makes the parts of a comprehension over a first variable of this name.
type Expander = fn(&mut MacroExprHelper<'_>, &str, Vec<IdedExpr>) -> Parts;

pub(super) fn add(environment: &mut Env) -> Result<(), DeclarationError> {
    environment.add_overload(ORDERED, "ordered", vec![DYN_TYPE], ordered)?;
    environment.add_overload(PAIRS, "pairs", vec![DYN_TYPE], pairs)?;
    environment.add_overload(INSERT, "insert", vec![MAP_TYPE, DYN_TYPE, DYN_TYPE], insert)?;
    environment.add_overload(INSERT, "insert_all", vec![MAP_TYPE, MAP_TYPE], insert_all)?;
    let macros: [(&str, usize, Expander); 9] = [
        ("all", 3, expand_all),
        ("exists", 3, expand_exists),
        ("existsOne", 3, expand_exists_one),
        ("transformList", 3, expand_list),
        ("transformList", 4, expand_list),
        ("transformMap", 3, expand_map),
        ("transformMap", 4, expand_map),
        ("transformMapEntry", 3, expand_map_entry),
        ("transformMapEntry", 4, expand_map_entry),
    ];
    for (name, count, parts) in macros {
        let expand = move |helper: &mut MacroExprHelper<'_>,
                           target: &mut Option<IdedExpr>,
                           arguments: &mut Vec<IdedExpr>| {
            expand(helper, target, arguments, parts).map(Some)
        };
        environment.add_macro(Macro::receiver(name, count, expand))?;
    }
    Ok(())
}

fn expand(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    arguments: &mut Vec<IdedExpr>,
    parts: Expander,
) -> Result<IdedExpr, ParseError> {
    let body = arguments.split_off(2);
    let mut names = Vec::new();
    for argument in arguments.drain(..) {
        match argument.expr {
            Expr::Ident(name) if names.contains(&name) => {
                let text = format!("duplicate variable name: {name}");
                return Err(helper.new_error(argument.id, text));
            }
            Expr::Ident(name) => names.push(name),
            _ => return Err(helper.new_error(argument.id, "argument must be a simple name")),
        }
    }
    let second = names.pop();
    let first = names.pop().unwrap_or_default();
    let parts = parts(helper, &first, body);
    let comprehension = ComprehensionExpr {
        iter_range: target.take().unwrap_or_default(),
        iter_var2: second,
        iter_var: first,
        accu_var: ACCUMULATOR.to_owned(),
        accu_init: helper.next_expr(parts.start),
        loop_cond: parts.condition,
        loop_step: parts.step,
        result: parts.result,
    };
    Ok(helper.next_expr(Expr::Comprehension(Box::new(comprehension))))
}

fn result(helper: &mut MacroExprHelper<'_>) -> IdedExpr {
    helper.next_expr(Expr::Ident(ACCUMULATOR.to_owned()))
}

fn truth(helper: &mut MacroExprHelper<'_>) -> IdedExpr {
    helper.next_expr(boolean(true))
}

fn boolean(value: bool) -> Expr {
    Expr::Literal(LiteralValue::Boolean(value.into()))
}

fn one() -> Expr {
    Expr::Literal(LiteralValue::Int(1.into()))
}

fn call(helper: &mut MacroExprHelper<'_>, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    let func_name = name.to_owned();
    let target = None;
    helper.next_expr(Expr::Call(CallExpr {
        func_name,
        target,
        args,
    }))
}

/// Returns `filter ? step : result`.
fn filtered(
    helper: &mut MacroExprHelper<'_>,
    filter: Option<IdedExpr>,
    step: IdedExpr,
) -> IdedExpr {
    let Some(filter) = filter else {
        return step;
    };
    let unchanged = result(helper);
    call(
        helper,
        operators::CONDITIONAL,
        vec![filter, step, unchanged],
    )
}

/// Takes the last argument, behind which a filter may remain.
fn last(mut body: Vec<IdedExpr>) -> (IdedExpr, Option<IdedExpr>) {
    let last = body.pop().unwrap_or_default();
    (last, body.pop())
}

fn expand_all(helper: &mut MacroExprHelper<'_>, _: &str, body: Vec<IdedExpr>) -> Parts {
    let (test, _) = last(body);
    let so_far = result(helper);
    let condition = call(helper, operators::NOT_STRICTLY_FALSE, vec![so_far]);
    let so_far = result(helper);
    Parts {
        start: boolean(true),
        condition,
        step: call(helper, operators::LOGICAL_AND, vec![so_far, test]),
        result: result(helper),
    }
}

fn expand_exists(helper: &mut MacroExprHelper<'_>, _: &str, body: Vec<IdedExpr>) -> Parts {
    let (test, _) = last(body);
    let so_far = result(helper);
    let not = call(helper, operators::LOGICAL_NOT, vec![so_far]);
    let condition = call(helper, operators::NOT_STRICTLY_FALSE, vec![not]);
    let so_far = result(helper);
    Parts {
        start: boolean(false),
        condition,
        step: call(helper, operators::LOGICAL_OR, vec![so_far, test]),
        result: result(helper),
    }
}

fn expand_exists_one(helper: &mut MacroExprHelper<'_>, _: &str, body: Vec<IdedExpr>) -> Parts {
    let (test, _) = last(body);
    let (so_far, added) = (result(helper), helper.next_expr(one()));
    let sum = call(helper, operators::ADD, vec![so_far, added]);
    let (count, wanted) = (result(helper), helper.next_expr(one()));
    Parts {
        start: Expr::Literal(LiteralValue::Int(0.into())),
        condition: truth(helper),
        step: filtered(helper, Some(test), sum),
        result: call(helper, operators::EQUALS, vec![count, wanted]),
    }
}

fn expand_list(helper: &mut MacroExprHelper<'_>, _: &str, body: Vec<IdedExpr>) -> Parts {
    let (element, filter) = last(body);
    let so_far = result(helper);
    let element = helper.next_expr(Expr::List(ListExpr::new(vec![element])));
    let step = call(helper, operators::ADD, vec![so_far, element]);
    Parts {
        start: Expr::List(ListExpr::default()),
        condition: truth(helper),
        step: filtered(helper, filter, step),
        result: result(helper),
    }
}

fn expand_map(helper: &mut MacroExprHelper<'_>, key: &str, body: Vec<IdedExpr>) -> Parts {
    inserting(helper, Some(key), body)
}

fn expand_map_entry(helper: &mut MacroExprHelper<'_>, _: &str, body: Vec<IdedExpr>) -> Parts {
    inserting(helper, None, body)
}

/// Inserts a value under the key of this name, or without a name the entries of a map.
fn inserting(helper: &mut MacroExprHelper<'_>, key: Option<&str>, body: Vec<IdedExpr>) -> Parts {
    let (value, filter) = last(body);
    let so_far = result(helper);
    let mut arguments = vec![so_far];
    arguments.extend(key.map(|key| helper.next_expr(Expr::Ident(key.to_owned()))));
    arguments.push(value);
    let step = call(helper, INSERT, arguments);
    Parts {
        start: Expr::Map(MapExpr::default()),
        condition: truth(helper),
        step: filtered(helper, filter, step),
        result: result(helper),
    }
}

/// Returns the keys of a map in order.
fn keys<'r, 'v>(map: &'r CelMap<'v>) -> Vec<&'r CelMapKey<'v>> {
    let mut keys: Vec<&CelMapKey<'v>> = map.inner().keys().collect();
    let order = |one: &dyn Val, other: &dyn Val| one.as_comparer()?.compare(other).ok();
    keys.sort_by(|one, other| order(one.inner(), other.inner()).unwrap_or(Ordering::Equal));
    keys
}

fn ordered<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let range = arguments.into_iter().next();
    let range = range.ok_or_else(ExecutionError::missing_argument_or_target)?;
    let Some(map) = range.downcast_ref::<CelMap<'v>>() else {
        return Ok(range);
    };
    let keys = keys(map)
        .into_iter()
        .map(|key| key.inner().clone_as_boxed());
    Ok(CowVal::owned(CelList::from(keys.collect::<Vec<_>>())))
}

fn pairs<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let range = arguments.into_iter().next();
    let range = range.ok_or_else(ExecutionError::missing_argument_or_target)?;
    let pair = |key: Box<dyn Val + 'v>, value: Box<dyn Val + 'v>| -> Box<dyn Val + 'v> {
        Box::new(CelList::from(vec![key, value]))
    };
    let mut found = Vec::new();
    if let Some(map) = range.downcast_ref::<CelMap<'v>>() {
        for key in keys(map) {
            if let Some(value) = map.inner().get(key) {
                found.push(pair(key.inner().clone_as_boxed(), value.clone_as_boxed()));
            }
        }
    } else {
        let elements = range.as_iterable();
        let elements = elements
            .ok_or_else(|| ExecutionError::function_error("comprehension", "no such overload"))?;
        let (mut elements, mut index) = (elements.iter(), 0);
        while let Some(element) = elements.next() {
            found.push(pair(
                Box::new(CelInt::from(index)),
                element.clone_as_boxed(),
            ));
            index += 1;
        }
    }
    Ok(CowVal::owned(CelList::from(found)))
}

/// Takes the map that is the first argument.
fn take_map<'v>(
    map: Option<CowVal<'_, 'v>>,
) -> Result<HashMap<CelMapKey<'v>, Box<dyn Val + 'v>>, ExecutionError> {
    let map = map.ok_or_else(ExecutionError::missing_argument_or_target)?;
    let map = map.downcast_ref::<CelMap<'v>>();
    let map = map.ok_or_else(ExecutionError::missing_argument_or_target)?;
    Ok(map.clone().into_inner())
}

fn put<'v>(
    map: &mut HashMap<CelMapKey<'v>, Box<dyn Val + 'v>>,
    key: CelMapKey<'v>,
    value: Box<dyn Val + 'v>,
) -> Result<(), ExecutionError> {
    if map.contains_key(&key) {
        let key = cel::objects::Key::from(key);
        let text = format!("insert failed: key {key} already exists");
        return Err(ExecutionError::function_error(INSERT, text));
    }
    map.insert(key, value);
    Ok(())
}

fn insert<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let mut arguments = arguments.into_iter();
    let mut map = take_map(arguments.next())?;
    let (Some(key), Some(value)) = (arguments.next(), arguments.next()) else {
        return Err(ExecutionError::missing_argument_or_target());
    };
    put(&mut map, CelMapKey::try_from(key)?, value.into_owned())?;
    Ok(CowVal::owned(CelMap::from(map)))
}

fn insert_all<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let mut arguments = arguments.into_iter();
    let mut map = take_map(arguments.next())?;
    for (key, value) in take_map(arguments.next())? {
        put(&mut map, key, value)?;
    }
    Ok(CowVal::owned(CelMap::from(map)))
}
