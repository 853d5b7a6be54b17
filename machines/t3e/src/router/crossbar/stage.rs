//! The crossbar in views of pipeline stages.

use phitwire_framing::t3e::flit::{VCS, vc};

use super::Crossbar;
use crate::router::input::NONE;
use phitwire::device::pipeline::Stage;
use phitwire::kit::bits;

impl Crossbar {
    /// The outputs at `ports`, one bit each, with the packets that own their virtual channels. The
    /// flits of those packets are in the inputs.
    pub fn stage(&self, ports: u64) -> Stage {
        let mut stage = Stage::outside("crossbar", "packets", "port")
            .channels(&vc::NAMES)
            .capacity([1; VCS])
            .stalls(self.counters.stalled_input_cycles);
        for port in bits(ports) {
            let has = |vc| u64::from(self.outputs[port].owner(vc) != NONE);
            stage.holds(port, (0..VCS).map(has));
        }
        stage
    }
}
