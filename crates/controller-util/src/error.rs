//! Aggregates of errors, with upstream's texts.

use std::error::Error;
use std::{fmt, iter};

/// Errors of several attempts, all of which were made.
///
/// Prints a single text, or `[a, b]`; equal texts are printed once, and members of nested
/// aggregates join the list. An error is a nested aggregate if its sources lead to one.
/// Classification (not found, conflict) never looks inside.
///
/// Upstream: `errors.NewAggregate`.
#[derive(Debug)]
pub struct Aggregate(Vec<Box<dyn Error + Send + Sync>>);

impl Aggregate {
    /// Joins errors; an empty list is success.
    ///
    /// # Errors
    ///
    /// The aggregate of the errors, as an error of their type.
    pub fn join<E>(errors: Vec<E>) -> Result<(), E>
    where
        E: Error + From<Self> + Send + Sync + 'static,
    {
        if errors.is_empty() {
            return Ok(());
        }
        let errors = errors.into_iter().map(|error| Box::new(error) as _);
        Err(Self(errors.collect()).into())
    }

    /// Visits an error, its sources, and the members of an aggregate among them.
    pub fn visit_causes<'a>(
        error: &'a (dyn Error + 'static),
        visit: &mut dyn FnMut(&'a (dyn Error + 'static)),
    ) {
        visit(error);
        if let Some(Self(members)) = error.downcast_ref() {
            for member in members {
                Self::visit_causes(&**member, visit);
            }
        } else if let Some(source) = error.source() {
            Self::visit_causes(source, visit);
        }
    }

    /// Appends the distinct texts of the errors. An error that holds an aggregate counts as its
    /// members, so it adds no text to theirs.
    fn add_texts(&self, texts: &mut Vec<String>) {
        for error in &self.0 {
            let error: &(dyn Error + 'static) = &**error;
            let mut sources = iter::successors(Some(error), |&error| error.source());
            if let Some(nested) = sources.find_map(|source| source.downcast_ref::<Self>()) {
                nested.add_texts(texts);
                continue;
            }
            let text = error.to_string();
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
    }
}

impl fmt::Display for Aggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut texts = Vec::new();
        self.add_texts(&mut texts);
        match texts.as_slice() {
            [only] => f.write_str(only),
            several => write!(f, "[{}]", several.join(", ")),
        }
    }
}

impl Error for Aggregate {
    /// Returns the first error.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.first().map(|first| &**first as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Tree {
        #[error("{0}")]
        Leaf(&'static str),
        #[error("{0}")]
        Node(#[from] Aggregate),
        #[error("{0}")]
        Branch(#[source] Box<Tree>),
    }

    fn joined(errors: Vec<Tree>) -> Tree {
        Aggregate::join(errors).unwrap_err()
    }

    #[test]
    fn equal_texts_merge_and_nested_lists_are_flattened() {
        let leaf = Tree::Leaf;
        assert!(Aggregate::join::<Tree>(Vec::new()).is_ok());
        assert_eq!(joined(vec![leaf("a")]).to_string(), "a");
        assert_eq!(joined(vec![leaf("a"), leaf("a")]).to_string(), "a");
        let nested = || joined(vec![leaf("b"), leaf("a")]);
        for inner in [nested(), Tree::Branch(Box::new(nested()))] {
            assert_eq!(
                joined(vec![leaf("a"), inner, leaf("c")]).to_string(),
                "[a, b, c]"
            );
        }
    }

    #[test]
    fn api_errors_are_members_by_their_text() {
        let answer = |text| statefulset_client::error::Error::api(500, "InternalError", text);
        let aggregate = Aggregate(vec![Box::new(answer("a")), Box::new(answer("b"))]);
        assert_eq!(aggregate.to_string(), "[a, b]");
    }

    #[test]
    fn causes_include_members_of_aggregates() {
        let inner = joined(vec![Tree::Leaf("a"), Tree::Leaf("b")]);
        let error = joined(vec![Tree::Leaf("c"), Tree::Branch(Box::new(inner))]);
        let mut leaves = Vec::new();
        Aggregate::visit_causes(&error, &mut |cause| {
            if let Some(Tree::Leaf(leaf)) = cause.downcast_ref() {
                leaves.push(*leaf);
            }
        });
        assert_eq!(leaves, ["c", "a", "b"]);
    }

    #[test]
    fn first_error_is_the_source() {
        let error = joined(vec![Tree::Leaf("a"), Tree::Leaf("b")]);
        let first = error.source().and_then(Error::source).unwrap();
        assert_eq!(first.to_string(), "a");
    }
}
