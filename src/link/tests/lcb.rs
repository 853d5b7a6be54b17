//! What the rig calls of any link control block.

use crate::link::common::Common;
use crate::link::{LinkConfig, LinkCounters, LinkEvent, LinkState};
use crate::time::{Duration, Time};

/// Hands the methods that every link control block has under the same name to the macro `$then`,
/// after `$with`.
macro_rules! lcb_methods {
    ($then:ident $($with:tt)*) => {
        $then! { $($with)*
            read {
                config() -> &LinkConfig;
                counters() -> &LinkCounters;
                epochs() -> (u32, u32);
                is_active() -> bool;
                is_silent() -> bool;
                is_stalled() -> bool;
                last_accepted() -> Option<Time>;
                next_wakeup() -> Option<Time>;
                reorder_hold() -> Duration;
                retry_timeout() -> Duration;
                round_trip() -> Option<Duration>;
                rx_lanes() -> u8;
                state() -> LinkState;
                tx_lanes() -> u8;
                unacknowledged_packets() -> u64;
                wants_to_send(now: Time) -> bool;
            }
            act {
                force_retry(now: Time);
                handle_frame(now: Time, bytes: &[u8], input: &mut Self::Input);
                handle_timers(now: Time, input: &mut Self::Input);
                link_down(now: Time, input: &mut Self::Input);
                link_up(now: Time);
                poll_event() -> Option<LinkEvent>;
                poll_frame(now: Time, buf: &mut [u8]) -> Option<usize>;
                soft_error_next();
            }
        }
    };
}

macro_rules! declare {
    (
        read { $($read:ident($($with:ident: $of:ty),*) -> $out:ty;)* }
        act { $($act:ident($($arg:ident: $in:ty),*) $(-> $got:ty)?;)* }
    ) => {
        /// A link control block.
        pub trait Lcb {
            type Input;
            fn common(&mut self) -> &mut Common;
            /// The link dies, as if all lanes had gone.
            fn die(&mut self, now: Time, input: &mut Self::Input);
            $(fn $read(&self, $($with: $of),*) -> $out;)*
            $(fn $act(&mut self, $($arg: $in),*) $(-> $got)?;)*
        }
    };
}

/// Makes a type with the methods of [`lcb_methods`] an [`Lcb`]; what it is generic over goes before
/// it as `@[...]`.
macro_rules! forward {
    (
        $(@[$($generic:tt)+])? $lcb:ty, $input:ty;
        read { $($read:ident($($with:ident: $of:ty),*) -> $out:ty;)* }
        act { $($act:ident($($arg:ident: $in:ty),*) $(-> $got:ty)?;)* }
    ) => {
        impl $(<$($generic)+>)? crate::link::tests::lcb::Lcb for $lcb {
            type Input = $input;
            fn common(&mut self) -> &mut Common {
                &mut self.common
            }
            fn die(&mut self, now: Time, input: &mut Self::Input) {
                crate::link::session::Session::die(self, now, input);
            }
            $(fn $read(&self, $($with: $of),*) -> $out {
                <$lcb>::$read(self, $($with),*)
            })*
            $(fn $act(&mut self, $($arg: $in),*) $(-> $got)? {
                <$lcb>::$act(self, $($arg),*)
            })*
        }
    };
}

pub(crate) use {forward, lcb_methods};

lcb_methods! { declare }
