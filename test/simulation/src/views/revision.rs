//! ControllerRevisions.

use serde_json::Value;

use super::Owner;

/// A ControllerRevision.
#[derive(Clone, Debug)]
pub struct Revision {
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
    /// The controlling owner.
    pub controller: Option<Owner>,
    /// Value of the label that selectors match.
    pub app: String,
    /// Number.
    pub number: i64,
    /// When it was created, as stored.
    pub created: String,
    /// The recorded data.
    pub data: Value,
    /// The recorded template, without what restarts nothing.
    pub template: Value,
    /// The recorded template.
    pub recorded: Value,
}

impl Revision {
    /// Reads a revision.
    pub fn read(value: &Value) -> Self {
        Self {
            name: super::text(value, "/metadata/name"),
            uid: super::text(value, "/metadata/uid"),
            controller: super::controller(value),
            app: super::text(value, "/metadata/labels/app"),
            number: super::number(value, "/revision"),
            created: super::text(value, "/metadata/creationTimestamp"),
            template: super::known_template(template(value)),
            recorded: template(value),
            data: value.get("data").cloned().unwrap_or_default(),
        }
    }

    /// Reports whether this set controls it.
    pub fn is_of(&self, set: &str) -> bool {
        let owner = self.controller.as_ref();
        owner.is_some_and(|owner| owner.uid == set)
    }

    /// The order of revisions, the newest last: equal numbers come from a sync that didn't know of the
    /// other revision.
    pub fn order(&self) -> (i64, &str, &str) {
        (self.number, &self.created, &self.name)
    }
}

fn template(value: &Value) -> Value {
    let template = value.pointer("/data/spec/template").cloned();
    let mut template = template.unwrap_or_default();
    if let Some(members) = template.as_object_mut() {
        members.remove("$patch");
    }
    template
}
