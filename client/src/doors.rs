//! The doors of a lab: sockets `NODE.door` in its directory. Beside each is `NODE.sock`, the
//! control socket of the same process, which programs confuse with it.

use std::path::{Path, PathBuf};

/// End of a door's file name.
const DOOR: &str = "door";
/// Maximum number of names in a message.
const NAMED: usize = 8;

/// The doors of the lab in this directory, in numerical order.
pub fn of_lab(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut doors: Vec<_> = entries
        .map(|entry| entry.path())
        .filter(|path| is_door_name(path))
        .collect();
    doors.sort_by_key(|path| {
        let name = file_name(&path.with_extension(""));
        let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let (head, number) = name.split_at(name.len() - digits);
        (head.to_owned(), number.parse::<u64>().unwrap_or(0))
    });
    doors
}

/// A note for error messages about `path`: the doors beside it, or the missing directory.
pub fn note_of_others(path: &Path) -> String {
    let Some(directory) = path.parent().filter(|parent| *parent != Path::new("")) else {
        return String::new();
    };
    if !directory.exists() {
        return format!("; {} does not exist", directory.display());
    }
    let doors = of_lab(directory);
    let names: Vec<_> = doors.iter().map(|door| file_name(door)).collect();
    match names.len() {
        0 => String::new(),
        all if all > NAMED => {
            let more = all - NAMED;
            format!(
                "; doors there: {} and {more} more",
                names[..NAMED].join(", ")
            )
        }
        _ => format!("; doors there: {}", names.join(", ")),
    }
}

/// What `path` is if its name and those beside it show that it is a control socket.
pub(crate) fn control_socket(path: &Path) -> Option<String> {
    if path.extension()? != "sock" {
        return None;
    }
    let door = path.with_extension(DOOR);
    if door.exists() {
        return Some(format!(
            "this is the node's control socket, and its door is {}",
            door.display()
        ));
    }
    let has_doors = !of_lab(path.parent()?).is_empty();
    has_doors.then(|| "this is the control socket of a node without a door".into())
}

/// A note for error messages about a `path` whose name is not that of a door.
pub(crate) fn note_of_wrong_name(path: &Path) -> &'static str {
    match is_door_name(path) {
        true => "",
        false => ", and whether this is the door of a NIC (NODE.door)",
    }
}

fn is_door_name(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == DOOR)
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doors_are_listed_by_number() {
        let lab = tempfile::tempdir().expect("a directory");
        let nic9 = lab.path().join("nic9.door");
        assert_eq!(note_of_others(&nic9), "");
        for name in ["nic10.door", "nic2.door", "nic2.sock", "nic0.door"] {
            std::fs::write(lab.path().join(name), "").expect("a file");
        }
        assert_eq!(
            note_of_others(&nic9),
            "; doors there: nic0.door, nic2.door, nic10.door"
        );
        for number in 20..27 {
            std::fs::write(lab.path().join(format!("nic{number}.door")), "").expect("a file");
        }
        assert!(
            note_of_others(&nic9).ends_with("nic24.door and 2 more"),
            "{}",
            note_of_others(&nic9)
        );
        assert_eq!(
            note_of_others(Path::new("/nonexistent/nic0.door")),
            "; /nonexistent does not exist"
        );
    }
}
