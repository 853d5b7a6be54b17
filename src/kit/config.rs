//! Methods of checked configurations, each of which is a struct with private fields, and of their
//! builders, which are tuple structs around it.

/// Getters, of copies or (`name: &Type`) of references to fields.
macro_rules! getters {
    ($($(#[$doc:meta])+ $field:ident: &$type:ty;)+) => {
        $($(#[$doc])+ pub fn $field(&self) -> &$type { &self.$field })+
    };
    ($($(#[$doc:meta])+ $field:ident: $type:ty;)+) => {
        $($(#[$doc])+ pub fn $field(&self) -> $type { self.$field })+
    };
}

/// Setters of a builder.
macro_rules! setters {
    ($($(#[$doc:meta])+ $field:ident: $type:ty;)+) => {
        $($(#[$doc])+ #[must_use] pub fn $field(mut self, $field: $type) -> Self {
            self.0.$field = $field;
            self
        })+
    };
}

pub(crate) use {getters, setters};
