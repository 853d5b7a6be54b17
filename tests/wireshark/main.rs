//! The committed field tables of the Wireshark dissector match the code.

#[allow(dead_code)]
#[path = "../../examples/wireshark_fields.rs"]
mod wireshark_fields;

const COMMITTED: &str = include_str!("../../docs/wireshark/phitwire_fields.lua");

#[test]
fn the_committed_tables_are_those_of_the_code() {
    let now = wireshark_fields::tables();
    for (line, (committed, now)) in COMMITTED.lines().zip(now.lines()).enumerate() {
        assert_eq!(
            committed,
            now,
            "docs/wireshark/phitwire_fields.lua, line {}",
            line + 1
        );
    }
    assert_eq!(
        COMMITTED, now,
        "write it anew: cargo run --example wireshark_fields >docs/wireshark/phitwire_fields.lua"
    );
}
