//! Sends one request to many processes at once, so that stopped ones cost only one time limit.

use std::time::Duration;

use phitwire_client::patience::Patience;
use serde_json::Value;

use super::{Client, ClientError, Request};

/// Maximum number of connections open at once.
const MOST: usize = 256;
/// Longest time to connect to one process.
const CONNECT: Duration = Duration::from_secs(1);
/// Shortest wait. A process replies between two turns of its event loop, but on a busy machine
/// hundreds of processes must be scheduled first, and with a shorter wait they would look stopped.
const SHORTEST: Duration = Duration::from_millis(1500);

/// Sends the same request to all processes of `nodes`, in batches, and waits for the replies of
/// each batch up to `patience`, but at least 1.5 s. The replies are in the order of the nodes.
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
