//! Measurements of machines of several sizes.

use std::sync::Mutex;

use crate::topology::{Torus, TorusSpec};
use phitwire::reproduce::Settings;

/// The torus of the given size without defects.
///
/// # Errors
/// If the torus does not exist.
pub fn torus(size: &str) -> Result<Torus, String> {
    let shape = size.parse().map_err(|error| format!("{error}"))?;
    Ok(TorusSpec::new(shape).torus())
}

/// Results of `of` for each of `sizes`, in order. Starts with the last sizes, which are the largest
/// and take longest.
///
/// # Errors
/// The first error in that order.
pub fn each<S: Sync, T: Send>(
    settings: &Settings<'_>,
    sizes: &[S],
    of: impl Fn(&S) -> Result<T, String> + Sync,
) -> Result<Vec<T>, String> {
    let results: Vec<Mutex<Option<Result<T, String>>>> =
        sizes.iter().map(|_| Mutex::new(None)).collect();
    (settings.divided)(sizes.len() as u64, &|part| {
        for number in part {
            let index = sizes.len() - 1 - number as usize;
            let found = of(&sizes[index]);
            *results[index]
                .lock()
                .expect("no thread panics while holding the lock") = Some(found);
        }
    });
    let found = results.into_iter().map(|result| {
        let found = result
            .into_inner()
            .expect("no thread panicked while holding the lock");
        found.expect("the parts cover every number")
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_sizes() {
        let settings = Settings::of_the_paper(1);
        let halves = Settings {
            divided: &|trials, part| {
                part(trials / 2..trials);
                part(0..trials / 2);
            },
            ..settings
        };
        for settings in [settings, halves] {
            let found = each(&settings, &[3, 1, 2], |&size| Ok(10 * size));
            assert_eq!(found, Ok(vec![30, 10, 20]));
            let odd = |&size: &u32| match size % 2 {
                0 => Ok(size),
                _ => Err(format!("{size} is odd")),
            };
            assert_eq!(each(&settings, &[2, 1, 3], odd), Err("1 is odd".into()));
        }
    }
}
