//! Named counters: declared once, reported everywhere in the same way.

/// Declares a struct of counters that only grow, one `u64` per name, each with its doc comment.
///
/// The struct gets `for_each` (name and value of every counter, in declaration order), `add`,
/// `COUNT`, and `name` and `nth` by position in that order. Counters of similar parts may follow a
/// semicolon, as an array with a name per part. They have no position, and `for_each_part` visits
/// as many of them as there are parts.
#[doc(hidden)]
#[macro_export]
macro_rules! counters {
    (
        $(#[$about:meta])+
        pub struct $Counters:ident {
            $($(#[$doc:meta])+ $name:ident,)+
            $(; $(#[$parts_doc:meta])+ $parts:ident: [$($part:literal),+],)?
        }
    ) => {
        $(#[$about])+
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $Counters {
            $($(#[$doc])+ pub $name: u64,)+
            $($(#[$parts_doc])+ pub $parts: [u64; [$($part),+].len()],)?
        }

        impl $Counters {
            /// Number of counters with a position.
            pub const COUNT: usize = [$(stringify!($name)),+].len();

            /// Calls `visit` with the name and value of every counter, in a fixed order.
            pub fn for_each(&self, mut visit: impl FnMut(&'static str, u64)) {
                $(visit(stringify!($name), self.$name);)+
            }

            $(
                /// Names of the counters of parts.
                pub const PARTS: &'static [&'static str] = &[$($part),+];

                /// Calls `visit` with the name and value of the counter of each of `count` parts.
                pub fn for_each_part(
                    &self,
                    count: usize,
                    mut visit: impl FnMut(&'static str, u64),
                ) {
                    let parts = Self::PARTS.iter().zip(self.$parts).take(count);
                    parts.for_each(|(part, n)| visit(part, n));
                }
            )?

            /// Adds the counters of another part.
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)+
                $(self.$parts.iter_mut().zip(other.$parts).for_each(|(own, n)| *own += n);)?
            }

            /// Name of counter number `index` in the order of [`for_each`](Self::for_each).
            pub fn name(index: usize) -> Option<&'static str> {
                [$(stringify!($name)),+].get(index).copied()
            }

            /// Counter number `index` in the order of [`for_each`](Self::for_each).
            pub fn nth(&self, index: usize) -> Option<u64> {
                [$(self.$name),+].get(index).copied()
            }
        }
    };
}

pub use counters;

#[cfg(test)]
mod tests {
    counters! {
        /// Counters of a test.
        pub struct Three {
            /// The first.
            one,
            /// The second.
            two,
            ;
            /// The third, of each side.
            sides: ["left_side", "right_side"],
        }
    }

    #[test]
    fn names_values_and_positions_agree() {
        let part = |one, two, sides| Three { one, two, sides };
        let mut three = part(1, 0, [1, 3]);
        three.add(&part(0, 2, [2, 1]));
        let mut visited = Vec::new();
        three.for_each(|name, value| visited.push((name, value)));
        assert_eq!(visited, [("one", 1), ("two", 2)]);
        three.for_each_part(1, |name, value| visited.push((name, value)));
        assert_eq!(visited[2..], [("left_side", 3)]);
        three.for_each_part(2, |name, value| visited.push((name, value)));
        assert_eq!(visited[3..], [("left_side", 3), ("right_side", 4)]);
        for (index, &(name, value)) in visited.iter().enumerate() {
            let has_position = index < Three::COUNT;
            assert_eq!(Three::name(index), has_position.then_some(name));
            assert_eq!(three.nth(index), has_position.then_some(value));
        }
    }
}
