//! The content of the screen and the effect of keys, independent of the terminal.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use phitwire_nodes::control::{Fault, Request};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::faults::MENU;
use super::rows::{self, Sort};
use super::worker::{LabUpdate, News, Order};
use crate::watch::{LabEvent, NodeSample, Sample};

/// Maximum number of events kept.
const MOST_EVENTS: usize = 1000;
/// Maximum number of rates kept per link and node.
const MOST_RATES: usize = 240;
/// Number of rows per page key.
const PAGE: usize = 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    Links,
    Nodes,
    Events,
    Node(String),
    Link(usize),
}

/// A page and the position in it.
#[derive(Clone, Debug)]
pub struct Page {
    pub view: View,
    /// Shows only rows that contain this text.
    pub filter: String,
    pub sort: Sort,
    /// The key of the selected row, which stays selected when it moves. `None` selects the first
    /// row.
    pub selected: Option<String>,
    /// Number of counter rows scrolled past.
    pub scroll: usize,
}

impl Page {
    const fn new(view: View) -> Self {
        Self {
            view,
            filter: String::new(),
            sort: Sort::Trouble,
            selected: None,
            scroll: 0,
        }
    }
}

/// A dialog over the page.
#[derive(Clone, Debug)]
pub enum Prompt {
    /// The user is typing the page's filter.
    Filter,
    /// Help on the keys.
    Help,
    /// The user is choosing a fault for one of these ends.
    Menu {
        ends: Vec<Target>,
        /// Index of the chosen end.
        end: usize,
        /// Index of the chosen fault in the menu.
        fault: usize,
    },
    /// The user is confirming a command.
    Confirm(Order),
}

/// A link end that accepts commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub node: String,
    pub port: u8,
    /// The node at the other end.
    pub peer: String,
}

/// An action that a key requests, beyond changing the screen.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Quit,
    /// Send a command to a node.
    Ask(Order),
}

/// The state of the screen.
#[derive(Debug)]
pub struct App {
    pub lab: String,
    /// The lab's network in one line.
    pub summary: String,
    /// The latest sample of the lab.
    pub look: Option<LabUpdate>,
    /// The previous sample of the lab.
    pub before: Option<Arc<Sample>>,
    /// Events, the latest last.
    pub events: VecDeque<LabEvent>,
    /// Frames per second of each link's directions, the latest last.
    pub link_rates: BTreeMap<usize, [VecDeque<f64>; 2]>,
    /// Acknowledged messages per second of each NIC, the latest last.
    pub node_rates: BTreeMap<String, VecDeque<f64>>,
    /// The base pages, which are always open.
    bases: [Page; 3],
    base: usize,
    /// Pages opened from a base page; the last one is visible.
    picked: Vec<Page>,
    /// The open dialog.
    pub prompt: Option<Prompt>,
    /// The result of the last command, and whether it succeeded.
    pub message: Option<(String, bool)>,
    /// Whether the display is frozen.
    pub is_paused: bool,
    /// Whether the lab has been taken down.
    pub is_gone: bool,
}

impl App {
    /// The state before the first sample.
    pub fn new(lab: String, summary: String) -> Self {
        Self {
            lab,
            summary,
            look: None,
            before: None,
            events: VecDeque::new(),
            link_rates: BTreeMap::new(),
            node_rates: BTreeMap::new(),
            bases: [View::Links, View::Nodes, View::Events].map(Page::new),
            base: 0,
            picked: Vec::new(),
            prompt: None,
            message: None,
            is_paused: false,
            is_gone: false,
        }
    }

    pub fn page(&self) -> &Page {
        self.picked.last().unwrap_or(&self.bases[self.base])
    }

    fn page_mut(&mut self) -> &mut Page {
        self.picked.last_mut().unwrap_or(&mut self.bases[self.base])
    }

    /// Whether the page shows a node's pipeline stages.
    pub fn shows_pipeline(&self) -> bool {
        matches!(self.page().view, View::Node(_))
    }

    /// Processes an update from the worker thread.
    pub fn handle_news(&mut self, news: News) {
        match news {
            News::LabUpdate(look) => self.take_in(*look),
            News::Done { text, done } => self.message = Some((text, done)),
            News::Gone => self.is_gone = true,
            News::Another(summary) => {
                *self = Self::new(self.lab.clone(), summary);
            }
        }
    }

    fn take_in(&mut self, look: LabUpdate) {
        self.is_gone = false;
        for event in &look.events {
            self.events.push_back(event.clone());
        }
        let surplus = self.events.len().saturating_sub(MOST_EVENTS);
        self.events.drain(..surplus);
        if self.is_paused {
            return;
        }
        for link in &look.rates.links {
            let kept = self.link_rates.entry(link.link).or_default();
            for (kept, way) in kept.iter_mut().zip(&link.directions) {
                remember(kept, way.frames);
            }
        }
        for node in &look.rates.nodes {
            let kept = self.node_rates.entry(node.node.clone()).or_default();
            remember(kept, node.acknowledged);
        }
        self.before = self.look.take().map(|look| look.sample);
        self.look = Some(look);
    }

    /// The last known state of a node.
    pub fn node(&self, name: &str) -> Option<&NodeSample> {
        self.look.as_ref()?.sample.node(name)
    }

    /// The link rows of the page, in order.
    pub fn link_rows(&self) -> Vec<rows::LinkRow> {
        let (page, Some(look)) = (self.page(), &self.look) else {
            return Vec::new();
        };
        let (of, filter) = match &page.view {
            View::Links => (None, &*page.filter),
            // On a node's page, the filter applies to counters.
            View::Node(node) => (Some(&**node), ""),
            _ => return Vec::new(),
        };
        rows::links(&look.sample, &look.rates, of, filter, page.sort)
    }

    /// The node rows of the page, in order.
    pub fn node_rows(&self) -> Vec<rows::NodeRow> {
        let (page, Some(look)) = (self.page(), &self.look) else {
            return Vec::new();
        };
        rows::nodes(&look.sample, &look.rates, &page.filter, page.sort)
    }

    /// A link with both ends.
    pub fn link_row(&self, link: usize) -> Option<rows::LinkRow> {
        let look = self.look.as_ref()?;
        let rows = rows::links(&look.sample, &look.rates, None, "", Sort::Place);
        rows.into_iter().find(|row| row.link == link)
    }

    /// The keys of the page's selectable rows, in order.
    pub fn keys(&self) -> Vec<String> {
        match self.page().view {
            View::Links | View::Node(_) => {
                let rows = self.link_rows().into_iter();
                rows.map(|row| row.link.to_string()).collect()
            }
            View::Nodes => {
                let rows = self.node_rows().into_iter();
                rows.map(|row| row.node.name).collect()
            }
            View::Events | View::Link(_) => Vec::new(),
        }
    }

    /// The index of the selected row; the first if the selected one is not shown.
    pub fn selected(&self) -> Option<usize> {
        let keys = self.keys();
        let selected = self.page().selected.as_ref();
        let found = selected.and_then(|selected| keys.iter().position(|key| key == selected));
        found.or_else(|| (!keys.is_empty()).then_some(0))
    }

    fn selected_key(&self) -> Option<String> {
        let at = self.selected()?;
        self.keys().into_iter().nth(at)
    }

    pub fn press(&mut self, key: KeyEvent) -> Option<Action> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && matches!(key.code, KeyCode::Char('c' | 'd')) {
            return Some(Action::Quit);
        }
        match self.prompt.take() {
            Some(prompt) => self.answer(prompt, key.code),
            None => self.command(key.code),
        }
    }

    /// Handles a key while a dialog is open.
    fn answer(&mut self, prompt: Prompt, key: KeyCode) -> Option<Action> {
        match prompt {
            Prompt::Help => {}
            Prompt::Filter => self.type_filter(key),
            Prompt::Confirm(order) => {
                if matches!(key, KeyCode::Char('y' | 'Y')) {
                    return Some(Action::Ask(order));
                }
                self.message = Some((format!("cancelled: {}", order.what), true));
            }
            Prompt::Menu { ends, end, fault } => self.choose(ends, end, fault, key),
        }
        None
    }

    fn type_filter(&mut self, key: KeyCode) {
        let page = self.page_mut();
        match key {
            KeyCode::Enter => return,
            KeyCode::Esc => return page.filter.clear(),
            KeyCode::Backspace => {
                page.filter.pop();
            }
            KeyCode::Char(character) if !character.is_control() && page.filter.len() < 60 => {
                page.filter.push(character);
            }
            _ => {}
        }
        page.scroll = 0;
        self.prompt = Some(Prompt::Filter);
    }

    fn choose(&mut self, ends: Vec<Target>, mut end: usize, mut fault: usize, key: KeyCode) {
        match key {
            KeyCode::Esc | KeyCode::Char('q') => return,
            KeyCode::Tab | KeyCode::Left | KeyCode::Right => end = (end + 1) % ends.len(),
            KeyCode::Down | KeyCode::Char('j') => fault = (fault + 1) % MENU.len(),
            KeyCode::Up | KeyCode::Char('k') => fault = (fault + MENU.len() - 1) % MENU.len(),
            KeyCode::Enter => {
                let (words, make) = MENU[fault];
                return self.confirm(&ends[end], &make(ends[end].port), words);
            }
            _ => {}
        }
        self.prompt = Some(Prompt::Menu { ends, end, fault });
    }

    fn confirm(&mut self, target: &Target, fault: &Fault, words: &str) {
        let Target { node, port, peer } = target;
        self.prompt = Some(Prompt::Confirm(Order {
            node: node.clone(),
            request: Request::Fault(fault.clone()),
            what: format!("{node} port {port} to {peer}: {words}"),
        }));
    }

    /// Handles a key without a dialog.
    fn command(&mut self, key: KeyCode) -> Option<Action> {
        self.message = None;
        match key {
            KeyCode::Char('q') => return Some(Action::Quit),
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.prompt = Some(Prompt::Help),
            KeyCode::Char('/') => self.prompt = Some(Prompt::Filter),
            KeyCode::Char(digit @ '1'..='3') => self.go_to(digit as usize - '1' as usize),
            KeyCode::Tab => self.go_to((self.base + 1) % self.bases.len()),
            KeyCode::Char('s') => {
                let page = self.page_mut();
                page.sort = page.sort.next();
            }
            KeyCode::Char(' ') | KeyCode::Char('p') => self.is_paused = !self.is_paused,
            KeyCode::Esc | KeyCode::Backspace | KeyCode::Left => self.back(),
            KeyCode::Enter | KeyCode::Right => self.pick(),
            KeyCode::Char(end @ ('a' | 'b')) => self.go_to_end(usize::from(end == 'b')),
            KeyCode::Char('i') => self.ask_which_fault(),
            KeyCode::Char('x') => self.ask_for(0),
            KeyCode::Char('u') => self.ask_for(1),
            KeyCode::Down | KeyCode::Char('j') => self.move_by(1),
            KeyCode::Up | KeyCode::Char('k') => self.move_by(-1),
            KeyCode::PageDown => self.page_by(PAGE as isize),
            KeyCode::PageUp => self.page_by(-(PAGE as isize)),
            KeyCode::Home | KeyCode::Char('g') => self.move_by(isize::MIN),
            KeyCode::End | KeyCode::Char('G') => self.move_by(isize::MAX),
            _ => {}
        }
        None
    }

    fn go_to(&mut self, base: usize) {
        self.picked.clear();
        self.base = base;
    }

    fn back(&mut self) {
        if self.picked.pop().is_none() {
            self.page_mut().filter.clear();
        }
    }

    fn move_by(&mut self, rows: isize) {
        let keys = self.keys();
        let Some(last) = keys.len().checked_sub(1) else {
            let page = self.page_mut();
            page.scroll = page.scroll.saturating_add_signed(rows).min(usize::MAX / 2);
            return;
        };
        let at = self.selected().unwrap_or(0);
        let to = at.saturating_add_signed(rows).min(last);
        self.page_mut().selected = Some(keys[to].clone());
    }

    /// Scrolls by rows. On pages with counters below their rows, this scrolls the counters.
    fn page_by(&mut self, rows: isize) {
        if matches!(self.page().view, View::Node(_)) {
            let page = self.page_mut();
            page.scroll = page.scroll.saturating_add_signed(rows);
        } else {
            self.move_by(rows);
        }
    }

    fn pick(&mut self) {
        let Some(selected) = self.selected_key() else {
            return;
        };
        let view = match self.page().view {
            View::Links | View::Node(_) => match selected.parse() {
                Ok(link) => View::Link(link),
                Err(_) => return,
            },
            View::Nodes => View::Node(selected),
            View::Events | View::Link(_) => return,
        };
        self.open(view);
    }

    fn open(&mut self, view: View) {
        self.picked.push(Page::new(view));
    }

    /// Opens the node at an end of the shown or selected link.
    fn go_to_end(&mut self, end: usize) {
        let Some(link) = self.link() else { return };
        let Some(row) = self.link_row(link) else {
            return;
        };
        self.open(View::Node(row.ends[end].node.clone()));
    }

    /// The shown or selected link.
    fn link(&self) -> Option<usize> {
        let page = self.page();
        match page.view {
            View::Link(link) => Some(link),
            View::Links | View::Node(_) => self.selected_key()?.parse().ok(),
            _ => None,
        }
    }

    /// Ends of the link whose nodes reply; on a node's page, that node comes first.
    fn targets(&self) -> Vec<Target> {
        let Some(row) = self.link().and_then(|link| self.link_row(link)) else {
            return Vec::new();
        };
        let [a, b] = &row.ends;
        let mut targets: Vec<Target> = [(a, b), (b, a)]
            .into_iter()
            .filter(|(end, _)| end.report.is_some())
            .map(|(end, other)| Target {
                node: end.node.clone(),
                port: end.port,
                peer: other.name(),
            })
            .collect();
        if let View::Node(node) = &self.page().view {
            targets.sort_by_key(|target| target.node != *node);
        }
        targets
    }

    fn ask_which_fault(&mut self) {
        let ends = self.targets();
        if ends.is_empty() {
            return self.no_target();
        }
        self.prompt = Some(Prompt::Menu {
            ends,
            end: 0,
            fault: 0,
        });
    }

    /// Requests confirmation of a fault from the menu.
    fn ask_for(&mut self, fault: usize) {
        let (words, make) = MENU[fault];
        match self.targets().first() {
            Some(target) => self.confirm(target, &make(target.port), words),
            None => self.no_target(),
        }
    }

    fn no_target(&mut self) {
        let text = match self.link() {
            Some(_) => "neither end of that link responds",
            None => "select a link first: 1 lists them",
        };
        self.message = Some((text.to_owned(), false));
    }
}

fn remember(kept: &mut VecDeque<f64>, rate: f64) {
    if kept.len() == MOST_RATES {
        kept.pop_front();
    }
    kept.push_back(rate);
}
