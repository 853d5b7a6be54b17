#!/usr/bin/env bash
# Proves that the bans of clippy.toml work: a crate that violates every one of them is linted with the same clippy.toml,
# and every banned path has to be reported. A line added to clippy.toml without a use below fails too, so that the proof
# stays complete.
# shellcheck source=../netns-scripts/lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../netns-scripts/lib.sh"
root=$PHW_ROOT
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/src"
# Cargo may run as another user than this script.
chmod -R a+rwX "$dir"
cat > "$dir/Cargo.toml" <<'T'
[package]
name = "bans"
version = "0.0.0"
edition = "2024"
[workspace]
T
cat > "$dir/src/lib.rs" <<'T'
#![allow(dead_code, unused_must_use, clippy::type_complexity)]
fn time_threads_and_processes() {
    std::time::Instant::now();
    std::time::SystemTime::now();
    std::thread::spawn(|| ());
    std::thread::sleep(std::time::Duration::ZERO);
    std::thread::Builder::new().spawn(|| ());
    std::thread::scope(|scope| std::thread::Builder::new().spawn_scoped(scope, || ()).is_ok());
    std::process::Command::new("x");
    std::process::id();
    let ends: [fn() -> !; 2] = [|| std::process::exit(1), || std::process::abort()];
    let _ = (ends, std::collections::hash_map::RandomState::new());
}
fn environment_and_streams() {
    std::env::var("X");
    std::env::var_os("X");
    std::env::vars();
    std::env::vars_os();
    std::env::args();
    std::env::args_os();
    std::env::current_dir();
    std::env::set_current_dir("x");
    std::env::current_exe();
    std::env::temp_dir();
    std::io::stdin();
    std::io::stdout();
    std::io::stderr();
}
fn files() {
    std::fs::read("x");
    std::fs::read_to_string("x");
    std::fs::read_dir("x");
    std::fs::read_link("x");
    std::fs::write("x", "");
    std::fs::copy("x", "y");
    std::fs::rename("x", "y");
    std::fs::hard_link("x", "y");
    std::os::unix::fs::symlink("x", "y");
    std::fs::metadata("x").map(|data| std::fs::set_permissions("x", data.permissions()));
    std::fs::symlink_metadata("x");
    std::fs::exists("x");
    std::fs::canonicalize("x");
    std::fs::create_dir("x");
    std::fs::create_dir_all("x");
    std::fs::remove_dir("x");
    std::fs::remove_dir_all("x");
    std::fs::remove_file("x");
    std::fs::File::open("x");
    std::fs::File::create("x");
    std::fs::File::create_new("x");
    std::fs::File::options();
    std::fs::OpenOptions::new().open("x");
}
fn sockets() {
    std::net::UdpSocket::bind("127.0.0.1:0");
    std::net::TcpStream::connect("127.0.0.1:1");
    std::net::TcpStream::connect_timeout(&([127, 0, 0, 1], 1).into(), std::time::Duration::ZERO);
    std::net::TcpListener::bind("127.0.0.1:0");
    std::os::unix::net::UnixStream::connect("x");
    std::os::unix::net::UnixStream::pair();
    std::os::unix::net::UnixListener::bind("x");
    std::os::unix::net::UnixDatagram::bind("x");
    std::os::unix::net::UnixDatagram::unbound();
    std::os::unix::net::UnixDatagram::pair();
}
struct HandedIn(
    std::time::Instant,
    std::time::SystemTime,
    std::collections::hash_map::RandomState,
    std::thread::Builder,
    std::fs::File,
    std::fs::OpenOptions,
    std::fs::DirBuilder,
    std::net::TcpStream,
    std::net::TcpListener,
    std::net::UdpSocket,
    std::os::unix::net::UnixStream,
    std::os::unix::net::UnixListener,
    std::os::unix::net::UnixDatagram,
    std::process::Command,
);
T
report=$(cd "$dir" && CLIPPY_CONF_DIR="$root" CARGO_TARGET_DIR="$dir/target" phw_cargo clippy --offline --quiet 2>&1) || true
failed=0
# A crate that does not compile, or names missing items, proves nothing.
if grep -E '^error|does not refer to' <<<"$report"; then
  echo "not ok - errors in the crate that violates the bans, or in clippy.toml"
  failed=1
fi
while read -r path; do
  if ! grep -qE "disallowed (method|type) \`$path\`" <<<"$report"; then
    echo "not ok - the ban on $path has no effect"
    failed=1
  fi
done < <(sed -n 's/^ *{ path = "\([^"]*\)".*/\1/p' "$root/clippy.toml")
for crate in . framing machines machines/aries machines/blackwidow machines/t3e; do
  if [ "$crate" != . ] && [ -e "$root/$crate/clippy.toml" ]; then
    echo "not ok - the clippy.toml of $crate hides the bans"
    failed=1
  fi
done
[ "$failed" = 0 ] && echo "ok - every ban of clippy.toml works"
exit "$failed"
