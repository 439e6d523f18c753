//! Static types.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::names::escape_reserved;

/// The type of an object.
#[derive(Debug, PartialEq)]
pub(crate) struct ObjectType {
    /// The name in messages.
    pub(crate) name: Cow<'static, str>,
    /// The types of the fields.
    pub(crate) fields: BTreeMap<String, Type>,
}

impl ObjectType {
    /// Returns the type of a field, which a reserved word may name.
    pub(super) fn field(&self, name: &str) -> Option<&Type> {
        let found = self.fields.get(name);
        found.or_else(|| self.fields.get(&escape_reserved(name)?))
    }
}

/// A static type.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Type {
    /// Any value.
    #[default]
    Dyn,
    /// The type of a faulty expression, which fits everywhere.
    Error,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Timestamp,
    Duration,
    List(Box<Type>),
    Map(Box<Type>, Box<Type>),
    Optional(Box<Type>),
    /// The type of a type's name.
    Meta(Box<Type>),
    /// A library's own type.
    Opaque(&'static str),
    /// An object that an expression makes, by the name in the expression.
    Made(Arc<str>),
    /// An object with declared fields.
    Object(Arc<ObjectType>),
    /// A type parameter, by number.
    Param(usize),
}

impl Type {
    pub(crate) fn list(of: Self) -> Self {
        Self::List(Box::new(of))
    }

    /// Returns the type of objects with these fields.
    pub(crate) fn object<K: Into<String>>(
        name: impl Into<Cow<'static, str>>,
        fields: impl IntoIterator<Item = (K, Self)>,
    ) -> Self {
        let fields = fields.into_iter().map(|(name, of)| (name.into(), of));
        let (name, fields) = (name.into(), fields.collect());
        Self::Object(Arc::new(ObjectType { name, fields }))
    }

    pub(crate) fn map(key: Self, value: Self) -> Self {
        Self::Map(Box::new(key), Box::new(value))
    }

    pub(super) fn optional(of: Self) -> Self {
        Self::Optional(Box::new(of))
    }

    /// Returns true if values of the type count as one unit in costs.
    pub(super) fn is_scalar(&self) -> bool {
        match self {
            Self::Bool
            | Self::Double
            | Self::Duration
            | Self::Int
            | Self::Timestamp
            | Self::Uint => true,
            Self::Optional(of) => of.is_scalar(),
            _ => false,
        }
    }

    /// Returns true if anything is possible.
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Dyn | Self::Error)
    }

    /// Returns the parameters.
    fn parameters(&self) -> Vec<&Self> {
        match self {
            Self::List(of) | Self::Optional(of) | Self::Meta(of) => vec![of],
            Self::Map(key, value) => vec![key, value],
            _ => Vec::new(),
        }
    }

    /// Returns the type with `replace` applied to each type parameter.
    pub(super) fn replaced(&self, replace: &mut dyn FnMut(usize) -> Self) -> Self {
        match self {
            Self::Param(number) => replace(*number),
            Self::List(of) => Self::list(of.replaced(replace)),
            Self::Optional(of) => Self::optional(of.replaced(replace)),
            Self::Meta(of) => Self::Meta(Box::new(of.replaced(replace))),
            Self::Map(key, value) => {
                let key = key.replaced(replace);
                Self::map(key, value.replaced(replace))
            }
            other => other.clone(),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => f.write_str("dyn"),
            Self::Error => f.write_str("!error!"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Duration => f.write_str("duration"),
            Self::List(of) => write!(f, "list({of})"),
            Self::Map(key, value) => write!(f, "map({key}, {value})"),
            Self::Optional(of) => write!(f, "optional_type({of})"),
            Self::Meta(of) => write!(f, "type({of})"),
            Self::Opaque(name) => f.write_str(name),
            Self::Made(name) => f.write_str(name),
            Self::Object(of) => f.write_str(&of.name),
            Self::Param(number) => write!(f, "_var{number}"),
        }
    }
}

/// Type parameters, and the types found for them.
#[derive(Clone, Debug, Default)]
pub(super) struct Substitutions {
    known: Vec<Option<Type>>,
}

impl Substitutions {
    /// Returns a new type parameter.
    pub(super) fn add(&mut self) -> Type {
        self.known.push(None);
        Type::Param(self.known.len() - 1)
    }

    /// Returns the type with the types found for its type parameters.
    pub(super) fn resolve(&self, of: &Type) -> Type {
        of.replaced(&mut |number| match self.known.get(number) {
            Some(Some(found)) => self.resolve(found),
            _ => Type::Param(number),
        })
    }

    /// Returns the type with `dyn` for its open type parameters.
    pub(super) fn settle(&self, of: &Type) -> Type {
        self.resolve(of).replaced(&mut |_| Type::Dyn)
    }

    /// Fits one type to another. A failure changes nothing.
    ///
    /// Upstream: `isAssignable` of cel-go
    pub(super) fn fit(&mut self, from: &Type, to: &Type) -> bool {
        self.fit_all(&[(from.clone(), to.clone())])
    }

    /// Fits several pairs of types, all or none.
    pub(super) fn fit_all(&mut self, pairs: &[(Type, Type)]) -> bool {
        let mut tried = self.clone();
        let fits = pairs.iter().all(|(from, to)| tried.fits(from, to));
        if fits {
            *self = tried;
        }
        fits
    }

    fn fits(&mut self, from: &Type, to: &Type) -> bool {
        if let Type::Param(number) = to {
            match self.substitute(*number, from) {
                Some(true) => return true,
                Some(false) if self.is_known(*number) => return false,
                _ => {}
            }
        }
        if let Type::Param(number) = from {
            return self.substitute(*number, to) == Some(true);
        }
        match (from, to) {
            (found, wanted) if found.is_open() || wanted.is_open() => true,
            (Type::Null, other) | (other, Type::Null) => matches!(
                other,
                Type::Null
                    | Type::Timestamp
                    | Type::Duration
                    | Type::Made(_)
                    | Type::Object(_)
                    | Type::Opaque(_)
                    | Type::Optional(_)
            ),
            (Type::Meta(_), Type::Meta(_)) => true,
            (Type::List(_), Type::List(_))
            | (Type::Map(..), Type::Map(..))
            | (Type::Optional(_), Type::Optional(_)) => {
                let (from, to) = (from.parameters(), to.parameters());
                from.into_iter()
                    .zip(to)
                    .all(|(from, to)| self.fits(from, to))
            }
            (from, to) => from == to,
        }
    }

    fn is_known(&self, number: usize) -> bool {
        matches!(self.known.get(number), Some(Some(_)))
    }

    /// Takes a type for a type parameter. Returns `None` if nothing follows.
    fn substitute(&mut self, number: usize, with: &Type) -> Option<bool> {
        if *with == Type::Param(number) {
            return Some(true);
        }
        let Some(Some(known)) = self.known.get(number).cloned() else {
            if self.contains(with, number) {
                return None;
            }
            *self.known.get_mut(number)? = Some(with.clone());
            return Some(true);
        };
        if known == *with {
            return Some(true);
        }
        if !self.fits(with, &known) {
            return Some(false);
        }
        let wider = if is_wider(with, &known) {
            with.clone()
        } else {
            known
        };
        if !self.contains(&wider, number) {
            *self.known.get_mut(number)? = Some(wider);
        }
        Some(true)
    }

    /// Returns true if a type depends on a type parameter.
    fn contains(&self, of: &Type, number: usize) -> bool {
        let mut found = false;
        self.resolve(of).replaced(&mut |inner| {
            found |= inner == number;
            Type::Param(inner)
        });
        found
    }
}

/// Returns true if the first type accepts all values of the second.
pub(super) fn is_wider(one: &Type, other: &Type) -> bool {
    match (one, other) {
        (Type::Dyn | Type::Error | Type::Param(_), _) => true,
        (Type::List(_), Type::List(_))
        | (Type::Map(..), Type::Map(..))
        | (Type::Optional(_), Type::Optional(_))
        | (Type::Meta(_), Type::Meta(_)) => one
            .parameters()
            .into_iter()
            .zip(other.parameters())
            .all(|(one, other)| is_wider(one, other)),
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_parameter_takes_the_first_type() {
        let mut substitutions = Substitutions::default();
        let element = substitutions.add();
        let list = Type::list(element.clone());
        assert!(substitutions.fit(&Type::list(Type::Int), &list));
        assert_eq!(substitutions.resolve(&list), Type::list(Type::Int));
        assert!(!substitutions.fit(&Type::String, &element));
        assert_eq!(substitutions.settle(&element), Type::Int);
    }

    #[test]
    fn type_parameter_never_contains_itself() {
        let mut substitutions = Substitutions::default();
        let one = substitutions.add();
        assert!(!substitutions.fit(&Type::list(one.clone()), &one));
        assert_eq!(substitutions.settle(&one), Type::Dyn);
    }

    #[test]
    fn failed_fit_changes_no_type_parameter() {
        let mut substitutions = Substitutions::default();
        let one = substitutions.add();
        let pairs = [(Type::Int, one.clone()), (Type::String, Type::Bool)];
        assert!(!substitutions.fit_all(&pairs));
        assert_eq!(substitutions.resolve(&one), one);
    }
}
