//! Setters shared by rules and matchers.

/// Defines setters of optional text fields with their names.
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

/// Defines the setters of all rules.
macro_rules! rule_setters {
    () => {
        /// Sets the name.
        #[must_use]
        pub fn named(mut self, name: &str) -> Self {
            name.clone_into(&mut self.name);
            self
        }

        /// Limits the matches that the rule affects.
        #[must_use]
        pub fn when(mut self, when: Schedule) -> Self {
            self.when = when;
            self
        }
    };
}

pub(super) use rule_setters;
pub(super) use text_setters;
