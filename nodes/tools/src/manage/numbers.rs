//! Sets the numbers of NICs according to the tables.

use phitwire::net::NodeRef;
use phitwire_nodes::control::{NodeInfo, Request};

use super::fleet::Routers;
use super::manager::Tables;
use super::report::Report;

/// Sets the number of every NIC that replies, where numbers can change.
pub(super) fn renumber(report: &mut Report, tables: &Tables<'_>, nodes: &mut impl Routers) {
    for node in tables.network.nodes() {
        let NodeRef::Processor(nic) = node else {
            continue;
        };
        let Some(number) = tables.routed.number(nic) else {
            continue;
        };
        // Skip a silent NIC; a later reroute sets its number, once it replies again.
        let Ok(info) = nodes.ask_nic(nic, &Request::Info) else {
            continue;
        };
        let has = serde_json::from_value::<NodeInfo>(info).map(|info| info.processor);
        if has.is_ok_and(|has| has == Some(number)) {
            continue;
        }
        if nodes.ask_nic(nic, &Request::Renumber { number }).is_ok() {
            let name = tables.network.node_name(node).into_owned();
            report.renumbered.insert(name, number);
        }
    }
}
