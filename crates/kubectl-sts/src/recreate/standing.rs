//! The state after an interruption, in words, and the commands that end it.

use super::record::{Record, object_name};
use super::step::{Form, Found, Stop, Wait};

/// The state of the set.
pub(super) fn standing(record: &Record, set: Option<&Found>) -> String {
    let name = &record.set;
    let Some(set) = set else {
        return format!(
            "StatefulSet {name} doesn't exist, and its pods run without a controller; its manifest \
             is in ConfigMap {}",
            object_name(name)
        );
    };
    match set.form {
        _ if set.is_being_deleted => {
            format!("StatefulSet {name} is being deleted, and its pods stay")
        }
        _ if set.is_original => format!("StatefulSet {name} stands as before"),
        Some(Form::New) => format!("the new StatefulSet {name} exists"),
        Some(Form::Old) => format!("StatefulSet {name} exists in its old form"),
        None => format!("StatefulSet {name} exists in a third form"),
    }
}

/// The recreation of a set that may or may not exist.
pub(super) fn under_way(record: &Record) -> String {
    let (set, commands) = (&record.set, commands(record));
    format!("a recreation of StatefulSet {set} is under way; {commands}")
}

/// The commands that end the recreation.
pub(super) fn commands(record: &Record) -> String {
    format!(
        "go on with: {}; or go back with: {}",
        command(record, Form::New),
        command(record, Form::Old)
    )
}

/// The command that leads to a form.
pub(super) fn command(record: &Record, goal: Form) -> String {
    let Record { namespace, set, .. } = record;
    let flag = match goal {
        Form::New => "--continue",
        Form::Old => "--restore",
    };
    format!("kubectl sts recreate {set} {flag} -n {namespace}")
}

/// The reason to wait.
pub(super) fn waiting(record: &Record, wait: &Wait) -> String {
    let name = &record.set;
    match wait {
        Wait::Rest => format!(
            "the owners of the pods, claims and revisions of StatefulSet {name} must not change \
             before its deletion"
        ),
        Wait::Deletion => format!(
            "the garbage collector must let go of the pods of StatefulSet {name}, which is being \
             deleted"
        ),
        Wait::Adoption(objects) => {
            let first = objects.first().map_or("", String::as_str);
            let others = match objects.len().saturating_sub(1) {
                0 => String::new(),
                others => format!(" and {others} more"),
            };
            format!("the controller must adopt {first}{others}")
        }
    }
}

/// The reason to stop, and the remedy.
pub(super) fn stopped(record: &Record, stop: Stop) -> String {
    let (name, saved) = (&record.set, object_name(&record.set));
    let restore = command(record, Form::Old);
    match stop {
        Stop::Changed => format!(
            "StatefulSet {name} was changed after the plan; end the recreation with: {restore}; then \
             plan it again"
        ),
        Stop::Foreign => format!(
            "another client created StatefulSet {name} in a form that is neither the old nor the \
             new one; to keep it, run: kubectl delete configmap {saved} -n {}",
            record.namespace
        ),
    }
}
