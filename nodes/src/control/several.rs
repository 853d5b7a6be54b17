//! One question to many processes at once: those that stand still are waited for together.

use std::time::Duration;

use phitwire_client::patience::Patience;
use serde_json::Value;

use super::{Client, ClientError, Request};

/// Most connections that are open at a time.
const MOST: usize = 256;
/// How long a process may take to take somebody in, at most.
const CONNECT: Duration = Duration::from_secs(1);
/// The shortest wait. A process answers between two turns of its event loop, but hundreds of them,
/// on a machine that is busy, have to be scheduled first: who waited less would call them stopped.
const SHORTEST: Duration = Duration::from_millis(1500);

/// Asks the processes of `nodes` for the same, and waits at most `patience` for the answers of some
/// hundreds of them together. The answers are in the order of the nodes.
pub fn ask_all(
    lab: &str,
    nodes: &[String],
    request: &Request,
    patience: Duration,
) -> Vec<Result<Value, ClientError>> {
    let patience = patience.max(SHORTEST);
    let mut answers = Vec::with_capacity(nodes.len());
    for nodes in nodes.chunks(MOST) {
        let mut left = Patience::new(patience);
        let begin = |node: &String| -> Result<Client, ClientError> {
            let mut client = Client::connect_for(lab, node, CONNECT.min(patience))?;
            client.send(request)?;
            Ok(client)
        };
        let begun: Vec<_> = nodes.iter().map(begin).collect();
        answers.extend(begun.into_iter().map(|begun| {
            let mut client = begun?;
            client.answer(&mut left)
        }));
    }
    answers
}
