//! Views of the Aries pipeline stages.

use super::grain::Items;
use super::pipeline::{
    COLUMN_BUFFER_FLITS, COLUMNS, FIRST_PROCESSOR_TILE, NETLINK_INPUT_FLITS, NETLINK_OUTPUT_FLITS,
    NETWORK, PAIR_TILES, ROW_BUFFER_FLITS, ROWS, TILES,
};
use super::tiles::Tiles;
use crate::link::VC_NAMES;
use crate::route::registers::{FIRST_NIC_PORT, NICS, VCS};
use phitwire::device::pipeline::Stage;
use phitwire::kit::tiles::is_crossed;

/// The tiles by which packets between the ports in the mask `ports` arrive and leave.
fn tiles_of(ports: u64) -> u64 {
    let of_pair = |nic: usize| 0xf << (FIRST_PROCESSOR_TILE + nic / 2 * PAIR_TILES);
    let nics = (0..NICS).filter(|nic| ports >> (FIRST_NIC_PORT + nic) & 1 != 0);
    nics.fold(ports & NETWORK, |tiles, nic| tiles | of_pair(nic))
}

impl<I: Items> Tiles<I> {
    /// Contents of Netlink's queues towards the tiles, of row buffers by subswitch, of column
    /// buffers by output tile, and of Netlink's queues towards the NICs. Omits empty tiles that
    /// packets between the ports in the mask `ports` do not pass.
    pub fn stages(&self, ports: u64) -> [Stage; 4] {
        let used = tiles_of(ports);
        let [_, row, column] = self.stalls();
        let [mut incoming, mut outgoing] = ["Netlink, from NICs", "Netlink, to NICs"]
            .map(|name| Stage::inside(name, "flits", "tile"));
        incoming = incoming
            .channels(&["request", "response"])
            .capacity([NETLINK_INPUT_FLITS.into(); 2]);
        outgoing = outgoing
            .channels(&["all"])
            .capacity([NETLINK_OUTPUT_FLITS.into()]);
        let depth = COLUMNS as u64 * u64::from(ROW_BUFFER_FLITS);
        let mut rows = Stage::inside("row buffer", "flits", "subswitch")
            .channels(&VC_NAMES)
            .capacity([depth; VCS])
            .stalls(row);
        let depth = ROWS as u64 * u64::from(COLUMN_BUFFER_FLITS);
        let mut columns = Stage::inside("column buffer", "flits", "tile")
            .channels(&VC_NAMES)
            .capacity([depth; VCS])
            .stalls(column);
        let of_rows = self.rows.by_subswitch::<I>();
        let of_columns = self.columns.by_output::<I>();
        for tile in 0..TILES {
            let in_use = used >> tile & 1 != 0;
            if is_crossed(used, tile) || of_rows[tile] != [0; VCS] {
                rows.holds(tile, of_rows[tile]);
            }
            if in_use || of_columns[tile] != [0; VCS] {
                columns.holds(tile, of_columns[tile]);
            }
            if let Some(number) = tile.checked_sub(FIRST_PROCESSOR_TILE) {
                let (from, to) = self.netlink.held_at(number);
                if in_use || from != [0; 2] || to != 0 {
                    incoming.holds(tile, from);
                    outgoing.holds(tile, [to]);
                }
            }
        }
        [incoming, rows, columns, outgoing]
    }
}
