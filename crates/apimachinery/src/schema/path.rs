//! Paths into JSON values.

use std::fmt;

use serde_json::Value;

/// One step of a [`Path`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathStep {
    /// A field of an object.
    Member(String),
    /// An element of a list.
    Index(usize),
}

/// Steps from a value to a nested one; prints as `spec.containers[0].name`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(Vec<PathStep>);

impl Path {
    /// Returns the steps, outermost first.
    pub fn steps(&self) -> &[PathStep] {
        &self.0
    }

    /// Appends a step.
    pub fn push(&mut self, step: PathStep) {
        self.0.push(step);
    }

    /// Removes the last step.
    pub fn pop(&mut self) -> Option<PathStep> {
        self.0.pop()
    }
}

impl fmt::Display for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                PathStep::Member(name) if position == 0 => formatter.write_str(name)?,
                PathStep::Member(name) => write!(formatter, ".{name}")?,
                PathStep::Index(index) => write!(formatter, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// Returns the value at `path` inside `value`, if it exists.
pub fn get_path<'a>(value: &'a Value, path: &Path) -> Option<&'a Value> {
    path.steps()
        .iter()
        .try_fold(value, |value, step| match step {
            PathStep::Member(name) => value.as_object()?.get(name),
            PathStep::Index(index) => value.as_array()?.get(*index),
        })
}
