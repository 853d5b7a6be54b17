//! Counters of every machine: the names that nodes report, and the declaration of each.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::machines::{Sample, samples};
use crate::{Outcome, cell};

/// Counters that are reported without a declaration in a `counters!` block.
const TOLD_BY_HAND: [(&str, &str); 4] = [
    ("cycles", "Cycles of the chip's clock since it was made."),
    (
        "stalls.input",
        "How often something waited in an input queue for a slot in a row buffer.",
    ),
    (
        "stalls.row",
        "How often a column buffer ran full, so that something waited in a row buffer.",
    ),
    (
        "stalls.column",
        "How often something waited in a column buffer for the link.",
    ),
];

/// Counters that the process adds to those of its node, and the files that declare them.
const OF_PROCESSES: [(&str, &str, &str); 5] = [
    (
        "io",
        "What goes to the kernel and comes from it",
        "nodes/src/io/counters.rs",
    ),
    ("loop", "The loop of the process", "nodes/src/driver.rs"),
    (
        "door",
        "Programs at the door of a network interface",
        "nodes/src/door/mod.rs",
    ),
    (
        "ip",
        "IP over the fabric, with `up.sh --ip`",
        "nodes/src/ip.rs",
    ),
    ("ip", "", "src/nic/datagrams/mod.rs"),
];

/// Counters of processes without a declaration in a `counters!` block.
const OF_PROCESSES_BY_HAND: [(&str, &str); 4] = [
    (
        "io.frames_dropped",
        "The sum of all `io.` counters of dropped frames.",
    ),
    ("door.clients", "Programs that are attached now."),
    (
        "noise.flipped_bits",
        "Bits that `ctl NODE fault lane-noise` has flipped above what links repeat.",
    ),
    (
        "portN.fault_NAME",
        "Times that `ctl NODE fault NAME` was done to the link of that port.",
    ),
];

struct Declared {
    file: String,
    name: String,
    about: String,
}

pub fn page(root: &Path) -> Outcome<String> {
    let declared = all_declared(root)?;
    let mut page = String::from(
        "# Counters\n\n`phitwire ctl --lab LAB NODE stats` prints the nonzero counters of a node (all \
         of them with `--zero`), and `phitwire metrics` exports them to Prometheus. They count from the start \
         of the process and never decrease. Counters of the link at port N have the prefix `portN.`.\n",
    );
    let samples = samples()?;
    let shared = shared_of_links(&samples, &declared)?;
    page.push_str("\n## Every link\n\nOf the link ends of all machines, as `portN.NAME`.\n\n");
    table(&mut page, &shared);
    for sample in &samples {
        let (own, links) = counter_names(sample);
        let title = format!("{}: {}", sample.machine, sample.kind());
        page.push_str(&format!("\n## {title}\n\n"));
        let rows = own.iter().map(|name| row(sample, name, &declared));
        table(&mut page, &rows.collect::<Outcome<Vec<_>>>()?);
        let rows = links
            .iter()
            .filter(|name| !shared.iter().any(|(other, _)| other == *name))
            .map(|name| row(sample, name, &declared));
        let rows = rows.collect::<Outcome<Vec<_>>>()?;
        if !rows.is_empty() && sample.kind() == "router" {
            let title = format!("{}: links", sample.machine);
            page.push_str(&format!(
                "\n## {title}\n\nAs `portN.NAME`, at both ends.\n\n"
            ));
            table(&mut page, &rows);
        }
    }
    of_processes(&mut page, &declared);
    Ok(page)
}

fn of_processes(page: &mut String, declared: &[Declared]) {
    for (prefix, title, file) in OF_PROCESSES {
        if !title.is_empty() {
            page.push_str(&format!("\n## {title}\n\n"));
        }
        let rows = declared.iter().filter(|counter| counter.file == file);
        let rows = rows.map(|counter| (format!("{prefix}.{}", counter.name), &*counter.about));
        let rows: Vec<_> = rows.collect();
        match title.is_empty() {
            false => table(page, &rows),
            true => lines(page, &rows),
        }
    }
    page.push_str("\n## Other counters of processes\n\n");
    table(
        page,
        &OF_PROCESSES_BY_HAND.map(|(name, about)| (name.to_owned(), about)),
    );
}

fn table(page: &mut String, rows: &[(String, &str)]) {
    page.push_str("| counter | what it counts |\n|---|---|\n");
    lines(page, rows);
}

fn lines(page: &mut String, rows: &[(String, &str)]) {
    for (name, about) in rows {
        page.push_str(&format!("| `{name}` | {} |\n", cell(about)));
    }
}

/// The names that a node reports: its own, and those of its links without the port.
fn counter_names(sample: &Sample) -> (Vec<String>, Vec<String>) {
    let (mut own, mut links) = (Vec::new(), Vec::new());
    sample.device.for_each_counter(&mut |name, _| {
        let of_link = name
            .strip_prefix("port")
            .map(|rest| rest.trim_start_matches(|letter: char| letter.is_ascii_digit()))
            .and_then(|rest| rest.strip_prefix('.'));
        let (list, name) = match of_link {
            Some(name) => (&mut links, name),
            None => (&mut own, name),
        };
        if !list.iter().any(|other| other == name) {
            list.push(name.to_owned());
        }
    });
    (own, links)
}

/// Counters common to the links of all machines, which one file declares.
fn shared_of_links<'a>(
    samples: &[Sample],
    declared: &'a [Declared],
) -> Outcome<Vec<(String, &'a str)>> {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    let mut order = Vec::new();
    for sample in samples {
        for name in counter_names(sample).1 {
            let count = times.entry(name.clone()).or_default();
            if *count == 0 {
                order.push(name);
            }
            *count += 1;
        }
    }
    order
        .into_iter()
        .filter(|name| times.get(name) == Some(&samples.len()))
        .map(|name| {
            let found = declared
                .iter()
                .find(|counter| counter.name == name && !counter.file.starts_with("machines/"))
                .map(|counter| (name.clone(), &*counter.about));
            found.ok_or_else(|| format!("no declaration of portN.{name}"))
        })
        .collect()
}

/// The row of a counter: the declaration in its machine's folder or, failing that, the common one.
fn row<'a>(sample: &Sample, name: &str, declared: &'a [Declared]) -> Outcome<(String, &'a str)> {
    let by_hand = TOLD_BY_HAND.iter().find(|(other, _)| *other == name);
    if let Some((_, about)) = by_hand {
        return Ok((name.to_owned(), about));
    }
    let last = name.rsplit('.').next().unwrap_or(name);
    let folder = format!("machines/{}/src/", sample.folder);
    let is_of = |counter: &&Declared| counter.name == last && counter.file.starts_with(&folder);
    // A router and a network interface of one machine may have counters of the same name.
    let part = match sample.kind() {
        "router" => ["/router", "/barrier/router"],
        _ => ["/nic/", "/barrier/shell"],
    };
    let own: Vec<&Declared> = declared.iter().filter(is_of).collect();
    let of_part = own
        .iter()
        .find(|counter| part.iter().any(|part| counter.file.contains(part)));
    let shared = || {
        declared
            .iter()
            .find(|counter| counter.name == last && !counter.file.starts_with("machines/"))
    };
    let found = of_part.or(own.first()).copied().or_else(shared);
    match found {
        Some(counter) => Ok((name.to_owned(), &counter.about)),
        None => Err(format!(
            "counter {name} of a {} {} is declared nowhere: say what it is in counters.rs",
            sample.machine,
            sample.kind()
        )),
    }
}

/// All counters declared in `counters!` blocks of the sources.
fn all_declared(root: &Path) -> Outcome<Vec<Declared>> {
    let mut all = Vec::new();
    for folder in ["src", "machines", "nodes/src"] {
        below(root, folder, &mut all)?;
    }
    Ok(all)
}

fn below(root: &Path, folder: &str, all: &mut Vec<Declared>) -> Outcome<()> {
    let entries = fs::read_dir(root.join(folder)).map_err(|error| format!("{folder}: {error}"))?;
    let mut names: Vec<_> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    for name in names {
        let path = format!("{folder}/{name}");
        if root.join(&path).is_dir() {
            below(root, &path, all)?;
        } else if name.ends_with(".rs") {
            let text = crate::text_of(root, &path)?;
            let blocks = text.split("counters! {\n").skip(1);
            // The tests of the macro declare no real counters.
            for block in blocks.filter(|_| path != "src/kit/counters.rs") {
                declared_in(&path, block, all);
            }
        }
    }
    Ok(())
}

/// The counters of one block, up to the end of its struct.
fn declared_in(file: &str, block: &str, all: &mut Vec<Declared>) {
    let inside = block.split_once("pub struct ").map_or("", |(_, rest)| rest);
    let lines = inside.lines().skip(1).map(str::trim);
    let mut about: Vec<&str> = Vec::new();
    for line in lines.take_while(|line| *line != "}") {
        if let Some(text) = line.strip_prefix("///") {
            about.push(text.trim());
            continue;
        }
        let meaning = without_links(&about.join(" "));
        let names: Vec<&str> = match line.split_once(": [") {
            Some((_, parts)) => parts.split('"').skip(1).step_by(2).collect(),
            None => line.strip_suffix(',').into_iter().collect(),
        };
        if !names.is_empty() {
            about.clear();
        }
        for name in names {
            let (file, name) = (file.to_owned(), name.to_owned());
            let about = meaning.clone();
            all.push(Declared { file, name, about });
        }
    }
}

/// Replaces rustdoc links, which do not work in a book, by their text: `` [`name`](place) `` and ``
/// [`name`] ``.
pub fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("[`") {
        let Some((name, behind)) = after.split_once("`]") else {
            break;
        };
        plain.push_str(&format!("{before}`{name}`"));
        rest = match behind.strip_prefix('(') {
            Some(place) => place.split_once(')').map_or("", |(_, behind)| behind),
            None => behind,
        };
    }
    plain.push_str(rest);
    plain
}
