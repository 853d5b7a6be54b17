//! Compares the structures with libfabric's headers, if they are installed: a C program prints all
//! offsets and constants.

use std::mem::offset_of;
use std::process::Command;

use phitwire_fabric::abi::*;

/// An expression that the C program prints, and its expected value.
struct Fact(String, usize);

macro_rules! facts {
    ($($type:ty as $name:literal { $($field:ident),* $(,)? })*) => {
        vec![$(
            $(Fact(format!("offsetof({}, {})", $name, plain(stringify!($field))), offset_of!($type, $field)),)*
        )*]
    };
}

macro_rules! constants {
    ($($name:ident),* $(,)?) => {
        vec![$(Fact(stringify!($name).to_owned(), $name as usize)),*]
    };
}

fn plain(field: &str) -> &str {
    field.trim_start_matches("r#")
}

fn structures() -> Vec<Fact> {
    facts! {
        TxAttr as "struct fi_tx_attr" { caps, mode, op_flags, msg_order, comp_order, inject_size, size, iov_limit, rma_iov_limit, tclass }
        RxAttr as "struct fi_rx_attr" { caps, mode, op_flags, msg_order, comp_order, size, iov_limit }
        EpAttr as "struct fi_ep_attr" { r#type, protocol, protocol_version, max_msg_size, msg_prefix_size, mem_tag_format, tx_ctx_cnt, rx_ctx_cnt, auth_key_size, auth_key }
        DomainAttr as "struct fi_domain_attr" {
            domain, name, threading, control_progress, data_progress, resource_mgmt, av_type, mr_mode, mr_key_size, cq_data_size, cq_cnt, ep_cnt,
            tx_ctx_cnt, rx_ctx_cnt, max_ep_tx_ctx, max_ep_rx_ctx, cntr_cnt, mr_iov_limit, caps, mode, auth_key, auth_key_size, max_err_data, mr_cnt, tclass
        }
        FabricAttr as "struct fi_fabric_attr" { fabric, name, prov_name, prov_version, api_version }
        Info as "struct fi_info" { next, caps, mode, addr_format, src_addrlen, dest_addrlen, src_addr, dest_addr, handle, tx_attr, rx_attr, ep_attr, domain_attr, fabric_attr, nic }
        AvAttr as "struct fi_av_attr" { r#type, rx_ctx_bits, count, ep_per_node, name, map_addr, flags }
        CqAttr as "struct fi_cq_attr" { size, flags, format, wait_obj, signaling_vector, wait_cond, wait_set }
        EqAttr as "struct fi_eq_attr" { size, flags, wait_obj, signaling_vector, wait_set }
        CntrAttr as "struct fi_cntr_attr" { events, wait_obj, wait_set, flags }
        MrAttr as "struct fi_mr_attr" { mr_iov, iov_count, access, offset, requested_key, context }
        AtomicAttr as "struct fi_atomic_attr" { count, size }
        Msg as "struct fi_msg" { msg_iov, desc, iov_count, addr, context, data }
        MsgTagged as "struct fi_msg_tagged" { msg_iov, desc, iov_count, addr, tag, ignore, context, data }
        RmaIov as "struct fi_rma_iov" { addr, len, key }
        MsgRma as "struct fi_msg_rma" { msg_iov, desc, iov_count, addr, rma_iov, rma_iov_count, context, data }
        MsgAtomic as "struct fi_msg_atomic" { msg_iov, desc, iov_count, addr, rma_iov, rma_iov_count, datatype, op, context, data }
        CqEntry as "struct fi_cq_tagged_entry" { op_context, flags, len, buf, data, tag }
        CqErrEntry as "struct fi_cq_err_entry" { op_context, flags, len, buf, data, tag, olen, err, prov_errno, err_data, err_data_size }
        Fid as "struct fid" { fclass, context, ops }
        FidFabric as "struct fid_fabric" { fid, ops, api_version }
        FidDomain as "struct fid_domain" { fid, ops, mr }
        FidSimple as "struct fid_cq" { fid, ops }
        FidMr as "struct fid_mr" { fid, mem_desc, key }
        FidEp as "struct fid_ep" { fid, ops, cm, msg, rma, tagged, atomic, collective }
        Provider as "struct fi_provider" { version, fi_version, context, name, getinfo, fabric, cleanup }
    }
}

/// Offsets of the operations: only the position in a table identifies an operation.
fn tables() -> Vec<Fact> {
    let tables: [(&str, &[&str]); 13] = [
        (
            "fi_ops",
            &["close", "bind", "control", "ops_open", "tostr", "ops_set"],
        ),
        (
            "fi_ops_fabric",
            &[
                "domain",
                "passive_ep",
                "eq_open",
                "wait_open",
                "trywait",
                "domain2",
            ],
        ),
        (
            "fi_ops_domain",
            &[
                "av_open",
                "cq_open",
                "endpoint",
                "scalable_ep",
                "cntr_open",
                "poll_open",
                "stx_ctx",
                "srx_ctx",
                "query_atomic",
                "query_collective",
                "endpoint2",
            ],
        ),
        ("fi_ops_mr", &["reg", "regv", "regattr"]),
        (
            "fi_ops_av",
            &[
                "insert",
                "insertsvc",
                "insertsym",
                "remove",
                "lookup",
                "straddr",
                "av_set",
            ],
        ),
        (
            "fi_ops_cq",
            &[
                "read",
                "readfrom",
                "readerr",
                "sread",
                "sreadfrom",
                "signal",
                "strerror",
            ],
        ),
        (
            "fi_ops_cntr",
            &["read", "readerr", "add", "set", "wait", "adderr", "seterr"],
        ),
        (
            "fi_ops_eq",
            &["read", "readerr", "write", "sread", "strerror"],
        ),
        (
            "fi_ops_ep",
            &[
                "cancel",
                "getopt",
                "setopt",
                "tx_ctx",
                "rx_ctx",
                "rx_size_left",
                "tx_size_left",
            ],
        ),
        (
            "fi_ops_cm",
            &[
                "setname", "getname", "getpeer", "connect", "listen", "accept", "reject",
                "shutdown", "join",
            ],
        ),
        (
            "fi_ops_msg",
            &[
                "recv",
                "recvv",
                "recvmsg",
                "send",
                "sendv",
                "sendmsg",
                "inject",
                "senddata",
                "injectdata",
            ],
        ),
        (
            "fi_ops_rma",
            &[
                "read",
                "readv",
                "readmsg",
                "write",
                "writev",
                "writemsg",
                "inject",
                "writedata",
                "injectdata",
            ],
        ),
        (
            "fi_ops_atomic",
            &[
                "write",
                "writev",
                "writemsg",
                "inject",
                "readwrite",
                "readwritev",
                "readwritemsg",
                "compwrite",
                "compwritev",
                "compwritemsg",
                "writevalid",
                "readwritevalid",
                "compwritevalid",
            ],
        ),
    ];
    let mut facts = Vec::new();
    for (table, calls) in tables {
        for (n, call) in calls.iter().enumerate() {
            facts.push(Fact(
                format!("offsetof(struct {table}, {call})"),
                8 * (n + 1),
            ));
        }
    }
    // The tagged calls have the same order as those of messages.
    for (n, call) in [
        "recv",
        "recvv",
        "recvmsg",
        "send",
        "sendv",
        "sendmsg",
        "inject",
        "senddata",
        "injectdata",
    ]
    .iter()
    .enumerate()
    {
        facts.push(Fact(
            format!("offsetof(struct fi_ops_tagged, {call})"),
            8 * (n + 1),
        ));
    }
    facts
}

fn numbers() -> Vec<Fact> {
    let mut facts = constants![
        FI_MSG,
        FI_RMA,
        FI_TAGGED,
        FI_ATOMIC,
        FI_READ,
        FI_WRITE,
        FI_RECV,
        FI_SEND,
        FI_REMOTE_READ,
        FI_REMOTE_WRITE,
        FI_MULTI_RECV,
        FI_REMOTE_CQ_DATA,
        FI_MULTICAST,
        FI_COLLECTIVE,
        FI_PEEK,
        FI_TRIGGER,
        FI_FENCE,
        FI_COMPLETION,
        FI_EVENT,
        FI_MORE,
        FI_THREAD_ENDPOINT,
        FI_INJECT,
        FI_INJECT_COMPLETE,
        FI_TRANSMIT_COMPLETE,
        FI_DELIVERY_COMPLETE,
        FI_COMMIT_COMPLETE,
        FI_MATCH_COMPLETE,
        FI_HMEM,
        FI_RMA_PMEM,
        FI_SOURCE_ERR,
        FI_LOCAL_COMM,
        FI_REMOTE_COMM,
        FI_SHARED_AV,
        FI_RMA_EVENT,
        FI_SOURCE,
        FI_NAMED_RX_CTX,
        FI_DIRECTED_RECV,
        FI_CLAIM,
        FI_DISCARD,
        FI_SELECTIVE_COMPLETION,
        FI_ADDR_NOTAVAIL,
        FI_PROV_SPECIFIC,
        FI_MR_BASIC,
        FI_MR_SCALABLE,
        FI_MR_VIRT_ADDR,
        FI_MR_ALLOCATED,
        FI_MR_PROV_KEY,
        FI_ORDER_SAS,
        FI_AV_MAP,
        FI_AV_TABLE,
        FI_PROGRESS_AUTO,
        FI_PROGRESS_MANUAL,
        FI_THREAD_SAFE,
        FI_RM_ENABLED,
        FI_EP_RDM,
        FI_TC_BEST_EFFORT,
        FI_WAIT_NONE,
        FI_WAIT_UNSPEC,
        FI_WAIT_FD,
        FI_WAIT_YIELD,
        FI_CLASS_FABRIC,
        FI_CLASS_DOMAIN,
        FI_CLASS_EP,
        FI_CLASS_AV,
        FI_CLASS_MR,
        FI_CLASS_EQ,
        FI_CLASS_CQ,
        FI_CLASS_CNTR,
        FI_GETOPSFLAG,
        FI_SETOPSFLAG,
        FI_GETWAIT,
        FI_ENABLE,
        FI_QUEUE_WORK,
        FI_GETWAITOBJ,
        FI_OPT_MIN_MULTI_RECV,
    ];
    let others = [
        ("FI_INT32", 4),
        ("FI_UINT32", 5),
        ("FI_INT64", 6),
        ("FI_UINT64", 7),
        ("FI_FLOAT", 8),
        ("FI_DOUBLE", 9),
        ("FI_MIN", 0),
        ("FI_MAX", 1),
        ("FI_SUM", 2),
        ("FI_PROD", 3),
        ("FI_LOR", 4),
        ("FI_LAND", 5),
        ("FI_BOR", 6),
        ("FI_BAND", 7),
        ("FI_LXOR", 8),
        ("FI_BXOR", 9),
        ("FI_ATOMIC_READ", 10),
        ("FI_ATOMIC_WRITE", 11),
        ("FI_CSWAP", 12),
        ("FI_CSWAP_NE", 13),
        ("FI_CSWAP_LE", 14),
        ("FI_CSWAP_LT", 15),
        ("FI_CSWAP_GE", 16),
        ("FI_CSWAP_GT", 17),
        ("FI_MSWAP", 18),
        ("FI_EOTHER", 256),
        ("FI_ETOOSMALL", 257),
        ("FI_EAVAIL", 259),
        ("FI_ETRUNC", 265),
        ("FI_ENOKEY", 266),
        ("sizeof(struct fi_cq_entry)", 8),
        ("sizeof(struct fi_cq_msg_entry)", 24),
        ("sizeof(struct fi_cq_data_entry)", 40),
        ("sizeof(struct fi_cq_tagged_entry)", 48),
    ];
    facts.extend(others.map(|(text, value)| Fact(text.to_owned(), value)));
    facts
}

#[test]
fn structures_are_those_of_the_installed_headers() {
    let header = "/usr/include/rdma/providers/fi_prov.h";
    if !std::path::Path::new(header).exists() {
        eprintln!("skipped: no {header} (libfabric-dev)");
        return;
    }
    let mut facts = structures();
    facts.extend(tables());
    facts.extend(numbers());
    let mut source = String::from("#include <stdio.h>\n#include <stddef.h>\n");
    for name in [
        "fabric",
        "fi_domain",
        "fi_endpoint",
        "fi_eq",
        "fi_cm",
        "fi_rma",
        "fi_tagged",
        "fi_atomic",
        "fi_errno",
        "providers/fi_prov",
    ] {
        source += &format!("#include <rdma/{name}.h>\n");
    }
    source += "int main(void) {\n";
    for Fact(text, _) in &facts {
        source += &format!("printf(\"%zu\\n\", (size_t)({text}));\n");
    }
    source += "}\n";
    let dir = tempfile::tempdir().expect("a directory");
    let (file, program) = (dir.path().join("layout.c"), dir.path().join("layout"));
    std::fs::write(&file, source).expect("it can be written");
    let built = Command::new("cc")
        .arg("-w")
        .arg("-o")
        .arg(&program)
        .arg(&file)
        .status();
    match built {
        Ok(status) => assert!(status.success(), "the program in C does not compile"),
        Err(error) => return eprintln!("skipped: no cc ({error})"),
    }
    let said = Command::new(&program).output().expect("it runs").stdout;
    let said = String::from_utf8(said).expect("it prints numbers");
    let said: Vec<_> = said.lines().collect();
    assert_eq!(said.len(), facts.len());
    for (Fact(text, ours), theirs) in facts.iter().zip(said) {
        assert_eq!(ours.to_string(), theirs, "{text}");
    }
}
