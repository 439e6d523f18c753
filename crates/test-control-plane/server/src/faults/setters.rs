//! The setters that rules and matchers share.

/// Setters of members that are optional texts, named after them.
macro_rules! text_setters {
    ($($(#[$doc:meta])* $member:ident),+ $(,)?) => {
        $(
            $(#[$doc])*
            #[must_use]
            pub fn $member(mut self, $member: &str) -> Self {
                self.$member = Some($member.to_owned());
                self
            }
        )+
    };
}

/// The setters of what every rule has.
macro_rules! rule_setters {
    () => {
        /// Names it.
        #[must_use]
        pub fn named(mut self, name: &str) -> Self {
            name.clone_into(&mut self.name);
            self
        }

        /// Sets how many of those that match it is for.
        #[must_use]
        pub fn when(mut self, when: Schedule) -> Self {
            self.when = when;
            self
        }
    };
}

pub(super) use rule_setters;
pub(super) use text_setters;
