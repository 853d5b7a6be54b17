//! Methods of validated configurations (structs with private fields) and of their builders (tuple
//! structs around them).

/// Getters that return copies or, as `name: &Type`, references.
#[doc(hidden)]
#[macro_export]
macro_rules! getters {
    ($($(#[$doc:meta])+ $field:ident: &$type:ty;)+) => {
        $($(#[$doc])+ pub fn $field(&self) -> &$type { &self.$field })+
    };
    ($($(#[$doc:meta])+ $field:ident: $type:ty;)+) => {
        $($(#[$doc])+ pub fn $field(&self) -> $type { self.$field })+
    };
}

/// Setters of a builder.
#[doc(hidden)]
#[macro_export]
macro_rules! setters {
    ($($(#[$doc:meta])+ $field:ident: $type:ty;)+) => {
        $($(#[$doc])+ #[must_use] pub fn $field(mut self, $field: $type) -> Self {
            self.0.$field = $field;
            self
        })+
    };
}

pub use getters;
pub use setters;
