//! The parts of netlink messages that the watches of interfaces and filters share.

/// Bytes of an `nlmsghdr`.
pub const HEADER: usize = 16;
pub const NLMSG_ERROR: u16 = 2;
pub const NLMSG_DONE: u16 = 3;
pub const NLM_F_REQUEST_DUMP: u16 = 0x1 | 0x300;
/// The bits of an attribute's type that are not flags.
const TYPE: u16 = 0x3fff;

/// The messages of one datagram: header and body. Ends at a malformed one.
pub fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (&[u8; HEADER], &[u8])> {
    std::iter::from_fn(move || {
        let header = bytes.first_chunk::<HEADER>()?;
        let length = u32_at(header, 0) as usize;
        let body = bytes.get(HEADER..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((header, body))
    })
}

/// Type and value of each attribute. Ends at a malformed one.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let &[low, high, kind @ ..] = bytes.first_chunk::<4>()?;
        let length = usize::from(u16::from_ne_bytes([low, high]));
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes(kind) & TYPE, value))
    })
}

/// The value of the first attribute of this type after a structure of `skip` bytes.
pub fn attribute(body: &[u8], skip: usize, wanted: u16) -> Option<&[u8]> {
    let mut found = attributes(body.get(skip..)?).filter(|&(kind, _)| kind == wanted);
    found.next().map(|(_, value)| value)
}

/// The text before the first zero byte.
pub fn text(value: &[u8]) -> &[u8] {
    value.split(|&byte| byte == 0).next().unwrap_or_default()
}

pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut value = [0; 4];
    value.copy_from_slice(&bytes[at..at + 4]);
    u32::from_ne_bytes(value)
}
