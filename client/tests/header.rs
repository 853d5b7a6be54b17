//! The committed C header matches the source, and a C program works with it.

mod fake;

use fake::Fake;
use phitwire_client::door::Status;
use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn generated() -> String {
    let mut config = cbindgen::Config {
        language: cbindgen::Language::C,
        include_guard: Some("PHITWIRE_H".into()),
        cpp_compat: true,
        sys_includes: ["stdbool.h", "stddef.h", "stdint.h"]
            .map(String::from)
            .to_vec(),
        no_includes: true,
        header: Some(
            "/* A program's interface to a phitwire network interface: see client/README.md.\n \
             * Written by cbindgen from client/src/ffi; do not edit. */"
                .into(),
        ),
        ..cbindgen::Config::default()
    };
    config.enumeration.rename_variants = cbindgen::RenameRule::QualifiedScreamingSnakeCase;
    let kinds = ["PhwKind", "PhwStatus", "PhwAtomic", "PhwReduction"];
    config.export.include = kinds.map(String::from).to_vec();
    let source = |file| Path::new(ROOT).join("src/ffi").join(file);
    let bindings = cbindgen::Builder::new()
        .with_config(config)
        .with_src(source("types.rs"))
        // Includes the modules declared there.
        .with_src(source("mod.rs"))
        .generate()
        .expect("the source is right");
    let mut header = Vec::new();
    bindings.write(&mut header);
    String::from_utf8(header).expect("it is text")
}

#[test]
fn the_header_is_that_of_the_source() {
    let path = Path::new(ROOT).join("include/phitwire.h");
    let header = generated();
    if std::env::var_os("PHITWIRE_REGENERATE").is_some() {
        std::fs::create_dir_all(path.parent().expect("it has a folder")).expect("it can be made");
        std::fs::write(&path, &header).expect("it can be written");
    }
    let committed = std::fs::read_to_string(&path).expect("it is committed");
    assert!(
        committed == header,
        "PHITWIRE_REGENERATE=1 cargo test -p phitwire-client --test header regenerates it"
    );
}

#[test]
fn nothing_is_declared_twice_and_the_readme_counts_right() {
    let header = generated();
    let declared = header.lines().filter(|line| line.starts_with("int phw_"));
    let mut names: Vec<&str> = declared.filter_map(|line| line.split('(').next()).collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
    let reasons = header.matches("  PHW_STATUS_").count() - 1;
    let readme = std::fs::read_to_string(Path::new(ROOT).join("README.md")).expect("it is there");
    assert!(
        readme.contains(&format!("one of {reasons} reasons")),
        "{reasons}"
    );
}

#[test]
fn every_return_code_has_a_name() {
    use phitwire_client::ffi::phw_error_name;
    let name = |code| {
        // SAFETY: the function returns a zero-terminated string, which is never freed.
        let name = unsafe { CStr::from_ptr(phw_error_name(code)) };
        name.to_str().expect("it is ASCII").to_owned()
    };
    let header = generated();
    let (codes, _) = header.split_once("#define PHW_HAS").expect("it has both");
    let codes = codes.lines().filter_map(|line| {
        let (constant, code) = line.strip_prefix("#define PHW_")?.split_once(' ')?;
        Some((constant, code.parse().ok()?))
    });
    let codes: Vec<(&str, i32)> = codes.collect();
    assert_eq!(codes.len(), 11, "{codes:?}");
    for (constant, code) in codes {
        assert_eq!(name(code), constant.to_lowercase());
    }
    assert_eq!([name(-99), name(2)], ["unknown", "unknown"]);
}

/// The guide's table of reasons has a row for each, with its name in C and in Rust.
#[test]
fn the_guide_lists_all_reasons() {
    let page = Path::new(ROOT).join("../docs/guide/src/door.md");
    let page = std::fs::read_to_string(page).expect("it is there");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let rows: Vec<_> = rows.filter(|row| row.matches('|').count() == 3).collect();
    let known = Status::ALL
        .into_iter()
        .filter(|&status| status != Status::Done);
    let known: Vec<_> = known
        .map(|status| format!("{status}`, `{status:?}` |"))
        .collect();
    assert_eq!(rows.len(), known.len(), "{rows:#?}");
    for (row, known) in rows.iter().zip(&known) {
        assert!(row.starts_with(known), "{row} should begin with {known}");
    }
}

/// Cargo builds the C library beside the test programs.
fn library() -> PathBuf {
    let here = std::env::current_exe().expect("it has a path");
    here.parent().expect("it is in a folder").into()
}

/// Compiles an example; `None` if there is no C compiler.
fn compiled(name: &str, into: &Path) -> Option<PathBuf> {
    let program = into.join(name);
    let built = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I"])
        .arg(Path::new(ROOT).join("include"))
        .arg(Path::new(ROOT).join(format!("examples/{name}.c")))
        .arg("-L")
        .arg(library())
        .args(["-lphitwire_client", "-o"])
        .arg(&program)
        .status();
    let Ok(built) = built else {
        println!("# SKIP there is no C compiler (cc)");
        return None;
    };
    assert!(built.success());
    Some(program)
}

/// A command that runs a program with the library in its search path.
fn started(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", library());
    command
}

fn result(output: &Output) -> (Option<i32>, String) {
    let text = [&output.stdout[..], &output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into())
}

#[test]
fn a_program_in_c_works() {
    let directory = tempfile::tempdir().expect("there is room");
    let Some(program) = compiled("pair", directory.path()) else {
        return;
    };
    let run = |doors: &[PathBuf]| {
        let output = started(&program).args(doors).output();
        result(&output.expect("it runs"))
    };
    let fake = Fake::start(2);
    assert_eq!(run(&fake.doors), (Some(0), "ok\n".into()));
    let (code, text) = run(&["/nonexistent/door".into(), "/nonexistent/door".into()]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("no NIC is listening"), "{text}");
}

#[test]
fn two_programs_in_c_work() {
    let directory = tempfile::tempdir().expect("there is room");
    let Some(program) = compiled("remote", directory.path()) else {
        return;
    };
    let piped = |role: &str, door: &Path| {
        let mut command = started(&program);
        command.arg(role).arg(door);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let run = |fake: &Fake| {
        let mut target = piped("target", &fake.doors[1]).spawn().expect("it runs");
        let pipe = target.stdout.take().expect("it is piped");
        let source = piped("source", &fake.doors[0]).stdin(pipe).output();
        let source = result(&source.expect("it runs"));
        if source.0 != Some(0) {
            // It would wait for the source.
            target.kill().expect("it runs");
        }
        (source, result(&target.wait_with_output().expect("it runs")))
    };
    let (source, target) = run(&Fake::start(2));
    assert_eq!(source, (Some(0), "source: all words are right\n".into()));
    assert_eq!(target, (Some(0), "target: all words are right\n".into()));
    let ((code, text), _) = run(&Fake::start_wrong(2));
    assert_eq!(
        (code, text.contains("failed: the counter")),
        (Some(1), true),
        "{text}"
    );
}
