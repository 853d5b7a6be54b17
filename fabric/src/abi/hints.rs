//! Hints that programs pass to `fi_getinfo`. A nonzero hint is a requirement: the provider checks
//! field by field whether it can satisfy it.

use std::ffi::{CStr, CString};

use super::info::{
    ADDRESS_FORMAT, CAPS, DOMAIN_CAPS, FABRIC, IOVS, MOST_BYTES, MOST_CONTEXTS, MOST_INJECT,
    MOST_ORDERED, MOST_REGIONS, ORDERS, PROTOCOL, PROTOCOL_VERSION, PROVIDER_VERSION,
};
use super::refusals::{check_flags, has};
use super::*;
use crate::attach_target::AttachTarget;
use crate::domain::MOST_ENDPOINTS;
use crate::engine::endpoint::MOST_OPERATIONS;
use crate::engine::shared::MOST_OBJECTS;
use crate::engine::wire::Address;

/// The version that split `mr_mode` into separate bits.
pub const FI_VERSION_1_5: u32 = (1 << 16) | 5;
/// Default flags of operations that send, and of those that receive.
const TX_FLAGS: u64 = FI_COMPLETION
    | FI_INJECT
    | FI_INJECT_COMPLETE
    | FI_TRANSMIT_COMPLETE
    | FI_DELIVERY_COMPLETE
    | FI_MORE;
const RX_FLAGS: u64 = FI_COMPLETION | FI_MULTI_RECV | FI_MORE;

/// Whether the provider can satisfy the hints of a call with this version. Addresses in the hints
/// that the call replaces are not checked: with `FI_SOURCE` the source, otherwise the destination
/// if the call has a node.
///
/// # Safety
/// The attributes of the hints are null or valid.
pub unsafe fn suits(hints: &Info, version: u32, (flags, has_node): (u64, bool)) -> bool {
    // SAFETY: guaranteed by the caller.
    let (tx, rx, ep, domain, fabric) = unsafe {
        (
            hints.tx_attr.as_ref(),
            hints.rx_attr.as_ref(),
            hints.ep_attr.as_ref(),
            hints.domain_attr.as_ref(),
            hints.fabric_attr.as_ref(),
        )
    };
    let is_source = flags & FI_SOURCE != 0;
    let is_address = |is_used: bool, at: *mut c_void, len: usize| {
        !is_used || at.is_null() || len == Address::BYTES
    };
    // `mode` is not checked: its bits are concessions of the program, and the provider needs none.
    has(hints.caps, CAPS)
        && [0, ADDRESS_FORMAT].contains(&hints.addr_format)
        && is_address(!is_source, hints.src_addr, hints.src_addrlen)
        && is_address(is_source || !has_node, hints.dest_addr, hints.dest_addrlen)
        && tx.is_none_or(suits_tx)
        && rx.is_none_or(suits_rx)
        && ep.is_none_or(|ep| suits_ep(ep, hints.caps))
        // SAFETY: guaranteed by the caller.
        && domain.is_none_or(|domain| unsafe { suits_domain(domain, version) })
        && fabric.is_none_or(|fabric| unsafe { suits_fabric(fabric) })
}

fn suits_flags(flags: u64, supported: u64) -> bool {
    check_flags(flags).is_ok() && flags & !supported == 0
}

/// Any traffic class is accepted: the returned description states the actual one.
fn suits_tx(tx: &TxAttr) -> bool {
    has(tx.caps, CAPS)
        && suits_flags(tx.op_flags, TX_FLAGS)
        && tx.msg_order & !ORDERS == 0
        && tx.comp_order == 0
        && tx.inject_size <= MOST_INJECT
        && tx.size <= MOST_OPERATIONS
        && tx.iov_limit <= IOVS
        && tx.rma_iov_limit <= 1
}

fn suits_rx(rx: &RxAttr) -> bool {
    has(rx.caps, CAPS)
        && suits_flags(rx.op_flags, RX_FLAGS)
        && rx.msg_order & !ORDERS == 0
        && rx.comp_order == 0
        && rx.total_buffered_recv == 0
        && rx.size <= MOST_OPERATIONS
        && rx.iov_limit <= IOVS
}

/// Any tag format is accepted, since tags have 64 bits.
fn suits_ep(ep: &EpAttr, caps: u64) -> bool {
    let orders = [
        ep.max_order_raw_size,
        ep.max_order_war_size,
        ep.max_order_waw_size,
    ];
    // The limits concern only one-sided and atomic operations.
    let has_orders = caps & (FI_RMA | FI_ATOMIC) == 0 || orders.iter().all(|&o| o <= MOST_ORDERED);
    [0, FI_EP_RDM].contains(&ep.r#type)
        && [0, PROTOCOL].contains(&ep.protocol)
        && ep.protocol_version <= PROTOCOL_VERSION
        && ep.max_msg_size <= MOST_BYTES
        && ep.msg_prefix_size == 0
        && has_orders
        && ep.tx_ctx_cnt <= 1
        && ep.rx_ctx_cnt <= 1
        && ep.auth_key_size == 0
}

/// # Safety
/// The name is null or a string.
unsafe fn suits_domain(domain: &DomainAttr, version: u32) -> bool {
    let mode = domain.mr_mode;
    let is_whole = matches!(mode, 0 | FI_MR_BASIC | FI_MR_SCALABLE);
    let has_mode =
        is_whole || (version >= FI_VERSION_1_5 && mode & (FI_MR_BASIC | FI_MR_SCALABLE) == 0);
    // SAFETY: guaranteed by the caller.
    let has_name = unsafe { is_null_or(domain.name, &domain_name()) };
    has_mode
        && has_name
        // Programs may ask for weaker guarantees than the provider gives.
        && (0..=FI_THREAD_ENDPOINT).contains(&domain.threading)
        && (0..=FI_PROGRESS_CONTROL_UNIFIED).contains(&domain.control_progress)
        && (0..=FI_PROGRESS_MANUAL).contains(&domain.data_progress)
        && (0..=FI_RM_ENABLED).contains(&domain.resource_mgmt)
        && (0..=FI_AV_TABLE).contains(&domain.av_type)
        && domain.mr_key_size <= size_of::<u64>()
        && domain.cq_data_size <= size_of::<u64>()
        && domain.cq_cnt <= MOST_OBJECTS
        && domain.cntr_cnt <= MOST_OBJECTS
        && domain.ep_cnt <= MOST_ENDPOINTS
        && domain.tx_ctx_cnt <= MOST_CONTEXTS
        && domain.rx_ctx_cnt <= MOST_CONTEXTS
        && domain.max_ep_tx_ctx <= 1
        && domain.max_ep_rx_ctx <= 1
        && domain.max_ep_stx_ctx == 0
        && domain.max_ep_srx_ctx == 0
        && domain.mr_iov_limit <= 1
        && domain.mr_cnt <= MOST_REGIONS
        && domain.max_err_data == 0
        && domain.auth_key_size == 0
        && has(domain.caps, DOMAIN_CAPS)
}

/// libfabric itself selects providers by `prov_name`.
///
/// # Safety
/// The name is null or a string.
unsafe fn suits_fabric(fabric: &FabricAttr) -> bool {
    // SAFETY: guaranteed by the caller.
    let has_name = unsafe { is_null_or(fabric.name, FABRIC) };
    has_name
        && fabric.prov_version <= PROVIDER_VERSION
        && library::version().is_none_or(|version| fabric.api_version <= version)
}

/// # Safety
/// `text` is null or a string.
unsafe fn is_null_or(text: *const c_char, wanted: &CStr) -> bool {
    // SAFETY: guaranteed by the caller.
    text.is_null() || unsafe { CStr::from_ptr(text) } == wanted
}

fn domain_name() -> CString {
    let name = AttachTarget::of_environment()
        .ok()
        .map(|target| target.name());
    CString::new(name.unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSION: u32 = (1 << 16) | 17;
    const FI_SHARED_CONTEXT: usize = usize::MAX;

    /// All hints, as zeros.
    struct Hints {
        info: Info,
        tx: TxAttr,
        rx: RxAttr,
        ep: EpAttr,
        domain: DomainAttr,
        fabric: FabricAttr,
    }

    fn hints() -> Hints {
        // SAFETY: all fields are numbers and pointers.
        unsafe { std::mem::zeroed() }
    }

    fn answer(change: impl FnOnce(&mut Hints), version: u32) -> bool {
        let mut hints = hints();
        change(&mut hints);
        hints.info.tx_attr = &raw mut hints.tx;
        hints.info.rx_attr = &raw mut hints.rx;
        hints.info.ep_attr = &raw mut hints.ep;
        hints.info.domain_attr = &raw mut hints.domain;
        hints.info.fabric_attr = &raw mut hints.fabric;
        // SAFETY: the attributes are valid.
        unsafe { suits(&hints.info, version, (0, false)) }
    }

    /// Checks one accepted and one refused value of each hint.
    macro_rules! limits {
        ($($part:ident.$field:ident: $given:expr, $not:expr;)*) => {
            $(
                let given = answer(|hints| hints.$part.$field = $given, VERSION);
                assert!(given, concat!(stringify!($part.$field), " as given"));
                let refused = !answer(|hints| hints.$part.$field = $not, VERSION);
                assert!(refused, concat!(stringify!($part.$field), " is refused"));
            )*
        };
    }

    #[test]
    fn no_hints_suit() {
        assert!(answer(|_| (), VERSION));
    }

    #[test]
    fn contexts_have_limits() {
        limits! {
            info.caps: CAPS, CAPS | FI_FENCE;
            info.addr_format: ADDRESS_FORMAT, 1;
            tx.caps: FI_RMA_EVENT, FI_TRIGGER;
            tx.op_flags: FI_INJECT | FI_DELIVERY_COMPLETE, FI_COMMIT_COMPLETE;
            tx.op_flags: FI_COMPLETION, FI_MULTI_RECV;
            tx.msg_order: FI_ORDER_SAS, 1 << 1;
            tx.comp_order: 0, 1;
            tx.inject_size: MOST_INJECT, MOST_INJECT + 1;
            tx.size: MOST_OPERATIONS, MOST_OPERATIONS + 1;
            tx.iov_limit: IOVS, IOVS + 1;
            tx.rma_iov_limit: 1, 2;
            rx.caps: FI_MSG, FI_COLLECTIVE;
            rx.op_flags: FI_MULTI_RECV, FI_DELIVERY_COMPLETE;
            rx.msg_order: FI_ORDER_SAS, 1 << 4;
            rx.comp_order: 0, 2;
            rx.total_buffered_recv: 0, 1;
            rx.size: MOST_OPERATIONS, MOST_OPERATIONS + 1;
            rx.iov_limit: IOVS, IOVS + 1;
        }
    }

    #[test]
    fn endpoints_have_limits() {
        limits! {
            ep.r#type: FI_EP_RDM, 1;
            ep.protocol: PROTOCOL, 5;
            ep.protocol_version: 1, 2;
            ep.max_msg_size: MOST_BYTES, MOST_BYTES + 1;
            ep.msg_prefix_size: 0, 8;
            ep.tx_ctx_cnt: 1, FI_SHARED_CONTEXT;
            ep.rx_ctx_cnt: 1, 2;
            ep.auth_key_size: 0, 1;
        }
        assert!(answer(|hints| hints.ep.mem_tag_format = u64::MAX, VERSION));
    }

    /// The limits concern only one-sided and atomic operations.
    #[test]
    fn orders_have_limits() {
        let orders: [fn(&mut EpAttr) -> &mut usize; 3] = [
            |ep| &mut ep.max_order_raw_size,
            |ep| &mut ep.max_order_war_size,
            |ep| &mut ep.max_order_waw_size,
        ];
        for order in orders {
            let suits = |caps: u64, bytes: usize| {
                let ask = |hints: &mut Hints| {
                    hints.info.caps = caps;
                    *order(&mut hints.ep) = bytes;
                };
                answer(ask, VERSION)
            };
            assert!(suits(FI_ATOMIC, MOST_ORDERED));
            assert!(!suits(FI_ATOMIC, MOST_ORDERED + 1));
            assert!(suits(FI_MSG, MOST_ORDERED + 1));
        }
    }

    #[test]
    fn domains_have_limits() {
        limits! {
            domain.threading: FI_THREAD_ENDPOINT, FI_THREAD_ENDPOINT + 1;
            domain.control_progress: FI_PROGRESS_CONTROL_UNIFIED, 4;
            domain.data_progress: FI_PROGRESS_AUTO, 3;
            domain.resource_mgmt: FI_RM_ENABLED, 3;
            domain.av_type: FI_AV_TABLE, 3;
            domain.mr_mode: FI_MR_BASIC, FI_MR_BASIC | FI_MR_VIRT_ADDR;
            domain.mr_mode: FI_MR_VIRT_ADDR | 1 << 2, FI_MR_SCALABLE | FI_MR_PROV_KEY;
            domain.mr_key_size: 8, 9;
            domain.cq_data_size: 8, 9;
            domain.cq_cnt: MOST_OBJECTS, MOST_OBJECTS + 1;
            domain.cntr_cnt: MOST_OBJECTS, MOST_OBJECTS + 1;
            domain.ep_cnt: MOST_ENDPOINTS, MOST_ENDPOINTS + 1;
            domain.tx_ctx_cnt: MOST_CONTEXTS, MOST_CONTEXTS + 1;
            domain.rx_ctx_cnt: MOST_CONTEXTS, MOST_CONTEXTS + 1;
            domain.max_ep_tx_ctx: 1, 2;
            domain.max_ep_rx_ctx: 1, 2;
            domain.max_ep_stx_ctx: 0, 1;
            domain.max_ep_srx_ctx: 0, 1;
            domain.mr_iov_limit: 1, 2;
            domain.mr_cnt: MOST_REGIONS, MOST_REGIONS + 1;
            domain.max_err_data: 0, 1;
            domain.auth_key_size: 0, 1;
            domain.caps: FI_LOCAL_COMM, FI_SHARED_AV;
        }
        // Older versions have only the basic and the scalable mode.
        let asks = |hints: &mut Hints| hints.domain.mr_mode = FI_MR_VIRT_ADDR;
        assert!(!answer(asks, FI_VERSION_1_5 - 1));
    }

    #[test]
    fn fabrics_have_names_and_versions() {
        limits! {
            fabric.name: FABRIC.as_ptr().cast_mut(), c"tcp".as_ptr().cast_mut();
            fabric.prov_version: PROVIDER_VERSION, PROVIDER_VERSION + 1;
        }
    }

    /// Addresses in the call replace those in the hints.
    #[test]
    fn addresses_of_other_providers_are_refused() {
        let mut address = [0_u8; 28];
        let mut hints = hints().info;
        hints.dest_addr = address.as_mut_ptr().cast();
        let own = Address::BYTES;
        for (len, has_node, is_suited) in [(28, false, false), (28, true, true), (own, false, true)]
        {
            hints.dest_addrlen = len;
            // SAFETY: there are no attributes.
            let found = unsafe { suits(&hints, VERSION, (0, has_node)) };
            assert_eq!(found, is_suited, "{len} {has_node}");
        }
    }
}
