//! The address of a connection or a listener as text: `tcp:HOST:PORT`, `ptcp:PORT:HOST`, ...
//!
//! The forms are those of `ovs-ofctl` and `ovs-vsctl`, so that a command line can be carried over.
//! It must never open anything; that is `transport`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use openflow::text::decimal_where;

/// The port that the specification registers for OpenFlow (clause 6.3.2).
pub const DEFAULT_PORT: u16 = 6653;

/// One end of a connection: connect to it (active) or accept on it (passive).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// `tcp:HOST[:PORT]`: connect. HOST is a name or an address; IPv6 stands in brackets.
    Tcp {
        /// Name or address.
        host: String,
        /// TCP port; 0 makes sense only for [`Endpoint::into_passive`].
        port: u16,
    },
    /// `ssl:HOST[:PORT]`: connect, with TLS.
    Ssl {
        /// Name or address.
        host: String,
        /// TCP port.
        port: u16,
    },
    /// `unix:PATH`: connect.
    Unix(PathBuf),
    /// `ptcp:[PORT][:HOST]`: accept. Without HOST on every address.
    PassiveTcp {
        /// Name or address to accept on.
        host: String,
        /// TCP port; 0 lets the system choose.
        port: u16,
    },
    /// `pssl:[PORT][:HOST]`: accept, with TLS.
    PassiveSsl {
        /// Name or address to accept on.
        host: String,
        /// TCP port; 0 lets the system choose.
        port: u16,
    },
    /// `punix:PATH`: accept.
    PassiveUnix(PathBuf),
}

/// A text that is not an endpoint, with the reason and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an endpoint: {reason}")]
pub struct BadEndpoint {
    /// The text as given.
    pub text: String,
    /// Why it is refused, and the remedy.
    pub reason: String,
}

const FORMS: &str = "use tcp:HOST[:PORT], ssl:HOST[:PORT], unix:PATH, or to accept connections \
                     ptcp:[PORT][:HOST], pssl:[PORT][:HOST], punix:PATH";

impl Endpoint {
    /// Whether connections are accepted here, instead of made.
    #[must_use]
    pub fn is_passive(&self) -> bool {
        match self {
            Self::Tcp { .. } | Self::Ssl { .. } | Self::Unix(_) => false,
            Self::PassiveTcp { .. } | Self::PassiveSsl { .. } | Self::PassiveUnix(_) => true,
        }
    }

    /// Whether TLS is spoken here, which needs a private key and certificates.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        match self {
            Self::Ssl { .. } | Self::PassiveSsl { .. } => true,
            Self::Tcp { .. } | Self::PassiveTcp { .. } | Self::Unix(_) | Self::PassiveUnix(_) => {
                false
            }
        }
    }

    /// The same place to accept on: `tcp:HOST:PORT` becomes `ptcp:PORT:HOST`. For options such as
    /// `--listen` where the direction is plain.
    #[must_use]
    pub fn into_passive(self) -> Self {
        match self {
            Self::Tcp { host, port } => Self::PassiveTcp { host, port },
            Self::Ssl { host, port } => Self::PassiveSsl { host, port },
            Self::Unix(path) => Self::PassiveUnix(path),
            passive
            @ (Self::PassiveTcp { .. } | Self::PassiveSsl { .. } | Self::PassiveUnix(_)) => passive,
        }
    }

    /// The same place to connect to: `ptcp:PORT:HOST` becomes `tcp:HOST:PORT`.
    #[must_use]
    pub fn into_active(self) -> Self {
        match self {
            Self::PassiveTcp { host, port } => Self::Tcp { host, port },
            Self::PassiveSsl { host, port } => Self::Ssl { host, port },
            Self::PassiveUnix(path) => Self::Unix(path),
            active @ (Self::Tcp { .. } | Self::Ssl { .. } | Self::Unix(_)) => active,
        }
    }
}

impl FromStr for Endpoint {
    type Err = BadEndpoint;

    fn from_str(text: &str) -> Result<Self, BadEndpoint> {
        let refuse = |reason: String| BadEndpoint { text: text.to_owned(), reason };
        let Some((kind, rest)) = text.split_once(':') else {
            return Err(refuse(format!("it has no kind before a colon; {FORMS}")));
        };
        match kind {
            "tcp" => {
                let (host, port) = host_and_port(kind, rest).map_err(refuse)?;
                Ok(Self::Tcp { host, port })
            }
            "ssl" => {
                let (host, port) = host_and_port(kind, rest).map_err(refuse)?;
                Ok(Self::Ssl { host, port })
            }
            "ptcp" => {
                let (port, host) = port_and_host(rest).map_err(refuse)?;
                Ok(Self::PassiveTcp { host, port })
            }
            "pssl" => {
                let (port, host) = port_and_host(rest).map_err(refuse)?;
                Ok(Self::PassiveSsl { host, port })
            }
            "unix" | "punix" if rest.is_empty() => {
                Err(refuse(format!("the path is missing: {kind}:PATH")))
            }
            "unix" => Ok(Self::Unix(rest.into())),
            "punix" => Ok(Self::PassiveUnix(rest.into())),
            other => Err(refuse(format!("`{other}` is no kind of transport; {FORMS}"))),
        }
    }
}

/// `HOST`, `HOST:PORT`, `[V6]`, `[V6]:PORT`.
fn host_and_port(kind: &str, text: &str) -> Result<(String, u16), String> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, behind) = rest.split_once(']').ok_or("`[` without `]`")?;
            (host, behind.strip_prefix(':').or(behind.is_empty().then_some("")))
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, Some("")),
        },
    };
    let port = port.ok_or("behind `]` only :PORT may stand")?;
    if host.is_empty() {
        return Err(format!("the host is missing: {kind}:HOST:PORT"));
    }
    if port.contains(':') {
        return Err(format!("an IPv6 address stands in brackets: {kind}:[::1]:6653"));
    }
    let port = if port.is_empty() { DEFAULT_PORT } else { number(port)? };
    Ok((host.to_owned(), port))
}

/// `PORT`, `PORT:HOST`, `:HOST` or nothing.
fn port_and_host(text: &str) -> Result<(u16, String), String> {
    let (port, host) = text.split_once(':').unwrap_or((text, ""));
    let port = if port.is_empty() { DEFAULT_PORT } else { number(port)? };
    let host = if host.is_empty() { "0.0.0.0" } else { unbracketed(host) };
    Ok((port, host.to_owned()))
}

fn unbracketed(host: &str) -> &str {
    host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host)
}

fn number(text: &str) -> Result<u16, String> {
    decimal_where(text, |_| true, format_args!("`{text}` is no TCP port (0 to 65535)"))
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } => write!(f, "tcp:{}:{port}", Bracketed(host)),
            Self::Ssl { host, port } => write!(f, "ssl:{}:{port}", Bracketed(host)),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::PassiveTcp { host, port } => write!(f, "ptcp:{port}:{}", Bracketed(host)),
            Self::PassiveSsl { host, port } => write!(f, "pssl:{port}:{}", Bracketed(host)),
            Self::PassiveUnix(path) => write!(f, "punix:{}", path.display()),
        }
    }
}

/// A host as it stands before or after a port: an IPv6 address in brackets.
struct Bracketed<'a>(&'a str);

impl fmt::Display for Bracketed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(host) = self;
        if host.contains(':') { write!(f, "[{host}]") } else { f.write_str(host) }
    }
}

#[cfg(test)]
mod tests {
    use super::Endpoint;

    fn printed(text: &str) -> String {
        text.parse::<Endpoint>().unwrap().to_string()
    }

    fn refused(text: &str) -> String {
        text.parse::<Endpoint>().unwrap_err().to_string()
    }

    #[test]
    fn every_form_is_read_and_printed_back() {
        for text in [
            "tcp:127.0.0.1:6633",
            "tcp:controller.example:6653",
            "tcp:[::1]:6653",
            "ssl:127.0.0.1:6633",
            "ssl:[::1]:6653",
            "unix:/run/weir.sock",
            "ptcp:6633:127.0.0.1",
            "pssl:6633:127.0.0.1",
            "pssl:6633:[::1]",
            "ptcp:0:[::1]",
            "punix:/run/weir.sock",
        ] {
            assert_eq!(printed(text), text);
        }
    }

    #[test]
    fn what_is_left_out_is_filled_in() {
        assert_eq!(printed("tcp:10.0.0.1"), "tcp:10.0.0.1:6653");
        assert_eq!(printed("tcp:[::1]"), "tcp:[::1]:6653");
        assert_eq!(printed("ssl:10.0.0.1"), "ssl:10.0.0.1:6653");
        assert_eq!(printed("pssl:"), "pssl:6653:0.0.0.0");
        assert_eq!(printed("ptcp:"), "ptcp:6653:0.0.0.0");
        assert_eq!(printed("ptcp:6634"), "ptcp:6634:0.0.0.0");
        assert_eq!(printed("ptcp::127.0.0.1"), "ptcp:6653:127.0.0.1");
    }

    #[test]
    fn a_refusal_names_the_fault_and_the_remedy() {
        assert!(refused("10.0.0.1").contains("use tcp:HOST[:PORT]"));
        assert!(refused("ssl:").contains("the host is missing: ssl:HOST:PORT"));
        assert!(refused("ssl:fe80::1:6653").contains("brackets: ssl:[::1]"));
        assert!(refused("tls:10.0.0.1").contains("ssl:HOST[:PORT]"));
        assert!(refused("udp:10.0.0.1").contains("`udp` is no kind of transport"));
        assert!(refused("tcp:10.0.0.1:x").contains("`x` is no TCP port"));
        assert!(refused("tcp:10.0.0.1:70000").ends_with("`70000` is no TCP port (0 to 65535)"));
        assert!(refused("tcp:").contains("the host is missing"));
        assert!(refused("tcp:::1:6653").contains("missing"));
        assert!(refused("tcp:fe80::1:6653").contains("brackets"));
        assert!(refused("tcp:[::1").contains("without `]`"));
        assert!(refused("tcp:[::1]6653").contains("behind `]`"));
        assert!(refused("unix:").contains("the path is missing: unix:PATH"));
    }

    #[test]
    fn an_active_form_names_a_place_to_listen_on_too() {
        let listen: Endpoint = "tcp:0.0.0.0:6653".parse().unwrap();
        assert!(!listen.is_passive() && listen.clone().into_passive().is_passive());
        let passive = listen.clone().into_passive();
        assert_eq!(passive.to_string(), "ptcp:6653:0.0.0.0");
        assert_eq!(passive.into_active(), listen);
    }
}
