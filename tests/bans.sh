#!/usr/bin/env bash
# Proves that the bans of clippy.toml bite: a crate that breaks every one of them is linted with the
# same clippy.toml, and every banned path has to be reported. A line added to clippy.toml without a
# use below fails too, so the proof cannot fall behind the list.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/src"
cat > "$dir/Cargo.toml" <<'T'
[package]
name = "bans"
version = "0.0.0"
edition = "2024"
[workspace]
T
cat > "$dir/src/lib.rs" <<'T'
#![allow(dead_code, unused_must_use)]
fn breaks_every_ban() {
    let _: std::time::Instant = std::time::Instant::now();
    let _: std::time::SystemTime = std::time::SystemTime::now();
    std::thread::spawn(|| ());
    std::thread::sleep(std::time::Duration::ZERO);
    std::thread::Builder::new().spawn(|| ());
    std::thread::scope(|_| ());
    std::env::var("X");
    std::env::var_os("X");
    std::env::vars();
    std::env::args();
    std::env::current_dir();
    std::fs::File::open("x");
    std::fs::File::create("x");
    std::fs::OpenOptions::new().open("x");
    std::fs::read("x");
    std::fs::read_to_string("x");
    std::fs::write("x", "");
    std::net::UdpSocket::bind("127.0.0.1:0");
    std::net::TcpStream::connect("127.0.0.1:1");
    std::net::TcpListener::bind("127.0.0.1:0");
    std::os::unix::net::UnixStream::connect("x");
    std::os::unix::net::UnixListener::bind("x");
    std::os::unix::net::UnixDatagram::bind("x");
    std::process::Command::new("x");
    let _ = std::collections::hash_map::RandomState::new();
    std::process::exit(1);
}
T
report=$(cd "$dir" && CLIPPY_CONF_DIR="$root" CARGO_TARGET_DIR="$dir/target" cargo clippy --offline --quiet 2>&1) || true
failed=0
while read -r path; do
  if ! grep -qE "disallowed (method|type) \`$path\`" <<<"$report"; then
    echo "not ok - the ban on $path does not bite"
    failed=1
  fi
done < <(grep -oE 'path = "[^"]+"' "$root/clippy.toml" | cut -d'"' -f2)
for crate in . framing; do
  if [ "$crate" != . ] && [ -e "$root/$crate/clippy.toml" ]; then
    echo "not ok - $crate has a clippy.toml of its own that hides the bans"
    failed=1
  fi
done
[ "$failed" = 0 ] && echo "ok - every ban of clippy.toml bites"
exit "$failed"
