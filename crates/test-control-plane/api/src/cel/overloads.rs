//! Signatures of functions and operators.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::types::Type;

/// The signatures, one per line: `name(types): result`, with the type of the receiver before the
/// name of a method. `A` and `B` are any types, and `C` is each of [`COMPARABLE`].
const SIGNATURES: &str = include_str!("overloads.txt");

/// The types with an order, in upstream's order of the signatures.
const COMPARABLE: [Type; 8] = [
    Type::Int,
    Type::Uint,
    Type::Double,
    Type::Bool,
    Type::Duration,
    Type::Timestamp,
    Type::String,
    Type::Bytes,
];

/// The number of the parameter that stands for each type with an order.
const OF_COMPARABLE: usize = TYPE_PARAMETERS;

/// The operators with the signatures of another.
const LIKE: [(&str, &str); 3] = [("_<=_", "_<_"), ("_>_", "_<_"), ("_>=_", "_<_")];

/// The types of Kubernetes' libraries. Rules of definitions have no authorizer, but its functions
/// are declared.
const OPAQUE: [&str; 11] = [
    "kubernetes.authorization.Authorizer",
    "kubernetes.authorization.Decision",
    "kubernetes.authorization.GroupCheck",
    "kubernetes.authorization.PathCheck",
    "kubernetes.authorization.ResourceCheck",
    "kubernetes.NamedFormat",
    "kubernetes.Quantity",
    "kubernetes.Semver",
    "kubernetes.URL",
    "net.CIDR",
    "net.IP",
];

/// The types of libraries that have no fields for upstream's checker. It takes the others for
/// undeclared objects.
pub(super) const WITHOUT_FIELDS: [&str; 2] = ["net.CIDR", "net.IP"];

/// A signature. Its type parameters count from 0.
#[derive(Debug)]
pub(super) struct Overload {
    /// True for methods, whose first parameter is the receiver.
    pub(super) is_method: bool,
    /// The types of the parameters.
    pub(super) parameters: Vec<Type>,
    /// The type of the result.
    pub(super) result: Type,
}

/// The number of type parameters in a signature.
pub(super) const TYPE_PARAMETERS: usize = 2;

static OVERLOADS: LazyLock<HashMap<&'static str, Vec<Overload>>> = LazyLock::new(|| {
    let mut found: HashMap<&str, Vec<Overload>> = HashMap::new();
    for line in SIGNATURES.lines() {
        if let Some((name, overload)) = Overload::read(line) {
            found.entry(name).or_default().extend(overload.expanded());
        }
    }
    found
});

/// Returns the signatures of a function or operator; empty if there is none.
pub(super) fn named(name: &str) -> &'static [Overload] {
    let same = LIKE.iter().find(|(like, _)| *like == name);
    let name = same.map_or(name, |(_, same)| same);
    OVERLOADS.get(name).map(Vec::as_slice).unwrap_or_default()
}

impl Overload {
    /// Returns the signatures for each type with an order, or the only one.
    fn expanded(self) -> Vec<Self> {
        let mut is_template = false;
        for of in &self.parameters {
            of.replaced(&mut |number| {
                is_template |= number == OF_COMPARABLE;
                Type::Param(number)
            });
        }
        if !is_template {
            return vec![self];
        }
        let of = |comparable: &Type| {
            let mut own = |number| match number {
                OF_COMPARABLE => comparable.clone(),
                other => Type::Param(other),
            };
            Self {
                is_method: self.is_method,
                parameters: self
                    .parameters
                    .iter()
                    .map(|of| of.replaced(&mut own))
                    .collect(),
                result: self.result.replaced(&mut own),
            }
        };
        COMPARABLE.iter().map(of).collect()
    }

    fn read(line: &'static str) -> Option<(&'static str, Self)> {
        let (head, result) = line.rsplit_once(": ")?;
        let open = opening(head)?;
        let (callee, parameters) = (&head[..open], &head[open + 1..head.len() - 1]);
        let receiver = receiver(callee);
        let name = match receiver {
            Some(receiver) => &callee[receiver.len() + 1..],
            None => callee,
        };
        let types = receiver.into_iter().chain(split(parameters));
        let overload = Self {
            is_method: receiver.is_some(),
            parameters: types.map(read_type).collect::<Option<_>>()?,
            result: read_type(result)?,
        };
        Some((name, overload))
    }
}

/// Returns the place of the parenthesis that matches the last one.
fn opening(head: &str) -> Option<usize> {
    let mut depth = 0;
    for (place, letter) in head.char_indices().rev() {
        match letter {
            ')' => depth += 1,
            '(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(place);
        }
    }
    None
}

/// Returns the receiver's type of `list(A).size`: a type before the last dot.
fn receiver(callee: &'static str) -> Option<&'static str> {
    let (receiver, _) = callee.rsplit_once('.')?;
    read_type(receiver).map(|_| receiver)
}

/// Splits at the commas outside of parentheses.
fn split(list: &'static str) -> Vec<&'static str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0);
    for (place, letter) in list.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(list[start..place].trim());
                start = place + 1;
            }
            _ => {}
        }
    }
    let last = list[start..].trim();
    if !last.is_empty() {
        parts.push(last);
    }
    parts
}

fn read_type(text: &'static str) -> Option<Type> {
    if let Some((name, rest)) = text.split_once('(') {
        let mut parameters = split(rest.strip_suffix(')')?).into_iter().map(read_type);
        let first = parameters.next()??;
        return Some(match name {
            "list" => Type::list(first),
            "map" => Type::map(first, parameters.next()??),
            "optional" => Type::optional(first),
            "type" => Type::Meta(Box::new(first)),
            _ => return None,
        });
    }
    Some(match text {
        "A" => Type::Param(0),
        "B" => Type::Param(1),
        "C" => Type::Param(OF_COMPARABLE),
        opaque if OPAQUE.contains(&opaque) => Type::Opaque(text),
        _ => plain(text)?,
    })
}

/// Returns a type without parameters by name.
fn plain(name: &str) -> Option<Type> {
    Some(match name {
        "dyn" => Type::Dyn,
        "null" => Type::Null,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "timestamp" => Type::Timestamp,
        "duration" => Type::Duration,
        _ => return None,
    })
}

/// Returns the type that a name in an expression denotes.
pub(super) fn type_named(name: &str) -> Option<Type> {
    Some(match name {
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "null_type" => Type::Null,
        "type" => Type::Meta(Box::new(Type::Dyn)),
        "google.protobuf.Timestamp" => Type::Timestamp,
        "google.protobuf.Duration" => Type::Duration,
        "optional_type" => Type::optional(Type::Dyn),
        "timestamp" | "duration" | "null" | "dyn" => return None,
        other => match OPAQUE.into_iter().find(|opaque| *opaque == other) {
            Some(opaque) => Type::Opaque(opaque),
            None => plain(other)?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_a_signature() {
        for line in SIGNATURES.lines() {
            assert!(Overload::read(line).is_some(), "{line}");
        }
    }

    #[test]
    fn methods_take_their_receiver_first() {
        let [all, one] = named("findAll") else {
            panic!("findAll has two signatures");
        };
        assert!(all.is_method && one.is_method);
        assert_eq!(one.parameters, [Type::String, Type::String, Type::Int]);
        assert_eq!(one.result, Type::list(Type::String));
        assert!(!named("sets.contains")[0].is_method);
        assert!(named("family")[0].is_method);
    }
}
