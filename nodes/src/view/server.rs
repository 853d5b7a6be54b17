//! Answers browsers.

use std::io::Read as _;
use std::sync::Arc;
use std::thread;

use serde_json::{Map, Value, json};
use tiny_http::{Header, Method, Request, Response, Server};

use super::actions::{Act, Actions};
use super::guard::{Asked, Guard};
use super::live::Live;
use super::page::Page;
use crate::control::{Client, Request as Question};
use crate::stop::Stop;

/// Browsers answered at a time.
const THREADS: usize = 4;
/// Bytes of what is to be done at most.
const MOST_ASKED: u64 = 1 << 16;

/// What is shown.
#[derive(Debug)]
pub enum Shown {
    /// A lab, and what can be done to it.
    Lab(Arc<Live>, Actions),
    /// A recording, packed as in its file.
    Recording(Vec<u8>),
}

/// An answer: status, type, body, and whether the body is packed by gzip.
type Answer = (u16, &'static str, Vec<u8>, bool);

/// Answers browsers until the flag is raised.
pub fn serve(server: &Server, guard: &Guard, page: &Page, shown: &Shown, stop: &Stop) {
    thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    while stop.requests() == 0 {
                        let wait = std::time::Duration::from_millis(200);
                        if let Ok(Some(request)) = server.recv_timeout(wait) {
                            respond(request, guard, page, shown);
                        }
                    }
                })
            })
            .collect();
        for worker in workers {
            let _ = worker.join();
        }
    });
}

fn header<'a>(request: &'a Request, name: &'static str) -> Option<&'a str> {
    let mut headers = request.headers().iter();
    let found = headers.find(|header| header.field.equiv(name))?;
    Some(found.value.as_str())
}

fn respond(mut request: Request, guard: &Guard, page: &Page, shown: &Shown) {
    let url = request.url().to_owned();
    let (path, query) = url.split_once('?').unwrap_or((&url, ""));
    let given = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    let asked = Asked {
        host: header(&request, "Host"),
        origin: header(&request, "Origin"),
        token: given("token"),
        secret: header(&request, "X-Phitwire-Secret"),
    };
    let may = match request.method() {
        Method::Get | Method::Head => guard.may_look(&asked),
        Method::Post => guard.may_act(&asked),
        _ => Err("only GET and POST"),
    };
    let is_post = *request.method() == Method::Post;
    let (status, kind, body, is_packed) = match may {
        Err(why) => refused(403, why),
        Ok(()) if is_post => match path {
            "/api/act" => act(&mut request, shown),
            _ => refused(404, "nothing is done there"),
        },
        Ok(()) => look(path, &given, guard, page, shown),
    };
    let mut response = Response::from_data(body).with_status_code(status);
    let policy = page.policy();
    let mut headers = vec![
        ("Content-Type", kind),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
        ("X-Frame-Options", "DENY"),
        ("Content-Security-Policy", policy.as_str()),
    ];
    if is_packed {
        headers.push(("Content-Encoding", "gzip"));
    }
    for (name, value) in headers {
        if let Ok(header) = Header::from_bytes(name, value) {
            response.add_header(header);
        }
    }
    // Whoever has left meanwhile needs no answer.
    let _ = request.respond(response);
}

fn refused(status: u16, why: &str) -> Answer {
    (
        status,
        "text/plain; charset=utf-8",
        format!("{why}\n").into_bytes(),
        false,
    )
}

fn json_of(value: &Value) -> Answer {
    (
        200,
        "application/json",
        value.to_string().into_bytes(),
        false,
    )
}

fn look<'a>(
    path: &str,
    given: &impl Fn(&str) -> Option<&'a str>,
    guard: &Guard,
    page: &Page,
    shown: &Shown,
) -> Answer {
    match (path, shown) {
        ("/", _) => (
            200,
            "text/html; charset=utf-8",
            page.html().into_bytes(),
            false,
        ),
        ("/api/header", Shown::Lab(live, actions)) => json_of(&json!({
            "header": live.header(),
            "actions": actions,
            "secret": guard.secret(),
        })),
        ("/api/lines", Shown::Lab(live, _)) => {
            let from = given("from")
                .and_then(|from| from.parse().ok())
                .unwrap_or(0);
            let lines = live.since(from);
            let over = json!(live.over());
            let body = format!("{{\"over\":{over},{}", &lines[1..]);
            (200, "application/json", body.into_bytes(), false)
        }
        ("/api/counters", Shown::Lab(live, _)) => match counters(live, given("node")) {
            Ok(counters) => json_of(&Value::Object(counters)),
            Err(why) => refused(502, &why),
        },
        ("/api/recording", Shown::Recording(packed)) => {
            (200, "application/x-ndjson", packed.clone(), true)
        }
        _ => refused(404, "there is nothing"),
    }
}

/// Every counter of a node.
fn counters(live: &Live, node: Option<&str>) -> Result<Map<String, Value>, String> {
    let header = live.header();
    let nodes = header.nodes.iter();
    let found = node.and_then(|name| nodes.map(|node| &node.name).find(|own| *own == name));
    let node = found.ok_or("there is no such node")?;
    let patience = std::time::Duration::from_secs(1);
    let client = Client::connect_for(&header.name, node, patience);
    match client.and_then(|mut client| client.ask(&Question::Stats)) {
        Ok(Value::Object(counters)) => Ok(counters),
        Ok(_) => Err(format!("{node} answers something else")),
        Err(error) => Err(error.to_string()),
    }
}

fn act(request: &mut Request, shown: &Shown) -> Answer {
    let Shown::Lab(live, actions) = shown else {
        return refused(404, "nothing can be done to a recording");
    };
    let mut body = Vec::new();
    let taken = request.as_reader().take(MOST_ASKED).read_to_end(&mut body);
    if taken.is_err() {
        return refused(400, "the request cannot be read");
    }
    let act: Act = match serde_json::from_slice(&body) {
        Ok(act) => act,
        Err(error) => return refused(400, &format!("this is nothing to be done: {error}")),
    };
    match actions.carry_out(act) {
        Ok(event) => {
            let done = json!({ "done": event.text });
            live.note(event);
            json_of(&done)
        }
        Err(why) => refused(409, &why),
    }
}
