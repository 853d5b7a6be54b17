//! Suggestions for mistyped names.

/// The most similar of `names` to `written`, if any is similar enough.
pub fn nearest<'a, N: AsRef<str>>(written: &str, names: &'a [N]) -> Option<&'a str> {
    /// Minimum similarity of two names, from 0 to 1, for a suggestion.
    const ENOUGH: f64 = 0.6;
    let names = names.iter().map(AsRef::as_ref);
    let likeness = names.map(|name| (strsim::normalized_damerau_levenshtein(written, name), name));
    let best = likeness.max_by(|(a, _), (b, _)| a.total_cmp(b));
    best.filter(|(likeness, _)| *likeness >= ENOUGH)
        .map(|(_, name)| name)
}

/// The text `; did you mean NAME?`, or an empty one.
pub fn did_you_mean<N: AsRef<str>>(written: &str, names: &[N]) -> String {
    let near = nearest(written, names).filter(|near| *near != written);
    near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

#[cfg(test)]
mod tests {
    use super::{did_you_mean, nearest};

    #[test]
    fn a_slip_finds_its_name_and_nonsense_finds_none() {
        let names = ["chip.quiesced", "chip.cycle", "nic0", "nic10"];
        assert_eq!(nearest("chip.quiesed", &names), Some("chip.quiesced"));
        assert_eq!(nearest("cihp.cycle", &names), Some("chip.cycle"));
        assert_eq!(nearest("nci10", &names), Some("nic10"));
        assert_eq!(nearest("elephant", &names), None);
        assert_eq!(did_you_mean("nci10", &names), "; did you mean `nic10`?");
        assert_eq!(did_you_mean("nic10", &names), "");
        assert_eq!(nearest("x", &[] as &[&str]), None);
    }
}
