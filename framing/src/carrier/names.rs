//! Macros for enumerations with named values, for errors with counters, and for the fields of
//! views.

/// Defines an enumeration from one list of its values, with `ALL` and, where names are given,
/// `name`.
#[doc(hidden)]
#[macro_export]
macro_rules! listed {
    ($type:ident { $($value:ident = $name:literal),+ $(,)? }) => {
        $crate::listed!($type { $($value),+ });

        impl $type {
            /// Name of the value as a counter, on a command line or in a description.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)+
                }
            }
        }
    };
    ($type:ident { $($value:ident),+ $(,)? }) => {
        impl $type {
            /// All values, in the order of their codes.
            pub const ALL: [Self; [$(stringify!($value)),+].len()] = [$(Self::$value),+];
        }
    };
}

/// Defines an error enumeration without fields. Each value has a sentence, which is its message and
/// its documentation, and optionally the name of a counter before it.
macro_rules! reasons {
    ($(#[$about:meta])* $type:ident {
        $($(#[$more:meta])* $value:ident = $name:literal: $text:literal,)+
    }) => {
        $crate::carrier::names::reasons! {
            $(#[$about])* $type { $($(#[$more])* $value: $text,)+ }
        }
        $crate::listed!($type { $($value = $name),+ });

        impl $type {
            /// Position in [`Self::ALL`].
            pub const fn index(self) -> usize {
                self as usize
            }
        }
    };
    ($(#[$about:meta])* $type:ident { $($(#[$more:meta])* $value:ident: $text:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $type {
            $(#[doc = $text] $(#[doc = ""] #[$more])* $value,)+
        }

        impl core::fmt::Display for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(match self {
                    $(Self::$value => $text,)+
                })
            }
        }

        impl core::error::Error for $type {}
    };
}
pub(crate) use reasons;

/// Defines the getter or the setter of a bit field of a view, which must have `get` and `set` for
/// such a field.
macro_rules! bit_field {
    (get $get:ident, $field:expr, $type:ty, $doc:literal) => {
        #[doc = concat!($doc, ".")]
        #[inline]
        pub fn $get(&self) -> $type {
            self.get($field) as $type
        }
    };
    (set $set:ident, $field:expr, $type:ty, $doc:literal) => {
        #[doc = concat!("Sets ", $doc, ".")]
        #[inline]
        pub fn $set(&mut self, value: $type) {
            self.set($field, value.into());
        }
    };
}
pub(crate) use bit_field;
