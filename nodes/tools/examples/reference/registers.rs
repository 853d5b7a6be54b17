//! Registers of every machine's routers and network interfaces, as the nodes list them.

use crate::machines::samples;
use crate::{Outcome, cell};

pub fn page() -> Outcome<String> {
    let mut page = String::from(
        "# Registers\n\n`phitwire ctl --lab LAB NODE get` lists the registers of a node, `get NAME` reads one, \
         `set NAME VALUE` writes one. `{0..3}` in a name stands for each of these numbers, `{a,b}` for each \
         of these words; `...` stands for the words between. Which tiles and entries there are follows from \
         the network: these are nodes of `quickstart`, `aries-3x4` and `t3e-2x2x2`.\n",
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
                shortened(&register.name),
                register.bits,
                cell(&register.about)
            ));
        }
    }
    Ok(page)
}

/// A name in which long lists are reduced to the first and the last word.
fn shortened(name: &str) -> String {
    const MOST: usize = 3;
    let Some((before, rest)) = name.split_once('{') else {
        return name.to_owned();
    };
    let Some((among, after)) = rest.split_once('}') else {
        return name.to_owned();
    };
    let words: Vec<&str> = among.split(',').collect();
    let among = match words[..] {
        [first, .., last] if words.len() > MOST => format!("{first},...,{last}"),
        _ => among.to_owned(),
    };
    format!("{before}{{{among}}}{}", shortened(after))
}
