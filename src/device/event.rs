//! Events of devices of any machine.

use core::any::{Any, TypeId};
use core::fmt;
use core::hash::{Hash, Hasher};
use core::mem::{Discriminant, discriminant};
use std::hash::DefaultHasher;
use std::sync::Arc;

use crate::link::LinkEvent;
use crate::node::PortId;

/// An event that only one machine has.
pub trait OwnEvent: Any + fmt::Debug + Send + Sync {
    /// Distinguishes the variants of one type.
    fn variant(&self) -> u64;

    fn equals(&self, other: &dyn OwnEvent) -> bool;
}

impl<E: Any + fmt::Debug + PartialEq + Send + Sync> OwnEvent for E {
    fn variant(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        discriminant(self).hash(&mut hasher);
        hasher.finish()
    }

    fn equals(&self, other: &dyn OwnEvent) -> bool {
        (other as &dyn Any).downcast_ref() == Some(self)
    }
}

#[derive(Clone)]
pub enum DeviceEvent {
    Link {
        port: PortId,
        event: LinkEvent,
    },
    /// A traffic run has issued its last message, and every response arrived or timed out.
    TrafficDone {
        run: u64,
    },
    /// An event that only this machine has.
    Own {
        /// The port concerned, if any.
        port: Option<PortId>,
        event: Arc<dyn OwnEvent>,
    },
}

/// The variant and port of an event, regardless of its other values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventKind {
    port: Option<PortId>,
    link: Option<Discriminant<LinkEvent>>,
    own: Option<(TypeId, u64)>,
}

impl DeviceEvent {
    /// An event of one machine, with the port concerned, if any.
    pub fn own(port: Option<PortId>, event: impl OwnEvent) -> Self {
        let event = Arc::new(event);
        Self::Own { port, event }
    }

    /// The port and the event, if this is a link event.
    pub const fn link(&self) -> Option<(PortId, &LinkEvent)> {
        match self {
            Self::Link { port, event } => Some((*port, event)),
            _ => None,
        }
    }

    /// The machine's own event, if it has this type.
    pub fn downcast_ref<E: Any>(&self) -> Option<&E> {
        match self {
            Self::Own { event, .. } => (&**event as &dyn Any).downcast_ref(),
            _ => None,
        }
    }

    /// The kind of the event: the same for events of one variant and port.
    pub fn kind(&self) -> EventKind {
        let (port, link, own) = match self {
            Self::Link { port, event } => (Some(*port), Some(discriminant(event)), None),
            Self::TrafficDone { .. } => (None, None, None),
            Self::Own { port, event } => {
                let of = &**event as &dyn Any;
                (*port, None, Some((of.type_id(), event.variant())))
            }
        };
        EventKind { port, link, own }
    }
}

impl PartialEq for DeviceEvent {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Link { port, event },
                Self::Link {
                    port: at,
                    event: is,
                },
            ) => (port, event) == (at, is),
            (Self::TrafficDone { run }, Self::TrafficDone { run: is }) => run == is,
            (
                Self::Own { port, event },
                Self::Own {
                    port: at,
                    event: is,
                },
            ) => port == at && event.equals(&**is),
            _ => false,
        }
    }
}

impl fmt::Debug for DeviceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link { port, event } => {
                let mut link = f.debug_struct("Link");
                link.field("port", port).field("event", event).finish()
            }
            Self::TrafficDone { run } => f.debug_struct("TrafficDone").field("run", run).finish(),
            // The event prints its port, if it has one.
            Self::Own { event, .. } => event.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq, Eq)]
    enum Ring {
        Turned { times: u32 },
        Stopped,
    }

    #[derive(Debug, PartialEq)]
    enum Bus {
        Stopped,
    }

    #[test]
    fn events_of_one_variant_at_one_port_are_of_one_kind() {
        let turned = |port, times| DeviceEvent::own(Some(port), Ring::Turned { times });
        assert_eq!(turned(1, 2).kind(), turned(1, 3).kind());
        assert_ne!(turned(1, 2), turned(1, 3));
        assert_eq!(turned(1, 2), turned(1, 2));
        assert_ne!(turned(1, 2).kind(), turned(2, 2).kind());
        let stopped = DeviceEvent::own(Some(1), Ring::Stopped);
        assert_ne!(turned(1, 2).kind(), stopped.kind());
        let other = DeviceEvent::own(Some(1), Bus::Stopped);
        assert_ne!(other.kind(), stopped.kind());
        assert_ne!(other, stopped);
        let link = |event| DeviceEvent::Link { port: 1, event };
        assert_ne!(
            link(LinkEvent::Silent).kind(),
            link(LinkEvent::Resumed).kind()
        );
        assert_eq!(
            link(LinkEvent::Silent).kind(),
            link(LinkEvent::Silent).kind()
        );
    }

    #[test]
    fn machine_events_are_returned_unchanged() {
        let event = DeviceEvent::own(Some(3), Ring::Turned { times: 7 });
        assert_eq!(event.downcast_ref(), Some(&Ring::Turned { times: 7 }));
        assert_eq!(event.downcast_ref::<Bus>(), None);
        assert_eq!(format!("{event:?}"), "Turned { times: 7 }");
        assert_eq!(event.link(), None);
        let event = LinkEvent::Silent;
        let event = DeviceEvent::Link { port: 3, event };
        assert_eq!(event.link(), Some((3, &LinkEvent::Silent)));
        assert_eq!(format!("{event:?}"), "Link { port: 3, event: Silent }");
    }
}
