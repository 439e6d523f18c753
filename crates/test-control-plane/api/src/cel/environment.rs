//! Functions of rules.

use std::sync::{Arc, LazyLock};

use cel::common::ast::IdedExpr;
use cel::common::types::CelString;
use cel::common::value::{CowVal, Val};
use cel::{Context, Env, extensions};

use super::library;
use super::values::{Value, text};

/// The functions of rules.
pub(super) static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut environment = Env::stdlib();
    let added = environment
        .add_extension(extensions::strings)
        .and_then(|()| environment.add_extension(extensions::lists))
        .and_then(|()| library::add(&mut environment));
    debug_assert_eq!(added, Ok(()), "functions have different names");
    Arc::new(environment)
});

/// Returns true if an expression without variables has a value.
pub(super) fn has_value(part: &IdedExpr) -> bool {
    let context = Context::with_env(Arc::clone(&ENVIRONMENT));
    cel::Value::resolve_val(part, &context).is_ok()
}

/// Returns a time, or the text if it is none.
pub(crate) fn timestamp(value: &str) -> Value {
    converted("timestamp", value).unwrap_or_else(|| text(value))
}

/// Returns a duration, or the text if it is none.
pub(crate) fn duration(value: &str) -> Value {
    converted("duration", value).unwrap_or_else(|| text(value))
}

/// Returns a text as a value of another type, by the function of this name.
fn converted(function: &str, text: &str) -> Option<Box<dyn Val>> {
    let arguments = vec![CowVal::owned(CelString::from(text.to_owned()))];
    let convert = ENVIRONMENT.find_overload(function, &arguments)?;
    let found = convert(arguments).ok()?;
    Some(found.clone_as_boxed())
}
