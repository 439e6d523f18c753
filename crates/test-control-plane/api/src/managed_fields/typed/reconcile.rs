//! Sets that were written when parts were owned which are one value now.
//!
//! Upstream: `ReconcileFieldSetWithSchema` of structured-merge-diff.

use super::types::{Form, MapType, Relation, TypeRef};
use crate::managed_fields::path::PathElement;
use crate::managed_fields::set::Set;

/// The set with the whole in place of parts, wherever the schema says that it is a single value.
pub(crate) fn reconcile(set: &Set, of: TypeRef) -> Set {
    if matches!(of, TypeRef::Deduced) {
        return set.clone();
    }
    let form = of.form(None);
    set.map(|node| match type_below(form, &node.element) {
        Some(below) if !node.children.is_empty() && is_single(below) => (true, Set::EMPTY),
        Some(below) => (node.member, reconcile(&node.children, below)),
        None => (node.member, node.children.clone()),
    })
}

/// The type of a part; none if the schema doesn't know it.
fn type_below(form: Form, element: &PathElement) -> Option<TypeRef> {
    match (form, element) {
        (Form::Scalar(_), _) => None,
        (Form::Map(map), PathElement::Field(name)) => map.member(name),
        (Form::Map(MapType { element, .. }), _) => element,
        (Form::List(list), _) => Some(list.element),
    }
}

fn is_single(of: TypeRef) -> bool {
    match of.form(None) {
        // Nobody writes parts of scalars; if someone did, they do no harm.
        Form::Scalar(_) => false,
        Form::Map(map) => map.atomic,
        Form::List(list) => matches!(list.relation, Relation::Atomic),
    }
}
