//! The committed C header matches the source, and a C program works with it.

mod fake;

use fake::Fake;
use std::path::{Path, PathBuf};
use std::process::Command;

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
fn a_program_in_c_works() {
    // Cargo builds the C library beside the test programs.
    let here = std::env::current_exe().expect("it has a path");
    let library: PathBuf = here.parent().expect("it is in a folder").into();
    let directory = tempfile::tempdir().expect("there is room");
    let program = directory.path().join("pair");
    let built = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I"])
        .arg(Path::new(ROOT).join("include"))
        .arg(Path::new(ROOT).join("examples/pair.c"))
        .arg("-L")
        .arg(&library)
        .args(["-lphitwire_client", "-o"])
        .arg(&program)
        .status();
    let Ok(built) = built else {
        println!("# SKIP there is no C compiler (cc)");
        return;
    };
    assert!(built.success());
    let run = |doors: &[PathBuf]| {
        let mut command = Command::new(&program);
        command.env("LD_LIBRARY_PATH", &library).args(doors);
        let output = command.output().expect("it runs");
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.code(),
            String::from_utf8_lossy(&text).into_owned(),
        )
    };
    let fake = Fake::start(2);
    assert_eq!(run(&fake.doors), (Some(0), "ok\n".into()));
    let (code, text) = run(&["/nonexistent/door".into(), "/nonexistent/door".into()]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("no NIC is listening"), "{text}");
}
