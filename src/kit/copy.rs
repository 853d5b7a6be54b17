//! Copies of a few elements whose number is not known at compile time.

/// Like `copy_from_slice`, but copies up to sixteen elements by two overlapping copies of fixed
/// length, which are faster than the call.
///
/// # Panics
/// If the lengths differ.
#[inline]
pub fn copy_few<T: Copy>(from: &[T], to: &mut [T]) {
    assert!(from.len() == to.len());
    match from.len() {
        0 => {}
        1 => copy_ends::<T, 1>(from, to),
        2..4 => copy_ends::<T, 2>(from, to),
        4..8 => copy_ends::<T, 4>(from, to),
        8..=16 => copy_ends::<T, 8>(from, to),
        _ => to.copy_from_slice(from),
    }
}

/// Copies the first and the last `N` elements.
#[inline]
fn copy_ends<T: Copy, const N: usize>(from: &[T], to: &mut [T]) {
    if let (Some(first), Some(last)) = (from.first_chunk::<N>(), from.last_chunk::<N>()) {
        // Read both before writing either, so that no load waits for a store.
        let (first, last) = (*first, *last);
        if let Some(edge) = to.first_chunk_mut() {
            *edge = first;
        }
        if let Some(edge) = to.last_chunk_mut() {
            *edge = last;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_is_copied_whole_and_nothing_else() {
        for count in 0..40_usize {
            let from: Vec<u64> = (1..=count as u64).collect();
            let mut to = vec![0; count + 2];
            copy_few(&from, &mut to[1..=count]);
            assert_eq!(to[1..=count], from);
            assert_eq!((to[0], to[count + 1]), (0, 0));
        }
    }

    #[test]
    #[should_panic(expected = "from.len() == to.len()")]
    fn lengths_must_agree() {
        copy_few(&[1, 2], &mut [0; 3]);
    }
}
