//! The modules of a crate import each other without a cycle.
#![expect(
    clippy::disallowed_methods,
    reason = "a test may read the project's sources"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Crates by their source folders.
const CRATES: [&str; 10] = [
    "src",
    "framing/src",
    "machines/aries/src",
    "machines/blackwidow/src",
    "machines/t3e/src",
    "client/src",
    "nodes/src",
    "nodes/tools/src",
    "bench/src",
    "fabric/src",
];

/// A folder of modules that import each other, and its path in the crate.
const ENGINE: (&str, &str) = ("fabric/src/engine", "crate::engine::");

/// The modules that each module imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// Product code: without comments and the test module at the end of a file.
fn product(text: &str) -> String {
    let lines = text.lines().collect::<Vec<_>>();
    let is_test = |pair: &[&str]| {
        pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{')
    };
    let end = lines.windows(2).position(is_test).unwrap_or(lines.len());
    let code = lines[..end].iter().map(|line| line.split("//").next());
    code.map(Option::unwrap_or_default)
        .collect::<Vec<_>>()
        .join("\n")
}

/// The modules that `code` names after `start`, such as `crate::`.
fn imported(code: &str, start: &str) -> Vec<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let word = |text: &str| {
        text.trim_start()
            .split(|c| !is_word(c))
            .next()
            .map(str::to_owned)
    };
    let word = |text: &str| word(text).unwrap_or_default();
    let is_whole = |at: &usize| !code[..*at].ends_with(|c| is_word(c) || c == ':');
    let mut found = Vec::new();
    let starts = code.match_indices(start);
    for (at, start) in starts.filter(|(at, _)| is_whole(at)) {
        let rest = &code[at + start.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            found.push(word(rest));
            continue;
        };
        let mut depth = 0;
        let mut begins = 0;
        for (i, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth > 0 => depth -= 1,
                ',' | '}' if depth == 0 => {
                    found.push(word(&group[begins..i]));
                    begins = i + 1;
                }
                _ => {}
            }
            if c == '}' && begins == i + 1 {
                break;
            }
        }
    }
    found
}

/// Whether a file or folder of this name holds tests only.
fn is_of_tests(path: &Path) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    stem.is_some_and(|stem| {
        ["tests", "testing", "test_bench", "test_net"].contains(&stem) || stem.ends_with("_tests")
    })
}

/// Adds the imports of the sources below `path` to those of `module`. Imports begin with `start`,
/// or with `supers`, which leads from the file of a module to the parent of all modules.
fn read(path: &Path, module: &str, (start, supers): (&str, &str), imports: &mut Imports) {
    if is_of_tests(path) {
        return;
    }
    if path.is_dir() {
        for entry in fs::read_dir(path).expect("a folder of sources") {
            let entry = entry.expect("an entry").path();
            let supers = match entry.file_name().is_some_and(|name| name == "mod.rs") {
                true => supers,
                false => &format!("super::{supers}"),
            };
            read(&entry, module, (start, supers), imports);
        }
    } else if path.extension().is_some_and(|extension| extension == "rs") {
        let text = fs::read_to_string(path).expect("a source file");
        let code = product(&text);
        let of = imports.entry(module.to_owned()).or_default();
        let names = [start, supers].map(|start| imported(&code, start));
        of.extend(names.concat().into_iter().filter(|name| name != module));
    }
}

/// The imports of the items of a crate's root, each as if it were a module.
fn read_root(text: &str, modules: &BTreeSet<String>, imports: &mut Imports) {
    let code = product(text);
    let kinds = ["const", "static", "fn", "struct", "enum", "type", "trait"];
    let mut item: Option<String> = None;
    for line in code.lines() {
        if !line.starts_with([' ', '}', ')']) && !line.is_empty() {
            let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
            let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
            let head = &words[..words.len().min(4)];
            let kind = head.iter().rposition(|word| kinds.contains(word));
            item = kind
                .and_then(|kind| words.get(kind + 1))
                .map(|name| (*name).to_owned());
        }
        if let Some(item) = &item {
            let named = |module: &&String| line.contains(&format!("{module}::"));
            let of = imports.entry(item.clone()).or_default();
            of.extend(modules.iter().filter(named).cloned());
        }
    }
}

/// The imports between the modules of a crate.
fn imports_of(folder: &str) -> Imports {
    imports_from((folder, "crate::"))
}

/// The imports between the modules of a folder, whose path in its crate is `start`, and the items
/// of its root.
fn imports_from((folder, start): (&str, &str)) -> Imports {
    let mut imports = Imports::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    for entry in fs::read_dir(&folder).expect("a crate") {
        let path = entry.expect("an entry").path();
        let module = path.file_stem().and_then(|stem| stem.to_str());
        let module = module.expect("a plain name").to_owned();
        if !["lib", "main", "bin", "mod"].contains(&&*module) {
            read(&path, &module, (start, "super::"), &mut imports);
        }
    }
    let modules: BTreeSet<String> = imports.keys().cloned().collect();
    for root in ["lib.rs", "mod.rs"] {
        if let Ok(text) = fs::read_to_string(folder.join(root)) {
            read_root(&text, &modules, &mut imports);
        }
    }
    let known: BTreeSet<String> = imports.keys().cloned().collect();
    for of in imports.values_mut() {
        of.retain(|name| known.contains(name));
    }
    imports
}

/// Modules that import each other in a cycle: what is left after repeatedly removing those that
/// import none of the rest.
fn cycle(mut imports: Imports) -> BTreeSet<String> {
    loop {
        let left: BTreeSet<String> = imports.keys().cloned().collect();
        let before = imports.len();
        imports.retain(|_, of| of.iter().any(|name| left.contains(name)));
        if imports.len() == before {
            return left;
        }
    }
}

#[test]
fn modules_import_each_other_without_a_cycle() {
    let crates = CRATES.map(|folder| (folder, "crate::"));
    for (folder, start) in crates.into_iter().chain([ENGINE]) {
        let imports = imports_from((folder, start));
        assert!(imports.len() > 2, "{folder}: {imports:?}");
        assert_eq!(
            cycle(imports.clone()),
            BTreeSet::new(),
            "{folder}: {imports:?}"
        );
    }
}

/// The modules of the table in `src/lib.rs`, in its order.
fn table() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs");
    let text = fs::read_to_string(path).expect("the core");
    let rows = text
        .lines()
        .filter_map(|line| line.strip_prefix("//! | [`"));
    rows.filter_map(|row| Some(row.split_once('`')?.0.to_owned()))
        .collect()
}

/// The imports of modules that are above the importing one in `table`.
fn upwards(imports: &Imports, table: &[String]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (at, module) in table.iter().enumerate() {
        let above = imports[module]
            .iter()
            .filter(|other| table[..at].contains(other));
        found.extend(above.map(|other| (module.clone(), other.clone())));
    }
    found
}

#[test]
fn the_table_of_modules_is_complete_and_imports_go_down() {
    let (imports, mut table) = (imports_of("src"), table());
    assert_eq!(upwards(&imports, &table), []);
    // Canary: in the reversed table, imports go up.
    table.reverse();
    assert!(!upwards(&imports, &table).is_empty());
    table.sort();
    assert_eq!(table, imports.keys().cloned().collect::<Vec<_>>());
}

/// Canary.
#[test]
fn a_cycle_is_found() {
    let mut imports = imports_of("src");
    assert!(imports["sim"].contains("link"), "{imports:?}");
    let code = product(
        "use crate::{kit::Pipe, sim::{World, Wire}};\n// crate::trace\nlet a = crate::net::read();\n\
         use super::nic;\nuse super::super::chip;\n",
    );
    assert_eq!(imported(&code, "crate::"), ["kit", "sim", "net"]);
    assert_eq!(imported(&code, "super::"), ["nic", "super"]);
    assert_eq!(imported(&code, "super::super::"), ["chip"]);
    let mut root = Imports::new();
    let modules = imports.keys().cloned().collect();
    read_root(
        "pub const A: B = kit::A;\n\npub use sim::C;\n",
        &modules,
        &mut root,
    );
    assert_eq!(
        root,
        Imports::from([("A".to_owned(), BTreeSet::from(["kit".to_owned()]))])
    );
    let link = imports.get_mut("link").expect("a module");
    link.extend(imported(&code, "crate::"));
    let found = cycle(imports);
    assert!(found.contains("link") && found.contains("sim"), "{found:?}");
}

/// The parts of the provider's engine, each of which owns its fields.
const PARTS: [&str; 10] = [
    "liveness",
    "matching",
    "offers",
    "one_sided",
    "pulls",
    "registration",
    "renewal",
    "requests",
    "serving",
    "session",
];

#[test]
fn parts_of_the_providers_engine_know_no_other_part() {
    let imports = imports_from(ENGINE);
    let is_part = |name: &String| PARTS.contains(&name.as_str());
    for part in PARTS {
        let others: Vec<_> = imports[part].iter().filter(|name| is_part(name)).collect();
        assert!(others.is_empty(), "{part} knows {others:?}");
    }
    // Canary: the endpoint, which owns all parts, imports them all.
    let known = imports["endpoint"].iter().filter(|name| is_part(name));
    assert_eq!(known.count(), PARTS.len());
}
