//! Checks of constant formats with the types of their arguments.
//!
//! Upstream: `stringFormatValidator` of cel-go

use cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue};

use crate::cel::check::{Fault, Types};
use crate::cel::types::Type;

/// What a format does with an argument, and what it says about one of a wrong type.
struct Clause {
    takes: fn(&Type) -> bool,
    wrong: &'static str,
}

const TEXT: Clause = Clause {
    takes: |of| {
        !matches!(
            of,
            Type::Opaque(_) | Type::Optional(_) | Type::Made(_) | Type::Object(_)
        )
    },
    wrong: "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, \
            types, durations, and timestamps",
};
const DECIMAL: Clause = Clause {
    takes: |of| matches!(of, Type::Int | Type::Uint),
    wrong: "decimal clause can only be used on integers",
};
const FIXED: Clause = Clause {
    takes: |of| matches!(of, Type::Double | Type::String),
    wrong: "fixed-point clause can only be used on doubles",
};
const SCIENTIFIC: Clause = Clause {
    takes: |of| matches!(of, Type::Double | Type::String),
    wrong: "scientific clause can only be used on doubles",
};
const BINARY: Clause = Clause {
    takes: |of| matches!(of, Type::Int | Type::Uint | Type::Bool),
    wrong: "only integers and bools can be formatted as binary",
};
const HEX: Clause = Clause {
    takes: |of| matches!(of, Type::Int | Type::Uint | Type::String | Type::Bytes),
    wrong: "only integers, byte buffers, and strings can be formatted as hex",
};
const OCTAL: Clause = Clause {
    takes: |of| matches!(of, Type::Int | Type::Uint),
    wrong: "octal clause can only be used on integers",
};

/// Adds the fault of a call of `format` on a constant with a list of arguments.
pub(super) fn check(part: &IdedExpr, types: &Types, faults: &mut Vec<Fault>) {
    let Expr::Call(call) = &part.expr else {
        return;
    };
    if call.func_name != "format" {
        return;
    }
    let (Some(target), [arguments]) = (call.target.as_deref(), call.args.as_slice()) else {
        return;
    };
    if let Expr::Literal(LiteralValue::String(format)) = &target.expr
        && let Expr::List(list) = &arguments.expr
    {
        let found = check_format(part.id, format.inner(), &list.elements, types);
        faults.extend(found.err());
    }
}

/// Upstream: `parseFormatString`
fn check_format(
    call: u64,
    format: &str,
    arguments: &[IdedExpr],
    types: &Types,
) -> Result<(), Fault> {
    let fault = |text: &str| Fault {
        id: call,
        text: text.to_owned(),
    };
    let (mut rest, mut used) = (format.as_bytes(), 0);
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            continue;
        }
        if let Some(after) = rest.strip_prefix(b"%") {
            rest = after;
            continue;
        }
        if rest.is_empty() {
            return Err(fault("unexpected end of string"));
        }
        let argument = arguments.get(used);
        let argument = argument.ok_or_else(|| fault(&format!("index {used} out of range")))?;
        used += 1;
        let (clause, after) = clause(rest).map_err(|detail| {
            let text = format!("could not parse formatting clause: {detail}");
            fault(&text)
        })?;
        rest = after;
        check_argument(argument, &clause, types).map_err(|(id, of)| Fault {
            id,
            text: format!("error during formatting: {}, was given {of}", clause.wrong),
        })?;
    }
    if arguments.len() > used {
        let most = arguments.len();
        let text = "too many arguments supplied to string.format";
        return Err(fault(&format!("{text} (expected {used}, got {most})")));
    }
    Ok(())
}

/// Reads a clause behind its percent sign, and returns it with the rest.
fn clause(text: &[u8]) -> Result<(Clause, &[u8]), String> {
    let mut rest = text;
    if let Some(after) = text.strip_prefix(b".") {
        let digits = after
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let (number, after) = after.split_at(digits);
        let number = String::from_utf8_lossy(number);
        let wrong = |detail: &str| format!("error while parsing precision: {detail}");
        if after.is_empty() {
            return Err(wrong("could not find end of precision specifier"));
        }
        if number.parse::<i64>().is_err() {
            let reason = if number.is_empty() {
                "invalid syntax"
            } else {
                "value out of range"
            };
            return Err(wrong(&format!(
                "error while converting precision to integer: strconv.Atoi: parsing {number:?}: \
                 {reason}"
            )));
        }
        rest = after;
    }
    let (letter, rest) = rest.split_first().ok_or("unexpected end of string")?;
    let clause = match letter {
        b's' => TEXT,
        b'd' => DECIMAL,
        b'f' => FIXED,
        b'e' => SCIENTIFIC,
        b'b' => BINARY,
        b'x' | b'X' => HEX,
        b'o' => OCTAL,
        // Go reads a byte here as a character.
        other => {
            let letter = char::from(*other);
            return Err(format!("unrecognized formatting clause \"{letter}\""));
        }
    };
    Ok((clause, rest))
}

/// Checks an argument. Texts of lists and maps show all of their elements.
///
/// # Errors
///
/// The id and the type of the part that doesn't fit.
fn check_argument(part: &IdedExpr, clause: &Clause, types: &Types) -> Result<(), (u64, String)> {
    let of = types.get(&part.id).unwrap_or(&Type::Dyn);
    if !matches!(of, Type::Dyn | Type::Error | Type::Param(_)) && !(clause.takes)(of) {
        return Err((part.id, name(of)));
    }
    if clause.wrong != TEXT.wrong {
        return Ok(());
    }
    match &part.expr {
        Expr::List(list) => list
            .elements
            .iter()
            .try_for_each(|element| check_argument(element, clause, types)),
        Expr::Map(map) => map.entries.iter().try_for_each(|entry| match &entry.expr {
            EntryExpr::MapEntry(entry) => check_argument(&entry.key, clause, types)
                .and_then(|()| check_argument(&entry.value, clause, types)),
            EntryExpr::StructField(_) => Ok(()),
        }),
        _ => Ok(()),
    }
}

/// Upstream: `TypeName` of a type
fn name(of: &Type) -> String {
    match of {
        Type::Null => "null_type".to_owned(),
        Type::Timestamp => "google.protobuf.Timestamp".to_owned(),
        Type::Duration => "google.protobuf.Duration".to_owned(),
        Type::List(_) => "list".to_owned(),
        Type::Map(..) => "map".to_owned(),
        Type::Optional(_) => "optional_type".to_owned(),
        Type::Meta(_) => "type".to_owned(),
        other => other.to_string(),
    }
}
