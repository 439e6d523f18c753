//! Decoding helpers of the compact types.

use std::borrow::Cow;

use jiff::Timestamp;
use kube_apimachinery::labels::Labels;
use kube_apimachinery::owner_reference::OwnerReference;
use kube_apimachinery::time::parse_saturating;
use serde::{Deserialize, Deserializer};

mod managed_fields;

pub(crate) use managed_fields::{null_managed_fields, without_managed_fields};

#[cfg(test)]
mod tests;

/// Metadata of cached objects.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RawMeta {
    pub(crate) name: Box<str>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) namespace: Box<str>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) uid: Box<str>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) resource_version: Box<str>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) generation: i64,
    #[serde(deserialize_with = "time")]
    pub(crate) creation_timestamp: Option<Timestamp>,
    #[serde(deserialize_with = "present_time")]
    pub(crate) deletion_timestamp: Option<Timestamp>,
    pub(crate) labels: Labels,
    #[serde(deserialize_with = "or_default")]
    pub(crate) owner_references: Box<[OwnerReference]>,
}

/// Deserializes `null` as the default value.
pub(crate) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// Deserializes a time. `null`, the zero time and invalid times are `None`; a time beyond the
/// clock's range saturates.
pub(crate) fn time<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Timestamp>, D::Error> {
    let text = Option::<Cow<'de, str>>::deserialize(deserializer)?;
    Ok(text.and_then(|text| parse_saturating(&text)))
}

/// Deserializes a time whose presence matters: any string counts as a time.
pub(crate) fn present_time<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Timestamp>, D::Error> {
    let text = Option::<Cow<'de, str>>::deserialize(deserializer)?;
    Ok(text.map(|text| parse_saturating(&text).unwrap_or(Timestamp::MIN)))
}
