//! The place of a schema among those around it.

/// The level of the values of a schema in a resource.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// The resource itself.
    Resource,
    /// An embedded resource.
    Embedded,
    /// Parts of a resource.
    Part,
}

/// The place of a schema among those around it.
#[derive(Clone)]
pub(super) struct Place<'a> {
    pub(super) at: String,
    /// The level of its values.
    pub(super) level: Level,
    /// The end of the error about a default, if none is allowed.
    pub(super) bans_defaults: Option<String>,
    pub(super) is_in_metadata: bool,
    /// The path of the first holder around it whose values have no identity.
    pub(super) unmatched: Option<&'a str>,
    /// The largest number of its values in an object; `None` if that is not limited.
    pub(super) most: Option<u64>,
    /// Whether rules may stand in it.
    pub(super) has_rules: bool,
}

impl Place<'_> {
    /// Reports whether its values have a kind and metadata.
    pub(super) fn is_resource(&self) -> bool {
        self.level != Level::Part
    }

    /// Returns the place of a version's schema.
    pub(super) fn root(at: &str) -> Self {
        Self {
            at: at.to_owned(),
            level: Level::Resource,
            bans_defaults: None,
            is_in_metadata: false,
            unmatched: None,
            most: Some(1),
            has_rules: true,
        }
    }
}
