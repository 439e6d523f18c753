//! The next step of a recreation, by the state of the cluster alone: a command that was interrupted
//! anywhere goes on from the state that it finds.
//!
//! ```text
//! old set -> (ownership rests) -> delete with orphans -> being deleted -> missing -> create
//!         -> new set -> every pod and revision is adopted -> finished
//! ```
//!
//! A restoration takes the same way with the forms exchanged.

/// One of the two forms of the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The form before the recreation.
    Old,
    /// The form after it.
    New,
}

/// The state of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Observed {
    /// The set; none if it is missing.
    pub(super) set: Option<Found>,
    /// True if objects name a former set of this name as an owner: the garbage collector would delete
    /// them.
    pub(super) has_stale_owners: bool,
    /// True if the owners of the set's objects haven't changed for a while: the garbage collector
    /// knows them all.
    pub(super) is_at_rest: bool,
    /// Pods and revisions that the set doesn't control yet.
    pub(super) unadopted: Vec<String>,
}

/// The set in the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) uid: String,
    pub(super) resource_version: String,
    pub(super) is_being_deleted: bool,
    /// True if it is the set that the recreation began with, and not a restored one.
    pub(super) is_original: bool,
    /// True if its labels, annotations and spec are those of the old manifest.
    pub(super) is_unchanged: bool,
    /// Its form; none if its immutable fields are neither the old nor the new ones.
    pub(super) form: Option<Form>,
}

/// The next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Remove the references to former sets.
    Release,
    /// Create the set.
    Create,
    /// Delete this set without its dependents.
    Delete {
        /// Its uid.
        uid: String,
        /// Its version.
        resource_version: String,
    },
    /// Look again later.
    Wait(Wait),
    /// Nothing is left but the record.
    Finish,
    /// Stop, because another client changed the set.
    Stop(Stop),
}

/// The reason to look again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// The owners of the set's objects have just changed.
    Rest,
    /// The garbage collector has not let go of the dependents, or a finalizer keeps the set.
    Deletion,
    /// The controller has not adopted these objects.
    Adoption(Vec<String>),
}

/// The reason to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The set was changed after the plan.
    Changed,
    /// Another client created the set in a third form.
    Foreign,
}

/// Returns the next step to a set of this form.
pub(super) fn next(goal: Form, observed: &Observed) -> Action {
    let Some(set) = &observed.set else {
        return if observed.has_stale_owners {
            Action::Release
        } else {
            Action::Create
        };
    };
    if set.is_being_deleted {
        return Action::Wait(Wait::Deletion);
    }
    match (set.form, goal) {
        (Some(Form::Old), Form::Old) | (Some(Form::New), Form::New) => adoption(observed),
        (None, _) => Action::Stop(Stop::Foreign),
        (Some(Form::Old), Form::New) if !set.is_unchanged => Action::Stop(Stop::Changed),
        (Some(_), _) if !observed.is_at_rest => Action::Wait(Wait::Rest),
        (Some(_), _) => Action::Delete {
            uid: set.uid.clone(),
            resource_version: set.resource_version.clone(),
        },
    }
}

/// The next step after the set has its form.
fn adoption(observed: &Observed) -> Action {
    if observed.has_stale_owners {
        Action::Release
    } else if observed.unadopted.is_empty() {
        Action::Finish
    } else {
        Action::Wait(Wait::Adoption(observed.unadopted.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMS: [Option<Form>; 3] = [Some(Form::Old), Some(Form::New), None];

    fn set(form: Option<Form>, is_original: bool) -> Found {
        Found {
            uid: "u".to_owned(),
            resource_version: "7".to_owned(),
            is_being_deleted: false,
            is_original,
            is_unchanged: true,
            form,
        }
    }

    fn observed(set: Option<Found>) -> Observed {
        Observed {
            set,
            has_stale_owners: false,
            is_at_rest: true,
            unadopted: Vec::new(),
        }
    }

    fn delete() -> Action {
        Action::Delete {
            uid: "u".to_owned(),
            resource_version: "7".to_owned(),
        }
    }

    #[test]
    fn each_form_has_its_step() {
        use Form::{New, Old};
        let missing = None;
        let original = Some(set(Some(Old), true));
        let old_again = Some(set(Some(Old), false));
        let new = Some(set(Some(New), false));
        let foreign = Some(set(None, false));
        for (set, to_new, to_old) in [
            (missing, Action::Create, Action::Create),
            (original, delete(), Action::Finish),
            (old_again, delete(), Action::Finish),
            (new, Action::Finish, delete()),
            (
                foreign,
                Action::Stop(Stop::Foreign),
                Action::Stop(Stop::Foreign),
            ),
        ] {
            let state = observed(set);
            assert_eq!(next(New, &state), to_new, "{state:?}");
            assert_eq!(next(Old, &state), to_old, "{state:?}");
        }
    }

    #[test]
    fn set_that_changed_after_the_plan_is_not_deleted() {
        let changed = Found {
            is_unchanged: false,
            ..set(Some(Form::Old), true)
        };
        let state = observed(Some(changed));
        assert_eq!(next(Form::New, &state), Action::Stop(Stop::Changed));
        assert_eq!(next(Form::Old, &state), Action::Finish);
    }

    #[test]
    fn deletion_waits_until_the_collector_knows_every_owner() {
        for (form, goal) in [(Form::Old, Form::New), (Form::New, Form::Old)] {
            let restless = Observed {
                is_at_rest: false,
                ..observed(Some(set(Some(form), form == Form::Old)))
            };
            assert_eq!(next(goal, &restless), Action::Wait(Wait::Rest));
        }
    }

    #[test]
    fn nothing_is_written_while_the_set_is_being_deleted() {
        for form in FORMS {
            for goal in [Form::Old, Form::New] {
                let deleted = Found {
                    is_being_deleted: true,
                    ..set(form, true)
                };
                let state = observed(Some(deleted));
                assert_eq!(next(goal, &state), Action::Wait(Wait::Deletion));
            }
        }
    }

    #[test]
    fn references_to_former_sets_go_before_anything_else() {
        for (found, goal) in [
            (None, Form::New),
            (None, Form::Old),
            (Some(set(Some(Form::New), false)), Form::New),
            (Some(set(Some(Form::Old), false)), Form::Old),
        ] {
            let state = Observed {
                has_stale_owners: true,
                unadopted: vec!["pod web-0".to_owned()],
                ..observed(found)
            };
            assert_eq!(next(goal, &state), Action::Release, "{state:?}");
        }
    }

    #[test]
    fn recreation_ends_with_the_last_adoption() {
        let unadopted = vec!["pod web-0".to_owned()];
        let state = Observed {
            unadopted: unadopted.clone(),
            ..observed(Some(set(Some(Form::New), false)))
        };
        let wait = Action::Wait(Wait::Adoption(unadopted));
        assert_eq!(next(Form::New, &state), wait);
    }
}
