//! Empty creation times, which Go wrote as `null` before Kubernetes 1.34.

use serde_json::{Value, json};

/// Adds the creation times that Go wrote before 1.34 to a pod template and to the claim templates of
/// its ephemeral volumes.
pub fn with_null_creation_times(mut template: Value) -> Value {
    let volumes = template.pointer_mut("/spec/volumes");
    let volumes = volumes.and_then(Value::as_array_mut).into_iter().flatten();
    for claim in volumes.filter_map(|it| it.pointer_mut("/ephemeral/volumeClaimTemplate")) {
        add_null_creation_time(claim);
    }
    add_null_creation_time(&mut template);
    template
}

fn add_null_creation_time(object: &mut Value) {
    let Value::Object(members) = object else {
        return;
    };
    let metadata = members.entry("metadata").or_insert_with(|| json!({}));
    if metadata.is_null() {
        *metadata = json!({});
    }
    if let Value::Object(metadata) = metadata {
        metadata.entry("creationTimestamp").or_insert(Value::Null);
    }
}
