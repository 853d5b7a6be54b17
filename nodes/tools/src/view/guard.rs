//! Access control for viewing and for actions.

use std::net::{IpAddr, SocketAddr};

/// The access rules of a view that listens at one address.
///
/// A foreign page in a browser of this host also reaches loopback addresses. It cannot act, because
/// its requests carry its `Origin` and lack the secret of the view's page. Even if its name
/// resolves to this host (DNS rebinding), it cannot view, because its requests carry its own
/// `Host`. Beyond loopback, nothing is shown without the token.
#[derive(Clone, Debug)]
pub struct Guard {
    token: Option<String>,
    secret: String,
}

/// The credentials of a request.
#[derive(Clone, Debug, Default)]
pub struct Credentials<'a> {
    /// The `Host` header.
    pub host: Option<&'a str>,
    /// The `Origin` header.
    pub origin: Option<&'a str>,
    /// The token in the request's address.
    pub token: Option<&'a str>,
    /// The secret of the view's page.
    pub secret: Option<&'a str>,
}

impl Guard {
    /// The guard of `at`. `token` and `secret` are random for each view.
    pub fn new(at: SocketAddr, token: String, secret: String) -> Self {
        let is_loopback = at.ip().is_loopback();
        Self {
            token: (!is_loopback).then_some(token),
            secret,
        }
    }

    /// The token that the address must contain, if any.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// The secret that the page sends with its actions.
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// Checks whether a request may view.
    ///
    /// # Errors
    /// The reason of a refusal.
    pub fn may_look(&self, asked: &Credentials<'_>) -> Result<(), &'static str> {
        let host = asked.host.ok_or("the request has no Host header")?;
        if !is_address(host) {
            return Err("use the address printed by `phitwire view`, not another name for it");
        }
        match &self.token {
            Some(token) if !asked.token.is_some_and(|given| is_same(given, token)) => {
                Err("missing or wrong token: use the address printed by `phitwire view`")
            }
            _ => Ok(()),
        }
    }

    /// Checks whether a request may act.
    ///
    /// # Errors
    /// The reason of a refusal.
    pub fn may_act(&self, asked: &Credentials<'_>) -> Result<(), &'static str> {
        self.may_look(asked)?;
        let own = asked.host.map(|host| format!("http://{host}"));
        if asked.origin != own.as_deref() {
            return Err("the request comes from another page");
        }
        if !asked
            .secret
            .is_some_and(|given| is_same(given, &self.secret))
        {
            return Err(
                "the request comes from another page, or from before a restart: reload the \
                        page",
            );
        }
        Ok(())
    }
}

/// Whether a host is an address, or `localhost`, which means the local machine everywhere.
fn is_address(host: &str) -> bool {
    let is_port = |port: &str| port.is_empty() || port.parse::<u16>().is_ok();
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split_once(']').is_some_and(|(ip, port)| {
            let port = port.strip_prefix(':').unwrap_or(port);
            ip.parse::<IpAddr>().is_ok() && is_port(port)
        });
    }
    let (name, port) = host.split_once(':').unwrap_or((host, ""));
    is_port(port) && (name == "localhost" || name.parse::<IpAddr>().is_ok())
}

/// Compares secrets in a time that does not depend on the first difference.
fn is_same(a: &str, b: &str) -> bool {
    let differ = a.bytes().zip(b.bytes()).fold(0, |all, (a, b)| all | a ^ b);
    a.len() == b.len() && differ == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(at: &str) -> Guard {
        Guard::new(at.parse().unwrap(), "token".into(), "secret".into())
    }

    fn asked(host: &str) -> Credentials<'_> {
        Credentials {
            host: Some(host),
            ..Credentials::default()
        }
    }

    #[test]
    fn on_loopback_requests_for_an_address_may_view() {
        let guard = guard("127.0.0.1:8080");
        for host in [
            "127.0.0.1:8080",
            "localhost:8080",
            "localhost",
            "[::1]:8080",
            "[::1]",
        ] {
            assert_eq!(guard.may_look(&asked(host)), Ok(()), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:8080",
            "127.0.0.1.evil.example",
            "",
            "[::1",
            "localhost:x",
        ] {
            assert!(guard.may_look(&asked(host)).is_err(), "{host}");
        }
        assert!(guard.may_look(&Credentials::default()).is_err(), "nobody's");
    }

    #[test]
    fn beyond_loopback_viewing_needs_the_token() {
        let guard = guard("0.0.0.0:8080");
        let with = |token| Credentials {
            token,
            ..asked("192.0.2.1:8080")
        };
        assert_eq!(guard.may_look(&with(Some("token"))), Ok(()));
        for token in [None, Some(""), Some("tokem"), Some("token1")] {
            assert!(guard.may_look(&with(token)).is_err(), "{token:?}");
        }
    }

    #[test]
    fn only_the_own_page_acts() {
        let guard = guard("127.0.0.1:80");
        let good = Credentials {
            origin: Some("http://127.0.0.1:80"),
            secret: Some("secret"),
            ..asked("127.0.0.1:80")
        };
        assert_eq!(guard.may_act(&good), Ok(()));
        for (origin, secret) in [
            (None, Some("secret")),
            (Some("http://evil.example"), Some("secret")),
            (Some("null"), Some("secret")),
            (Some("https://127.0.0.1:80"), Some("secret")),
            (Some("http://127.0.0.1:80"), None),
            (Some("http://127.0.0.1:80"), Some("guess")),
        ] {
            let bad = Credentials {
                origin,
                secret,
                ..good.clone()
            };
            assert!(guard.may_act(&bad).is_err(), "{bad:?}");
        }
    }
}
