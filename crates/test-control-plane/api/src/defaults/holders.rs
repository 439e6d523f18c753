//! Objects that upstream's types always have, so that they get defaults.

use kube_apimachinery::schema::{Field, Shape, Type};
use serde_json::{Map, Value};

/// Fields that always exist, and whose content has defaults.
const TEMPLATES: [(&str, &str); 2] = [
    ("PodTemplateSpec", "template"),
    ("JobTemplateSpec", "jobTemplate"),
];

/// Replaces null elements of lists of objects by empty objects, and adds missing templates with the
/// objects that hold them.
pub(super) fn fill(of: &Type, value: &mut Value) {
    let Some(members) = value.as_object_mut() else {
        return;
    };
    for field in &of.fields {
        let Some(inner) = field.object_type() else {
            continue;
        };
        if is_template(field, inner) || holds_template(field, inner) {
            let template = members.entry(field.name).or_insert(Value::Null);
            fill_null(template);
        }
        let Some(member) = members.get_mut(field.name) else {
            continue;
        };
        match (field.shape, member) {
            (Shape::List, Value::Array(elements)) => {
                for element in elements {
                    fill_null(element);
                    fill(inner, element);
                }
            }
            (Shape::Map, _) => {}
            (_, member) => fill(inner, member),
        }
    }
}

fn is_template(field: &Field, of: &Type) -> bool {
    matches!(field.shape, Shape::Plain) && TEMPLATES.contains(&(of.name, field.name))
}

fn holds_template(field: &Field, of: &Type) -> bool {
    let is_spec = field.name == "spec" && matches!(field.shape, Shape::Plain);
    let mut templates = TEMPLATES.iter().filter_map(|(_, name)| of.field(name));
    is_spec && templates.any(|inner| inner.object_type().is_some_and(|of| is_template(inner, of)))
}

fn fill_null(value: &mut Value) {
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
}

#[cfg(test)]
mod tests {
    use kube_apimachinery::schema::find_type;
    use serde_json::json;

    use super::*;

    #[test]
    fn null_elements_and_missing_templates_are_objects() {
        let mut set = json!({"spec": {"volumeClaimTemplates": [null]}});
        fill(find_type("StatefulSet").unwrap(), &mut set);
        assert_eq!(
            set["spec"],
            json!({"volumeClaimTemplates": [{}], "template": {}})
        );
        let mut job = json!({});
        fill(find_type("CronJob").unwrap(), &mut job);
        let spec = json!({"jobTemplate": {"spec": {"template": {}}}});
        assert_eq!(job, json!({"spec": spec}));
        let mut controller = json!({"spec": {}});
        fill(find_type("ReplicationController").unwrap(), &mut controller);
        assert_eq!(controller, json!({"spec": {}}));
    }
}
