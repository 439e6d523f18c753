//! Setters of public fields.

/// Defines a documented setter for each of these fields of a struct.
///
/// | field | argument |
/// |---|---|
/// | `name: T` | a `T` |
/// | `name: into T` | what converts into a `T`; the field is a `T` or an optional one |
/// | `name: each T` | the items of a collection |
/// | `name: each into T` | what converts into the items of a collection |
/// | `name: pairs K => V` | the entries of a map, whose keys and values convert |
#[doc(hidden)]
#[macro_export]
macro_rules! setters {
    () => {};
    ($(#[$doc:meta])* $field:ident: into $kind:ty, $($rest:tt)*) => {
        $(#[$doc])*
        #[must_use]
        pub fn $field(mut self, $field: impl Into<$kind>) -> Self {
            self.$field = Into::<$kind>::into($field).into();
            self
        }

        $crate::setters! { $($rest)* }
    };
    ($(#[$doc:meta])* $field:ident: each into $kind:ty, $($rest:tt)*) => {
        $(#[$doc])*
        #[must_use]
        pub fn $field(mut self, $field: impl IntoIterator<Item = impl Into<$kind>>) -> Self {
            self.$field = $field.into_iter().map(Into::into).collect();
            self
        }

        $crate::setters! { $($rest)* }
    };
    ($(#[$doc:meta])* $field:ident: each $kind:ty, $($rest:tt)*) => {
        $(#[$doc])*
        #[must_use]
        pub fn $field(mut self, $field: impl IntoIterator<Item = $kind>) -> Self {
            self.$field = $field.into_iter().collect();
            self
        }

        $crate::setters! { $($rest)* }
    };
    ($(#[$doc:meta])* $field:ident: pairs $key:ty => $value:ty, $($rest:tt)*) => {
        $(#[$doc])*
        #[must_use]
        pub fn $field(
            mut self,
            $field: impl IntoIterator<Item = (impl Into<$key>, impl Into<$value>)>,
        ) -> Self {
            let entries = $field.into_iter();
            self.$field = entries.map(|(key, value)| (key.into(), value.into())).collect();
            self
        }

        $crate::setters! { $($rest)* }
    };
    ($(#[$doc:meta])* $field:ident: $kind:ty, $($rest:tt)*) => {
        $(#[$doc])*
        #[must_use]
        pub fn $field(mut self, $field: $kind) -> Self {
            self.$field = $field;
            self
        }

        $crate::setters! { $($rest)* }
    };
}
