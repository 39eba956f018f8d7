//! The name of a cluster on a command line: `etcd:http://HOST:PORT` (or `https://`), the
//! cluster's name, a node's id. Names become parts of etcd's keys, so what could change a key's
//! meaning is refused here.

use std::fmt;
use std::str::FromStr;

/// The longest name of a cluster, a node or an app, in bytes.
const NAME_MAX: usize = 64;

/// The port of etcd's clients, where an address has none.
const ETCD_PORT: u16 = 2379;

/// Addresses of the etcd of a cluster: one or several of its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterAddress {
    /// `HOST:PORT` of each member, in the order of trying.
    pub(crate) servers: Vec<String>,
    /// Whether they are spoken to with TLS.
    pub(crate) is_tls: bool,
}

/// Why a text is no address or no name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadName(String);

impl FromStr for ClusterAddress {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        let bad = |what: &str| {
            let example = "give for example etcd:http://127.0.0.1:2379";
            Err(BadName(format!("{what}; {example}")))
        };
        let Some(urls) = text.strip_prefix("etcd:") else {
            return bad("a cluster's address begins with etcd:");
        };
        let (mut servers, is_tls) = (Vec::new(), urls.starts_with("https://"));
        for url in urls.split(',') {
            let Some(rest) = url.strip_prefix(scheme(is_tls)) else {
                let is_other = url.starts_with(scheme(!is_tls));
                return bad(match is_other {
                    true => "all members are spoken to with TLS, or none",
                    false => "etcd's URL begins with http:// or https://",
                });
            };
            let server = rest.strip_suffix('/').unwrap_or(rest);
            match server_of(server) {
                Some(server) => servers.push(server),
                None => return bad(&format!("`{server}` is no HOST:PORT")),
            }
        }
        Ok(Self { servers, is_tls })
    }
}

fn scheme(is_tls: bool) -> &'static str {
    if is_tls { "https://" } else { "http://" }
}

/// `HOST:PORT` of a text that may lack the port; an IPv6 address stands in brackets.
fn server_of(text: &str) -> Option<String> {
    let after_address = text.rfind(']').map_or(0, |at| at + 1);
    let (host, port) = match text.get(after_address..)?.rfind(':') {
        Some(at) => {
            let (host, port) = text.split_at(after_address + at);
            (host, port.get(1..)?.parse::<u16>().ok().filter(|port| *port > 0)?)
        }
        None => (text, ETCD_PORT),
    };
    let in_brackets = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_host = match in_brackets {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
            !host.is_empty() && host.chars().all(is_fine)
        }
    };
    is_host.then(|| format!("{host}:{port}"))
}

impl fmt::Display for ClusterAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, server) in self.servers.iter().enumerate() {
            let before = if index == 0 { "etcd:" } else { "," };
            write!(f, "{before}{}{server}", scheme(self.is_tls))?;
        }
        Ok(())
    }
}

/// A name that may be part of a key: of a cluster, a node or an app. It has 1 to 64 letters,
/// digits, dots, dashes and underscores.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyName(String);

impl KeyName {
    /// Of a text that is known to be a name.
    pub(crate) fn of_fine(text: String) -> Self {
        debug_assert!(text.parse::<Self>().is_ok(), "{text}");
        Self(text)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for KeyName {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if text.is_empty() || text.len() > NAME_MAX || !text.chars().all(is_fine) {
            let what = "a name has 1 to 64 letters, digits, dots, dashes and underscores";
            return Err(BadName(what.into()));
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{ClusterAddress, KeyName};

    fn address(text: &str) -> Result<String, String> {
        let address = text.parse::<ClusterAddress>();
        address.map(|it| it.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn addresses_name_one_or_several_servers() {
        for (text, whole) in [
            ("etcd:http://127.0.0.1:2379", "etcd:http://127.0.0.1:2379"),
            ("etcd:http://etcd-1/", "etcd:http://etcd-1:2379"),
            ("etcd:http://[::1]", "etcd:http://[::1]:2379"),
            ("etcd:http://[::1]:99", "etcd:http://[::1]:99"),
            ("etcd:http://a:1,http://b:2", "etcd:http://a:1,http://b:2"),
            ("etcd:https://a,https://[::1]:2", "etcd:https://a:2379,https://[::1]:2"),
        ] {
            assert_eq!(address(text).as_deref(), Ok(whole));
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_an_example() {
        for text in [
            "",
            "etcd:",
            "http://127.0.0.1:2379",
            "etcd:127.0.0.1",
            "etcd:http://",
            "etcd:http://:1",
            "etcd:http://a:0",
            "etcd:http://a:65536",
            "etcd:http://a:1,",
            "etcd:http://a/b:1",
            "etcd:http://[::1",
            "etcd:http://[x]:1",
            "etcd:http://a b",
            "etcd:http://a\r\nX: y",
            "etcd:http://u:p@a:1",
            "zookeeper:http://a:1",
        ] {
            let error = address(text).unwrap_err();
            assert!(error.contains("etcd:http://127.0.0.1:2379"), "{text}: {error}");
        }
        assert!(address("etcd:https://a:1,http://b:1").unwrap_err().contains("TLS"));
        assert!(address("etcd:http://a:1,https://b:1").unwrap_err().contains("TLS"));
    }

    #[test]
    fn names_cannot_leave_their_place_in_a_key() {
        assert!("Node-1_b.example".parse::<KeyName>().is_ok());
        for text in ["", "a/b", "a b", "a\0", "ä", &"x".repeat(65)] {
            assert!(text.parse::<KeyName>().is_err(), "{text}");
        }
    }
}
