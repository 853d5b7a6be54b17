//! Registers of every machine's routers and network interfaces, as they list them themselves.

use crate::machines::samples;
use crate::{Outcome, cell};

/// The page of registers.
pub fn page() -> Outcome<String> {
    let mut page = String::from(
        "# Registers\n\n`phitwire ctl --lab LAB NODE get` lists the registers of a node, `get NAME` reads one, \
         `set NAME VALUE` writes one. `{0..3}` in a name stands for each of these numbers, `{a,b}` for each \
         of these words.\n",
    );
    for mut sample in samples()? {
        let title = format!("{}: {}", sample.machine, sample.kind());
        let list = sample.device.registers().map(|registers| registers.list());
        let Some(list) = list.filter(|list| !list.is_empty()) else {
            continue;
        };
        page.push_str(&format!("\n## {title}\n\n"));
        let has_addresses = list.iter().any(|register| register.address.is_some());
        page.push_str(if has_addresses {
            "| address | register | bits | access | what it is |\n|---|---|---|---|---|\n"
        } else {
            "| register | bits | access | what it is |\n|---|---|---|---|\n"
        });
        for register in list {
            if has_addresses {
                let address = register.address;
                let address = address.map_or("-".to_owned(), |address| format!("0x{address:04x}"));
                page.push_str(&format!("| {address} "));
            }
            let access = if register.writable { "rw" } else { "r" };
            page.push_str(&format!(
                "| `{}` | {} | {access} | {} |\n",
                register.name.replace(',', ", "),
                register.bits,
                cell(&register.about)
            ));
        }
    }
    Ok(page)
}
