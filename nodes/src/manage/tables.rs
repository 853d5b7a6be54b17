//! Route tables as the control socket has them.

use std::sync::Arc;

use phitwire::machine::aries::route::registers::RouteTables;

use crate::control::TableSet;

/// What the control socket says of route tables.
pub fn table_sets(tables: &[Arc<RouteTables>; 4]) -> [TableSet; 4] {
    tables.each_ref().map(|of| TableSet {
        local_minimal: of.local_minimal.clone(),
        local_non_minimal: of.local_non_minimal.clone(),
        global_minimal: of.global_minimal.clone(),
        global_non_minimal: of.global_non_minimal.clone(),
    })
}

/// The route tables that the control socket means.
pub fn shared_tables(tables: [TableSet; 4]) -> [Arc<RouteTables>; 4] {
    tables.map(|of| {
        Arc::new(RouteTables {
            local_minimal: of.local_minimal,
            local_non_minimal: of.local_non_minimal,
            global_minimal: of.global_minimal,
            global_non_minimal: of.global_non_minimal,
        })
    })
}
