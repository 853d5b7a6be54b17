//! Splits trains of datagrams. Segmentation offload keeps datagrams together between namespaces; a
//! capture contains them one by one.

use phitwire_framing::carrier::frame::{
    ETHERTYPE, FABRIC_AT, LINK_AT, MAGIC_AT, MIN_BYTES, UDP_PORT,
};
use phitwire_nodes::io::{ETHERNET_HEADER_BYTES, UDP_HEADERS_BYTES};

/// Bytes of an IPv4 header without options.
const IP_BYTES: usize = 20;
/// Bytes before the link frame in a datagram.
const HEADERS_BYTES: usize = ETHERNET_HEADER_BYTES + UDP_HEADERS_BYTES;
/// EtherType of IPv4.
const IPV4: [u8; 2] = [0x08, 0x00];

/// Calls `each` with the headers and the link frame of every datagram of a captured message; a
/// message that is not a train is passed unchanged.
pub fn for_each_datagram(message: &[u8], mut each: impl FnMut(&[u8], &[u8])) {
    if message.get(12..ETHERNET_HEADER_BYTES) == Some(&ETHERTYPE.to_be_bytes()) {
        let (headers, frame) = message.split_at(ETHERNET_HEADER_BYTES);
        return each(headers, frame);
    }
    let Some((headers, train)) = message.split_at_checked(HEADERS_BYTES) else {
        return each(&[], message);
    };
    let is_datagram =
        headers[12..14] == IPV4 && headers[14] == 0x45 && headers[36..38] == UDP_PORT.to_be_bytes();
    let size = match is_datagram {
        true => datagram_len(train),
        false => train.len(),
    };
    if size == train.len() {
        return each(headers, train);
    }
    let number = u16::from_be_bytes([headers[18], headers[19]]);
    for (at, frame) in train.chunks(size).enumerate() {
        let mut own = [0; HEADERS_BYTES];
        own.copy_from_slice(headers);
        let ip_bytes = (UDP_HEADERS_BYTES + frame.len()) as u16;
        own[16..18].copy_from_slice(&ip_bytes.to_be_bytes());
        own[18..20].copy_from_slice(&number.wrapping_add(at as u16).to_be_bytes());
        own[24..26].fill(0);
        let sum = internet_checksum(&own[ETHERNET_HEADER_BYTES..][..IP_BYTES]);
        own[24..26].copy_from_slice(&sum.to_be_bytes());
        let udp_bytes = ip_bytes - IP_BYTES as u16;
        own[38..40].copy_from_slice(&udp_bytes.to_be_bytes());
        // Clear the checksum, which the kernel left to the device. Zero means that there is none.
        own[40..42].fill(0);
        each(&own, frame);
    }
}

/// Length of each datagram of a train (the last may be shorter). The kernel does not report it; it
/// follows from the headers of the frames, which belong to one link and so begin the same way.
fn datagram_len(train: &[u8]) -> usize {
    let Some(begin) = train.get(..FABRIC_AT.end) else {
        return train.len();
    };
    let is_alike = |frame: &[u8]| {
        frame.len() >= MIN_BYTES
            && frame[MAGIC_AT] == begin[MAGIC_AT]
            && frame[LINK_AT.start..FABRIC_AT.end] == begin[LINK_AT.start..]
    };
    // Shorter than the train: its second datagram may be shorter than the first.
    let sizes = MIN_BYTES..train.len();
    sizes
        .clone()
        .find(|&size| is_alike(&train[size..]) && train.chunks(size).all(is_alike))
        .unwrap_or(train.len())
}

/// The checksum of an IP header.
fn internet_checksum(header: &[u8]) -> u16 {
    let words = header.as_chunks::<2>().0.iter();
    let mut sum: u32 = words.map(|word| u32::from(u16::from_be_bytes(*word))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(length: usize, fill: u8) -> Vec<u8> {
        let mut frame = vec![fill; length];
        frame[..8].copy_from_slice(&[0x59, 0x20, 0, 7, 1, 2, 3, 4]);
        frame
    }

    fn message(frames: &[Vec<u8>]) -> Vec<u8> {
        let mut message = vec![0; HEADERS_BYTES];
        message[12..15].copy_from_slice(&[8, 0, 0x45]);
        message[36..38].copy_from_slice(&UDP_PORT.to_be_bytes());
        message.extend(frames.concat());
        message
    }

    fn apart(message: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut found = Vec::new();
        for_each_datagram(message, |headers, frame| {
            found.push((headers.to_vec(), frame.to_vec()));
        });
        found
    }

    #[test]
    fn a_train_comes_apart_into_its_datagrams() {
        let frames = [frame(190, 1), frame(190, 2), frame(99, 3)];
        let found = apart(&message(&frames));
        for (at, ((headers, found), frame)) in found.iter().zip(&frames).enumerate() {
            assert_eq!(found, frame, "{at}");
            let length = u16::from_be_bytes([headers[16], headers[17]]);
            assert_eq!(usize::from(length), 28 + frame.len());
            assert_eq!(headers[19], at as u8);
            assert_eq!(
                internet_checksum(&headers[14..34]),
                0,
                "its checksum is right"
            );
        }
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn single_datagrams_are_not_split() {
        for message in [
            vec![],
            vec![1; 20],
            message(&[vec![]]),
            message(&[frame(190, 1)]),
            message(&[vec![0x59; 4]]),
            message(&[frame(60, 1), vec![2; 60]]),
        ] {
            let found = apart(&message);
            assert_eq!(found.len(), 1);
            assert_eq!([&found[0].0[..], &found[0].1].concat(), message);
        }
    }
}
