//! HTTP server of a view.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;

use phitwire_nodes::control::Request as Question;
use phitwire_nodes::stop::Stop;
use serde_json::{Map, Value, json};

use super::actions::{Act, Actions};
use super::guard::{Credentials, Guard};
use super::live::Live;
use super::page::Page;
use crate::http::{self, Answer, Request};

#[derive(Debug)]
pub enum Shown {
    /// A lab, and the available actions.
    Lab(Arc<Live>, Actions),
    /// A recording, compressed as in its file.
    Recording(Arc<[u8]>),
}

/// Serves browsers until `stop` is requested.
///
/// # Errors
/// If waiting for connections fails.
pub fn serve(
    listener: &TcpListener,
    guard: &Guard,
    page: &Page,
    shown: &Shown,
    stop: &Stop,
) -> io::Result<()> {
    http::serve(listener, stop, |request| {
        respond(request, guard, page, shown)
    })
}

fn respond(request: &Request, guard: &Guard, page: &Page, shown: &Shown) -> Answer {
    let asked = Credentials {
        host: request.header("Host"),
        origin: request.header("Origin"),
        token: request.given("token"),
        secret: request.header("X-Phitwire-Secret"),
    };
    let is_post = request.method == "POST";
    let may = match request.method.as_str() {
        "GET" | "HEAD" => guard.may_look(&asked),
        "POST" => guard.may_act(&asked),
        _ => Err("only GET and POST"),
    };
    let mut answer = match may {
        Err(why) => Answer::plain(403, why),
        Ok(()) if is_post => match request.path() {
            "/api/act" => act(&request.body, shown),
            _ => Answer::plain(404, "POST is supported only at /api/act"),
        },
        Ok(()) => look(request, guard, page, shown),
    };
    let more = [
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
        ("X-Frame-Options", "DENY"),
    ];
    let more = more.map(|(name, value)| (name, value.to_owned()));
    answer.headers.extend(more);
    let policy = page.policy();
    answer.headers.push(("Content-Security-Policy", policy));
    answer
}

fn json_of(value: &Value) -> Answer {
    Answer::new(200, "application/json", value.to_string().into_bytes())
}

fn look(request: &Request, guard: &Guard, page: &Page, shown: &Shown) -> Answer {
    match (request.path(), shown) {
        ("/", _) => Answer::new(200, "text/html; charset=utf-8", page.html().into_bytes()),
        ("/api/header", Shown::Lab(live, actions)) => json_of(&json!({
            "header": live.header(),
            "actions": actions,
            "secret": guard.secret(),
        })),
        ("/api/lines", Shown::Lab(live, _)) => {
            let from = request.given("from");
            let from = from.and_then(|from| from.parse().ok()).unwrap_or(0);
            let lines = live.since(from);
            let over = json!(live.over());
            let body = format!("{{\"over\":{over},{}", &lines[1..]);
            Answer::new(200, "application/json", body.into_bytes())
        }
        ("/api/counters", Shown::Lab(live, actions)) => {
            match counters(live, actions, request.given("node")) {
                Ok(counters) => json_of(&Value::Object(counters)),
                Err(why) => Answer::plain(502, &why),
            }
        }
        ("/api/recording", Shown::Recording(packed)) => {
            let mut answer = Answer::new(200, "application/x-ndjson", Arc::clone(packed));
            let packing = ("Content-Encoding", "gzip".to_owned());
            answer.headers.push(packing);
            answer
        }
        _ => Answer::plain(404, "not found"),
    }
}

fn counters(
    live: &Live,
    actions: &Actions,
    node: Option<&str>,
) -> Result<Map<String, Value>, String> {
    let nodes = live.header().nodes.iter();
    let found = node.and_then(|name| nodes.map(|node| &node.name).find(|own| *own == name));
    let node = found.ok_or("unknown node")?;
    let patience = std::time::Duration::from_secs(1);
    match actions.ask(node, &Question::Stats, patience)? {
        Value::Object(counters) => Ok(counters),
        _ => Err(format!("{node}: malformed answer")),
    }
}

fn act(body: &[u8], shown: &Shown) -> Answer {
    let Shown::Lab(live, actions) = shown else {
        return Answer::plain(404, "a recording accepts no actions");
    };
    let act: Act = match serde_json::from_slice(body) {
        Ok(act) => act,
        Err(error) => return Answer::plain(400, &format!("invalid action: {error}")),
    };
    match actions.carry_out(act) {
        Ok(event) => {
            let done = json!({ "done": event.text });
            live.note(event);
            json_of(&done)
        }
        Err(why) => Answer::plain(409, &why),
    }
}
