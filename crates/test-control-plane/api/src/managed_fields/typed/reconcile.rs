//! Migration of field sets whose fields have become atomic since.
//!
//! Upstream: `ReconcileFieldSetWithSchema` of structured-merge-diff.

use super::types::{Form, MapType, Relation, TypeRef};
use crate::managed_fields::path::PathElement;
use crate::managed_fields::set::Set;

/// Replaces children by their parent wherever the schema says that the parent is atomic.
pub(crate) fn reconcile(set: &Set, of: TypeRef<'_>) -> Set {
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

/// Returns the type of a child; `None` if the schema doesn't know it.
fn type_below<'a>(form: Form<'a>, element: &PathElement) -> Option<TypeRef<'a>> {
    match (form, element) {
        (Form::Scalar(_), _) => None,
        (Form::Map(map), PathElement::Field(name)) => map.member(name),
        (Form::Map(MapType { element, .. }), _) => element,
        (Form::List(list), _) => Some(list.element),
    }
}

fn is_single(of: TypeRef<'_>) -> bool {
    match of.form(None) {
        // Field sets normally have no children of scalars. Any such children are harmless.
        Form::Scalar(_) => false,
        Form::Map(map) => map.atomic,
        Form::List(list) => matches!(list.relation, Relation::Atomic),
    }
}
