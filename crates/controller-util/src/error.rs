//! Aggregates of errors, with upstream's texts.

use std::fmt;

/// An error that may consist of several.
pub trait ErrorMembers: fmt::Display {
    /// Appends the texts of the member errors; by default its own text.
    fn member_texts(&self, out: &mut Vec<String>) {
        out.push(self.to_string());
    }
}

/// Errors of several attempts, all of which were made.
///
/// Prints a single text, or `[a, b]`; equal texts are printed once, and members of nested
/// aggregates join the list. Classification (not found, conflict) never looks inside.
///
/// Upstream: `errors.NewAggregate`.
#[derive(Debug)]
pub struct Aggregate<E>(Vec<E>);

impl<E> Aggregate<E> {
    /// Joins errors; an empty list is success.
    ///
    /// # Errors
    ///
    /// The aggregate of the errors, as an error of their type.
    pub fn join(errors: Vec<E>) -> Result<(), E>
    where
        E: From<Box<Self>>,
    {
        if errors.is_empty() {
            return Ok(());
        }
        Err(Box::new(Self(errors)).into())
    }
}

impl<E: ErrorMembers> ErrorMembers for Aggregate<E> {
    fn member_texts(&self, out: &mut Vec<String>) {
        for error in &self.0 {
            error.member_texts(out);
        }
    }
}

impl<E: ErrorMembers> fmt::Display for Aggregate<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut texts = Vec::new();
        self.member_texts(&mut texts);
        let mut distinct: Vec<&str> = Vec::with_capacity(texts.len());
        for text in &texts {
            if !distinct.contains(&text.as_str()) {
                distinct.push(text);
            }
        }
        match distinct.as_slice() {
            [only] => f.write_str(only),
            several => write!(f, "[{}]", several.join(", ")),
        }
    }
}

impl<E: ErrorMembers + std::error::Error + 'static> std::error::Error for Aggregate<E> {
    /// Returns the first error.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.first().map(|first| first as _)
    }
}

impl ErrorMembers for statefulset_client::error::Error {}

#[cfg(test)]
mod tests {
    use super::*;

    enum Tree {
        Leaf(&'static str),
        Node(Aggregate<Tree>),
    }

    impl From<Box<Aggregate<Self>>> for Tree {
        fn from(aggregate: Box<Aggregate<Self>>) -> Self {
            Self::Node(*aggregate)
        }
    }

    impl fmt::Display for Tree {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self {
                Self::Leaf(text) => f.write_str(text),
                Self::Node(aggregate) => aggregate.fmt(f),
            }
        }
    }

    impl ErrorMembers for Tree {
        fn member_texts(&self, out: &mut Vec<String>) {
            match self {
                Self::Leaf(text) => out.push((*text).to_owned()),
                Self::Node(aggregate) => aggregate.member_texts(out),
            }
        }
    }

    fn aggregate(errors: Vec<Tree>) -> Aggregate<Tree> {
        Aggregate(errors)
    }

    #[test]
    fn equal_texts_merge_and_nested_lists_are_flattened() {
        let leaf = Tree::Leaf;
        assert!(Aggregate::<Tree>::join(Vec::new()).is_ok());
        assert_eq!(aggregate(vec![leaf("a")]).to_string(), "a");
        assert_eq!(aggregate(vec![leaf("a"), leaf("a")]).to_string(), "a");
        let inner = Tree::Node(aggregate(vec![leaf("b"), leaf("a")]));
        assert_eq!(
            aggregate(vec![leaf("a"), inner, leaf("c")]).to_string(),
            "[a, b, c]"
        );
    }

    #[test]
    fn api_errors_are_members_by_their_text() {
        let answer = |text| statefulset_client::error::Error::api(500, "InternalError", text);
        let aggregate = Aggregate(vec![answer("a"), answer("b")]);
        assert_eq!(aggregate.to_string(), "[a, b]");
    }
}
