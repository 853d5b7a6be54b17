//! Draws the screen: head, page, foot, and dialogs.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row, Table, TableState, Wrap};

use phitwire_nodes::control::LinkReport;

use super::app::{App, Page, Prompt, View};
use super::detail;
use super::faults::MENU;
use super::rows::{self, LinkRow, NodeRow, Trouble, short};

/// The list of nodes has more columns from this width on.
const WIDE: u16 = 120;
/// Columns with figures in the table of nodes.
const NODE_FIGURES: std::ops::Range<usize> = 3..9;

/// The style of a trouble. It includes a modifier, because crossterm omits colours if `NO_COLOR` is
/// set.
pub fn style(trouble: Trouble) -> Style {
    let style = Style::new();
    match trouble {
        Trouble::None => style,
        Trouble::Retries => style.fg(Color::Yellow),
        Trouble::Lanes => style.fg(Color::Magenta),
        Trouble::Silent => style.fg(Color::Blue).add_modifier(Modifier::BOLD),
        Trouble::Down => style.fg(Color::Red).add_modifier(Modifier::BOLD),
    }
}

/// The style of titles and table heads.
pub fn strong() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

/// The style of less important text.
pub fn faint() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

/// Line `number` of an area, clipped to it.
pub fn line(area: Rect, number: u16) -> Rect {
    let line = Rect {
        y: area.y.saturating_add(number),
        height: 1,
        ..area
    };
    line.intersection(area)
}

/// A right-aligned cell, for figures.
pub fn right(text: impl Into<String>) -> Cell<'static> {
    Cell::from(Line::raw(text.into()).alignment(Alignment::Right))
}

/// A row whose cells in `figures` are right-aligned.
fn row(cells: Vec<String>, figures: std::ops::Range<usize>) -> Row<'static> {
    let cells = cells.into_iter().enumerate();
    Row::new(cells.map(|(at, text)| match figures.contains(&at) {
        true => right(text),
        false => Cell::from(text),
    }))
}

/// A text in at most this many columns; an ellipsis shows that something is missing.
fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let start: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{start}…")
}

fn reversed() -> Style {
    Style::new().add_modifier(Modifier::REVERSED)
}

pub fn draw(frame: &mut Frame<'_>, app: &App) {
    let [head, body, foot] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Min(1),
        Constraint::Length(2),
    ])
    .areas(frame.area());
    draw_head(frame, app, head);
    match &app.page().view {
        _ if app.look.is_none() => {
            frame.render_widget(Paragraph::new("querying the lab..."), body);
        }
        View::Links => draw_links(frame, app, &app.link_rows(), body),
        View::Nodes => draw_nodes(frame, app, body),
        View::Events => draw_events(frame, app, body),
        View::Node(node) => detail::draw_node(frame, app, node, body),
        View::Link(link) => detail::draw_link(frame, app, *link, body),
    }
    draw_foot(frame, app, foot);
    draw_prompt(frame, app, body);
}

fn draw_head(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let state = match (app.is_gone, app.is_paused) {
        (true, _) => "  DOWN: the lab has been taken down",
        (false, true) => "  PAUSED",
        (false, false) => "",
    };
    let (clock, totals) = match &app.look {
        Some(look) => (
            format!("{} UTC", rows::clock(look.sample.at_ms)),
            rows::totals(&look.sample, &look.rates),
        ),
        None => Default::default(),
    };
    let [left, right] =
        Layout::horizontal([Constraint::Min(1), Constraint::Length(13)]).areas(line(area, 0));
    let name = format!("phitwire top  lab {}{state}", app.lab);
    let room = usize::from(left.width).saturating_sub(name.chars().count() + 2);
    let summary = shortened(&app.summary, room);
    let title = Line::from(vec![
        Span::styled(name, strong()),
        Span::raw(format!("  {summary}")),
    ]);
    frame.render_widget(title, left);
    frame.render_widget(Line::raw(clock).alignment(Alignment::Right), right);
    frame.render_widget(Line::raw(totals), line(area, 1));
}

/// Draws the latest event or the result of a command, and below it the keys or the text being
/// typed.
fn draw_foot(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let news = match (&app.message, app.events.back()) {
        (Some((text, true)), _) => Line::styled(text.clone(), strong()),
        (Some((text, false)), _) => Line::styled(text.clone(), style(Trouble::Down)),
        (None, Some(event)) => Line::from(vec![
            Span::styled("last event: ", faint()),
            Span::raw(detail::event_text(event)),
        ]),
        (None, None) => Line::styled("no events yet", faint()),
    };
    let keys = match &app.prompt {
        Some(Prompt::Filter) => Line::raw(format!("/{}_", app.page().filter)),
        _ => Line::raw(keys(app)),
    };
    frame.render_widget(news, line(area, 0));
    frame.render_widget(keys.style(reversed()), line(area, 1));
}

fn keys(app: &App) -> String {
    let page = app.page();
    let own = match page.view {
        View::Links => "Enter link  a b node  / filter  s sort  i inject  x down  u up",
        View::Nodes => "Enter node  / filter  s sort",
        View::Events => "/ filter",
        View::Node(_) => "Enter link  / counters  PgDn  i inject  x down  u up  Esc back",
        View::Link(_) => "a b node  / counters  i inject  x down  u up  Esc back",
    };
    let filter = match &*page.filter {
        "" => String::new(),
        words => format!("  [{words}]"),
    };
    format!("1 2 3  {own}  ? q{filter}")
}

fn title(page: &Page, what: &str, rows: usize) -> String {
    let filter = match &*page.filter {
        "" => String::new(),
        words => format!(" with \"{words}\""),
    };
    format!("{what}{filter}: {rows}, by {}", page.sort.name())
}

/// A column of the table of links.
struct Column {
    head: &'static str,
    /// Width of the column; 0 means that of its longest text.
    width: u16,
    /// Columns with lower numbers are left out last.
    rank: u8,
    is_figure: bool,
    text: fn(&LinkRow) -> String,
}

const fn column(
    head: &'static str,
    width: u16,
    rank: u8,
    is_figure: bool,
    text: fn(&LinkRow) -> String,
) -> Column {
    Column {
        head,
        width,
        rank,
        is_figure,
        text,
    }
}

/// The columns of the table of links, in their order.
const COLUMNS: [Column; 13] = [
    column("link", 4, 0, false, |row| row.link.to_string()),
    column("ends", 0, 0, false, LinkRow::ends),
    column("state", 0, 0, false, |row| row.state().to_owned()),
    column("lanes", 5, 1, false, LinkRow::lanes),
    column("frames/s", 8, 0, true, |row| short(row.frames())),
    column("use", 4, 2, true, |row| {
        format!("{:.0}%", row.share() * 100.0)
    }),
    column("", 5, 4, false, |row| bar(row.share())),
    column("resent/s", 8, 0, true, |row| short(row.resent())),
    column("bad/s", 5, 0, true, |row| short(row.bad())),
    column("resent", 7, 4, true, |row| rows::count(row.resent_total())),
    column("waiting", 9, 5, true, |row| {
        let ends = row.ends.each_ref().map(|end| end.report.as_ref());
        let of = |link: Option<&LinkReport>| {
            link.map_or("-".to_owned(), |link| {
                link.unacknowledged_packets.to_string()
            })
        };
        ends.map(of).join("/")
    }),
    column("rtt", 9, 6, true, |row| {
        let report = row.ends[0].report.as_ref();
        let rtt = report.and_then(|link| link.rtt_ns);
        rtt.map_or("-".to_owned(), rows::span)
    }),
    column("problem", PROBLEM, 3, false, LinkRow::why),
];
/// Minimum width of the column that explains problems. It takes the space that the others leave.
const PROBLEM: u16 = 24;

/// The columns that fit into this width, with their widths. Names of links are never cut.
fn fitting(links: &[LinkRow], width: u16) -> Vec<(&'static Column, u16)> {
    let wanted = |column: &Column| match column.width {
        0 => {
            let texts = links.iter().map(|row| (column.text)(row).chars().count());
            texts.max().unwrap_or(0).max(column.head.len()) as u16
        }
        width => width,
    };
    let mut wanted: Vec<_> = COLUMNS.iter().map(|one| (one, wanted(one))).collect();
    let all = |wanted: &[(&Column, u16)]| wanted.iter().map(|(_, width)| width + 1).sum::<u16>();
    while all(&wanted) > width + 1 {
        let ranks = wanted.iter().map(|(column, _)| column.rank);
        let Some(last) = ranks.max().filter(|&rank| rank > 0) else {
            break;
        };
        wanted.retain(|(column, _)| column.rank != last);
    }
    let rest = (width + 1).saturating_sub(all(&wanted));
    if let Some((column, width)) = wanted.last_mut()
        && column.head == "problem"
    {
        *width += rest;
    }
    wanted
}

/// Draws a table of links, one of which may be selected.
pub fn draw_links(frame: &mut Frame<'_>, app: &App, links: &[LinkRow], area: Rect) {
    let columns = fitting(links, area.width);
    let cell = |column: &Column, text: String| match column.is_figure {
        true => right(text),
        false => Cell::from(text),
    };
    let head = columns
        .iter()
        .map(|(one, _)| cell(one, one.head.to_owned()));
    let head = Row::new(head.collect::<Vec<_>>());
    let rows = links.iter().map(|row| {
        let text = |(one, width): &(&Column, u16)| {
            cell(one, shortened(&(one.text)(row), usize::from(*width)))
        };
        let cells = columns.iter().map(text);
        Row::new(cells.collect::<Vec<_>>()).style(style(row.trouble))
    });
    let [above, below] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(area);
    let what = match app.page().view {
        View::Links => title(app.page(), "links", links.len()),
        _ => format!("its links: {}", links.len()),
    };
    frame.render_widget(Line::styled(what, faint()), above);
    let widths = columns.iter().map(|&(_, width)| Constraint::Length(width));
    let table = Table::new(rows, widths)
        .header(head.style(strong()))
        .row_highlight_style(reversed());
    let mut state = TableState::new().with_selected(app.selected());
    frame.render_stateful_widget(table, below, &mut state);
}

/// A share as a bar of five characters.
pub fn bar(share: f64) -> String {
    const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
    let filled = (share.clamp(0.0, 1.0) * 40.0).round() as usize;
    let mut text = "█".repeat(filled / 8);
    if !filled.is_multiple_of(8) {
        text.push(EIGHTHS[filled % 8 - 1]);
    }
    text
}

fn draw_nodes(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let nodes = app.node_rows();
    let is_wide = area.width >= WIDE;
    let mut head = vec![
        "node",
        "kind",
        "state",
        "links",
        "MB/s out",
        "MB/s in",
        "resent/s",
        "bad/s",
        "answered/s",
    ];
    let mut widths = vec![
        Constraint::Fill(1),
        Constraint::Length(6),
        Constraint::Length(10),
        Constraint::Length(5),
        Constraint::Length(8),
        Constraint::Length(7),
        Constraint::Length(8),
        Constraint::Length(6),
        Constraint::Length(10),
    ];
    if is_wide {
        head.extend(["process", "why"]);
        widths.extend([Constraint::Length(8), Constraint::Fill(3)]);
    }
    let [above, below] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(area);
    let what = title(app.page(), "nodes", nodes.len());
    frame.render_widget(Line::styled(what, faint()), above);
    let head = row(head.into_iter().map(str::to_owned).collect(), NODE_FIGURES);
    let rows = nodes.iter().map(|row| node_row(row, is_wide));
    let table = Table::new(rows, widths)
        .header(head.style(strong()))
        .row_highlight_style(reversed());
    let mut state = TableState::new().with_selected(app.selected());
    frame.render_stateful_widget(table, below, &mut state);
}

fn node_row(row: &NodeRow, is_wide: bool) -> Row<'static> {
    let node = &row.node;
    let megabytes = |bytes: f64| format!("{:.2}", bytes / 1e6);
    let mut cells = vec![
        node.name.clone(),
        node.kind.name().to_owned(),
        row.state().to_owned(),
        format!("{}/{}", row.links_up, node.links.len()),
        megabytes(row.rates.bytes_sent),
        megabytes(row.rates.bytes_received),
        short(row.resent),
        short(row.bad),
        node.traffic
            .as_ref()
            .map_or("-".to_owned(), |_| short(row.rates.acknowledged)),
    ];
    if is_wide {
        cells.extend([
            node.pid.map_or("-".to_owned(), |pid| pid.to_string()),
            node.silent.clone().unwrap_or_default(),
        ]);
    }
    self::row(cells, NODE_FIGURES).style(style(row.trouble))
}

fn draw_events(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let events = rows::events(app.events.iter(), &app.page().filter);
    let head = match events.len() {
        0 => "no events since top started".to_owned(),
        count => format!("events, latest first: {count}"),
    };
    let [above, below] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(area);
    frame.render_widget(Line::styled(head, faint()), above);
    let most = events.len().saturating_sub(1);
    let shown = events.iter().skip(app.page().scroll.min(most));
    let rows = shown.map(|event| {
        let port = event.port.map_or(String::new(), |port| format!(":{port}"));
        Row::new([
            rows::clock(event.at_ms),
            format!("{}{port}", event.node),
            event.kind.name().to_owned(),
            event.text.clone(),
        ])
        .style(detail::event_style(event.kind))
    });
    let names = events.iter().map(|event| event.node.len() + 4).max();
    let widths = [
        Constraint::Length(8),
        Constraint::Length(names.unwrap_or(8).min(24) as u16),
        Constraint::Length(15),
        Constraint::Fill(1),
    ];
    let head = Row::new(["UTC", "where", "what", ""]).style(strong());
    frame.render_widget(Table::new(rows, widths).header(head), below);
}

const HELP: &str = "\
1 2 3   links, nodes, events; Tab: next page
Enter   open the selected row       Esc  back, or clear the filter
a b     the node at end A or B of a link
/       show only rows that contain these words; on the page of
        a node or a link, counters with these names
s       sort: trouble, place, frames, resent, bad
i       choose a fault to inject at the link
x u     take the link down, bring it up; all ask first
space   pause and resume            q  quit
arrows, j k, PgUp PgDn, Home End    move

use: frames of the busier direction, of 10,000/s
bad: packets or sets received with a bad check
lanes: active receive lanes of ends A and B
*: netem, another queueing discipline or nftables impairs the link";

fn draw_prompt(frame: &mut Frame<'_>, app: &App, area: Rect) {
    match &app.prompt {
        None | Some(Prompt::Filter) => {}
        Some(Prompt::Help) => {
            let lines = HELP.lines().map(Line::from).collect();
            in_front(frame, area, "keys (any key closes this)", lines);
        }
        Some(Prompt::Confirm(order)) => {
            let lines = vec![
                Line::styled(order.what.clone(), strong()),
                Line::raw(""),
                Line::raw("Proceed? y confirms, any other key cancels [y/N]"),
            ];
            in_front(frame, area, "confirm", lines);
        }
        Some(Prompt::Menu { ends, end, fault }) => {
            let target = &ends[*end];
            let mut lines = vec![Line::styled(
                format!("{} port {} to {}", target.node, target.port, target.peer),
                strong(),
            )];
            lines.extend(MENU.iter().enumerate().map(|(at, (words, _))| {
                let style = if at == *fault {
                    reversed()
                } else {
                    Style::new()
                };
                Line::styled(format!("  {words}  "), style)
            }));
            let other = if ends.len() > 1 {
                "  Tab: other end"
            } else {
                ""
            };
            lines.push(Line::styled(
                format!("Enter: select  Esc: cancel{other}"),
                faint(),
            ));
            in_front(frame, area, "inject a fault", lines);
        }
    }
}

fn in_front(frame: &mut Frame<'_>, area: Rect, title: &str, lines: Vec<Line<'_>>) {
    let widest = lines.iter().map(Line::width).max().unwrap_or(0) as u16;
    let width = (widest + 4).clamp(30, area.width.max(30)).min(area.width);
    let inside = usize::from(width.saturating_sub(4)).max(1);
    let height: usize = lines
        .iter()
        .map(|line| line.width().div_ceil(inside).max(1))
        .sum();
    let height = (height as u16 + 2).min(area.height);
    let area = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    frame.render_widget(Clear, area);
    let block = Block::bordered()
        .title(format!(" {title} "))
        .padding(ratatui::widgets::Padding::horizontal(1));
    let text = Paragraph::new(lines)
        .wrap(Wrap { trim: false })
        .block(block);
    frame.render_widget(text, area);
}
