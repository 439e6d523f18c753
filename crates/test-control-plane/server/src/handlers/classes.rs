//! Classes that objects name: of priorities, container runtimes and storage.

mod priority;
mod runtime;
mod storage;

pub(crate) use priority::{check_default_class, priority_class};
pub(crate) use runtime::{admit_runtime_class, check_overhead};
pub(crate) use storage::{admit_resize, admit_storage_class};
