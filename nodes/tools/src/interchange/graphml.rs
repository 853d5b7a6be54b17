//! GraphML (<http://graphml.graphdrawing.org>): nodes with `kind` and `name`, edges with ports, and
//! the description of the network as data of the graph.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use roxmltree::{Document, Node as Element, ParsingOptions};

use super::Mistake;
use super::graph::{End, Graph, Node};

/// Maximum number of elements in a file.
const MOST_ELEMENTS: u32 = 4_000_000;
/// Limit of attributes per element, of nesting and of namespaces. The XML reader compares each of
/// them with all others; graphs have only a few.
const MOST_ATTRIBUTES: usize = 64;
const MOST_DEPTH: usize = 64;
const MOST_NAMESPACES: usize = 64;

const HEAD: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="description" for="graph" attr.name="phitwire.description" attr.type="string"/>
  <key id="kind" for="node" attr.name="kind" attr.type="string"/>
  <key id="name" for="node" attr.name="name" attr.type="string"/>
  <key id="link" for="edge" attr.name="link" attr.type="int"/>
  <key id="source_port" for="edge" attr.name="source_port" attr.type="int"/>
  <key id="target_port" for="edge" attr.name="target_port" attr.type="int"/>
"#;

pub(super) fn write(graph: &Graph, description: &str) -> String {
    let mut text = HEAD.to_owned();
    let (title, described) = (escaped(&graph.title), escaped(description));
    // Writing to a String cannot fail.
    let _ = writeln!(text, "  <graph id=\"{title}\" edgedefault=\"undirected\">");
    let _ = writeln!(text, "    <data key=\"description\">{described}</data>");
    let nodes = graph.routers.iter().map(|name| (name, "router"));
    for (name, kind) in nodes.chain(graph.nics.iter().map(|name| (name, "nic"))) {
        let name = escaped(name);
        let _ = writeln!(
            text,
            "    <node id=\"{name}\"><data key=\"kind\">{kind}</data><data key=\"name\">{name}</data></node>"
        );
    }
    for (id, [a, b]) in graph.links.iter().enumerate() {
        let _ = write!(
            text,
            "    <edge id=\"e{id}\" source=\"{}\" target=\"{}\"><data key=\"link\">{id}</data>",
            escaped(graph.name(a.node)),
            escaped(graph.name(b.node))
        );
        for (key, end) in [("source_port", a), ("target_port", b)] {
            if let Some(port) = end.port {
                let _ = write!(text, "<data key=\"{key}\">{port}</data>");
            }
        }
        text.push_str("</edge>\n");
    }
    text.push_str("  </graph>\n</graphml>\n");
    text
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // Escape it, since a reader would turn it into a line feed.
            '\r' => escaped.push_str("&#13;"),
            _ => escaped.push(c),
        }
    }
    escaped
}

/// Reads a graph, and the description if phitwire wrote the file. Nodes without a `kind` are NICs
/// if they have one neighbour, and routers otherwise.
pub(super) fn read(text: &str) -> Result<(Graph, Option<String>), Mistake> {
    bounded(text)?;
    let options = ParsingOptions {
        nodes_limit: MOST_ELEMENTS,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(text, options)
        .map_err(|error| (error.to_string(), at_row(text, error.pos())))?;
    let root = document.root_element();
    let graph = child(root, "graph").ok_or_else(|| {
        let what = "no <graph> in <graphml>".to_owned();
        (what, root.range())
    })?;
    let names = keys(root);
    let edges = children(graph, "edge")
        .map(edge)
        .collect::<Result<Vec<_>, _>>()?;
    let mut degrees: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, ends) in &edges {
        for id in ends {
            *degrees.entry(*id).or_default() += 1;
        }
    }
    let mut read = Graph {
        title: graph.attribute("id").unwrap_or("graph").to_owned(),
        counts_links: true,
        ..Graph::default()
    };
    let mut nodes_by_id = BTreeMap::new();
    for node in children(graph, "node") {
        let id = node.attribute("id");
        let id = id.ok_or_else(|| ("a node has no id".to_owned(), node.range()))?;
        let name = data(node, &names, "name").unwrap_or(id).to_owned();
        let is_nic = match data(node, &names, "kind") {
            Some("nic" | "node" | "terminal") => true,
            Some("router" | "switch") => false,
            Some(other) => {
                return Err((
                    format!("unknown kind of node `{other}`: expected router or nic"),
                    node.range(),
                ));
            }
            None => degrees.get(id).copied().unwrap_or(0) == 1,
        };
        let found = if is_nic {
            read.nics.push(name);
            Node::Nic(read.nics.len() - 1)
        } else {
            read.routers.push(name);
            Node::Router(read.routers.len() - 1)
        };
        if nodes_by_id.insert(id, found).is_some() {
            return Err((format!("duplicate node id `{id}`"), node.range()));
        }
    }
    for (element, ends) in edges {
        let mut link = Vec::new();
        for (id, key) in ends.into_iter().zip(["source_port", "target_port"]) {
            let node = nodes_by_id.get(id).copied();
            let node = node.ok_or_else(|| (format!("unknown node `{id}`"), element.range()))?;
            let port = data(element, &names, key).map(str::parse).transpose();
            let port = port.map_err(|_| (format!("{key} is not a port"), element.range()))?;
            link.push(End { node, port });
        }
        read.links.push([link[0], link[1]]);
    }
    let description = data(graph, &names, "phitwire.description").map(str::to_owned);
    Ok((read, description))
}

type Edge<'a, 'input> = (Element<'a, 'input>, [&'a str; 2]);

fn edge<'a, 'input>(element: Element<'a, 'input>) -> Result<Edge<'a, 'input>, Mistake> {
    let end = |key: &str| {
        let id = element.attribute(key);
        id.ok_or_else(|| (format!("an edge has no {key}"), element.range()))
    };
    Ok((element, [end("source")?, end("target")?]))
}

/// The names of attributes, by key id.
fn keys<'a>(root: Element<'a, '_>) -> BTreeMap<&'a str, &'a str> {
    let key = |key: Element<'a, '_>| Some((key.attribute("id")?, key.attribute("attr.name")?));
    children(root, "key").filter_map(key).collect()
}

/// The value of the attribute called `name`.
fn data<'a>(element: Element<'a, '_>, names: &BTreeMap<&str, &str>, name: &str) -> Option<&'a str> {
    let mut all = children(element, "data");
    let is_it = |data: &Element<'_, '_>| {
        let key = data.attribute("key").unwrap_or_default();
        names.get(key).copied().unwrap_or(key) == name
    };
    all.find(is_it).map(|data| data.text().unwrap_or_default())
}

fn children<'a, 'input: 'a>(
    element: Element<'a, 'input>,
    name: &'static str,
) -> impl Iterator<Item = Element<'a, 'input>> {
    element
        .children()
        .filter(move |child| child.tag_name().name() == name)
}

fn child<'a, 'input: 'a>(
    element: Element<'a, 'input>,
    name: &'static str,
) -> Option<Element<'a, 'input>> {
    children(element, name).next()
}

/// Rejects files for which the XML reader would need more than linear time.
fn bounded(text: &str) -> Result<(), Mistake> {
    let too_many = |what: &str, at: usize| Err((format!("{what} are not supported"), at..at));
    if let Some((at, _)) = text.match_indices("xmlns").nth(MOST_NAMESPACES) {
        return too_many(&format!("more than {MOST_NAMESPACES} namespaces"), at);
    }
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(start) = text[at..].find('<').map(|found| at + found) {
        let rest = &text[start..];
        let skipped = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")];
        if let Some((_, end)) = skipped.iter().find(|(begin, _)| rest.starts_with(begin)) {
            at = start + rest.find(end).map_or(rest.len(), |found| found + end.len());
            continue;
        }
        let Tag { length, attributes } = Tag::at(rest);
        if attributes > MOST_ATTRIBUTES {
            let what = format!("more than {MOST_ATTRIBUTES} attributes of an element");
            return too_many(&what, start);
        }
        let tag = &rest[..length];
        match (tag.starts_with("</"), tag.ends_with("/>")) {
            (true, _) => depth = depth.saturating_sub(1),
            (false, true) => {}
            (false, false) => depth += 1,
        }
        if depth > MOST_DEPTH {
            return too_many(&format!("more than {MOST_DEPTH} nested elements"), start);
        }
        at = start + length;
    }
    Ok(())
}

/// A tag: its length in bytes, and its number of attribute values.
struct Tag {
    length: usize,
    attributes: usize,
}

impl Tag {
    /// The tag at the start of `text`. An unterminated one reaches to the end.
    fn at(text: &str) -> Self {
        let (mut quote, mut attributes) = (None, 0);
        for (at, byte) in text.bytes().enumerate() {
            match (quote, byte) {
                (Some(open), _) if open == byte => quote = None,
                (Some(_), _) => {}
                (None, b'"' | b'\'') => {
                    quote = Some(byte);
                    attributes += 1;
                }
                (None, b'>') => {
                    let length = at + 1;
                    return Self { length, attributes };
                }
                (None, _) => {}
            }
        }
        Self {
            length: text.len(),
            attributes,
        }
    }
}

/// The byte range at a row and column, which count from one.
fn at_row(text: &str, position: roxmltree::TextPos) -> std::ops::Range<usize> {
    let rows = text
        .split_inclusive('\n')
        .take(position.row.saturating_sub(1) as usize);
    let begin = rows.map(str::len).sum::<usize>() + position.col.saturating_sub(1) as usize;
    let mut begin = begin.min(text.len());
    while !text.is_char_boundary(begin) {
        begin -= 1;
    }
    begin..begin
}
