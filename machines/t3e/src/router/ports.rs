//! The interface between links, encoded or ideal, and the crossbar.

use phitwire_framing::t3e::flit::Flit;
use phitwire_framing::t3e::packet::MAX_PACKET_FLITS;

use crate::link::FlitEnd;
use phitwire::chip::Links;

/// Number of ports of a router: one per direction, by its index, and the processor's. The I/O port
/// is not modelled: see `docs/guide/src/deviations.md`.
pub const PORTS: usize = 7;
pub const PROCESSOR: usize = 6;

pub trait FlitPorts {
    /// Begins a cycle, to which the following calls belong.
    fn begin_cycle(&mut self, cycle: u64) {
        let _ = cycle;
    }
    /// Number of flits of `vc` that may be pushed; zero while the link is down.
    fn credits(&self, port: usize, vc: usize) -> u32;
    /// Whether new packets may start at a port. Started packets proceed while there are credits.
    fn takes(&self, port: usize) -> bool {
        let _ = port;
        true
    }
    /// Sends a flit.
    ///
    /// # Panics
    /// Without a credit for the flit.
    fn push(&mut self, port: usize, vc: usize, flit: Flit);
    /// The oldest flit in the input of `vc`, which must not be empty.
    fn front(&self, port: usize, vc: usize) -> u64;
    /// Removes and returns the oldest flit in the input of `vc`.
    ///
    /// # Panics
    /// If the input is empty.
    fn pop(&mut self, port: usize, vc: usize) -> u64;
    /// Takes the oldest flits of an input and sends them, with `header` in place of the first.
    ///
    /// # Panics
    /// If there are fewer flits, or no credits for all of them.
    fn transfer(
        &mut self,
        (port, vc): (usize, usize),
        (out, to): (usize, usize),
        mut header: Option<u64>,
        flits: usize,
    ) {
        for _ in 0..flits {
            let word = self.pop(port, vc);
            let is_head = header.is_some();
            let word = header.take().unwrap_or(word);
            self.push(out, to, Flit::data(word, to, is_head));
        }
    }
}

impl FlitPorts for Links<FlitEnd> {
    #[inline]
    fn credits(&self, port: usize, vc: usize) -> u32 {
        self.end(port).map_or(0, |end| end.credits(vc))
    }

    #[inline]
    fn push(&mut self, port: usize, vc: usize, flit: Flit) {
        let end = self.end_mut(port);
        end.expect("a port with credits has a link").push(vc, flit);
    }

    #[inline]
    fn front(&self, port: usize, vc: usize) -> u64 {
        self.input(port).map_or(0, |input| input.buffer().front(vc))
    }

    #[inline]
    fn pop(&mut self, port: usize, vc: usize) -> u64 {
        let input = self.input_mut(port);
        input.expect("a port with flits has a link").pop(vc)
    }

    #[inline]
    fn transfer(
        &mut self,
        (port, vc): (usize, usize),
        (out, to): (usize, usize),
        header: Option<u64>,
        flits: usize,
    ) {
        let mut words = [0; MAX_PACKET_FLITS];
        let words = &mut words[..flits];
        let input = self.input_mut(port);
        input
            .expect("a port with flits has a link")
            .pop_many(vc, words);
        if let Some(header) = header {
            words[0] = header;
        }
        let end = self.end_mut(out).expect("a port with credits has a link");
        end.push_many(to, words, header.is_some());
    }
}
