//! Saturation and bounds: vertical lines, and their loads in the legend.

use super::{Mode, styles};
use crate::chart::{COLOURS, Colour, GREY, Mark};

/// The name of a mode, with the load up to which it is steady.
pub(super) fn mode_name(mode: &Mode) -> String {
    let name = &mode.name;
    match saturation(mode) {
        Saturation::Never => format!("{name}: steady at all loads"),
        Saturation::Always => format!("{name}: not steady at any load"),
        Saturation::Above(load) => format!("{name}: steady up to {}", rounded(load)),
    }
}

/// A load without the rounding errors and needless decimals of its conversion.
fn rounded(load: f64) -> f64 {
    let unit = if load < 1.0 { 1e4 } else { 1e2 };
    (load * unit).round() / unit
}

/// The load above which a mode is not steady.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Saturation {
    Never,
    Always,
    /// Saturation is between this load and the next one of the sweep.
    Above(f64),
}

pub(super) fn saturation(mode: &Mode) -> Saturation {
    let steady = mode.points.iter().take_while(|point| point.is_steady);
    match (steady.last(), mode.points.iter().all(|p| p.is_steady)) {
        (_, true) => Saturation::Never,
        (None, false) => Saturation::Always,
        (Some(last), false) => Saturation::Above(last.x),
    }
}

/// The highest load before saturation of each mode.
pub(super) fn saturations(modes: &[Mode]) -> Vec<Mark> {
    let is_alone = modes.len() < 2;
    let of = |(mode, (colour, _))| match saturation(mode) {
        Saturation::Above(load) => Some(Mark {
            x: load,
            label: rounded(load).to_string(),
            name: match is_alone {
                true => format!("steady up to {}", rounded(load)),
                false => "end of steady range".to_owned(),
            },
            colour: if is_alone { GREY } else { colour },
            is_dotted: false,
        }),
        Saturation::Never | Saturation::Always => None,
    };
    modes.iter().zip(styles()).filter_map(of).collect()
}

/// The bounds of all modes, each once, in the colour of the first mode that has it.
pub(super) fn bounds(modes: &[Mode]) -> Vec<Mark> {
    let is_alone = modes.len() < 2;
    let mut bounds: Vec<(f64, Colour, Vec<&str>)> = Vec::new();
    for (mode, (colour, _)) in modes.iter().zip(styles()) {
        let Some(load) = mode.bound else { continue };
        let name = mode.name.as_str();
        let colour = if is_alone { COLOURS[7] } else { colour };
        let known = bounds
            .iter_mut()
            .find(|(other, ..)| (other - load).abs() < 1e-3);
        match known {
            Some((.., names)) => names.push(name),
            None => bounds.push((load, colour, vec![name])),
        }
    }
    let is_one = bounds.len() == 1;
    let named = |(load, colour, names): (f64, Colour, Vec<&str>)| {
        let whose = if is_one {
            String::new()
        } else {
            common(&names)
        };
        let label = ((load * 1e3).round() / 1e3).to_string();
        Mark {
            x: load,
            label: label.clone(),
            name: format!("bound {label} {whose}").trim_end().to_owned(),
            colour,
            is_dotted: true,
        }
    };
    bounds.into_iter().map(named).collect()
}

/// The common prefix of names up to a comma, in parentheses.
pub(super) fn common(names: &[&str]) -> String {
    let parts = |name: &str| name.split(", ").map(str::to_owned).collect::<Vec<_>>();
    let mut common = names.first().map_or_else(Vec::new, |name| parts(name));
    for name in names {
        let alike = common.iter().zip(parts(name)).take_while(|(a, b)| *a == b);
        common.truncate(alike.count());
    }
    match common.join(", ") {
        common if common.is_empty() => common,
        common => format!("({common})"),
    }
}
